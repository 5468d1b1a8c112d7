"""What the packages use of CuPy, read off their sources: names, and calls with the number and the names of arguments.

Only uses through names that stand for the module are seen: ``xp.where(...)``, ``self.cupy.cuda.Stream(...)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from workspace import ROOT

FILES: Final = (
    *sorted((ROOT / "packages" / "gpu" / "src").rglob("*.py")),
    *sorted((ROOT / "packages" / "tensor" / "src" / "tenferro_tensor" / "reference").rglob("*.py")),
    *[f for f in sorted((ROOT / "packages" / "linalg" / "src").rglob("*.py")) if f.parent.name != "stablehlo"],
    *sorted((ROOT / "packages" / "fft" / "src").rglob("*.py")),
)
ROOTS: Final = {
    "xp": "cupy", "self.xp": "cupy", "la.xp": "cupy", "cupy": "cupy", "self.cupy": "cupy",
    "self._cupy": "cupy", "self._xp": "cupy", "device.cupy": "cupy", "self.device.cupy": "cupy",
    "self._device.cupy": "cupy", "self._backend.runtime.cupy": "cupy", "self._extra": "cupyx.scipy.linalg",
    "self._sparse": "cupyx.scipy.sparse",
}  # fmt: skip
"""Expressions that stand for a module of CuPy."""

OF_PROGRAMS: Final = frozenset({"branching", "optimistic", "cond", "while_loop"})
"""Names of the namespace of formulas on traced values, which is not CuPy's; see `tenferro_linalg._fallible`."""


class Use(NamedTuple):
    """A use of a name.

    Attributes:
        place: file and line.
        owner: the module.
        path: the name below it, as in ``("linalg", "svd")``.
        call: number of positional arguments and names of the others; None where it is not called, or with ``*args``.
    """

    place: str
    owner: str
    path: tuple[str, ...]
    call: tuple[int, tuple[str, ...]] | None


@cache
def uses() -> tuple[Use, ...]:
    """All uses in the packages."""
    return tuple(_uses())


def _uses() -> Iterator[Use]:
    for file in FILES:
        calls: dict[int, ast.Call] = {}
        inner: set[int] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                calls[id(node.func)] = node
            if not isinstance(node, ast.Attribute) or id(node) in inner:
                continue
            text = ast.unparse(node)
            if not text.replace(".", "").replace("_", "").isalnum():
                continue
            below = node.value
            while isinstance(below, ast.Attribute):
                inner.add(id(below))
                below = below.value
            root = max((r for r in ROOTS if text.startswith(f"{r}.")), key=len, default=None)
            path = () if root is None else tuple(text[len(root) + 1 :].split("."))
            if root is not None and path[0] not in OF_PROGRAMS:
                place = f"{file.relative_to(ROOT).as_posix()}:{node.lineno}"
                yield Use(place, ROOTS[root], path, _arguments(calls.get(id(node))))


def _arguments(call: ast.Call | None) -> tuple[int, tuple[str, ...]] | None:
    if call is None or any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    return len(call.args), tuple([str(k.arg) for k in call.keywords])


def find_wrong(use: Use, names: dict[str, dict[str, str]]) -> str | None:
    """What CuPy of some version refuses about a use; None where it is fine."""
    from cupy_interface import bound

    owner = use.owner
    for k, name in enumerate(use.path):
        if owner not in names or name.startswith("__"):
            return None  # of a value, of which no names are known
        found = names[owner].get(name)
        if found is None:
            return f"{use.place}: {owner} has no {name}"
        if k == len(use.path) - 1 and use.call is not None:
            described = names.get(f"{owner}.{name}", {}).get("__init__", "") if found == "class" else found
            refused = bound(described, *use.call)
            return refused and f"{use.place}: {owner}.{name}: {refused}"
        owner = f"{owner}.{name}"
    return None
