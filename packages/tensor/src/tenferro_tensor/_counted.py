"""Scopes that are counted while open, so that fast paths need to check only whether there is any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from tenferro_tensor_core.forks import new_lock

F = TypeVar("F", bound=Callable[..., Any])
T_co = TypeVar("T_co", covariant=True)

_lock = new_lock()


class CountedScope(Protocol[T_co]):
    """A context manager that is also a decorator."""

    def __enter__(self) -> T_co: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any, /) -> bool | None: ...
    def __call__(self, f: F, /) -> F: ...


class Counted:
    """Scopes in which a variable has a value; their number in all threads is an attribute.

    Args:
        owner: object with the attribute, which fast paths read.
        name: name of the attribute.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name

    def _count(self, step: int) -> None:
        with _lock:
            setattr(self._owner, self._name, getattr(self._owner, self._name) + step)

    @contextmanager
    def scope(self, var: ContextVar[Any], value: Any) -> Iterator[Any]:
        """A scope in which `var` is `value`."""
        self._count(1)
        token = var.set(value)
        try:
            yield value
        finally:
            self._count(-1)
            # The event loop or the garbage collector may close a generator in another context, where it is not set.
            with suppress(ValueError):
                var.reset(token)
