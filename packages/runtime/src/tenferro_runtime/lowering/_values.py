"""Values of a program while it is lowered: numbers in registers, views of memory, and formulas.

A value returns its element at an index by writing the statements that compute it. Formulas and views have no memory:
each reader computes them, until they are written to a buffer.
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
from tenferro_tensor.loop_ir import INDEX, Affine, Buffer, Literal, Value, View
from tenferro_tensor_core import DimLike

REGISTERS_MAX_ELEMENTS: Final = 16
"""Largest array of known extents, in elements, that is kept in registers."""

Index = tuple[Affine, ...]


class Lowered(ABC):
    """An array of the program.

    Attributes:
        shape: its extents.
        dtype: its dtype.
        reads: numbers of the buffers that its elements are read from.
        cost: approximate number of arithmetic operations per element.
    """

    shape: tuple[DimLike, ...]
    dtype: np.dtype[Any]
    reads: frozenset[int] = frozenset()
    cost: int = 0

    @abstractmethod
    def at(self, w: LoopWriter, index: Index) -> Value:
        """The element at an index.

        Args:
            w: the writer of statements.
            index: the index, affine in counters.

        Returns:
            The number.
        """


class Numbers(Lowered):
    """A small array in registers."""

    shape: tuple[DimLike, ...]
    dtype: Any
    elements: tuple[Value, ...]

    def __init__(self, shape: Sequence[DimLike], dtype: np.dtype[Any], elements: Sequence[Value]) -> None:
        self.shape, self.dtype, self.elements = tuple(shape), dtype, tuple(elements)

    def at(self, w: LoopWriter, index: Index) -> Value:
        """The element at an index; unknown indices select by comparisons.

        Args:
            w: the writer of statements.
            index: the index.

        Returns:
            The number.
        """
        place = linear(self.shape, index)
        if not place.terms and isinstance(place.constant, int):
            return self.elements[place.constant]
        if not self.elements:
            return Literal(self.dtype.type(0).item(), self.dtype)  # an array without elements: never executed
        regular = self._progression()
        if regular is not None:
            return w.position(place * regular[1] + regular[0])
        wanted, found = w.position(place), self.elements[-1]
        for k in reversed(range(len(self.elements) - 1)):
            here = w.let(catalog.eq.op(), BOOL, wanted, Literal(k, INDEX))
            found = w.let(catalog.select.op(), self.dtype, here, self.elements[k], found)
        return found

    def _progression(self) -> tuple[int, int] | None:
        """First element and step of an arithmetic progression of integers."""
        if self.dtype != INDEX or len(self.elements) < 2:
            return None
        known = [int(e.value) for e in self.elements if isinstance(e, Literal)]  # type: ignore[arg-type]
        if len(known) < len(self.elements):
            return None
        by = known[1] - known[0]
        return (known[0], by) if all(b - a == by for a, b in pairwise(known)) else None


class Stored(Lowered):
    """Strided elements in memory.

    Attributes:
        buffer: the buffer.
        offset: offset of the first element.
        strides: strides in elements.
    """

    buffer: Buffer
    shape: tuple[DimLike, ...]
    dtype: Any
    offset: Affine
    strides: tuple[DimLike, ...]
    reads: frozenset[int]

    def __init__(self, buffer: Buffer, shape: Sequence[DimLike], offset: Affine, strides: Sequence[DimLike]) -> None:
        self.buffer, self.shape, self.dtype = buffer, tuple(shape), buffer.dtype
        self.offset, self.strides, self.reads = offset, tuple(strides), frozenset((buffer.number,))

    @staticmethod
    def whole_of(buffer: Buffer, shape: Sequence[DimLike] | None = None) -> Stored:
        """All of a buffer, row-major.

        Args:
            buffer: the buffer.
            shape: the shape.

        Returns:
            The array.
        """
        shape = buffer.shape if shape is None else shape
        return Stored(buffer, shape, Affine(), row_major(shape))

    @property
    def whole(self) -> bool:
        """Whether these are all elements of the buffer in row-major order."""
        same = all(a == b or n == 1 for a, b, n in zip(self.strides, row_major(self.shape), self.shape))
        return same and self.offset == Affine() and count(self.shape) == count(self.buffer.shape)

    @property
    def without_gaps(self) -> bool:
        """Whether the elements are contiguous in row-major order."""
        return all(a == b or n == 1 for a, b, n in zip(self.strides, row_major(self.shape), self.shape))

    def place(self, index: Index) -> Affine:
        """The offset of an element.

        Args:
            index: its index.

        Returns:
            The offset, affine in counters.
        """
        found = self.offset
        for i, stride in zip(index, self.strides, strict=True):
            found = found + i * stride
        return found

    def at(self, w: LoopWriter, index: Index) -> Value:
        """The element at an index, loaded.

        Args:
            w: the writer of statements.
            index: the index.

        Returns:
            The number.
        """
        return w.load(self.buffer, self.place(index))

    def view(self) -> View:
        """The array as an operand of a call."""
        return View(self.buffer, self.offset, self.shape, self.strides)


class Formula(Lowered):
    """Elements that are computed where they are read.

    Attributes:
        source: the user's line to attribute them to.
    """

    shape: tuple[DimLike, ...]
    dtype: Any
    reads: frozenset[int]
    cost: int

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
        """The element at an index, computed.

        Args:
            w: the writer of statements.
            index: the index.

        Returns:
            The number.
        """
        outer, w.source = w.source, self.source or w.source
        try:
            return self._at(w, index)
        finally:
            w.source = outer


def row_major(shape: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Strides of a contiguous array."""
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
    """Whether an array of this shape is kept in registers; symbolic extents may cancel in the number of elements."""
    n = count(shape)
    return isinstance(n, int) and n <= REGISTERS_MAX_ELEMENTS and (n == 0 or all(m.__class__ is int for m in shape))


