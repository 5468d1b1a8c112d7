"""Reductions over axes: sums, products, extrema and their indices; other bodies reduce by pairwise halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import Spec, catalog
from tenferro_xla.importing._bodies import monoid_of, winner
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, out_spec, unknown
from tenferro_xla.importing._values import Splat, Value, arrays, as_array
from tenferro_xla.importing.elementwise import ELEMENTWISE
from tenferro_xla.importing.structure import integers

JOINS: Final[dict[str, Any]] = {
    "add": catalog.add, "multiply": catalog.mul, "maximum": catalog.maximum, "minimum": catalog.minimum,
}  # fmt: skip

_REDUCED: Final[dict[str, Any]] = {
    "add": catalog.reduce_sum, "multiply": catalog.reduce_prod, "maximum": catalog.reduce_max,
    "minimum": catalog.reduce_min,
}  # fmt: skip


def least(dtype: np.dtype[Any]) -> Any:
    """Return the smallest element of a dtype."""
    return -np.inf if dtype.kind not in "biu" else np.iinfo(dtype).min if dtype.kind != "b" else False


def greatest(dtype: np.dtype[Any]) -> Any:
    """Return the largest element of a dtype."""
    return np.inf if dtype.kind not in "biu" else np.iinfo(dtype).max if dtype.kind != "b" else True


def neutral(name: str, dtype: np.dtype[Any]) -> Any:
    """Return the neutral element of an operation."""
    return {"add": 0, "multiply": 1, "maximum": least(dtype), "minimum": greatest(dtype)}[name]


def is_neutral(x: Value, name: str) -> bool:
    """Return whether an initial value is known to be the neutral element."""
    return isinstance(x, Splat) and bool(x.number == neutral(name, x.spec.dtype))


def joined(name: str, x: Any, y: Any) -> Any:
    """Combine two arrays by a known operation."""
    if x.spec.dtype.kind == "b":
        return (catalog.bitwise_or if name == "maximum" else catalog.bitwise_and)(x, y)
    return JOINS[name](x, y)


def _reduce(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    count = len(xs) // 2
    body, axes = op.regions[0].blocks[0], integers(op, "dimensions")
    operands, starts = arrays(xs[:count]), xs[count:]
    if count == 1:
        name = monoid_of(body, operands[0].spec.dtype)
        if name in JOINS:
            return (_known(name, operands[0], starts[0], axes, out_spec(op)),)
    which = winner(body) if count == 2 and len(axes) == 1 else None
    if which is not None and _counts(op.operands[1], axes[0]) and 0 not in operands[0].spec.shape:
        wanted = least if which == "argmax" else greatest
        if isinstance(starts[0], Splat) and starts[0].number == wanted(starts[0].spec.dtype):
            return _winner(which, operands[0], axes[0], out_spec(op, 1))
    join = joining(reader, op, body, count, scope)
    return _halved(join, operands, arrays(starts), axes)


def _known(name: str, x: Any, start: Value, axes: tuple[int, ...], out: Spec) -> Any:
    if 0 in [x.spec.shape[a] for a in axes]:
        return catalog.broadcast_in_dim(as_array(start), shape=out.shape, dims=())
    if x.spec.dtype.kind == "b":
        found = (catalog.reduce_any if name == "maximum" else catalog.reduce_all)(x, axes=axes)
    else:
        found = _REDUCED[name](x, axes=axes)
    if is_neutral(start, name):
        return found
    return joined(name, catalog.broadcast_in_dim(as_array(start), shape=found.spec.shape, dims=()), found)


def _counts(value: Any, axis: int) -> bool:
    """Return whether a value is the index along an axis."""
    op = getattr(value.owner, "operation", value.owner)
    return getattr(op, "name", None) == "stablehlo.iota" and int(op.attributes["iota_dimension"].value) == axis


def _winner(which: str, x: Any, axis: int, index: Spec) -> Sequence[Value]:
    best = (catalog.reduce_max if which == "argmax" else catalog.reduce_min)(x, axes=(axis,))
    found = (catalog.argmax if which == "argmax" else catalog.argmin)(x, axis=axis)
    return best, found if index.dtype == found.spec.dtype else catalog.convert(found, dtype=index.dtype)


def joining(reader: ModuleReader, op: Any, body: Any, count: int, scope: ValueScope) -> Callable[..., list[Any]]:
    """Return the body of a reduction as a function of lists of arrays, ``join(left, right)``.

    Raises:
        UnsupportedError: the body has operations that are not element-wise.
    """
    for each in body.operations:
        name = each.operation.name
        if name not in ELEMENTWISE and name not in ("stablehlo.constant", "stablehlo.return"):
            raise unknown(op, f"its body contains {name}, which is not element-wise")

    def join(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        shape = left[0].spec.shape
        found = arrays(reader.run_block(body, [*left, *right], scope))
        return [v if v.spec.shape == shape else catalog.broadcast_in_dim(v, shape=shape, dims=()) for v in found]

    return join


def _halved(join: Callable[..., list[Any]], xs: list[Any], starts: list[Any], axes: tuple[int, ...]) -> list[Any]:
    """Combine neighbours pairwise until one element is left, in the order of the elements."""
    kept = [a for a in range(xs[0].spec.ndim) if a not in axes]
    rows = prod([xs[0].spec.shape[a] for a in axes])
    shape = tuple([xs[0].spec.shape[a] for a in kept])
    first = [catalog.broadcast_in_dim(s, shape=shape, dims=()) for s in starts]
    if rows == 0:
        return first
    lines = [catalog.reshape(catalog.transpose(x, permutation=(*axes, *kept)), shape=(rows, *shape)) for x in xs]
    while rows > 1:
        even = 2 * (rows // 2)
        pairs = [[_every_second(x, i, even) for x in lines] for i in (0, 1)]
        made = join(*pairs)
        if rows % 2:
            made = [catalog.concatenate(m, _rows(x, even, rows), axis=0) for m, x in zip(made, lines, strict=True)]
        lines, rows = made, rows - even // 2
    return join(first, [catalog.reshape(x, shape=shape) for x in lines])


def _every_second(x: Any, first: int, end: int) -> Any:
    rest = x.spec.shape[1:]
    return catalog.slice_(x, start=(first, *[0] * len(rest)), limit=(end, *rest), stride=(2, *[1] * len(rest)))


def _rows(x: Any, start: int, end: int) -> Any:
    rest = x.spec.shape[1:]
    return catalog.slice_(x, start=(start, *[0] * len(rest)), limit=(end, *rest), stride=(1,) * x.spec.ndim)


REDUCTIONS: Final[dict[str, Handler]] = {"stablehlo.reduce": _reduce}
"""Reductions over whole axes."""
