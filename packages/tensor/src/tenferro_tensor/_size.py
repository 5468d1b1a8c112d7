"""`Size`: the class of ``x.shape[i]`` while a function is traced with symbolic sizes.

Specs and the metadata of ops hold `Dim`s, which have no behaviour beyond their algebra. A `Size` wraps a `Dim` for the
user: a comparison is answered by the trace, which records a guard; conversion to a number, as ``range`` needs,
specialises the trace; and as an operand it is an equation of the program, so that ``x / x.shape[0]`` adds no guard.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import HOST, Place
from tenferro_tensor._primitive import Primitive
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.promotion import common_dtype
from tenferro_tensor_core import (
    Dim,
    DimLike,
    InconclusiveDimError,
    TracingError,
    ask,
    assume,
    floordiv,
    learned,
    specialise,
    specialise_for,
    traces,
)

if TYPE_CHECKING:
    from tenferro_tensor._array import Array


class Size:
    """A symbolic extent while a function is traced.

    ``+ - * // %`` with integers and sizes yield sizes. Comparisons are decided by bounds, else by the traced example
    under a guard. With any other operand, a size is a number of the program. ``int``, ``range`` and ``float``
    specialise it. A size used as a dictionary key is specialised, and stays a number after the trace. In other threads,
    which the trace does not reach, and in other processes it is a number as well.
    """

    __slots__ = ("_dim", "_number", "_traces")
    __array_ufunc__ = None  # NumPy scalars defer operators to this class

    def __init__(self, dim: Dim) -> None:
        self._dim = dim
        self._number: int | None = None
        self._traces = traces()

    def __dim__(self) -> DimLike:
        """The symbolic dimension, or the number if the size has been specialised."""
        if self._number is None and not traces():
            found = specialise_for(self._traces, self._dim, "use in another thread")
            if found.__class__ is int:
                self._number = found
        return learned(self._dim) if self._number is None else self._number

    def value(self, place: Place = HOST) -> Array:
        """The size as a 0-d integer of the program, weakly typed like a Python number.

        Args:
            place: place of the value.

        Returns:
            A 0-d int64 value.
        """
        if not traces() and isinstance(self.__dim__(), int):
            return Primitive.adopt(self._number)
        return catalog.dim_value(size=self._dim, place=place)

    def as_operand(self, beside: tuple[Any, ...]) -> Array:
        """The size in the dtype that a Python integer would take among other operands.

        Args:
            beside: the other operands.

        Returns:
            A 0-d value.
        """
        specs = [a.spec for a in beside if hasattr(a, "spec")]
        if not specs:
            return self.value()
        x = self.value(specs[0].place)
        dtype = common_dtype([*specs, int])
        return x if x.spec.dtype == dtype else catalog.convert(x, dtype=dtype)

    def __bool__(self) -> bool:
        return ask(self.__dim__(), "!=", 0)

    def __hash__(self) -> int:
        # A table may outlive the trace and its guards, and compares keys without consulting it: a key is therefore
        # specialised, with every variable of it.
        if self._number is None:
            reason = "hash() (for a key of a dict, a set or a cache)"
            self._number = self._dim.evaluate({str(n): specialise(n, reason) for n in self._dim.bare()})
        return hash(self._number)

    def __index__(self) -> int:
        return specialise(self.__dim__(), "an integer (for range(), len(), an index or NumPy)")

    def __int__(self) -> int:
        return specialise(self.__dim__(), "int()")

    def __float__(self) -> float:
        return float(specialise(self.__dim__(), "float() (or a function of math)"))

    def __complex__(self) -> complex:
        return complex(specialise(self.__dim__(), "complex()"))

    def __pos__(self) -> Size:
        return self

    __abs__: Final = __pos__
    __round__: Final = __pos__
    __floor__: Final = __pos__
    __ceil__: Final = __pos__
    __trunc__: Final = __pos__
    __copy__: Final = __pos__

    def __deepcopy__(self, memo: object) -> Size:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (specialise(self.__dim__(), "pickle (for another process)"),)

    def __neg__(self) -> Any:
        return sized(-self.__dim__())

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TracingError(
            f"the symbolic size {self._dim} cannot be converted to a NumPy array while the function is traced; use "
            "tenferro's asarray() for a value of the program, or int() to trace once for each size",
            size=str(self._dim),
        )

    def __repr__(self) -> str:
        return str(self._dim)


class Condition:
    """A comparison of data-dependent sizes, which only `assume` accepts."""

    __slots__ = ("_asked", "_error")

    def __init__(self, a: DimLike, op: str, b: DimLike, error: InconclusiveDimError) -> None:
        self._asked, self._error = (a, op, b), error

    def __bool__(self) -> NoReturn:
        raise self._error

    def assumed(self) -> None:
        """Let the trace assume the comparison."""
        assume(*self._asked)


def sized(d: Any) -> Any:
    """A dimension for the user: a `Dim` becomes a `Size`, or a number once it has been specialised."""
    if not isinstance(d, Dim):
        return d
    known = learned(d)
    return Size(known) if isinstance(known, Dim) else known


def sized_shape(shape: tuple[DimLike, ...]) -> tuple[Any, ...]:
    """A shape for the user."""
    return tuple(map(sized, shape))


def _whole(x: Any) -> Any:
    """An integer or a size as an operand of the algebra, else ``None``."""
    cls = x.__class__
    if cls is Size:
        return x.__dim__()
    if cls is int or cls is Dim:
        return x
    return int(x) if isinstance(x, (int, np.integer)) else None


_ALGEBRA: Final[dict[str, Callable[[Any, Any], DimLike]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": floordiv,
    "mod": operator.mod,
}
_VALUES: Final = {
    "add": catalog.add,
    "sub": catalog.sub,
    "mul": catalog.mul,
    "truediv": catalog.div,
    "floordiv": catalog.floor_divide,
    "mod": catalog.remainder,
    "pow": catalog.pow,
}
_COMPARISONS: Final = {
    "eq": ("==", catalog.eq),
    "ne": ("!=", catalog.ne),
    "lt": ("<", catalog.lt),
    "le": ("<=", catalog.le),
    "gt": (">", catalog.gt),
    "ge": (">=", catalog.ge),
}


def _as_operand(n: Size, other: Any) -> Any:
    """`n` as an operand with a value, a NumPy array or a number; ``None`` for any other operand."""
    if other.__class__ is Size:
        return n.value()
    if hasattr(other, "spec") or other.__class__ in SCALARS:
        return n.as_operand((other,))
    if isinstance(other, (np.ndarray, np.generic)):
        return n.as_operand((Primitive.adopt(other),))
    return None


def _arithmetic(name: str, reflected: bool) -> Callable[[Size, Any], Any]:
    algebra, primitive = _ALGEBRA.get(name), _VALUES[name]

    def method(self: Size, other: Any) -> Any:
        d = _whole(other)
        if d is not None:
            if algebra is not None:
                n = _whole(self)
                return sized(algebra(d, n) if reflected else algebra(n, d))
            if name == "pow" and d.__class__ is int and d >= 0 and not reflected:
                return sized(math.prod([_whole(self)] * d))
        x = _as_operand(self, other)
        if x is None:
            return NotImplemented
        y = other.value() if other.__class__ is Size else other
        return primitive(y, x) if reflected else primitive(x, y)

    return method


def _comparison(name: str) -> Callable[[Size, Any], Any]:
    sign, primitive = _COMPARISONS[name]

    def method(self: Size, other: Any) -> Any:
        d = _whole(other)
        if d is not None:
            n = _whole(self)
            try:
                return ask(n, sign, d)
            except InconclusiveDimError as undecided:
                return Condition(n, sign, d, undecided)
        x = _as_operand(self, other)
        if x is None:
            return NotImplemented
        return primitive(x, other)

    return method


def _install_operators() -> None:
    for name in _VALUES:
        setattr(Size, f"__{name}__", _arithmetic(name, reflected=False))
        setattr(Size, f"__r{name}__", _arithmetic(name, reflected=True))
    for name in _COMPARISONS:
        setattr(Size, f"__{name}__", _comparison(name))


_install_operators()
