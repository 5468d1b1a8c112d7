"""Imports, each on top of those before it; NumPy is imported already."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from suite.rows import Call, row


def importing(module: str, *, on: str = "numpy") -> Callable[[Any], Call]:
    """A row that imports a module of tenferro where `on` is imported."""

    def make(xp: Any) -> Call:
        return lambda: import_module(module)

    make.__name__, make.__module__, make.__doc__ = module, __name__, f"import {module} after {on}"
    return make


row("numpy", "jax", "torch", kind="import")(importing("tenferro_runtime"))
for family in ("ad", "einsum", "linalg", "fft"):
    row(kind="import")(importing(f"tenferro_{family}", on="tenferro_runtime"))
