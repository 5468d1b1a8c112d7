"""The entry point ``tenferro.extensions: random``: expansions and rules of the primitives of random numbers."""

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
    """Register expansions, for programs and backends without kernels, and rules of derivatives and batching."""
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
    """Batching rule: lanes are keys; other operands are repeated."""

    def rule(size: Any, values: Any, batched: Any, **how: Any) -> Any:
        return primitive(*all_with_lanes(size, values, batched), **how)

    return rule


def _slope(a: Any, out: Any) -> Any:
    """The derivative of the logarithm x of a gamma number with respect to its parameter, at a fixed distribution
    function P: ``-(dP / da) / (dP / dx)``."""
    from tenferro_runtime.special import digamma
    from tenferro_runtime.special._incomplete_gamma import gammainc_shape_

    # If exp(x) is negligible compared with 1, P is exp(a x) / gamma(a + 1).
    tiny = out < -30.0
    safe = where(tiny, 0.0, out)
    number = catalog.exp(safe)
    density = catalog.exp(a * safe - number - catalog.lgamma(a))
    return where(tiny, (digamma(a + 1.0) - out) / a, -gammainc_shape_(a, number, order=1) / density)


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (None if tangents[2] is None else tangents[2] * _slope(primals[2], outs[0]),)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[None, None, Any]:
    return None, None, cotangents[0] * _slope(primals[2], outs[0])
