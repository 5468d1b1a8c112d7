"""Libraries that kernels need, imported on first use and by one thread at a time."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenferro_tensor_core.forks import importing, new_lock

_imported: dict[str, Any] = {}
_lock = new_lock()


def library(name: str) -> Any:
    """A module that is imported on first use, as by ``import name``.

    Python locks each module by itself while it is imported. Where a library's modules import each other in a circle, as
    SciPy's do, threads that begin with different ones would otherwise see each other's half-made modules.

    >>> library("math").pi
    3.141592653589793
    """
    found = _imported.get(name)
    if found is None:
        with _lock, importing():
            found = _imported[name] = import_module(name)
    return found
