"""The kernel of `dot_general`: one matrix product, with only the views and copies that the case needs.

NumPy passes transposed matrices to BLAS without a copy, so a transposition is free; merging axes that are not adjacent
in memory costs a copy.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from tenferro_tensor._sized import sized
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import contraction as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, extents

Pair = tuple[Ints, Ints]


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @sized(_sizes)
    def dot_general(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, contract: Pair, batch: Pair) -> Kernel:
        ways = [_multiplied(xp, way) for way in _ways(ins, outs, contract, batch)]
        if len(ways) == 1:
            return ways[0]
        x_larger, y_larger = ways
        return lambda x, y, a, b: x_larger(x, y, *a) if x.size >= y.size else y_larger(x, y, *b)

    return {ops.dot_general: dot_general}


class _Side(NamedTuple):
    """How an operand becomes a matrix, a stack of matrices or a vector: permute its axes by `order`, reshape it to
    `shape`, and exchange rows and columns if `swap`. `None` skips a step."""

    order: Ints | None
    shape: Any
    swap: bool = False

    @staticmethod
    def of(s: Spec, order: Ints, shape: Any) -> _Side:
        moved = order != tuple(range(len(order)))
        return _Side(order if moved else None, shape if shape != _extents(s, order) else None)


class _Way(NamedTuple):
    """A contraction: its operands, the product, and the shape of the result if the product has another one."""

    left: _Side
    right: _Side
    product: str
    out: Any

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The target shapes of the reshapes, in order."""
        return tuple([shape for shape in (self.left.shape, self.right.shape, self.out) if shape is not None])


def _sizes(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, contract: Pair, batch: Pair) -> tuple[Any, ...]:
    sizes = tuple([way.sizes for way in _ways(ins, outs, contract, batch)])
    return sizes[0] if len(sizes) == 1 else sizes


@lru_cache(maxsize=64)
def _ways(ins: tuple[Spec, ...], outs: tuple[Spec, ...], contract: Pair, batch: Pair) -> tuple[_Way, ...]:
    """The way to contract; two ways if the operands order the contracted axes differently: for a larger left and for a
    larger right operand. Following the order of the larger operand avoids its copy more often."""
    pairs = list(zip(*contract, strict=True))
    orders = {tuple(sorted(pairs, key=lambda pair: pair[i])): None for i in (0, 1)}
    return tuple([_way(ins, outs, [i for i, _ in order], [j for _, j in order], batch) for order in orders])


def _way(ins: tuple[Spec, ...], outs: tuple[Spec, ...], of_x: list[int], of_y: list[int], batch: Pair) -> _Way:
    x, y = ins
    cx, cy = tuple(of_x), tuple(of_y)
    free_x, free_y = _free(x, cx + batch[0]), _free(y, cy + batch[1])
    lead = _extents(x, batch[0])
    if not cx:
        gap_x, gap_y = (1,) * len(free_y), (1,) * len(free_x)
        left = _Side.of(x, batch[0] + free_x, (*lead, *_extents(x, free_x), *gap_x))
        right = _Side.of(y, batch[1] + free_y, (*_extents(y, batch[1]), *gap_y, *_extents(y, free_y)))
        return _Way(left, right, "multiply", None)
    left = _as_matrix(x, batch[0], free_x, cx, vector=not free_x)
    right = _as_matrix(y, batch[1], cy, free_y, vector=not free_y)
    merged = (*lead, *_merged(x, batch[0], free_x), *_merged(y, batch[1], free_y))
    # On small matrices `dot` takes half the time of `matmul`; it has no batch axes.
    product = "dot" if x.inexact and not batch[0] else "matmul"
    return _Way(left, right, product, None if merged == outs[0].shape else outs[0].shape)


def _multiplied(xp: Any, way: _Way) -> Kernel:
    """The kernel of a way; it takes the operands, then the target shapes of the reshapes."""
    left, right, name, out = way
    product = _dot if name == "dot" else getattr(xp, name)
    if left == right == (None, None, False) and out is None:
        return product
    reshapes = left.shape is not None, right.shape is not None, out is not None

    def run(x: Any, y: Any, *shapes: Ints) -> Any:
        rest = iter(shapes)
        if left.order is not None:
            x = x.transpose(left.order)
        if reshapes[0]:
            x = x.reshape(next(rest))
        if left.swap:
            x = x.swapaxes(-1, -2)
        if right.order is not None:
            y = y.transpose(right.order)
        if reshapes[1]:
            y = y.reshape(next(rest))
        if right.swap:
            y = y.swapaxes(-1, -2)
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


def _merged(s: Spec, batch: Ints, free: Ints) -> Ints:
    """The merged free axes of an operand in the product: none for a vector, which only exists without batch axes."""
    return (_size(s, free),) if free or batch else ()


def _as_matrix(s: Spec, batch: Ints, rows: Ints, columns: Ints, *, vector: bool) -> _Side:
    """A stack of matrices with merged rows and columns; a vector if requested and there are no batch axes."""
    lead = _extents(s, batch)
    if vector and not batch:
        return _Side.of(s, rows + columns, (_size(s, rows + columns),))
    order, natural = batch + rows + columns, tuple(range(s.ndim))
    if (len(rows) > 1 or len(columns) > 1) and order != natural and batch + columns + rows == natural:
        return _Side(None, (*lead, _size(s, columns), _size(s, rows)), swap=True)
    return _Side.of(s, order, (*lead, _size(s, rows), _size(s, columns)))
