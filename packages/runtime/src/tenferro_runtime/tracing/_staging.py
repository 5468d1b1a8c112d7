"""While the branch or body of a recorded control flow is traced, what it does with values from outside is its own.

An operation is interpreted by the operand of highest level. In a branch that uses only values of the enclosing trace
that rule would record it outside, where it runs whether the branch is taken or not. So builders, and the values that
derivatives pass through, first ask whether a stage of higher level is open. Asking is cheap where none is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from tenferro_tensor_core.forks import new_lock

active = 0
"""Number of stages that are open in any thread."""

LISTENERS: Final[list[Callable[[int], None]]] = []
"""Called with 1 when a stage opens and with -1 when it ends."""

_lock = new_lock()
_stage: ContextVar[Any] = ContextVar("tenferro stage", default=None)


@contextmanager
def stage(builder: Any) -> Iterator[None]:
    """A scope in which operations on values of lower level than the builder's are recorded by the builder."""
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
    for tell in LISTENERS:
        tell(step)


def stage_above(level: int) -> Any:
    """The builder of the innermost stage of this context, if it outranks the level; else ``None``."""
    builder = _stage.get()
    return builder if builder is not None and builder.level > level else None
