"""The identity of values, as distinct from that of the objects that hold them.

Assigning to elements makes an object hold another value. Hence code that stores a value which users hold too stores an
alias of it, functions return objects of their own, and comparisons use the identity of the value.
"""

from __future__ import annotations

from typing import Any

from tenferro_tensor.calls import ValueBase
from tenferro_tensor.origins import aliased

__all__ = ["Identity", "aliased", "apart", "identity", "lend"]

Identity = tuple[Any, ...]


def identity(x: Any) -> Identity:
    """A key that is equal for all objects of one value, as long as one of them lives and is not assigned to.

    Args:
        x: value.

    Returns:
        The key.
    """
    return x.__class__, id(x._inside), id(x._link), x.spec


def apart(x: Any, y: Any) -> Any:
    """`y` as an object other than `x`, so that assigning to a result leaves its operand unchanged.

    Args:
        x: operand.
        y: result, perhaps `x` itself.

    Returns:
        `y`, or an alias of it.
    """
    return aliased(y) if y is x else y


def lend(x: Any) -> Any:
    """An alias of a value that refuses assignment, for a function that cannot change its caller's value.

    Args:
        x: value; any other object is returned itself.

    Returns:
        The alias.
    """
    if not isinstance(x, ValueBase):
        return x
    z = aliased(x)
    z.lent = True
    return z
