"""Operands that are no arrays and contract themselves with arrays, such as sparse matrices.

`matmul`, `dot`, `tensordot` and `einsum` look for them only where they would otherwise refuse an operand, so that
calls with arrays alone do not pay for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from tenferro_tensor.operands import value
from tenferro_tensor_core import ShapeError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

    from tenferro_tensor._array import Array

__all__ = [
    "Contractible", "Labels", "contract", "has_contractible", "is_contractible", "matmul", "operands", "tensordot",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


Labels = tuple[Hashable, ...]
"""A name for each axis; axes with the same name are multiplied element by element, or summed."""


class Contractible(Protocol):
    """An operand that contracts itself with arrays.

    Attributes:
        shape: extents of its axes.
        ndim: number of its axes.
        dtype: dtype of its elements.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __tenferro_contract__(self, labels: Labels, other: Any, of_other: Labels, out: Labels) -> Any:
        """Contract with another operand.

        Args:
            labels: labels of the axes of this operand.
            other: a value, or another contractible operand.
            of_other: labels of the axes of `other`, all different; the extents of a label agree.
            out: labels of the result, all different; labels that are missing are summed.

        Returns:
            A value.
        """


def is_contractible(x: Any) -> TypeGuard[Contractible]:
    """Whether an operand implements `Contractible`.

    Args:
        x: any operand.

    Returns:
        True if it does.
    """
    return hasattr(type(x), "__tenferro_contract__")


def has_contractible(*operands: Any) -> bool:
    """Whether any of the operands implements `Contractible`.

    Args:
        operands: any operands.

    Returns:
        True if one does.
    """
    return any(map(is_contractible, operands))


def operands(*given: Any) -> list[Any]:
    """Convert operands that are no `Contractible` to values.

    Args:
        given: any operands.

    Returns:
        Values and contractible operands.

    Raises:
        ArgumentError: an operand is neither an array nor a number.
    """
    return [x if is_contractible(x) else value(x) for x in given]


def contract(x: Any, of_x: Labels, y: Any, of_y: Labels, out: Labels) -> Array:
    """Contract two operands; at least one of them implements `Contractible`.

    Args:
        x: first operand.
        of_x: labels of its axes.
        y: second operand.
        of_y: labels of its axes.
        out: labels of the result.

    Returns:
        A value.
    """
    if is_contractible(x):
        return x.__tenferro_contract__(of_x, y, of_y, out)
    return y.__tenferro_contract__(of_y, x, of_x, out)


def tensordot(what: str, x: Any, y: Any, over_x: Sequence[int], over_y: Sequence[int]) -> Array:
    """Sum of products over pairs of axes; one operand implements `Contractible`.

    Args:
        what: name of the function, for errors.
        x: first operand.
        y: second operand.
        over_x: summed axes of `x`, counted from 0.
        over_y: their partners in `y`.

    Returns:
        A value with the other axes of `x`, then those of `y`.

    Raises:
        UnsupportedError: both operands implement it.
    """
    of_x, of_y = _labels(what, x, y, over_x, over_y)
    summed = {of_x[n] for n in over_x}
    return contract(x, of_x, y, of_y, tuple([n for n in (*of_x, *of_y) if n not in summed]))


def matmul(x: Any, y: Any) -> Array:
    """Matrix product of two operands, one of which is a `Contractible` matrix.

    Args:
        x: first operand.
        y: second operand.

    Returns:
        A value; the leading axes are those of the array.

    Raises:
        ShapeError: an operand has no axes.
        UnsupportedError: both operands implement it, or both have more than two axes.
    """
    m, n = x.ndim, y.ndim
    if not m or not n:
        raise ShapeError(f"matmul needs operands with at least one axis, got shapes {x.shape} and {y.shape}; use *")
    if m > 2 and n > 2:
        raise UnsupportedError(f"matmul cannot pair stacks of shapes {x.shape} and {y.shape}; use vmap")
    of_x, of_y = _labels("matmul", x, y, (m - 1,), (max(n - 2, 0),))
    return contract(x, of_x, y, of_y, (*of_x[:-2], *of_y[:-2], *of_x[-2:-1], *of_y[1:][-1:]))


def _labels(what: str, x: Any, y: Any, over_x: Sequence[int], over_y: Sequence[int]) -> tuple[Labels, Labels]:
    """Labels for a sum over pairs of axes."""
    if is_contractible(x) and is_contractible(y):
        raise UnsupportedError(
            f"{what} takes a {type(x).__name__} and an array, got a {type(y).__name__} as well; einsum contracts both "
            "into a dense array"
        )
    m = x.ndim
    of_y = [m + n for n in range(y.ndim)]
    for a, b in zip(over_x, over_y, strict=True):
        of_y[b] = a
    return tuple(range(m)), tuple(of_y)
