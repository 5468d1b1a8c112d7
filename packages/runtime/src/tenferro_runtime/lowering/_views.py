"""Lowering of primitives that move no data: the reader computes another index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._values import (
    Formula,
    Index,
    Lowered,
    Numbers,
    Stored,
    copied,
    is_small,
    numbers,
    stored,
)
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import Affine
from tenferro_tensor_core import DimLike

RECOMPUTE_MAX_COST: Final = 2
"""Largest cost of an element that is computed again for each of many reads."""


def mapped(step: Step, x: Lowered, shape: Sequence[DimLike], index: Callable[[Index], Index]) -> Lowered:
    """`x` read at another index, an affine function of the reader's index with known steps."""
    if isinstance(x, Stored):
        zero = tuple([Affine()] * len(shape))
        origin = x.place(index(zero))
        strides = []
        for k in range(len(shape)):
            there = x.place(index((*zero[:k], Affine(1), *zero[k + 1 :]))) - origin
            assert not there.terms
            strides.append(there.constant)
        return Stored(x.buffer, shape, origin, strides)
    if is_small(shape) and is_small(x.shape):
        x = numbers(step.w, x)
    return Formula(shape, x.dtype, lambda w, i: x.at(w, index(i)), [x])


@rule(catalog.slice_)
def _slice(step: Step) -> Lowered:
    start, stride = step.params["start"], step.params["stride"]
    return mapped(
        step,
        step.operand(0),
        step.out.shape,
        lambda index: tuple([i * by + a for i, by, a in zip(index, stride, start)]),
    )


@rule(catalog.reverse)
def _reverse(step: Step) -> Lowered:
    axes, shape = step.params["axes"], step.out.shape
    return mapped(
        step,
        step.operand(0),
        shape,
        lambda index: tuple([-i + (shape[k] - 1) if k in axes else i for k, i in enumerate(index)]),
    )


@rule(catalog.transpose)
def _transpose(step: Step) -> Lowered:
    return transposed(step, step.operand(0), step.params["permutation"])


def transposed(step: Step, x: Lowered, permutation: Sequence[int]) -> Lowered:
    """`x` with its axes in another order."""
    back = sorted(range(len(permutation)), key=permutation.__getitem__)
    return mapped(step, x, [x.shape[k] for k in permutation], lambda index: tuple([index[k] for k in back]))


@rule(catalog.broadcast_in_dim)
def _broadcast(step: Step) -> Lowered:
    dims, x = step.params["dims"], step.operand(0, step.out.dtype)
    if x.cost > RECOMPUTE_MAX_COST and len(dims) < len(
        step.out.shape
    ):  # otherwise each element is read once, at another index
        x = numbers(step.w, x) if is_small(x.shape) else stored(step.w, x)
        step.replace(0, x)
    return mapped(step, x, step.out.shape, lambda index: tuple([index[d] for d in dims]))


@rule(catalog.reshape)
def _reshape(step: Step) -> Lowered:
    x, shape = step.operand(0), step.out.shape
    if isinstance(x, Numbers) and is_small(shape):
        return Numbers(shape, x.dtype, x.elements)
    before = [k for k, n in enumerate(x.shape) if not _one(n)]
    after = [k for k, n in enumerate(shape) if not _one(n)]
    if [x.shape[k] for k in before] == [shape[k] for k in after]:

        def index(i: Index) -> Index:
            found = [Affine()] * len(x.shape)
            for k, j in zip(before, after):
                found[k] = i[j]
            return tuple(found)

        return mapped(step, x, shape, index)
    x = stored(step.w, x)
    if not x.without_gaps:
        x = copied(step.w, x)
    return Stored(x.buffer, shape, x.offset, Stored.whole_of(x.buffer, shape).strides)


def _one(n: DimLike) -> bool:
    return n.__class__ is int and n == 1
