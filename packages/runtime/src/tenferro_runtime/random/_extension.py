"""The entry point ``tenferro.extensions: random``: what the primitives of random numbers are in terms of others."""

from typing import Any

from tenferro_runtime.batching import all_with_lanes
from tenferro_runtime.extension import General, Inactive, Registry
from tenferro_runtime.random import _rejection, _stream
from tenferro_tensor import catalog
from tenferro_tensor.functions import where
from tenferro_tensor.random_streams import (
    random_bits,
    random_exponential,
    random_loggamma,
    random_normal,
    random_uniform,
)


def register(registry: Registry) -> None:
    """Expansions, which programs run, and backends without kernels of their own; rules of derivatives and batches."""
    for primitive, expansion in (
        (random_bits, _stream.bits),
        (random_uniform, _stream.uniform),
        (random_normal, _stream.normal),
        (random_exponential, _stream.exponential),
    ):
        registry.expansion(primitive, expansion)
        registry.rule(primitive, Inactive())
        registry.batching(primitive, _with_lanes(primitive))
    registry.expansion(random_loggamma, _rejection.log_gamma)
    registry.rule(random_loggamma, General(jvp=_jvp, vjp=_vjp))
    registry.batching(random_loggamma, _with_lanes(random_loggamma))


def _with_lanes(primitive: Any) -> Any:
    """Lanes are keys: operands without them are repeated."""

    def rule(size: Any, values: Any, batched: Any, **how: Any) -> Any:
        return primitive(*all_with_lanes(size, values, batched), **how)

    return rule


def _slope(a: Any, out: Any) -> Any:
    """The derivative of the logarithm x of a gamma number by its parameter, at a fixed value of its distribution
    function P: ``-(dP / da) / (dP / dx)``."""
    from tenferro_runtime.special import digamma
    from tenferro_runtime.special._incomplete_gamma import gammainc_shape_

    # Where exp(x) is nothing beside one, P is exp(a x) / gamma(a + 1).
    tiny = out < -30.0
    safe = where(tiny, 0.0, out)
    number = catalog.exp(safe)
    density = catalog.exp(a * safe - number - catalog.lgamma(a))
    return where(tiny, (digamma(a + 1.0) - out) / a, -gammainc_shape_(a, number, order=1) / density)


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (None if tangents[2] is None else tangents[2] * _slope(primals[2], outs[0]),)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[None, None, Any]:
    return None, None, cotangents[0] * _slope(primals[2], outs[0])
