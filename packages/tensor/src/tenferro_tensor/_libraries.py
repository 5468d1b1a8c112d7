"""Lazy import of libraries that kernels need, by one thread at a time."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from tenferro_tensor_core.forks import importing, new_lock

_imported: dict[str, Any] = {}
_lock = new_lock()


def library(name: str) -> ModuleType:
    """Import a module on first use, as ``import name`` does, by one thread at a time.

    Python locks each module separately while it is imported. If the modules of a library import each other circularly,
    as SciPy's do, threads that start with different ones could otherwise see partially initialised modules.

    Args:
        name: name of the module.

    Returns:
        The module.

    >>> library("math").pi
    3.141592653589793
    """
    found = _imported.get(name)
    if found is None:
        with _lock, importing():
            found = _imported[name] = import_module(name)
    return found
