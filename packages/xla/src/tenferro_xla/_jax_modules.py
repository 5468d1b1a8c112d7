"""JAX, imported where it is needed, and the scope in which it keeps numbers of 64 bits."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from tenferro_tensor_core.forks import importing


def library(name: str = "") -> Any:
    """A module of JAX: ``"numpy"``, ``"lax"``, ``"lax.linalg"``, ``"scipy.linalg"``; without a name, JAX itself."""
    with importing():
        return import_module(f"jax.{name}" if name else "jax")


def wide_numbers() -> Any:
    """A scope in which JAX keeps numbers of 64 bits, in this thread only."""
    return _scope()(True)


@cache
def _scope() -> Any:
    jax = library()
    return jax.enable_x64 if hasattr(jax, "enable_x64") else library("experimental").enable_x64
