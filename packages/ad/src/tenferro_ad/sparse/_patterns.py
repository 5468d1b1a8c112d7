"""Sparsity patterns of programs, cached with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenferro_ad.sparse import _equations, _loops  # noqa: F401 - register readers of branches, loops and solutions
from tenferro_ad.sparse._read import program_environment
from tenferro_ad.sparse._relation import Relation
from tenferro_runtime.extension import REGISTRY, Program, UnsupportedError
from tenferro_runtime.ir import definitions, open_sizes, substitute, variables
from tenferro_tensor_core import Dim, dim

SYMBOLIC_MIN: Final = 16
"""Minimum value of a size that stays symbolic. Smaller sizes are substituted, so that slices near the ends of an axis
are decidable."""

PATTERNS_MAX: Final = 64
"""Bound of the cache of patterns of a program."""

Relations = dict[int, tuple[Relation | None, ...]]


def relations_of(program: Program, wanted: Sequence[int], sizes: Mapping[str, int] | None = None) -> Relations:
    """For each variable of a program, its dependences on each of the wanted inputs; ``None`` for none.

    Args:
        program: the program.
        wanted: positions of inputs.
        sizes: values of its symbolic sizes by name; those below `SYMBOLIC_MIN` are substituted, and the others stay
            symbolic with that lower bound. Without them, all stay symbolic.

    Raises:
        UnsupportedError: the program has data-dependent sizes.
    """
    if definitions(program):
        raise UnsupportedError(
            "the sparsity of a function with data-dependent sizes is not known before it runs; use masks, as in "
            "where(x > 0, x, 0), instead of compress and nonzero, or use jvp and vjp"
        )
    filled: dict[str, int | Dim] = {}
    for n in open_sizes(program) if program.symbolic else ():
        assert isinstance(n, Dim)
        name, high = str(n), n.upper
        given = None if sizes is None else sizes[name]
        if given is None and high is not None and high < SYMBOLIC_MIN:
            continue
        small = given is not None and (given < SYMBOLIC_MIN or (high is not None and high < SYMBOLIC_MIN))
        filled[name] = given if small and given is not None else dim(name, max(SYMBOLIC_MIN, n.lower or 0), high)
    kept: dict[Any, Relations] = program.memo.setdefault("sparsity", {})
    key = (REGISTRY.count, tuple(wanted), tuple([(name, n) for name, n in filled.items() if isinstance(n, int)]))
    found = kept.get(key)
    if found is None:
        if len(kept) >= PATTERNS_MAX:
            kept.clear()
        read = program_environment(substitute(program, filled) if filled else program, wanted)
        found = kept[key] = {v: x.relations for v, x in read.items()}
    return found


def sizes_by_name(program: Program, sizes: Sequence[Any]) -> dict[str, int]:
    """Values of the symbolic sizes of a program by name."""
    return dict(zip(variables(program), sizes, strict=True)) if program.symbolic else {}
