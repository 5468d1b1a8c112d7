"""Which primitives XLA runs, found out from the registry, and why the others do not.

``python3 dev run tests/support/xla_table.py`` writes the page ``docs/reference/xla-primitives.md``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Final

from tenferro_runtime.extension import REGISTRY, call
from tenferro_runtime.tracing.expanding import has_expansion
from tenferro_tensor import Primitive
from tenferro_xla.lowerings import CORE

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "xla-primitives.md"
PACKAGES: Final = ("tensor", "runtime", "einsum", "linalg", "fft", "ad")

LATE: Final = "its size depends on data; extents of StableHLO are fixed"
HOST: Final = "calls Python; a module cannot hold a function of this process"
BESIDE: Final = "part of derivatives at degenerate points, which eager calls take; programs do not have it"
NONE: Final = "neither StableHLO nor JAX has it for these operands"

REASONS: Final[dict[str, str]] = {
    "define_size": LATE,
    "transfer": "moves data to another device; a module runs on those of its mesh",
    **dict.fromkeys(("pure_callback", "debug_callback", "hosted_solver"), HOST),
    **dict.fromkeys(("smooth", "eig_apart", "eigh_apart", "svd_apart"), BESIDE),
    "ldl": "JAX has no factors with pivots of size 2 (Bunch and Kaufman)",
    **dict.fromkeys(("funm_points", "funm_term"), "JAX cannot reorder Schur forms"),
    "sparse_solve": "JAX has no sparse factors",
    **dict.fromkeys(("hyp1f1", "hyp2f1"), "JAX's functions lose most digits for many parameters"),
}
"""Primitives without a lowering, by the name in their family; special functions have a reason of their own."""

NOTES: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("schur", "schur_factors", "sylvester", "stein", "continuous_are", "discrete_are", "hessenberg"),
        "for the platform cpu: JAX has Schur and Hessenberg forms there alone",
    ),
    "matrix_function": "logarithms and square roots for the platform cpu; exponentials and signs for all",
    "toeplitz_solve": "by LU factors of the dense matrix",
    "eigvalsh_tridiagonal": "by the dense matrix",
    "searchsorted": "by JAX's binary search",
}
"""What is to be known of a lowering."""


def primitives() -> dict[str, dict[str, Primitive]]:
    """All primitives of the distributions, by distribution and name; names of families are without their version."""
    modules = []
    for package in PACKAGES:
        root = import_module(f"tenferro_{package}")
        names = [m.name for m in walk_packages(root.__path__, f"{root.__name__}.")]
        modules += [name for name in names if ".adapters" not in name]
    for name in modules:
        import_module(name)
    found: dict[str, dict[str, Primitive]] = {f"tenferro-{package}": {} for package in PACKAGES}
    for name in modules:
        for p in vars(sys.modules[name]).values():
            if isinstance(p, Primitive):
                home, _, label = (p.family or f"tenferro-tensor.{p.name}.v1").partition(".")
                if home in found:  # not those of the checks, which no backend knows
                    found[home][label.rpartition(".")[0]] = p
    return found


def how(name: str, p: Primitive) -> str:
    """How XLA runs a primitive; empty where it does not."""
    if p is call:
        return "in line"
    if p in CORE or REGISTRY.find("lowering", p) is not None:
        return "lowering"
    return "expansion" if has_expansion(p) else ""


def reason(name: str, p: Primitive) -> str:
    """Why XLA does not run a primitive."""
    if p.extension == "special":
        return REASONS.get(name, NONE)
    return REASONS[name]


HEAD: Final = """# Which primitives XLA runs

`tenferro_xla` writes a core primitive by StableHLO's operations, that of a family by the lowering that the family has
registered, and one without a lowering by its expansion into others. This page is written by
`python3 dev run tests/support/xla_table.py` from the registry, and the tests compare it anew.

A program with a primitive of the first table is refused when it is lowered, by an `UnsupportedError` that names the
primitive and the line of its call. Lowerings that JAX writes can refuse some dtypes or derivatives of special
functions, by the same error.
"""


def grouped(rows: list[tuple[str, str, str]]) -> list[str]:
    """Lines of a table of names, distributions and texts; names with one text share a line."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, home, text in rows:
        names.setdefault((home, text), []).append(f"`{name}`")
    return [f"| {', '.join(sorted(group))} | {home} | {text} |" for (home, text), group in names.items()]


def page() -> str:
    """The whole page."""
    without, noted, lists = [], [], []
    for home, table in primitives().items():
        ways: dict[str, list[str]] = {}
        for name in sorted(table):
            way = how(name, table[name])
            ways.setdefault(way, []).append(f"`{name}`")
            if not way:
                without.append((name, home, reason(name, table[name])))
            elif name in NOTES:
                noted.append((name, home, NOTES[name]))
        lists.append(f"\n### {home}")
        for way, title in (("lowering", "By lowerings"), ("expansion", "By expansions"), ("in line", "In line")):
            if way in ways:
                lists.append(f"\n{title}: {', '.join(ways[way])}.")
    lines = [HEAD, "## Those that it does not run\n", "| primitives | distribution | why |", "|---|---|---|"]
    lines += [
        *grouped(without),
        "\n## Those with a condition\n",
        "| primitives | distribution | how |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *grouped(noted), "\n## All that it runs", *lists]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