def indices(shape: Sequence[DimLike]) -> list[Index]:
    """All indices of a small array, in order."""
    if any(n.__class__ is int and not n for n in shape):  # whatever the other, symbolic extents are
        return []
    return [tuple(map(Affine, i)) for i in product(*[range(n) for n in shape])]  # type: ignore[arg-type]


def numbers(w: LoopWriter, x: Lowered) -> Numbers:
    """A small array in registers.

    Args:
        w: the writer of statements.
        x: the array.

    Returns:
        The array.
    """
    if isinstance(x, Numbers):
        return x
    return Numbers(x.shape, x.dtype, [x.at(w, i) for i in indices(x.shape)])


def write(w: LoopWriter, x: Lowered, to: Stored) -> None:
    """Compute all elements into memory that `x` does not read, or reads only at the element that is written.

    Args:
        w: the writer of statements.
        x: the array.
        to: the memory.
    """
    if isinstance(x, Numbers):
        for i in indices(x.shape):
            w.store(to.buffer, to.place(i), x.at(w, i))
        return
    flat = _flat(x, to)
    if flat is not None:
        x, to = flat
    w.nest(x.shape, lambda i: w.store(to.buffer, to.place(i), x.at(w, i)))


def _flat(x: Lowered, to: Stored) -> tuple[Stored, Stored] | None:
    """Flatten a plain copy, so that it is one loop."""
    if isinstance(x, Stored) and len(x.shape) > 1 and x.without_gaps and to.without_gaps:
        n = (count(x.shape),)
        return Stored(x.buffer, n, x.offset, (1,)), Stored(to.buffer, n, to.offset, (1,))
    return None


def stored(w: LoopWriter, x: Lowered) -> Stored:
    """The array in memory; written to a new buffer if necessary.

    Args:
        w: the writer of statements.
        x: the array.

    Returns:
        The array in memory.
    """
    if isinstance(x, Stored):
        return x
    found = Stored.whole_of(w.buffer(x.dtype, x.shape))
    write(w, x, found)
    return found


def copied(w: LoopWriter, x: Lowered) -> Stored:
    """A copy of the array in a new buffer.

    Args:
        w: the writer of statements.
        x: the array.

    Returns:
        The array in memory.
    """
    found = Stored.whole_of(w.buffer(x.dtype, x.shape))
    write(w, x, found)
    return found


def kept(w: LoopWriter, x: Lowered) -> Lowered:
    """The array computed once: in registers if it is small, else in memory.

    Args:
        w: the writer of statements.
        x: the array.

    Returns:
        The array.
    """
    if isinstance(x, Stored | Numbers):
        return x
    return numbers(w, x) if is_small(x.shape) else stored(w, x)
