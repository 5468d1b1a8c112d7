"""The identity of values, as distinct from that of the objects that hold them.

Assigning to elements makes an object hold another value. Hence code that stores a value which users hold too stores an
alias of it, functions return objects of their own, and comparisons use the identity of the value.
"""

from __future__ import annotations

from typing import Any, TypeVar

from tenferro_tensor.calls import ValueBase, unlink
from tenferro_tensor.origins import aliased

T = TypeVar("T")

__all__ = ["Identity", "aliased", "apart", "handed", "identity"]


def __dir__() -> list[str]:
    return __all__.copy()


Identity = tuple[Any, ...]


def identity(x: Any) -> Identity:
    """A key that is equal for all objects of one value, as long as one of them lives and is not assigned to.

    Args:
        x: value.

    Returns:
        The key.
    """
    return x.__class__, id(x._inside), id(x._link), x.spec


def apart(x: Any, y: T) -> T:
    """`y` as a value of its own, so that assigning to a result leaves its operand unchanged.

    Args:
        x: operand.
        y: result, perhaps `x` itself or a view of it.

    Returns:
        `y`, or an alias of it.
    """
    if y is x:
        return aliased(y)
    unlink(y)
    return y


def handed(x: T) -> T:
    """An alias of a value, for a function whose assignments do not reach its caller's value.

    Args:
        x: value; any other object is returned itself.

    Returns:
        The alias.
    """
    return aliased(x) if isinstance(x, ValueBase) else x
