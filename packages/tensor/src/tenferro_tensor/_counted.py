"""Scopes that a module counts while they are open: where there is none, a fast path asks nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from tenferro_tensor_core.forks import new_lock

_lock = new_lock()


class Counted:
    """Scopes in which a variable has a value, and their number in all threads as an attribute.

    Args:
        owner: has the attribute, which fast paths read.
        name: name of the attribute.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name

    def _count(self, step: int) -> None:
        with _lock:
            setattr(self._owner, self._name, getattr(self._owner, self._name) + step)

    @contextmanager
    def scope(self, var: ContextVar[Any], value: Any) -> Iterator[Any]:
        """`var` is `value` inside."""
        self._count(1)
        token = var.set(value)
        try:
            yield value
        finally:
            self._count(-1)
            # The event loop or the garbage collector may close a generator in another context, where nothing is set.
            with suppress(ValueError):
                var.reset(token)
