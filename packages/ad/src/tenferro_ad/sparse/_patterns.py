"""Patterns of programs, kept with them: the relations for open sizes, the matrices for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenferro_ad.sparse import _equations, _loops  # noqa: F401 - register how branches, loops and solutions are read
from tenferro_ad.sparse._read import program_environment
from tenferro_ad.sparse._relation import Relation
from tenferro_runtime.extension import REGISTRY, Program, UnsupportedError
from tenferro_runtime.ir import definitions, open_sizes, substitute, variables
from tenferro_tensor_core import Dim, dim

OPEN_MIN: Final = 16
"""Least value of a size that is left open. Smaller ones are numbers, so that no question about slices near the ends of
an axis is left open."""

MAX_KEPT: Final = 64
"""Number of patterns that are kept with a program."""

Relations = dict[int, tuple[Relation | None, ...]]


def relations_of(program: Program, wanted: Sequence[int], sizes: Mapping[str, int] | None = None) -> Relations:
    """For each variable of a program, what it depends on of each of the wanted inputs; ``None`` for nothing.

    Args:
        program: the program.
        wanted: positions of inputs.
        sizes: values of its open sizes by name; those below `OPEN_MIN` are put in, and the others are left open but
            known to be no smaller. Without them, all are left open.

    Raises:
        UnsupportedError: the program has sizes that depend on data.
    """
    if definitions(program):
        raise UnsupportedError(
            "the sparsity of a function with sizes that depend on data is not known before it runs; use masks, as in "
            "where(x > 0, x, 0), in place of compress and nonzero, or use jvp and vjp"
        )
    filled: dict[str, int | Dim] = {}
    for n in open_sizes(program) if program.symbolic else ():
        assert isinstance(n, Dim)
        name, high = str(n), n.upper
        given = None if sizes is None else sizes[name]
        if given is None and high is not None and high < OPEN_MIN:
            continue
        small = given is not None and (given < OPEN_MIN or (high is not None and high < OPEN_MIN))
        filled[name] = given if small and given is not None else dim(name, max(OPEN_MIN, n.lower or 0), high)
    kept: dict[Any, Relations] = program.memo.setdefault("sparsity", {})
    key = (REGISTRY.count, tuple(wanted), tuple([(name, n) for name, n in filled.items() if isinstance(n, int)]))
    found = kept.get(key)
    if found is None:
        if len(kept) >= MAX_KEPT:
            kept.clear()
        read = program_environment(substitute(program, filled) if filled else program, wanted)
        found = kept[key] = {v: x.relations for v, x in read.items()}
    return found


def sizes_by_name(program: Program, sizes: Sequence[Any]) -> dict[str, int]:
    """Values of the open sizes of a program by name."""
    return dict(zip(variables(program), sizes, strict=True)) if program.symbolic else {}
