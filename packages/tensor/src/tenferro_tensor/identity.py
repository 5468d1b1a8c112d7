"""Objects, and the values that they stand for.

Assigning to elements lets an object stand for another value. So whatever keeps a value that users hold as well keeps
another object for it, functions return objects of their own, and what counts is the identity of the value.
"""

from __future__ import annotations

from typing import Any

from tenferro_tensor.calls import ValueBase
from tenferro_tensor.origins import aliased

__all__ = ["Identity", "aliased", "apart", "identity", "lend"]

Identity = tuple[Any, ...]


def identity(x: Any) -> Identity:
    """Equal for objects that stand for the same value, as long as one of them lives and is not assigned to."""
    return x.__class__, id(x._inside), id(x._link), x.spec


def apart(x: Any, y: Any) -> Any:
    """`y`, in an object of its own where it is `x`: a result may be assigned to, and its operand stays."""
    return aliased(y) if y is x else y


def lend(x: Any) -> Any:
    """An object for the same value that refuses to be assigned to, for a function that cannot change its caller's.

    What is no value is passed on as it is.
    """
    if not isinstance(x, ValueBase):
        return x
    z = aliased(x)
    z.lent = True
    return z
