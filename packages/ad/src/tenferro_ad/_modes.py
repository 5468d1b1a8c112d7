"""`no_grad` and `record_sources`: what the recording of operations can be told.

Recording reads one number, `state.recording_scopes`: the scopes open in any thread, and the branches and bodies being
traced. Only while it is not 0 does it ask anything else.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from typing import Any

from tenferro_runtime.tracing import LISTENERS
from tenferro_tensor import next_level
from tenferro_tensor.calls import state
from tenferro_tensor_core.forks import new_lock

_lock = new_lock()
_floor: ContextVar[int] = ContextVar("tenferro no_grad level", default=0)
_sources: ContextVar[bool] = ContextVar("tenferro record sources", default=False)


def _count(step: int) -> None:
    with _lock:
        state.recording_scopes += step


LISTENERS.append(_count)


class _Scope(ContextDecorator):
    """A re-entrant scope in which a context variable has another value."""

    def __init__(self) -> None:
        self._tokens: list[Token[Any]] = []

    def _enter(self) -> Token[Any]:
        raise NotImplementedError

    def _recreate_cm(self) -> _Scope:
        return type(self)()

    def __enter__(self) -> None:
        self._tokens.append(self._enter())
        _count(1)

    def __exit__(self, *exc: object) -> None:
        _count(-1)
        token = self._tokens.pop()
        token.var.reset(token)


class no_grad(_Scope):
    """Scope, or decorator of a function, in which operations leave no trace for differentiation.

    It concerns everything that was being differentiated when the scope was entered, in either mode: results are plain
    values, constants of the derivative. A transform that starts inside works as anywhere else. The scope belongs to
    the context: a thread started inside it records as usual.

    >>> from tenferro_ad import no_grad, variable
    >>> x = variable([1.0, 2.0])
    >>> with no_grad():
    ...     y = x * x
    >>> y
    Tensor([1., 4.])
    """

    def _enter(self) -> Token[Any]:
        return _floor.set(next_level())


class record_sources(_Scope):
    """Scope, or decorator, in which every recorded operation remembers the user's line.

    An error that a derivative raises later then names the line of the operation that it belongs to. Recording costs
    about a microsecond more per operation.
    """

    def _enter(self) -> Token[Any]:
        return _sources.set(True)


def silent(level: int) -> bool:
    """Whether operations on values of a level are not recorded in this context; ask only in `recording_scopes`."""
    return level < _floor.get()


def sourced() -> bool:
    """Whether operations are to remember the user's line in this context; ask only in `recording_scopes`."""
    return _sources.get()


def user_line() -> str:
    """File and line of the innermost frame outside of the tenferro packages."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("tenferro_"):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
