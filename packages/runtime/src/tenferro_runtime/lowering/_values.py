"""Values of a program while it is lowered: numbers in registers, views of memory, and formulas.

A value gives its element at an index by writing the statements that compute it. Formulas and views have no memory of
their own: whoever reads them computes them, until they are written to a buffer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._source import Source
from tenferro_runtime.lowering._writer import BOOL, LoopWriter
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import INDEX, Affine, Buffer, Value, View
from tenferro_tensor_core import DimLike

MOST_NUMBERS: Final = 16
"""Elements up to which an array of known extents lives in registers."""

Index = tuple[Affine, ...]


class Lowered(ABC):
    """An array of the program.

    Attributes:
        shape: its extents.
        dtype: of its elements.
        reads: numbers of the buffers that its elements are read from.
        cost: about how many arithmetic operations one element takes.
    """

    shape: tuple[DimLike, ...]
    dtype: np.dtype[Any]
    reads: frozenset[int] = frozenset()
    cost: int = 0

    @abstractmethod
    def at(self, w: LoopWriter, index: Index) -> Value:
        """The element at an index."""


class Numbers(Lowered):
    """A small array, each element a number."""

    def __init__(self, shape: Sequence[DimLike], dtype: np.dtype[Any], elements: Sequence[Value]) -> None:
        self.shape, self.dtype, self.elements = tuple(shape), dtype, tuple(elements)

    def at(self, w: LoopWriter, index: Index) -> Value:
        """One of the numbers; where the index is open, chosen by comparisons."""
        place = linear(self.shape, index)
        if not place.terms and isinstance(place.constant, int):
            return self.elements[place.constant]
        if not self.elements:
            return Literal(self.dtype.type(0).item(), self.dtype)  # of an array that has none: nobody gets here
        regular = self._progression()
        if regular is not None:
            return w.position(place * regular[1] + regular[0])
        wanted, found = w.position(place), self.elements[-1]
        for k in reversed(range(len(self.elements) - 1)):
            here = w.let(catalog.eq.op(), BOOL, wanted, Literal(k, INDEX))
            found = w.let(catalog.select.op(), self.dtype, here, self.elements[k], found)
        return found

    def _progression(self) -> tuple[int, int] | None:
        """The first of integers that grow by a fixed number, and that number."""
        if self.dtype != INDEX or len(self.elements) < 2:
            return None
        known = [int(e.value) for e in self.elements if isinstance(e, Literal)]  # type: ignore[arg-type]
        if len(known) < len(self.elements):
            return None
        by = known[1] - known[0]
        return (known[0], by) if all(b - a == by for a, b in pairwise(known)) else None


class Stored(Lowered):
    """Elements in memory at regular distances.

    Attributes:
        buffer: where.
        offset: the first element.
        strides: distances along each axis, in elements.
    """

    def __init__(self, buffer: Buffer, shape: Sequence[DimLike], offset: Affine, strides: Sequence[DimLike]) -> None:
        self.buffer, self.shape, self.dtype = buffer, tuple(shape), buffer.dtype
        self.offset, self.strides, self.reads = offset, tuple(strides), frozenset((buffer.number,))

    @staticmethod
    def whole_of(buffer: Buffer, shape: Sequence[DimLike] | None = None) -> Stored:
        """All of a buffer, row-major."""
        shape = buffer.shape if shape is None else shape
        return Stored(buffer, shape, Affine(), row_major(shape))

    @property
    def whole(self) -> bool:
        """Whether these are all elements of the buffer in their order."""
        same = all(a == b or n == 1 for a, b, n in zip(self.strides, row_major(self.shape), self.shape))
        return same and self.offset == Affine() and count(self.shape) == count(self.buffer.shape)

    @property
    def without_gaps(self) -> bool:
        """Whether the elements lie in their order one after the other."""
        return all(a == b or n == 1 for a, b, n in zip(self.strides, row_major(self.shape), self.shape))

    def place(self, index: Index) -> Affine:
        """Where an element is."""
        found = self.offset
        for i, stride in zip(index, self.strides, strict=True):
            found = found + i * stride
        return found

    def at(self, w: LoopWriter, index: Index) -> Value:
        """The element, loaded."""
        return w.load(self.buffer, self.place(index))

    def view(self) -> View:
        """As an operand of a call."""
        return View(self.buffer, self.offset, self.shape, self.strides)


class Formula(Lowered):
    """Elements that are computed where they are read.

    Attributes:
        source: the user's line that they are computed for.
    """

    def __init__(
        self,
        shape: Sequence[DimLike],
        dtype: np.dtype[Any],
        at: Callable[[LoopWriter, Index], Value],
        operands: Sequence[Lowered] = (),
        cost: int = 0,
    ) -> None:
        self.shape, self.dtype, self._at = tuple(shape), dtype, at
        self.reads = frozenset[int]().union(*[x.reads for x in operands])
        self.cost = cost + sum([x.cost for x in operands])
        self.source: Source = None

    def at(self, w: LoopWriter, index: Index) -> Value:
        """The element, computed."""
        outer, w.source = w.source, self.source or w.source
        try:
            return self._at(w, index)
        finally:
            w.source = outer


def row_major(shape: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Strides of an array without gaps."""
    strides: list[DimLike] = []
    step: DimLike = 1
    for n in reversed(shape):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))


