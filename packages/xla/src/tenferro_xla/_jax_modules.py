"""JAX, imported on demand, and the scope in which it keeps 64-bit numbers."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from tenferro_tensor_core.forks import importing


def library(name: str = "") -> Any:
    """Import a module of JAX by name, for example ``"numpy"`` or ``"lax.linalg"``; without a name, JAX itself."""
    with importing():
        return import_module(f"jax.{name}" if name else "jax")


def wide_numbers() -> Any:
    """Return a context manager in which JAX keeps 64-bit numbers, in this thread only."""
    return scope_of_wide_numbers()(True)


@cache
def scope_of_wide_numbers() -> Any:
    """Return the function that makes these context managers, called with True."""
    jax = library()
    return jax.enable_x64 if hasattr(jax, "enable_x64") else library("experimental").enable_x64
