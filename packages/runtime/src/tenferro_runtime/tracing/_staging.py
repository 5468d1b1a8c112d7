"""Stages: operations inside a branch or body that is being traced belong to it, even on outside values only.

An operation is normally interpreted by its operand of highest level. In a branch that uses only values of the enclosing
trace, that would record the operation outside, where it runs even if the branch is not taken. Builders and
differentiated values therefore first check for an open stage of higher level; the check is cheap if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from tenferro_tensor_core.forks import new_lock

active = 0
"""Number of open stages in all threads."""

LISTENERS: Final[list[Callable[[int], None]]] = []
"""Called with 1 when a stage opens and with -1 when it ends."""

_lock = new_lock()
_stage: ContextVar[Any] = ContextVar("tenferro stage", default=None)


@contextmanager
def stage(builder: Any) -> Iterator[None]:
    """A scope in which the builder records operations on values of lower levels.

    Args:
        builder: the builder of a branch or a body.

    Returns:
        The context manager.
    """
    token = _stage.set(builder)
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _stage.reset(token)


def _count(step: int) -> None:
    global active
    with _lock:
        active += step
    for listener in LISTENERS:
        listener(step)


def stage_above(level: int) -> Any:
    """The builder of the innermost stage in this context, if its level is higher.

    Args:
        level: the level to compare with.

    Returns:
        The builder, or ``None``.
    """
    builder = _stage.get()
    return builder if builder is not None and builder.level > level else None
