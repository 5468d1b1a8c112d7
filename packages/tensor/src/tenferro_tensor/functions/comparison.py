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


def __dir__() -> list[str]:
    return __all__.copy()


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

    Args:
        x1, x2: arrays or Python numbers, which broadcast.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.equal(tr.asarray([1, 2]), 2)
    Tensor([False,  True])
    """
    return _EQ(x1, x2)


def greater(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is greater than `x2`.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.greater(tr.asarray([1, 3]), 2)
    Tensor([False,  True])
    """
    return _GT(x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is at least `x2`.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.greater_equal(tr.asarray([1, 2]), 2)
    Tensor([False,  True])
    """
    return _GE(x1, x2)


def isfinite(x: Any, /) -> Array:
    """Whether `x` is neither infinite nor NaN.

    Args:
        x: array of any shape and dtype.

    Returns:
        Boolean array of the shape of `x`.

    >>> tr.isfinite(tr.asarray([1.0, float("inf")]))
    Tensor([ True, False])
    """
    return _IS_FINITE(x)


def isinf(x: Any, /) -> Array:
    """Whether `x` is infinite.

    Args:
        x: array of any shape and dtype.

    Returns:
        Boolean array of the shape of `x`.

    >>> tr.isinf(tr.asarray([1.0, float("inf")]))
    Tensor([False,  True])
    """
    return _IS_INF(x)


def isnan(x: Any, /) -> Array:
    """Whether `x` is NaN.

    Args:
        x: array of any shape and dtype.

    Returns:
        Boolean array of the shape of `x`.

    >>> tr.isnan(tr.asarray([1.0, float("nan")]))
    Tensor([False,  True])
    """
    return _IS_NAN(x)


def less(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is less than `x2`.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.less(tr.asarray([1, 3]), 2)
    Tensor([ True, False])
    """
    return _LT(x1, x2)


def less_equal(x1: Any, x2: Any, /) -> Array:
    """Whether `x1` is at most `x2`.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.less_equal(tr.asarray([2, 3]), 2)
    Tensor([ True, False])
    """
    return _LE(x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Array:
    """Whether the operands differ.

    Args:
        x1, x2: arrays or Python numbers, which broadcast.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.not_equal(tr.asarray([1, 2]), 2)
    Tensor([ True, False])
    """
    return _NE(x1, x2)


def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set, including that of -0.0.

    Args:
        x: real array of any shape.

    Returns:
        Boolean array of the shape of `x`.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.signbit(tr.asarray([-0.0, 1.0]))
    Tensor([ True, False])
    """
    return _SIGNBIT(x)


def logical_and(x1: Any, x2: Any, /) -> Array:
    """Whether both operands are true.

    Args:
        x1, x2: arrays or numbers of any dtype, which broadcast; nonzero counts as true.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.logical_and(tr.asarray([True, False]), True)
    Tensor([ True, False])
    """
    return catalog.bitwise_and(truth(x1), truth(x2))


def logical_not(x: Any, /) -> Array:
    """Whether the operand is false.

    Args:
        x: array of any shape and dtype; nonzero counts as true.

    Returns:
        Boolean array of the shape of `x`.

    >>> tr.logical_not(tr.asarray([True, False]))
    Tensor([False,  True])
    """
    return catalog.bitwise_not(truth(x))


def logical_or(x1: Any, x2: Any, /) -> Array:
    """Whether at least one operand is true.

    Args:
        x1, x2: arrays or numbers of any dtype, which broadcast; nonzero counts as true.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.logical_or(tr.asarray([True, False]), False)
    Tensor([ True, False])
    """
    return catalog.bitwise_or(truth(x1), truth(x2))


def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Whether exactly one operand is true.

    Args:
        x1, x2: arrays or numbers of any dtype, which broadcast; nonzero counts as true.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.logical_xor(tr.asarray([True, False]), True)
    Tensor([False,  True])
    """
    return catalog.bitwise_xor(truth(x1), truth(x2))


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Array:
    """Select elements of `x1` where the condition is true, of `x2` elsewhere.

    Derivatives flow to the selected operand only. If the other operand is infinite or NaN there, guard its argument as
    well.

    Args:
        condition: booleans; nonzero numbers count as true.
        x1, x2: arrays or numbers; all three operands broadcast. Without both, `where` is `nonzero`.

    Returns:
        Array of the broadcast shape, in the promoted dtype of `x1` and `x2`.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.where(tr.asarray([True, False]), tr.asarray([1.0, 2.0]), 0.0)
    Tensor([1., 0.])
    """
    if x1 is None and x2 is None:
        return nonzero(condition)  # type: ignore[return-value]  # as in NumPy; few write it
    return _SELECT(truth(condition), x1, x2)
