"""Memory layouts: shape, strides and offset of an array in its buffer, and the views that need no copy."""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from operator import index
from typing import Any, Final

import numpy as np

from ._dims import Dim, DimLike, evaluate
from ._errors import AxisError, LayoutError, ShapeError
from ._strides import contiguous_strides, merged, split

_INT64: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape, strides and offset of an array in its buffer, counted in elements.

    Element (i, j, ...) is at position `offset + i*strides[0] + j*strides[1] + ...`. Sizes may be
    symbolic: call `evaluate` before methods that need numbers.

    Attributes:
        shape: size of each axis.
        strides: step of each axis in elements; may be negative or zero.
        offset: position of element (0, 0, ...).

    Raises:
        LayoutError: there is not one stride per axis, or a position exceeds 64 bits.
        ShapeError: a size is negative.

    >>> a = Layout.row_major((2, 3))
    >>> a.strides, a.transpose((1, 0)).strides, a.slice(slice(None, None, -1)).offset
    ((3, 1), (1, 3), 3)
    """

    shape: tuple[DimLike, ...]
    strides: tuple[DimLike, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise LayoutError(
                f"a layout needs one stride for each axis, got shape {self.shape} with strides "
                f"{self.strides}; pass tuples of equal length",
                shape=self.shape,
                strides=self.strides,
            )
        if any(isinstance(n, int) and n < 0 for n in self.shape):
            raise ShapeError(
                f"sizes cannot be negative, got shape {self.shape}; pass sizes >= 0",
                shape=self.shape,
            )
        numbers = [x for x in (*self.shape, *self.strides, self.offset) if isinstance(x, int)]
        if not self.symbolic:
            numbers += [prod(n for n in self.shape if isinstance(n, int)), *(self.bounds() or ())]
        if any(x not in _INT64 for x in numbers):
            raise LayoutError(
                f"layout with shape {self.shape}, strides {self.strides} and offset {self.offset} "
                "does not fit 64-bit positions; use smaller sizes or strides",
                shape=self.shape,
                strides=self.strides,
                offset=self.offset,
            )

    @classmethod
    def row_major(cls, shape: Iterable[DimLike], offset: int = 0) -> "Layout":
        """Return the contiguous layout whose last axis varies fastest.

        Args:
            shape: size of each axis.
            offset: position of the first element.

        Returns:
            The layout.

        >>> Layout.row_major((2, 3, 4)).strides
        (12, 4, 1)
        """
        shape = tuple(shape)
        return cls(shape, contiguous_strides(shape[::-1])[::-1], offset)

    @classmethod
    def column_major(cls, shape: Iterable[DimLike], offset: int = 0) -> "Layout":
        """Return the contiguous layout whose first axis varies fastest.

        Args:
            shape: size of each axis.
            offset: position of the first element.

        Returns:
            The layout.

        >>> Layout.column_major((2, 3, 4)).strides
        (1, 2, 6)
        """
        shape = tuple(shape)
        return cls(shape, contiguous_strides(shape), offset)

    @classmethod
    def from_byte_strides(
        cls, shape: Sequence[int], byte_strides: Sequence[int], itemsize: int, byte_offset: int = 0
    ) -> "Layout":
        """Return the layout with strides counted in bytes.

        Args:
            shape: size of each axis.
            byte_strides: step of each axis in bytes.
            itemsize: bytes of one element.
            byte_offset: position of the first element in bytes.

        Returns:
            The layout, counted in elements.

        Raises:
            LayoutError: a stride or the offset is not a multiple of the element size.

        >>> Layout.from_byte_strides((2, 3), (24, 8), 8)
        Layout(shape=(2, 3), strides=(3, 1), offset=0)
        """
        # Strides of axes of size 0 or 1 are arbitrary.
        steps = [s if n > 1 else s - s % itemsize for n, s in zip(shape, byte_strides)]
        if any(s % itemsize for s in (*steps, byte_offset)):
            raise LayoutError(
                f"byte strides {tuple(byte_strides)} and offset {byte_offset} are not multiples of "
                f"the element size {itemsize}; copy the data into its own array first",
                byte_strides=tuple(byte_strides),
                itemsize=itemsize,
            )
        strides = tuple(s // itemsize for s in steps)
        return cls(tuple(shape), strides, byte_offset // itemsize)

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> "Layout":
        """Return the layout of a NumPy array relative to its first element.

        Args:
            array: an array of any shape and dtype.

        Returns:
            The layout, with offset 0.

        Raises:
            LayoutError: its strides are not multiples of the element size.

        >>> Layout.of(np.zeros((4, 6))[::-1, ::2]).strides
        (-6, 2)
        """
        return cls.from_byte_strides(array.shape, array.strides, array.itemsize)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def symbolic(self) -> bool:
        """Whether a size or stride is symbolic."""
        return any(isinstance(x, Dim) for x in (*self.shape, *self.strides))

    @property
    def size(self) -> DimLike:
        """Number of elements."""
        out: DimLike = 1
        for n in self.shape:
            out = out * n
        return out

    @property
    def is_row_major(self) -> bool:
        """Whether the layout is contiguous with the last axis fastest; axes of size 1 do not count.

        >>> Layout((1, 3), (99, 1)).is_row_major, Layout.row_major((3, 2)).transpose((1, 0)).is_row_major
        (True, False)
        """
        return self._is_contiguous(self.shape[::-1], self.strides[::-1])

    @property
    def is_column_major(self) -> bool:
        """Whether the layout is contiguous with the first axis fastest; axes of size 1 do not count.

        >>> Layout.row_major((3, 2)).transpose((1, 0)).is_column_major
        True
        """
        return self._is_contiguous(self.shape, self.strides)

    def _is_contiguous(self, shape: tuple[DimLike, ...], strides: tuple[DimLike, ...]) -> bool:
        if 0 in shape:
            return True
        return all(n == 1 or s == c for n, s, c in zip(shape, strides, contiguous_strides(shape)))

    def evaluate(self, bindings: Mapping[str, int]) -> "Layout":
        """Return the layout with symbolic sizes replaced by numbers.

        Args:
            bindings: value of each variable by name.

        Returns:
            The concrete layout.

        Raises:
            ArgumentError: a variable is not bound.
            ShapeError: a value is outside the bounds of its variable.

        >>> from tenferro_tensor_core import dim
        >>> Layout.row_major((2, dim("n"))).evaluate({"n": 5}).strides
        (5, 1)
        """
        shape = tuple(evaluate(n, bindings) for n in self.shape)
        return Layout(shape, tuple(evaluate(s, bindings) for s in self.strides), self.offset)

    def bounds(self) -> tuple[int, int] | None:
        """Return the smallest and the largest position of an element.

        Returns:
            Both positions, included; None for an empty layout.

        Raises:
            LayoutError: a size is symbolic.

        >>> Layout((3,), (-2,), 4).bounds(), Layout.row_major((0, 3)).bounds()
        ((0, 4), None)
        """
        shape, strides = self._numbers("bounds")
        if 0 in shape:
            return None
        reach = [(n - 1) * s for n, s in zip(shape, strides)]
        return self.offset + sum(r for r in reach if r < 0), self.offset + sum(r for r in reach if r > 0)

    def validate(self, buffer_size: int) -> None:
        """Check that every element is inside a buffer.

        Args:
            buffer_size: number of elements of the buffer.

        Raises:
            LayoutError: an element is outside, or a size is symbolic.

        >>> Layout.row_major((2, 3)).validate(6)
        """
        bounds = self.bounds()
        if bounds is not None and (bounds[0] < 0 or bounds[1] >= buffer_size):
            raise LayoutError(
                f"layout with shape {self.shape}, strides {self.strides} and offset {self.offset} reaches "
                f"elements {bounds[0]} to {bounds[1]} of a buffer of {buffer_size}; "
                "correct the strides or pass a larger buffer",
                bounds=bounds,
                buffer_size=buffer_size,
            )

    def transpose(self, permutation: Sequence[int]) -> "Layout":
        """Return the view whose axis k is axis `permutation[k]`.

        Args:
            permutation: each axis once.

        Returns:
            The layout of the view.

        Raises:
            AxisError: `permutation` is not a permutation of the axes.

        >>> Layout.row_major((2, 3, 4)).transpose((2, 0, 1)).shape
        (4, 2, 3)
        """
        axes = tuple(p + self.ndim if p < 0 else p for p in permutation)
        if sorted(axes) != list(range(self.ndim)):
            raise AxisError(
                f"transpose of {self.ndim} axes by {tuple(permutation)} is not a permutation; name every axis once",
                permutation=tuple(permutation),
                ndim=self.ndim,
            )
        return Layout(tuple(self.shape[a] for a in axes), tuple(self.strides[a] for a in axes), self.offset)

    def slice(self, *indices: builtins.slice | int) -> "Layout":
        """Return the view `a[indices]`.

        Args:
            indices: Python slices with any step, or integers, which drop their axis; trailing axes may be left out.

        Returns:
            The layout of the view.

        Raises:
            AxisError: there are too many indices, or an integer is out of range.
            LayoutError: the size of a sliced axis is symbolic.

        >>> Layout.row_major((5, 4)).slice(slice(None, None, -2), 1)
        Layout(shape=(3,), strides=(-8,), offset=17)
        """
        if len(indices) > self.ndim:
            raise AxisError(
                f"slice got {len(indices)} indices for {self.ndim} axes; remove the surplus ones",
                indices=indices,
                ndim=self.ndim,
            )
        shape: list[DimLike] = []
        strides: list[DimLike] = []
        offset = self.offset
        for axis, i in enumerate(indices):
            if i == builtins.slice(None):
                shape.append(self.shape[axis])
                strides.append(self.strides[axis])
                continue
            n, stride = self._number(self.shape[axis], "slice"), self._number(self.strides[axis], "slice")
            if isinstance(i, builtins.slice):
                taken = range(n)[i]
                shape.append(len(taken))
                # The stride of an axis of size 0 or 1 is unused: times a huge step it could exceed 64 bits.
                strides.append(stride * taken.step if len(taken) > 1 else stride)
                # An empty view has no first element: keep an offset that is inside the buffer.
                offset += taken.start * stride if taken else 0
            elif -n <= index(i) < n:
                offset += index(i) % n * stride
            else:
                raise AxisError(
                    f"index {i} is out of range for axis {axis} of size {n}; use -{n} <= index < {n}",
                    axis=axis,
                    index=i,
                    size=n,
                )
        k = len(indices)
        return Layout((*shape, *self.shape[k:]), (*strides, *self.strides[k:]), offset)

    def reshape(self, shape: Sequence[int]) -> "Layout":
        """Return the view with another shape and the same elements in row-major order.

        Args:
            shape: sizes of the axes; one may be -1 and is inferred.

        Returns:
            The layout of the view.

        Raises:
            ShapeError: the number of elements differs.
            LayoutError: no strides express the view, or a size is symbolic; copy into row-major order first.

        >>> Layout.row_major((4, 6)).reshape((2, -1, 3)).strides
        (12, 3, 1)
        """
        old, old_strides = self._numbers("reshape")
        new = self._resolved(tuple(shape), prod(old))
        if 0 in old:
            return Layout.row_major(new, self.offset)
        strides = split(list(merged(old, old_strides)), new)
        if strides is None:
            raise LayoutError(
                f"shape {self.shape} with strides {self.strides} cannot be viewed as {new} without "
                "a copy; copy into row-major order first",
                shape=self.shape,
                strides=self.strides,
                new_shape=new,
            )
        return Layout(new, strides, self.offset)

    def _resolved(self, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
        known = prod(n for n in shape if n != -1)
        if shape.count(-1) == 1 and known and size % known == 0:
            shape = tuple(size // known if n == -1 else n for n in shape)
        if any(n < 0 for n in shape) or prod(shape) != size:
            raise ShapeError(
                f"cannot reshape {self.shape} ({size} elements) to {shape}; "
                "keep the number of elements, with at most one -1",
                shape=self.shape,
                new_shape=shape,
            )
        return shape

    def broadcast_to(self, shape: Sequence[DimLike]) -> "Layout":
        """Return the view in which new leading axes and axes of size 1 repeat.

        Args:
            shape: sizes to broadcast to; the axes are aligned from the right.

        Returns:
            The layout of the view, with stride 0 along repeated axes.

        Raises:
            ShapeError: an axis has neither the requested size nor size 1.

        >>> Layout.row_major((3, 1)).broadcast_to((2, 3, 4)).strides
        (0, 1, 0)
        """
        target = tuple(shape)
        lead = len(target) - self.ndim
        if lead < 0 or any(n != 1 and n != t for n, t in zip(self.shape, target[lead:])):
            raise ShapeError(
                f"cannot broadcast {self.shape} to {target}; aligned from the right, "
                "each size must be equal or 1: reshape first",
                shape=self.shape,
                new_shape=target,
            )
        strides = tuple(0 if n != t else s for n, s, t in zip(self.shape, self.strides, target[lead:]))
        return Layout(target, (0,) * lead + strides, self.offset)

    def squeeze(self, axes: Sequence[int] | None = None) -> "Layout":
        """Return the view without axes of size 1.

        Args:
            axes: axes to remove; by default all of size 1.

        Returns:
            The layout of the view.

        Raises:
            AxisError: an axis is out of range or repeated.
            ShapeError: an axis is not of size 1.

        >>> Layout.row_major((1, 3, 1)).squeeze((0,)).shape
        (3, 1)
        """
        if axes is None:
            axes = [a for a, n in enumerate(self.shape) if n == 1]
        drop = _axes(axes, self.ndim, "squeeze")
        if any(self.shape[a] != 1 for a in drop):
            raise ShapeError(
                f"squeeze needs axes of size 1, got axes {tuple(axes)} of shape {self.shape}; "
                "leave out the larger ones",
                shape=self.shape,
                axes=tuple(axes),
            )
        keep = [a for a in range(self.ndim) if a not in drop]
        return Layout(tuple(self.shape[a] for a in keep), tuple(self.strides[a] for a in keep), self.offset)

    def expand(self, axes: Sequence[int]) -> "Layout":
        """Return the view with new axes of size 1.

        Args:
            axes: positions of the new axes in the result.

        Returns:
            The layout of the view.

        Raises:
            AxisError: an axis is out of range or repeated.

        >>> Layout.row_major((3,)).expand((0, -1)).shape
        (1, 3, 1)
        """
        new = _axes(axes, self.ndim + len(axes), "expand")
        old = iter(zip(self.shape, self.strides))
        pairs = [(1, 0) if a in new else next(old) for a in range(self.ndim + len(axes))]
        return Layout(tuple(n for n, _ in pairs), tuple(s for _, s in pairs), self.offset)

    def coalesce(self) -> "Layout":
        """Return the layout with the fewest axes that visits the same positions in the same order.

        Returns:
            The layout; neighbouring axes that step as one are merged.

        Raises:
            LayoutError: a size is symbolic.

        >>> Layout.row_major((2, 3, 4)).slice(slice(None), slice(1, 3)).coalesce()
        Layout(shape=(2, 8), strides=(12, 1), offset=4)
        """
        shape, strides = self._numbers("coalesce")
        if 0 in shape:
            return Layout((0,), (1,), self.offset)
        axes = list(merged(shape, strides))
        return Layout(tuple(n for n, _ in axes), tuple(s for _, s in axes), self.offset)

    def may_overlap(self, other: "Layout") -> bool:
        """Whether two layouts of one buffer could share an element.

        Args:
            other: layout of the other array in the same buffer.

        Returns:
            False only if no element is shared; True may be a false alarm.

        Raises:
            LayoutError: a size is symbolic.

        >>> evens, odds = Layout((3,), (2,), 0), Layout((3,), (2,), 1)
        >>> evens.may_overlap(odds), evens.may_overlap(Layout((2,), (1,), 3))
        (False, True)
        """
        mine, theirs = self.bounds(), other.bounds()
        if mine is None or theirs is None or mine[1] < theirs[0] or theirs[1] < mine[0]:
            return False
        # All positions are congruent to the offset modulo the gcd of the strides.
        steps = [s for x in (self, other) for n, s in zip(*x._numbers("overlap")) if n > 1]
        step = gcd(*steps)
        return (self.offset - other.offset) % step == 0 if step else self.offset == other.offset

    def may_self_overlap(self) -> bool:
        """Whether two indices could address one element, as after broadcasting.

        Returns:
            False only if all positions differ; True may be a false alarm.

        Raises:
            LayoutError: a size is symbolic.

        >>> Layout.row_major((2, 3)).may_self_overlap(), Layout((3,), (0,)).may_self_overlap()
        (False, True)
        """
        shape, strides = self._numbers("overlap")
        if 0 in shape:
            return False
        reach = 0
        for stride, n in sorted((abs(s), n) for n, s in zip(shape, strides) if n > 1):
            if stride <= reach:
                return True
            reach += (n - 1) * stride
        return False

    def view(self, buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return this layout's view of a buffer, without a copy.

        Args:
            buffer: a one-dimensional contiguous array of any dtype.

        Returns:
            An array of this shape and the dtype of the buffer.

        Raises:
            LayoutError: the buffer is not such an array, an element is outside it, or a size is symbolic.

        >>> Layout((2, 2), (1, 2), 1).view(np.arange(6))
        array([[1, 3],
               [2, 4]])
        """
        if buffer.ndim != 1 or not buffer.flags.c_contiguous:
            raise LayoutError(
                f"view needs a one-dimensional contiguous buffer, got shape {buffer.shape} with byte "
                f"strides {buffer.strides}; pass its row-major copy, raveled",
                shape=buffer.shape,
            )
        self.validate(buffer.size)
        shape, strides = self._numbers("view")
        start = min(max(self.offset, 0), buffer.size)
        return np.lib.stride_tricks.as_strided(buffer[start:], shape, [s * buffer.itemsize for s in strides])

    def _numbers(self, what: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (
            tuple(self._number(n, what) for n in self.shape),
            tuple(self._number(s, what) for s in self.strides),
        )

    def _number(self, x: DimLike, what: str) -> int:
        if isinstance(x, Dim):
            raise LayoutError(
                f"{what} needs concrete sizes, got shape {self.shape} with strides {self.strides}; "
                "call evaluate with the sizes first",
                shape=self.shape,
            )
        return x


def _axes(axes: Sequence[int], ndim: int, what: str) -> frozenset[int]:
    found = frozenset(a + ndim if a < 0 else a for a in axes)
    if len(found) != len(axes) or not found <= set(range(ndim)):
        raise AxisError(
            f"{what} by axes {tuple(axes)} of {ndim}: an axis is out of range or repeated; "
            f"name different axes from -{ndim} to {ndim - 1}",
            axes=tuple(axes),
            ndim=ndim,
        )
    return found
