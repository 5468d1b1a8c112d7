"""Ops that a function applies to one operand, found once for each spec of the operand and the other arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor._primitive import Op
from tenferro_tensor.identity import aliased
from tenferro_tensor.tables import Table

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["chained", "known_ops"]

_chains: Final = Table("ops of functions of one operand")


def _is_plain(x: Any) -> bool:
    """Whether equal arguments have equal meaning; 1.0 and True equal 1, but differ in meaning."""
    if x.__class__ is tuple:
        return all(i.__class__ is int for i in x)
    return x.__class__ is int or x is None


def known_ops(name: str, x: Any, args: tuple[Any, ...], find: Callable[[], Iterable[Op]]) -> tuple[Op, ...]:
    """The ops that `find` returns; it is called once for each name, spec of `x` and plain arguments."""
    spec = x.spec
    if spec.symbolic or not all(map(_is_plain, args)):
        return tuple(find())
    ops = _chains.get((name, spec, args))
    return _chains.remember((name, spec, args), tuple(find())) if ops is None else ops


def chained(name: str, x: Any, args: tuple[Any, ...], find: Callable[[], Iterable[Op]]) -> Array:
    """Apply these ops in turn; the result is never the object `x` itself."""
    ops = known_ops(name, x, args, find)
    y = x
    for op in ops:
        y = op(y)
    return y if ops else aliased(x)