def count(shape: Sequence[DimLike]) -> DimLike:
    """Number of elements."""
    found: DimLike = 1
    for n in shape:
        found = found * n
    return found


def linear(shape: Sequence[DimLike], index: Index) -> Affine:
    """Number of an element in row-major order."""
    found = Affine()
    for i, stride in zip(index, row_major(shape), strict=True):
        found = found + i * stride
    return found


def is_small(shape: Sequence[DimLike]) -> bool:
    """Whether an array of this shape lives in registers; open extents may cancel in the number of its elements."""
    n = count(shape)
    return isinstance(n, int) and n <= MOST_NUMBERS and (n == 0 or all(m.__class__ is int for m in shape))


def indices(shape: Sequence[DimLike]) -> list[Index]:
    """All indices of a small array, in order."""
    if any(n.__class__ is int and not n for n in shape):  # whatever the open extents beside it
        return []
    return [tuple(map(Affine, i)) for i in product(*[range(n) for n in shape])]  # type: ignore[arg-type]


def numbers(w: LoopWriter, x: Lowered) -> Numbers:
    """A small array in registers."""
    if isinstance(x, Numbers):
        return x
    return Numbers(x.shape, x.dtype, [x.at(w, i) for i in indices(x.shape)])


def write(w: LoopWriter, x: Lowered, to: Stored) -> None:
    """Compute all elements into memory that `x` does not read, or reads only at the very place that is written."""
    if isinstance(x, Numbers):
        for i in indices(x.shape):
            w.store(to.buffer, to.place(i), x.at(w, i))
        return
    flat = _flat(x, to)
    if flat is not None:
        x, to = flat
    w.nest(x.shape, lambda i: w.store(to.buffer, to.place(i), x.at(w, i)))


def _flat(x: Lowered, to: Stored) -> tuple[Stored, Stored] | None:
    """A plain copy as one row, so that it is one loop."""
    if isinstance(x, Stored) and len(x.shape) > 1 and x.without_gaps and to.without_gaps:
        n = (count(x.shape),)
        return Stored(x.buffer, n, x.offset, (1,)), Stored(to.buffer, n, to.offset, (1,))
    return None


def stored(w: LoopWriter, x: Lowered) -> Stored:
    """The array in memory."""
    if isinstance(x, Stored):
        return x
    found = Stored.whole_of(w.buffer(x.dtype, x.shape))
    write(w, x, found)
    return found


def copied(w: LoopWriter, x: Lowered) -> Stored:
    """The array in memory of its own."""
    found = Stored.whole_of(w.buffer(x.dtype, x.shape))
    write(w, x, found)
    return found


def kept(w: LoopWriter, x: Lowered) -> Lowered:
    """The array computed once: in registers where it is small, else in memory."""
    if isinstance(x, Stored | Numbers):
        return x
    return numbers(w, x) if is_small(x.shape) else stored(w, x)
