"""`Array`: the operators and methods that concrete, differentiated and traced values share.

Every kind of value has a ``spec`` and a ``level``, and interprets an op by ``_bind(op, args)``. Everything here is
written in terms of ops, so that it means the same for the three kinds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._primitive import SCALARS, Op
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import DimLike

BINARY_OPERATORS: Final[dict[str, Op]] = {
    f"__{name}__": primitive.op()
    for name, primitive in {
        "add": catalog.add, "sub": catalog.sub, "mul": catalog.mul, "truediv": catalog.div, "pow": catalog.pow,
        "floordiv": catalog.floor_divide, "mod": catalog.remainder, "and": catalog.bitwise_and,
        "or": catalog.bitwise_or, "xor": catalog.bitwise_xor, "lshift": catalog.shift_left,
        "rshift": catalog.shift_right, "eq": catalog.eq, "ne": catalog.ne, "lt": catalog.lt, "le": catalog.le,
        "gt": catalog.gt, "ge": catalog.ge,
    }.items()
}  # fmt: skip
"""Operators of two operands and the ops behind them."""

UNARY_OPERATORS: Final[dict[str, Op]] = {
    "__neg__": catalog.neg.op(),
    "__abs__": catalog.abs.op(),
    "__invert__": catalog.bitwise_not.op(),
}
"""Operators of one operand and the ops behind them."""

_COMPARISONS: Final = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


class Array:
    """Operators, methods and attributes of a value, whatever its kind."""

    __slots__ = ()
    __array_ufunc__ = None  # otherwise ``ndarray * tensor`` loops over the elements
    __hash__ = None  # type: ignore[assignment]
    spec: Spec
    level: int

    @abstractmethod
    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Interpret an op, this value being an operand of the highest level."""

    def _unary(self, op: Op) -> Any:
        """Interpret an op of which this value is the only operand."""
        return self._bind(op, (self,))

    @abstractmethod
    def _concrete(self) -> np.ndarray[Any, Any]:
        """The elements as a host array, where they are known."""

    @property
    def shape(self) -> tuple[DimLike, ...]:
        """Extents of the axes."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.spec.ndim

    @property
    def size(self) -> DimLike:
        """Number of elements."""
        return self.spec.size

    @property
    def device(self) -> ComputeDevice:
        """The device that computes on this value when nothing else is said."""
        return self.spec.place.device

    def __pos__(self) -> Any:
        return self

    def __len__(self) -> int:
        if not self.spec.ndim:
            raise TypeError("len() of a tensor without axes")
        return self.spec.shape[0]  # type: ignore[return-value]

    def __iter__(self) -> Iterator[Any]:
        if not self.spec.ndim:
            raise TypeError("iteration over a tensor without axes")
        return (self[i] for i in range(len(self)))  # type: ignore[index]

    def __bool__(self) -> bool:
        return bool(self._concrete())

    def __int__(self) -> int:
        return int(self._concrete())

    def __float__(self) -> float:
        return float(self._concrete())

    def __complex__(self) -> complex:
        return complex(self._concrete())

    def __index__(self) -> int:
        return self._concrete().__index__()

    def item(self) -> Any:
        """The only element as a Python scalar."""
        return self._concrete().item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self._concrete().tolist()

    def __repr__(self) -> str:
        name = type(self).__name__
        body = np.array2string(self._concrete(), separator=", ", prefix=f"{name}(", threshold=200)
        known = self.spec.dtype.name in ("float64", "int64", "bool", "complex128") and self.spec.size != 0
        extra = "" if known else f", dtype={self.spec.dtype.name}"
        extra += "" if self.spec.size != 0 else f", shape={self.spec.shape}"
        return f"{name}({body}{extra})"


def _operator(op: Op, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if other.__class__ in SCALARS or isinstance(other, (Array, np.ndarray, np.generic)):
            return op(other, self) if reflected else op(self, other)
        return NotImplemented

    return method


def _install_operators() -> None:
    for name, op in BINARY_OPERATORS.items():
        setattr(Array, name, _operator(op, reflected=False))
        if name not in _COMPARISONS:
            setattr(Array, f"__r{name[2:]}", _operator(op, reflected=True))
    for name, op in UNARY_OPERATORS.items():
        setattr(Array, name, lambda self, _op=op: self._unary(_op))


_install_operators()
