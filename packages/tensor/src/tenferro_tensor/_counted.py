"""Scopes that a module counts while they are open: where there is none, a fast path asks nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from tenferro_tensor_core.forks import new_lock

_lock = new_lock()


class Counted:
    """Scopes in which a variable has a value, and their number in all threads as a global of a module.

    Args:
        module: the module's ``globals()``; fast paths, some in machine code, read the number there.
        name: name of the number.
    """

    def __init__(self, module: dict[str, Any], name: str) -> None:
        self._module, self._name = module, name

    def _count(self, step: int) -> None:
        with _lock:
            self._module[self._name] += step

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
