"""`rows`: all slices of an array along its first axis as one operation, whose derivative is one stack of them.

Indexing an array in a loop would give it one cotangent of its full size for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime._rules import General
from tenferro_tensor import REGISTRY, Primitive, Spec
from tenferro_tensor.functions import stack, zeros_like


def _rows(x: Spec) -> tuple[Spec, ...]:
    """The slices of an array of known length along its first axis, which they lack."""
    n: Any = x.shape[0]
    return tuple([x.with_(shape=x.shape[1:])] * n)


_rows.__name__ = "rows"
rows = Primitive(_rows)


def _make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return tuple


def _jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...], outs: tuple[Any, ...]) -> tuple[Any, ...]:
    return rows(tangents[0])  # type: ignore[no-any-return]


def _vjp(primals: tuple[Any, ...], outs: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
    return (stack([zeros_like(out) if c is None else c for c, out in zip(cotangents, outs)]),)


_make.any_size = True  # type: ignore[attr-defined]  # the number of rows is no open size
REGISTRY.kernel(rows, "*", _make)
REGISTRY.rule(rows, General(jvp=_jvp, vjp=_vjp))
