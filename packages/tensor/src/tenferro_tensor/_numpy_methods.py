"""Methods of NumPy arrays whose functions are in lazily imported modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import functions
from tenferro_tensor._absent_attributes import INSTEAD, Absent
from tenferro_tensor._spec import Spec

if TYPE_CHECKING:
    from tenferro_tensor._array import Array


class NumpyMethods:
    """Methods and attributes of all kinds of values; each is the function of the same name."""

    __slots__ = ()
    spec: Spec

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements: an integer, or a `Size`."""
        return functions.size(self) * self.spec.dtype.itemsize

    conjugate: Final = functions.conj
    compress: Final = functions.compress
    searchsorted: Final = functions.searchsorted

    def argpartition(self, kth: Any, axis: int | None = -1) -> Array:
        """Indices that partition the elements along an axis; see the function `argpartition`."""
        return functions.argpartition(self, kth, axis)

    def choose(self, choices: Any, /, mode: str = "raise") -> Array:
        """Select each element from the array of `choices` with that number; see the function `choose`."""
        return functions.choose(self, choices, mode)

    def cumprod(self, axis: int | None = None, *, dtype: Any = None) -> Array:
        """Cumulative product along an axis; by default of the flattened array.

        >>> tr.asarray([[1, 2], [3, 4]]).cumprod(axis=1)
        Tensor([[ 1,  2],
                [ 3, 12]])
        """
        return functions.cumprod(self, axis, dtype=dtype)

    def cumsum(self, axis: int | None = None, *, dtype: Any = None) -> Array:
        """Cumulative sum along an axis; by default of the flattened array.

        >>> tr.asarray([[1, 2], [3, 4]]).cumsum()
        Tensor([ 1,  3,  6, 10])
        """
        return functions.cumsum(self, axis, dtype=dtype)

    def fill(self, value: Any) -> None:
        """Assign a value to all elements.

        >>> x = tr.zeros(2)
        >>> x.fill(3.0)
        >>> x
        Tensor([3., 3.])
        """
        self[...] = value  # type: ignore[index]

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Assign values at indices into the flattened array; see the function `put`."""
        functions.put(self, indices, values, mode)

    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> None:
        """Sort the elements along an axis in place; the function `sort` returns the sorted array.

        >>> x = tr.asarray([3, 1, 2])
        >>> x.sort()
        >>> x
        Tensor([1, 2, 3])
        """
        self[...] = functions.sort(self, axis=axis, descending=descending, stable=stable)  # type: ignore[index]

    def partition(self, kth: Any, axis: int = -1) -> None:
        """Partition the elements along an axis in place; the function `partition` returns the result."""
        self[...] = functions.partition(self, kth, axis)  # type: ignore[index]

    def dot(self, other: Any, /) -> Array:
        """Sum of products over the last axis and the second-to-last (or only) axis of `other`; see the function `dot`.

        >>> tr.asarray([1, 2]).dot(tr.asarray([3, 4]))
        Tensor(11)
        """
        return functions.dot(self, other)

    def __divmod__(self, other: Any) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Array, Array]:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Array:
        return functions.round(self, decimals=digits or 0)

    def __trunc__(self) -> Any:
        return functions.trunc(self)

    def __floor__(self) -> Any:
        return functions.floor(self)

    def __ceil__(self) -> Any:
        return functions.ceil(self)

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in INSTEAD or hasattr(self, name)]


for _name in INSTEAD:
    setattr(NumpyMethods, _name, Absent(_name))
