"""Lists what docstrings of public names lack: `python3 dev run tests/support/docstring_gaps.py runtime`.

The names are those of every public module's `__all__`. An object belongs to the package that defines it. Functions
need a description of each parameter and of the result; so do the public methods of exported classes, where a method
without parameters may describe its result in the summary. Functions of the package itself, and of the namespaces in
its `__all__`, need a doctest as well. Properties, special methods, and `**options` that are passed on are exempt.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from tenferro_tensor import Primitive


def public_modules(package: str) -> Iterator[ModuleType]:
    """The package and its importable modules whose path has no private part."""
    root = import_module(package)
    yield root
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            with suppress(ImportError):  # an adapter for a library that is not installed
                yield import_module(info.name)


def public_objects(package: str) -> dict[str, Any]:
    """Functions and classes that the package defines and exports, under the shortest name that they have."""
    found: dict[int, tuple[str, Any]] = {}
    for module in public_modules(package):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            home = getattr(thing, "__module__", None) or ""
            if isinstance(thing, ModuleType) or not callable(thing) or home.partition(".")[0] != package:
                continue
            path = f"{module.__name__}.{name}"
            known = found.get(id(thing))
            if known is None or len(path) < len(known[0]):
                found[id(thing)] = path, thing
    return dict(sorted(found.values(), key=lambda pair: pair[0]))


def user_names(package: str) -> set[int]:
    """Identities of what the package and the namespaces in its `__all__` export."""
    root = import_module(package)
    modules = [root, *[m for m in (getattr(root, name) for name in root.__all__) if isinstance(m, ModuleType)]]
    return {id(getattr(module, name)) for module in modules for name in getattr(module, "__all__", ())}


def gaps(package: str) -> dict[str, list[str]]:
    """What each public docstring lacks."""
    found: dict[str, list[str]] = {}
    users = user_names(package)
    for path, thing in public_objects(package).items():
        text = thing.__doc__ or ""
        if isinstance(thing, type):
            missing = [] if text else ["docstring"]
            for name, method in vars(thing).items():
                function = getattr(method, "__func__", method)
                if not name.startswith("_") and inspect.isroutine(function):
                    found[f"{path}.{name}"] = function_gaps(function, of=inspect.cleandoc(text))
        else:
            missing = function_gaps(thing)
            if id(thing) in users and ">>>" not in text:
                missing.append("doctest")
        found[path] = missing
    return {path: missing for path, missing in found.items() if missing}


def function_gaps(function: Any, of: str | None = None) -> list[str]:
    """What a docstring lacks besides a doctest; `of` is that of the class, whose sections serve all methods."""
    text = inspect.cleandoc(function.__doc__ or "")
    if not text:
        return ["docstring"]
    if inspect.isbuiltin(function) or inspect.ismethoddescriptor(function):
        return []
    if isinstance(function, Primitive):
        if function.elementwise and not function.metadata:
            return []
        function = function._rule
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    names = [
        p.name
        for p in signature.parameters.values()
        if p.name not in ("self", "cls") and not p.name.startswith("_") and p.kind is not p.VAR_KEYWORD
    ]
    described = section(text, "Args") + section(of or "", "Methods take")
    missing = [
        f"Args: {n}" for n in names if not re.search(rf"^ +(?:.*, )?\**{re.escape(n)}(, \w+)*:", described, re.M)
    ]
    silent = signature.return_annotation in (None, "None", "NoReturn", "Never", type(None))
    obvious = silent or (of is not None and not names) or section(of or "", "Methods return")
    if not obvious and not section(text, "Returns") and not section(text, "Yields"):
        missing.append("Returns")
    return missing


def section(text: str, title: str) -> str:
    """The indented lines below a heading of a docstring."""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n?|\n)+)", text, re.M)
    return found[1] if found else ""


if __name__ == "__main__":
    lists = [gaps(f"tenferro_{name.replace('-', '_')}") for name in sys.argv[1:]]
    for path, missing in [pair for found in lists for pair in found.items()]:
        print(f"{path}: {', '.join(missing)}")
    print(f"{sum(map(len, lists))} incomplete docstrings")
