"""`show_config`: installed versions and available backends."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import distributions
from typing import Any, Literal, overload

from tenferro_runtime._caches import caches
from tenferro_tensor import available_backends, calls, get_backend
from tenferro_tensor.backends import made
from tenferro_tensor_core import TenferroError

_OTHERS = ("llvmlite", "numpy", "platformdirs", "scipy")


@overload
def show_config(mode: Literal["print"] = ...) -> None: ...
@overload
def show_config(mode: Literal["dict"]) -> dict[str, Any]: ...
def show_config(mode: Literal["print", "dict"] = "print") -> dict[str, Any] | None:
    """Print installed versions and available backends; include it in reports about speed or failures.

    The CPU backend is initialized if necessary; other backends are described once they are in use.

    Args:
        mode: ``"print"``, or ``"dict"`` to return plain data.

    Returns:
        With ``"dict"``: ``python`` and ``platform``; ``versions`` of tenferro's distributions and their libraries, None
        if one is missing; ``calls``, whether operations are called from C or from Python; ``backends``, the description
        of each by name (for the CPU: the vector ``level``; ``blas`` and ``products``; ``cores``, ``threads`` and
        ``team``; ``native``, whether compiled programs become machine code, or how to get that; ``extension``; the
        folder ``cache``), or why it cannot be used, or that it is not in use; ``caches``, size and bound by owner.

    >>> found = tr.show_config("dict")
    >>> sorted(found)
    ['backends', 'caches', 'calls', 'platform', 'python', 'versions']
    >>> found["versions"]["tenferro-runtime"]
    '0.1.0'
    """
    found = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "versions": _versions(),
        "calls": f"in {'C' if calls.TensorBase.__module__.endswith('_accelerated') else 'Python'}",
        "backends": {name: _described(name) for name in _backends()},
        "caches": {each["owner"]: f"{each['size']} of {each['bound']}" for each in (c.stats() for c in caches())},
    }
    if mode == "dict":
        return found
    print("\n".join(_lines(found)))
    return None


def _versions() -> dict[str, str | None]:
    names = ((d.metadata["Name"] or "", d.version) for d in distributions())
    there = {name: version for name, version in names if name.startswith("tenferro-") or name in _OTHERS}
    return {name: there.get(name) for name in sorted({*there, *_OTHERS})}


def _backends() -> list[str]:
    """The installed backends; for a library with several kinds of devices, the kinds in use."""
    used = {backend.name for backend in made()}
    libraries = {name.partition(":")[0] for name in used if ":" in name}
    return sorted({*available_backends(), *used} - libraries)


def _described(name: str) -> dict[str, Any] | str:
    if name != "cpu" and name not in {backend.name for backend in made()}:
        return "not in use"
    try:
        return get_backend(name).info()
    except TenferroError as error:
        return str(error)


def _lines(found: Mapping[str, Any], indent: str = "") -> list[str]:
    """A line for each value, with nested values indented below their name."""
    lines = []
    for name, value in found.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {value}")
    return lines
