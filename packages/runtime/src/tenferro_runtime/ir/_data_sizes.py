"""Sizes that depend on data: where a program defines them, and what depends on that.

`define_size` gives a size its value. Whatever mentions the size afterwards, in a spec or in metadata, depends on that
equation as on an operand, though it is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor import Op, catalog
from tenferro_tensor_core import Decisions, Dim, DimLike, Guard, ShapeError, assume


def definitions(program: Program) -> dict[str, int]:
    """The variables that are values of sizes, by the name of the size."""
    found: dict[str, int] | None = program.memo.get("definitions")
    if found is None:
        found = program.memo["definitions"] = {
            str(eq.op.params["size"]): eq.results[0]
            for eq in program.equations
            if eq.op.primitive is catalog.define_size
        }
    return found


def defining(program: Program, eq: Equation) -> tuple[int, ...]:
    """The variables whose values an equation needs as sizes, in the order of their definition."""
    known = definitions(program)
    if not known or eq.op.primitive is catalog.define_size:
        return ()
    names: set[str] = set()
    for v in (*eq.variables, *eq.results):
        names |= names_in(program.specs[v].shape)
    names |= named_in(eq.op)
    return tuple([v for name, v in known.items() if name in names])


def names_in(value: Any) -> set[str]:
    """Names of the sizes in metadata."""
    if isinstance(value, Dim):
        return set(value.variables)
    if isinstance(value, Program):
        found: set[str] | None = value.memo.get("names")
        if found is None:
            specs = {s for s in value.specs.values() if s.symbolic}
            found = set().union(*[names_in(s.shape) for s in specs], *[named_in(eq.op) for eq in value.equations])
            value.memo["names"] = found
        return found
    return set().union(*map(names_in, value)) if value.__class__ is tuple else set()


def named_in(op: Op) -> set[str]:
    """Names of the sizes in the metadata of an op; a called program has sizes of its own."""
    params = op.params
    return names_in(params["sizes"]) if "sizes" in params else set().union(*map(names_in, params.values()))


def decided(program: Program) -> Decisions:
    """Answers to questions about the sizes of a program, as they were when it was traced."""
    decisions = Decisions(program.examples)
    inform(decisions, program)
    return decisions


def inform(decisions: Decisions, program: Program) -> None:
    """Let decisions know the sizes of a program that depend on data, and what was assumed of them."""
    decisions.unknown.update(definitions(program))
    before = len(decisions.guards)
    with decisions:
        for guard in conditions(program):
            decisions.assume(guard.lhs, guard.op, guard.rhs)
    del decisions.guards[before:]


def conditions(program: Program) -> tuple[Guard, ...]:
    """Assumptions about data-dependent sizes."""
    known = definitions(program).keys()
    return tuple([g for g in program.guards if (names_in(g.lhs) | names_in(g.rhs)) & known])


def require(guard: Guard, sizes: Mapping[str, DimLike]) -> None:
    """Raise unless what was assumed holds; for the sizes of a trace, let that rely on it.

    Raises:
        ShapeError: it does not hold.
    """
    left, right = filled_size(guard.lhs, sizes), filled_size(guard.rhs, sizes)
    if isinstance(left, Dim) or isinstance(right, Dim):
        assume(left, guard.op, right)
    elif not Guard(left, guard.op, right).holds({}):
        shown = ", ".join(f"{name}={sizes[name]}" for name in sorted(names_in(guard.lhs) | names_in(guard.rhs)))
        raise ShapeError(
            f"{guard.lhs} {guard.op} {guard.rhs} was assumed{f' at {guard.where}' if guard.where else ''}, "
            f"which does not hold for {shown}; correct the assumption, or what it is about",
            guard=str(guard),
        )


def filled_size(value: Any, sizes: Mapping[str, DimLike]) -> Any:
    """A size, or a tuple of them, with others substituted for variables."""
    if isinstance(value, Dim):
        return value.substitute(sizes)
    return tuple([filled_size(v, sizes) for v in value]) if value.__class__ is tuple else value
