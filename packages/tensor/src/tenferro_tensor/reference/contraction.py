"""The kernel of `dot_general`: one matrix product, and around it only the views and copies that a case needs.

NumPy hands transposed matrices to BLAS as they are, so a transposition costs nothing; merging axes that are not
neighbours in memory costs a copy.
"""

from __future__ import annotations

import math
from operator import methodcaller
from typing import Any, NamedTuple

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import contraction as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, extents, unchanged, with_sizes

Pair = tuple[Ints, Ints]


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @with_sizes(_open_sizes)
    def dot_general(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, contract: Pair, batch: Pair) -> Kernel:
        x, y = ins
        if x.symbolic or y.symbolic:
            return _open(xp, _sides(ins, outs, contract, batch))
        free_x, free_y = _free(x, contract[0] + batch[0]), _free(y, contract[1] + batch[1])
        if not contract[0]:
            gap_x, gap_y = (1,) * len(free_y), (1,) * len(free_x)
            left = _arranged(x, batch[0] + free_x, (*_extents(x, batch[0] + free_x), *gap_x))
            right = _arranged(y, batch[1] + free_y, (*_extents(y, batch[1]), *gap_y, *_extents(y, free_y)))
            return _composed(xp.multiply, left, right, unchanged)
        contracted_x, contracted_y = _in_memory_order(x, y, contract)
        left = _as_matrix(x, batch[0], free_x, contracted_x, vector=not free_x)
        right = _as_matrix(y, batch[1], contracted_y, free_y, vector=not free_y)
        # On small matrices `dot` takes half the time of `matmul`; with batch axes it means something else.
        product = _dot if x.inexact and not batch[0] else xp.matmul
        merged = (*_extents(x, batch[0]), *_side(x, batch[0], free_x), *_side(y, batch[1], free_y))
        return _composed(product, left, right, unchanged if merged == outs[0].shape else _reshape(outs[0].shape))

    return {ops.dot_general: dot_general}


class _Side(NamedTuple):
    """How an operand becomes a matrix, a stack of them or a vector: transposed to `order`, reshaped to `shape`; `None`
    where that changes nothing."""

    order: Ints | None
    shape: Any

    @staticmethod
    def of(s: Spec, order: Ints, shape: Any) -> _Side:
        moved = order != tuple(range(len(order)))
        return _Side(order if moved else None, shape if shape != _extents(s, order) else None)


class _Sides(NamedTuple):
    """A contraction for all sizes: operands, the shape of the result where the product has another, and the product."""

    left: _Side
    right: _Side
    out: Any
    product: str


def _sides(ins: tuple[Spec, ...], outs: tuple[Spec, ...], contract: Pair, batch: Pair) -> _Sides:
    x, y = ins
    free_x, free_y = _free(x, contract[0] + batch[0]), _free(y, contract[1] + batch[1])
    lead = _extents(x, batch[0])
    if not contract[0]:
        gap_x, gap_y = (1,) * len(free_y), (1,) * len(free_x)
        left = _Side.of(x, batch[0] + free_x, (*lead, *_extents(x, free_x), *gap_x))
        right = _Side.of(y, batch[1] + free_y, (*lead, *gap_y, *_extents(y, free_y)))
        return _Sides(left, right, None, "multiply")
    pairs = sorted(zip(*contract, strict=True))
    cx, cy = tuple([i for i, _ in pairs]), tuple([j for _, j in pairs])
    inner = _size(x, cx)
    rows = () if not free_x and not batch[0] else (_size(x, free_x),)
    columns = () if not free_y and not batch[1] else (_size(y, free_y),)
    left = _Side.of(x, batch[0] + free_x + cx, (*lead, *rows, inner))
    right = _Side.of(y, batch[1] + cy + free_y, (*lead, inner, *columns))
    merged = (*lead, *rows, *columns)
    product = "dot" if x.inexact and not batch[0] else "matmul"
    return _Sides(left, right, None if merged == outs[0].shape else outs[0].shape, product)


