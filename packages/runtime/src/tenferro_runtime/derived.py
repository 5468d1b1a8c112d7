"""What is derived from programs with open sizes: made once for all sizes at which the rules answer alike, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar

from tenferro_runtime.ir import definitions, example_of, holds, inform, instance
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import variables
from tenferro_runtime.runtime import promised_like
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staging import stage
from tenferro_tensor_core import Decisions, Dim, DimLike, Guard, dim

D = TypeVar("D")

MOST: Final = 64
"""Number of derivatives of one kind that a program keeps."""


def derived(
    program: Program,
    key: Any,
    sizes: Mapping[str, DimLike] | None,
    make: Callable[[Program, Builder], D],
    unified: Callable[[D, Mapping[str, DimLike]], D],
    otherwise: Callable[[Program, Builder], D] | None = None,
) -> D:
    """What is derived from a program, kept with it.

    Questions of the rules about open sizes are answered for `sizes`; each answer is a condition on the sizes for which
    the result is used again.

    Args:
        program: the program.
        key: names what is derived.
        sizes: values of the open sizes, by name; or ``None`` for a program inside of another one, a branch or a body,
            whose sizes are those of the trace that is going on.
        make: derives it from the program, or from one with numbers in the place of the sizes; the builder, which it
            may record with, also records values that are made of sizes alone.
        unified: puts sizes that turned out equal to others in the place of these.
        otherwise: derives it from a program with numbers for its sizes; `make` by default.
    """
    kept: list[tuple[tuple[Guard, ...], D]] = program.memo.setdefault(key, [])
    for guards, found in kept:
        if all(holds(guard, sizes or {}) for guard in guards):
            return found
    if len(kept) >= MOST:
        del kept[0]
    made: D | None
    if not program.symbolic and not sizes:
        made = make(program, Builder())
        kept.append(((), made))
        return made
    made = None
    builder = Builder()
    if sizes is None:
        with staged(program, builder):
            made = make(program, builder)
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
            if decisions.equalities:
                made = unified(made, decisions.equalities)
    if made is None:
        # Some rule cannot do without numbers: what is derived is for these sizes alone.
        own = tuple([sizes[name] for name in variables(program)]) if program.symbolic else ()
        closed = promised_like(instance(program, own), program)
        made = (otherwise or make)(closed, Builder())
        guards = tuple([Guard(dim(name), "==", n) for name, n in sizes.items()])
    else:
        guards = tuple(dict.fromkeys(decisions.guards))
    kept.append((guards, made))
    return made


def staged(program: Program, builder: Builder) -> AbstractContextManager[None]:
    """The scope in which a branch or a body is derived: what is made of its sizes alone is recorded by the builder."""
    return stage(builder) if program.symbolic else nullcontext()
