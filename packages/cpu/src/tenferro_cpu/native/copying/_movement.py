"""Kernels of primitives that move elements: `reshape`, `concatenate`, and the packing of `dot_general`.

Transpositions stay views. Where a view must be laid out differently in memory, the native copy does it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_cpu.native.copying._copy import available, contiguous, copy_in_order, copy_into
from tenferro_cpu.native.copying.tuning import BYTES_AT_ONCE, COPY_MIN_BYTES
from tenferro_tensor import Spec, catalog

Kernel = Callable[..., Any]
Maker = Callable[..., Kernel]
Ints = tuple[int, ...]
Pair = tuple[Ints, Ints]
Array = np.ndarray[Any, Any]

MAX_LAYOUTS = 64
"""Maximum number of layouts cached per kernel."""

_HAS_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def movers(table: dict[Any, Maker]) -> dict[Any, Maker]:
    """The makers of `table` for moving primitives, with planned copies for large operands."""
    if not available():
        return {}
    return {
        catalog.reshape: _reshape(table[catalog.reshape]),
        catalog.concatenate: _concatenate(table[catalog.concatenate]),
    }


def _reshape(reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints) -> Kernel:
        if ins[0].symbolic or outs[0].symbolic or _bytes(ins[0]) < COPY_MIN_BYTES:
            return reference(ins, outs, shape=shape)
        return arranged(shape)

    make.sizes = reference.sizes  # type: ignore[attr-defined]
    make.large = lambda ins, outs, shape: (_bytes(ins[0]), COPY_MIN_BYTES)  # type: ignore[attr-defined]
    return make


def arranged(shape: Ints, order: Ints | None = None, *, matrices: bool = False) -> Kernel:
    """Transpose to `order`, then reshape: a view if possible, otherwise a native copy.

    Args:
        shape: shape of the result.
        order: axes of the operand in the order of the result's merged axes; by default unchanged.
        matrices: copy also if the result would be a view that BLAS cannot read.
    """
    views: dict[Ints, bool] = {}

    def run(x: Array) -> Any:
        view = views.get(x.strides)
        if view is None:
            view = _is_view(x, shape, order, matrices)
            if len(views) >= MAX_LAYOUTS:
                views.clear()
            views[x.strides] = view
        moved = x if order is None else x.transpose(order)
        return moved.reshape(shape) if view else contiguous(moved).reshape(shape)

    return run


def _is_view(x: Array, shape: Ints, order: Ints | None, matrices: bool) -> bool:
    moved = x if order is None else x.transpose(order)
    seen = _viewed(moved, shape)
    return seen is not None and (not matrices or seen.ndim < 2 or _readable(seen))


def _viewed(x: Array, shape: Ints) -> Array | None:
    if _HAS_COPY:
        try:
            return x.reshape(shape, copy=False)
        except ValueError:
            return None
    seen = x.reshape(shape)  # NumPy 2.0 cannot be asked in advance
    return seen if np.may_share_memory(seen, x) else None


def _readable(x: Array) -> bool:
    """Whether BLAS reads every matrix of a stack in place."""
    (rows, columns), item = x.shape[-2:], x.itemsize
    across, down = x.strides[-2:]
    return (down == item and across >= columns * item) or (across == item and down >= rows * item)


def _concatenate(reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int) -> Kernel:
        plain = reference(ins, outs, axis=axis)
        if len(ins) == 1 or any(s.symbolic for s in (*ins, *outs)) or _bytes(outs[0]) < COPY_MIN_BYTES * len(ins):
            return plain
        shape, dtype, nbytes = _extents(outs[0]), outs[0].dtype, _bytes(outs[0])
        ends = np.cumsum([_extents(x)[axis] for x in ins]).tolist()
        places = [(*[slice(None)] * axis, slice(a, b)) for a, b in zip([0, *ends], ends)]

        def run(*xs: Array) -> Any:
            simple = all(x.flags.c_contiguous for x in xs)
            if simple and nbytes <= BYTES_AT_ONCE:
                return plain(*xs)
            out = np.empty(shape, dtype)
            for place, x in zip(places, xs, strict=True):
                (copy_in_order if simple else copy_into)(out[place], x)
            return out

        return run

    make.any_size = True  # type: ignore[attr-defined]
    make.large = lambda ins, outs, axis: (_bytes(outs[0]), COPY_MIN_BYTES * len(ins))  # type: ignore[attr-defined]
    return make


def packed(product: Maker, reference: Maker) -> Maker:
    """The maker of `dot_general` kernels that bring large operands into matrix layout by native copies.

    Args:
        product: maker of the kernels for operands that already are stacks of matrices, or vectors.
        reference: maker of the kernels for everything else.
    """

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, contract: Pair, batch: Pair) -> Kernel:
        x, y = ins
        plain = reference(ins, outs, contract=contract, batch=batch)
        if not (available() and contract[0] and x.inexact) or _bytes(x) + _bytes(y) < 2 * COPY_MIN_BYTES:
            return plain
        if x.ndim + y.ndim <= 3:  # BLAS reads a matrix and a vector in place
            return plain
        larger = 0 if math.prod(_extents(x)) >= math.prod(_extents(y)) else 1
        pairs = sorted(zip(*contract, strict=True), key=lambda pair: pair[larger])
        left, left_spec, left_inner = _side(x, batch[0], tuple([i for i, _ in pairs]))
        right, right_spec, right_inner = _side(y, batch[1], tuple([j for _, j in pairs]), first=True)
        stack = tuple(range(len(batch[0])))
        simple: dict[str, Any] = {"contract": ((left_inner,), (right_inner,)), "batch": (stack, stack)}
        merged = catalog.dot_general.infer(left_spec, right_spec, **simple)
        if not isinstance(merged, Spec):
            return plain
        multiply = product((left_spec, right_spec), (merged,), **simple)
        shape = outs[0].shape
        if merged.shape == shape:
            return lambda x, y: multiply(left(x), right(y))
        return lambda x, y: multiply(left(x), right(y)).reshape(shape)

    return make


def _side(s: Spec, batch: Ints, contracted: Ints, *, first: bool = False) -> tuple[Kernel, Spec, int]:
    """How an operand becomes a stack of matrices (or of vectors), its kind, and its contracted axis.

    A matrix stored transposed is used in place.
    """
    free = tuple([i for i in range(s.ndim) if i not in batch + contracted])
    sizes = _extents(s)
    lead, inner, outer = (tuple([sizes[i] for i in axes]) for axes in (batch, contracted, free))
    n = len(batch)
    if not free:
        shape = (*lead, math.prod(inner))
        return arranged(shape, batch + contracted, matrices=True), s.with_(shape=shape), n
    natural = tuple(range(s.ndim))
    if batch + contracted + free == natural:
        first = True
    elif batch + free + contracted == natural:
        first = False
    order = batch + (contracted + free if first else free + contracted)
    sides = (math.prod(inner), math.prod(outer))
    shape = (*lead, *(sides if first else sides[::-1]))
    return arranged(shape, order, matrices=True), s.with_(shape=shape), n if first else n + 1


def _extents(s: Spec) -> Ints:
    return s.shape  # type: ignore[return-value]


def _bytes(s: Spec) -> int:
    """Bytes of an array; a symbolic size for a symbolic spec."""
    return math.prod(_extents(s)) * s.dtype.itemsize
