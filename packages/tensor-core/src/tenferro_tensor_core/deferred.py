"""Lazy imports: names of a package whose modules are imported on first access (PEP 562).

Packages repeat the imports for type checkers under ``TYPE_CHECKING``, with the same names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tenferro_tensor_core.forks import importing

__all__ = ["deferred"]


def __dir__() -> list[str]:
    return __all__.copy()


def deferred(
    package: str, names: Mapping[str, str], otherwise: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package that imports a name on first access and stores it.

    Args:
        package: ``__name__`` of the package.
        names: for each module of the package, the names that the package exports, separated by spaces.
        otherwise: called with any other name; by default those raise an `AttributeError`.

    Returns:
        The function.

    >>> get = deferred("json", {"decoder": "JSONDecodeError"})
    >>> get("JSONDecodeError").__module__
    'json.decoder'
    >>> get("loads_")
    Traceback (most recent call last):
    AttributeError: module 'json' has no attribute 'loads_'
    """
    home = {name: module for module, line in names.items() for name in line.split()}

    def get(name: str) -> Any:
        module = home.get(name)
        if module is None:
            if otherwise is not None:
                return otherwise(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with importing():
            found = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return get
