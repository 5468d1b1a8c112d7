"""`Spec`: shape, dtype and place of a value, interned so that identity is equality."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from tenferro_tensor._place import HOST, Place
from tenferro_tensor._refusal import refuse, spec_of
from tenferro_tensor_core import ArgumentError, Dim, DimLike, ShapeError, as_size, is_inexact, is_narrow
from tenferro_tensor_core import dtype as known_dtype
from tenferro_tensor_core.forks import new_lock

MAX_AXES: Final = 64
"""Largest number of axes of an array."""

_interned: WeakValueDictionary[tuple[Any, ...], Spec] = WeakValueDictionary()
_references: dict[Any, Any] = _interned.data  # type: ignore[attr-defined]  # look-up without a Python-level call
# Re-entrant: a finalizer may run while the lock is held, and create specs.
_lock = new_lock()


def _extent(d: Any) -> DimLike:
    d = as_size(d)
    if d.__class__ is int or isinstance(d, Dim):
        n: DimLike = d
    else:
        try:
            n = int(operator.index(d))  # a bool or an IntEnum is its own index
        except TypeError:
            raise ArgumentError(f"a shape consists of integers or symbolic sizes, not {d!r}", value=repr(d)) from None
    if n.__class__ is int and n < 0:
        raise ArgumentError(f"extents of a shape cannot be negative, got {n}", value=n)
    return n


def _require_possible(shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> bool:
    """Whether a shape is symbolic; shapes that NumPy or the machine cannot represent are refused."""
    if len(shape) > MAX_AXES:
        raise ShapeError(
            f"an array cannot have {len(shape)} axes; at most {MAX_AXES} are supported, as in NumPy; merge axes with "
            "reshape first",
            axes=len(shape),
        )
    count, symbolic = 1, False
    for d in shape:
        if d.__class__ is int:
            count *= d or 1  # as in NumPy, empty axes count as 1
        else:
            symbolic = True
    if count * dtype.itemsize > sys.maxsize:
        raise ShapeError(
            f"an array of {dtype.name} with shape {shape} would have {count} elements, more than the address space; "
            "use smaller extents",
            shape=shape,
        )
    return symbolic


class Spec:
    """Shape, dtype and place of a value, interned.

    Equal specs are one object: ``x.spec is y.spec`` tests for operands of the same kind, and specs in dictionary keys
    need no Python-level comparison.

    Attributes:
        shape: extents, integers or symbolic `Dim`s.
        dtype: a supported NumPy dtype.
        place: where the data is stored and what computes on it.
        ndim: number of axes.
        inexact: whether the dtype is real or complex floating point, hence differentiable.
        cplx: whether the dtype is complex.
        narrow: whether the dtype is float16 or bfloat16: stored in it, computed in float32.
        symbolic: whether an extent is symbolic.

    >>> Spec((2, 3), np.dtype("float64")) is Spec((2, 3), np.dtype("float64"))
    True
    """

    __slots__ = ("__weakref__", "cplx", "dtype", "inexact", "narrow", "ndim", "place", "shape", "symbolic")
    shape: tuple[DimLike, ...]
    dtype: np.dtype[Any]
    place: Place
    ndim: int
    inexact: bool
    cplx: bool
    narrow: bool
    symbolic: bool

    def __new__(cls, shape: tuple[DimLike, ...], dtype: np.dtype[Any], place: Place = HOST) -> Spec:
        for d in shape:
            if d.__class__ is not int or d < 0:
                shape = tuple([_extent(d) for d in shape])
                break
        try:
            known = _references.get((shape, dtype, place))
            self = None if known is None else known()
        except TypeError:  # a list of extents
            self, shape = None, tuple(shape)
        return self if self is not None else cls._intern(shape, known_dtype(dtype), place)

    @classmethod
    def _intern(cls, shape: tuple[DimLike, ...], dtype: np.dtype[Any], place: Place) -> Spec:
        if not isinstance(place, Place):
            raise ArgumentError(f"a Spec takes a Place, got {place!r}; HOST is main memory", place=repr(place))
        with _lock:
            self = _interned.get((shape, dtype, place))
            if self is None:
                symbolic = _require_possible(shape, dtype)
                self = object.__new__(cls)
                self.shape, self.dtype, self.place = shape, dtype, place
                self.ndim = len(shape)
                self.cplx = dtype.kind == "c"
                self.inexact = is_inexact(dtype)
                self.narrow = is_narrow(dtype)
                self.symbolic = symbolic
                self = _interned.setdefault((shape, dtype, place), self)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Spec, (self.shape, self.dtype, self.place)

    def __copy__(self) -> Spec:
        return self

    def __deepcopy__(self, memo: object) -> Spec:
        return self

    def __repr__(self) -> str:
        where = "" if self.place is HOST else f" at {self.place.device}"
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]{where}"

    @property
    def size(self) -> DimLike:
        """Number of elements."""
        return math.prod(self.shape)

    def with_(
        self,
        shape: tuple[DimLike, ...] | None = None,
        dtype: np.dtype[Any] | None = None,
        place: Place | None = None,
    ) -> Spec:
        """Return the spec with some parts replaced.

        Args:
            shape: new shape.
            dtype: new dtype.
            place: new place.

        Returns:
            The spec.
        """
        return Spec(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.place if place is None else place,
        )


def common_place(what: str, operands: Sequence[Any]) -> Place | None:
    """The common place of the operands of an operation, and of its results.

    Operands without their own compute device follow those that have one.

    Args:
        what: name of the operation, for the error.
        operands: specs, or values, whose source lines the error shows.

    Returns:
        The place; None without operands.

    Raises:
        AmbiguousPlacementError: the operands are in several memory spaces, or have several compute devices.
    """
    places = {spec_of(x).place for x in operands}
    if len({p.memory_space for p in places}) > 1:
        refuse(what, "has operands in several memory spaces", operands)
    named = [p for p in places if p.compute_device is not None]
    if len(named) > 1:
        refuse(what, "has operands with several compute devices", operands)
    return named[0] if named else next(iter(places), None)