def _open_sizes(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, contract: Pair, batch: Pair) -> tuple[Any, ...]:
    left, right, out, _ = _sides(ins, outs, contract, batch)
    return tuple([shape for shape in (left.shape, right.shape, out) if shape is not None])


def _open(xp: Any, sides: _Sides) -> Kernel:
    """The kernel for all sizes; the shapes that something is reshaped to come after the operands."""
    left, right, out, name = sides
    product = _dot if name == "dot" else getattr(xp, name)
    if left == right == (None, None) and out is None:
        return product
    reshapes = left.shape is not None, right.shape is not None, out is not None

    def run(x: Any, y: Any, *shapes: Ints) -> Any:
        rest = iter(shapes)
        if left.order is not None:
            x = x.transpose(left.order)
        if reshapes[0]:
            x = x.reshape(next(rest))
        if right.order is not None:
            y = y.transpose(right.order)
        if reshapes[1]:
            y = y.reshape(next(rest))
        z = product(x, y)
        return z.reshape(next(rest)) if reshapes[2] else z

    return run


def _dot(x: Any, y: Any) -> Any:
    return x.dot(y)


def _free(s: Spec, used: Ints) -> Ints:
    return tuple([i for i in range(s.ndim) if i not in used])


def _extents(s: Spec, axes: Ints) -> Ints:
    return tuple([extents(s)[i] for i in axes])


def _size(s: Spec, axes: Ints) -> int:
    return math.prod(_extents(s, axes))


def _side(s: Spec, batch: Ints, free: Ints) -> Ints:
    """The merged free axes of an operand in the product: none for a vector, which only exists without batch axes."""
    return (_size(s, free),) if free or batch else ()


def _in_memory_order(x: Spec, y: Spec, contract: Pair) -> Pair:
    """The pairs in the order of the larger operand's axes, so that this one is more likely not copied."""
    larger = 0 if math.prod(extents(x)) >= math.prod(extents(y)) else 1
    pairs = sorted(zip(*contract, strict=True), key=lambda pair: pair[larger])
    return tuple([i for i, _ in pairs]), tuple([j for _, j in pairs])


def _as_matrix(s: Spec, batch: Ints, rows: Ints, columns: Ints, *, vector: bool) -> Kernel:
    """A stack of matrices with merged rows and columns; or a vector, where there is no stack and one side is empty."""
    lead = _extents(s, batch)
    if vector and not batch:
        return _arranged(s, rows + columns, (_size(s, rows + columns),))
    order, swapped = batch + rows + columns, batch + columns + rows
    if (len(rows) > 1 or len(columns) > 1) and order != tuple(range(s.ndim)) and swapped == tuple(range(s.ndim)):
        merge, n = _reshape((*lead, _size(s, columns), _size(s, rows))), len(batch)
        return lambda x: merge(x).swapaxes(n, n + 1)
    return _arranged(s, order, (*lead, _size(s, rows), _size(s, columns)))


def _arranged(s: Spec, order: Ints, shape: Ints) -> Kernel:
    """Transposed to `order`, then reshaped to `shape`; each only where it changes something."""
    moved = order != tuple(range(len(order)))
    reshaped = shape != _extents(s, order)
    if not moved:
        return _reshape(shape) if reshaped else unchanged
    if not reshaped:
        return methodcaller("transpose", order)
    return lambda x: x.transpose(order).reshape(shape)


def _reshape(shape: Any) -> Kernel:
    return methodcaller("reshape", shape)


def _composed(product: Kernel, left: Kernel, right: Kernel, after: Kernel) -> Kernel:
    """``after(product(left(x), right(y)))`` without the parts that do nothing."""
    if after is not unchanged:
        return lambda x, y: after(product(left(x), right(y)))
    if left is not unchanged:
        return lambda x, y: product(left(x), right(y))
    if right is not unchanged:
        return lambda x, y: product(x, right(y))
    return product
