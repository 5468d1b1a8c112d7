"""`no_grad` and `record_sources`: scopes that change the recording of operations.

`state.recording_scopes` counts the open scopes of all threads, plus the branches and loop bodies being traced. While
it is 0, recording checks nothing else.
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
    """Context manager or decorator that disables recording for differentiation.

    It applies to every differentiation that is active on entry, in either mode: results are constants. A transform
    that starts inside works as usual. The scope is context-local: a thread started inside it records as usual.

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
    """Context manager or decorator in which every recorded operation stores the user's source line.

    An error raised by a derivative then names the line of the operation that it belongs to. Recording costs about one
    microsecond more per operation.

    >>> from tenferro_ad import record_sources, variable
    >>> x = variable([1.0, 2.0])
    >>> with record_sources():
    ...     y = (x * x).sum()
    >>> y.backward()
    """

    def _enter(self) -> Token[Any]:
        return _sources.set(True)


def silent(level: int) -> bool:
    """Whether this context does not record operations on values of a level; call only inside recording scopes."""
    return level < _floor.get()


def sourced() -> bool:
    """Whether operations store the user's line in this context; call only inside recording scopes."""
    return _sources.get()


def user_line() -> str:
    """File and line of the innermost frame outside of the tenferro packages."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("tenferro_"):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
