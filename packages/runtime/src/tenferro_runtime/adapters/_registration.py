"""Registration with libraries that find array classes by their own lists, whichever side is imported first.

A finder in front of `sys.meta_path` waits for the libraries of `ADAPTED` and imports the adapter of each after it. It
finds nothing itself: an import of any other module costs one look into a dictionary.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from tenferro_runtime._namespace import family

ADAPTED: Final = {"autoray": "", "einops": "", "numba": "", "quimb.tensor.optimize": "ad"}
"""Modules of libraries, and the part of this one that has the adapter; it is named after the library."""


def _register(name: str) -> None:
    # A version of the library that the adapter does not know must remain usable without tensors, and so must one whose
    # adapter is not installed.
    with suppress(ImportError, AttributeError):
        part = ADAPTED[name]
        home = family(part).__name__ if part else "tenferro_runtime"
        import_module(f"{home}.adapters.{name.partition('.')[0]}")


class _Registering:
    """The loader of a library, which registers this one after the library has run."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader  # what others ask for sources and resources
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _register(module.__name__)


class _Waiting:
    """The finder."""

    def __init__(self) -> None:
        self._names = ADAPTED

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Registering(spec.loader)  # type: ignore[assignment]
                return spec
        return None


def wait_for_libraries() -> None:
    """Register with the libraries that are imported, and with others when they are."""
    for name in ADAPTED:
        if name in sys.modules:
            _register(name)
    sys.meta_path.insert(0, _Waiting())
