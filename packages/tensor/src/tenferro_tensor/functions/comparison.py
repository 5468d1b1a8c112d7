"""Comparison, classification and logic, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.functions.searching import nonzero
from tenferro_tensor.operands import truth

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "signbit",
    "where",
]

_EQ: Final = catalog.eq.op()
_SELECT: Final = catalog.select.op()
_GT: Final = catalog.gt.op()
_GE: Final = catalog.ge.op()
_IS_FINITE: Final = catalog.is_finite.op()
_IS_INF: Final = catalog.is_inf.op()
_IS_NAN: Final = catalog.is_nan.op()
_LT: Final = catalog.lt.op()
_LE: Final = catalog.le.op()
_NE: Final = catalog.ne.op()
_SIGNBIT: Final = catalog.signbit.op()


def equal(x1: Any, x2: Any, /) -> Array:
    """Whether the operands are equal.

    >>> tr.equal(tr.asarray([1, 2]), 2)
    Tensor([False,  True])
    """
    return _EQ(x1, x2)


def greater(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is greater than `x2`.

    >>> tr.greater(tr.asarray([1, 3]), 2)
    Tensor([False,  True])
    """
    return _GT(x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is at least `x2`.

    >>> tr.greater_equal(tr.asarray([1, 2]), 2)
    Tensor([False,  True])
    """
    return _GE(x1, x2)


def isfinite(x: Any, /) -> Array:
    """Whether `x` is neither infinite nor NaN.

    >>> tr.isfinite(tr.asarray([1.0, float("inf")]))
    Tensor([ True, False])
    """
    return _IS_FINITE(x)


def isinf(x: Any, /) -> Array:
    """Whether `x` is infinite.

    >>> tr.isinf(tr.asarray([1.0, float("inf")]))
    Tensor([False,  True])
    """
    return _IS_INF(x)


def isnan(x: Any, /) -> Array:
    """Whether `x` is NaN.

    >>> tr.isnan(tr.asarray([1.0, float("nan")]))
    Tensor([False,  True])
    """
    return _IS_NAN(x)


def less(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is less than `x2`.

    >>> tr.less(tr.asarray([1, 3]), 2)
    Tensor([ True, False])
    """
    return _LT(x1, x2)


def less_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is at most `x2`.

    >>> tr.less_equal(tr.asarray([2, 3]), 2)
    Tensor([ True, False])
    """
    return _LE(x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Array:
    """Whether the operands differ.

    >>> tr.not_equal(tr.asarray([1, 2]), 2)
    Tensor([ True, False])
    """
    return _NE(x1, x2)


def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set, also of -0.0.

    >>> tr.signbit(tr.asarray([-0.0, 1.0]))
    Tensor([ True, False])
    """
    return _SIGNBIT(x)


def logical_and(x1: Any, x2: Any, /) -> Array:
    """Whether both operands are true, that is nonzero.

    >>> tr.logical_and(tr.asarray([True, False]), True)
    Tensor([ True, False])
    """
    return catalog.bitwise_and(truth(x1), truth(x2))


def logical_not(x: Any, /) -> Array:
    """Whether the operand is false, that is zero.

    >>> tr.logical_not(tr.asarray([True, False]))
    Tensor([False,  True])
    """
    return catalog.bitwise_not(truth(x))


def logical_or(x1: Any, x2: Any, /) -> Array:
    """Whether some operand is true, that is nonzero.

    >>> tr.logical_or(tr.asarray([True, False]), False)
    Tensor([ True, False])
    """
    return catalog.bitwise_or(truth(x1), truth(x2))


def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Whether exactly one operand is true, that is nonzero.

    >>> tr.logical_xor(tr.asarray([True, False]), True)
    Tensor([False,  True])
    """
    return catalog.bitwise_xor(truth(x1), truth(x2))


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Array:
    """`x1` where the condition is true, `x2` elsewhere; all three broadcast. Without both, the indices: `nonzero`.

    Derivatives flow to the chosen operand only; where the other one is infinite or NaN, guard its argument too.

    >>> tr.where(tr.asarray([True, False]), tr.asarray([1.0, 2.0]), 0.0)
    Tensor([1., 0.])
    """
    if x1 is None and x2 is None:
        return nonzero(condition)  # type: ignore[return-value]  # as in NumPy; few write it
    return _SELECT(truth(condition), x1, x2)
