"""Programs derived from symbolic programs: made once for all sizes that satisfy the same guards, and cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tenferro_runtime.ir import definitions, example_of, holds, inform, instance
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import variables
from tenferro_runtime.runtime import promised_like
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staged import within
from tenferro_runtime.tracing._staging import stage
from tenferro_tensor_core import Decisions, Dim, DimLike, Guard, dim

D = TypeVar("D")

MAX_DERIVED: Final = 64
"""Number of derived objects of one kind that a program caches."""


def derived(
    program: Program,
    key: Any,
    sizes: Mapping[str, DimLike] | None,
    make: Callable[[Program, Builder], D],
    unified: Callable[[D, Mapping[str, DimLike]], D] | None = None,
    otherwise: Callable[[Program, Builder], D] | None = None,
) -> D:
    """Derive an object from a program, and cache it with the program.

    `sizes` decide questions about symbolic sizes; each answer is a guard on the sizes for which the result is reused.

    Args:
        program: the program.
        key: identifies the kind of derived object.
        sizes: values of the symbolic sizes by name; ``None`` for a branch or a body, whose sizes are those of the
            enclosing trace.
        make: derives the object from the program, or from one with concrete sizes; it may record with the builder,
            which also records values that are computed from sizes alone.
        unified: substitutes sizes that the derivation found equal; not needed for a branch or a body.
        otherwise: derives the object from a program with concrete sizes; `make` by default.

    Returns:
        The derived object.
    """
    kept: list[tuple[tuple[Guard, ...], D]] = program.memo.setdefault(key, [])
    for guards, found in kept:
        if all(holds(guard, sizes or {}) for guard in guards):
            return found
    if len(kept) >= MAX_DERIVED:
        del kept[0]
    made: D | None = None
    builder = Builder()
    if sizes is None or not (sizes or program.symbolic):
        made = (within(stage(builder), make) if program.symbolic else make)(program, builder)
        kept.append(((), made))
        return made
    decisions = Decisions({name: example_of(n) for name, n in sizes.items()}, builder)
    inform(decisions, program)
    with decisions, stage(builder):
        try:
            made = make(program, builder)
        except Exception:
            if definitions(program) or any(isinstance(n, Dim) for n in sizes.values()):
                raise
        else:
            if decisions.equalities and unified is not None:
                made = unified(made, decisions.equalities)
    if made is None:
        # Some rule needs numbers: the derived object is valid for these sizes only.
        own = tuple([sizes[name] for name in variables(program)]) if program.symbolic else ()
        closed = promised_like(instance(program, own), program)
        made = (otherwise or make)(closed, Builder())
        guards = tuple([Guard(dim(name), "==", n) for name, n in sizes.items()])
    else:
        guards = tuple(dict.fromkeys(decisions.guards))
    kept.append((guards, made))
    return made
