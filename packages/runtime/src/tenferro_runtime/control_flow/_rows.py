"""`rows`: all slices of an array along its first axis as one operation, whose derivative is one stack.

With indexing, each iteration of a loop would have a cotangent of the array's full size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime._rules import General
from tenferro_tensor import REGISTRY, Primitive, Spec, Tensor
from tenferro_tensor.functions import stack, zeros_like


def _rows(x: Spec) -> tuple[Spec, ...]:
    """The slices of an array of known length along its first axis."""
    n: Any = x.shape[0]
    return tuple([x.with_(shape=x.shape[1:])] * n)


_rows.__name__ = "rows"
rows: Final[Primitive] = Primitive(_rows)


def _make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., tuple[Any, ...]]:
    (x,) = ins
    if x.place.on_host:
        return lambda raw, *shape: tuple(raw)

    def run(raw: Any, *shape: Any) -> tuple[Any, ...]:
        whole = Tensor.wrap(raw, x.with_(shape=shape[0]) if shape else x)
        return tuple([whole[i]._data for i in range(len(outs))])

    return run


def _sizes(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (ins[0].shape,)


def _jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...], outs: tuple[Any, ...]) -> tuple[Any, ...]:
    return rows(tangents[0])  # type: ignore[no-any-return]


def _vjp(primals: tuple[Any, ...], outs: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
    return (stack([zeros_like(out) if c is None else c for c, out in zip(cotangents, outs)]),)


_make.sizes = _sizes  # type: ignore[attr-defined]
REGISTRY.kernel(rows, "*", _make)
REGISTRY.rule(rows, General(jvp=_jvp, vjp=_vjp))
