"""Names of a package whose modules are imported when one of them is first asked for (PEP 562).

Imports for type checkers stand in the same file under ``TYPE_CHECKING``, and list the same names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tenferro_tensor_core.forks import importing

__all__ = ["deferred"]


def deferred(
    package: str, names: Mapping[str, str], otherwise: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that imports what is first asked for, and keeps it.

    Args:
        package: ``__name__`` of the package.
        names: for each module of the package, the names in it that the package offers, separated by spaces.
        otherwise: answers all other names; by default they are an `AttributeError`.

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
