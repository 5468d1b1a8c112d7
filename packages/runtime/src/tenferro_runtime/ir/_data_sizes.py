"""Data-dependent sizes: the equations that define them, and the equations that depend on those.

`define_size` assigns a size its value. Every equation that mentions the size later, in a spec or in metadata, depends
on that equation as if the size were an operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor import Op, catalog
from tenferro_tensor_core import Decisions, Dim, DimLike, Guard, ShapeError, assume


def definitions(program: Program) -> dict[str, int]:
    """The variables that hold the values of data-dependent sizes.

    Args:
        program: the program.

    Returns:
        The variables by the name of the size.
    """
    found: dict[str, int] | None = program.memo.get("definitions")
    if found is None:
        found = program.memo["definitions"] = {
            str(eq.op.params["size"]): eq.results[0]
            for eq in program.equations
            if eq.op.primitive is catalog.define_size
        }
    return found


def defining(program: Program, eq: Equation) -> tuple[int, ...]:
    """The variables whose values an equation needs as sizes, in order of definition."""
    known = definitions(program)
    if not known or eq.op.primitive is catalog.define_size:
        return ()
    names: set[str] = set()
    for v in (*eq.variables, *eq.results):
        names |= names_in(program.specs[v].shape)
    names |= named_in(eq.op)
    return tuple([v for name, v in known.items() if name in names])


def names_in(value: Any) -> set[str]:
    """Names of the symbolic sizes in metadata."""
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
    """Names of the symbolic sizes in the metadata of an op, without those of a called program."""
    params = op.params
    return names_in(params["sizes"]) if "sizes" in params else set().union(*map(names_in, params.values()))


def decided(program: Program) -> Decisions:
    """The scope of decisions that answers questions about sizes as the trace of a program did."""
    decisions = Decisions(program.examples)
    inform(decisions, program)
    return decisions


def inform(decisions: Decisions, program: Program) -> None:
    """Make a program's data-dependent sizes and their guards known to decisions.

    Sizes without an example are data-dependent sizes of the program of which this one is a part.

    Args:
        decisions: the decisions.
        program: the program.
    """
    decisions.unknown.update(definitions(program))
    before = len(decisions.guards)
    with decisions:
        for guard in program.guards:
            if not names_in(guard.lhs) | names_in(guard.rhs) <= program.examples.keys():
                decisions.assume(guard.lhs, guard.op, guard.rhs)
    del decisions.guards[before:]


def conditions(program: Program) -> tuple[Guard, ...]:
    """Guards about data-dependent sizes.

    Args:
        program: the program.

    Returns:
        The guards.
    """
    known = definitions(program).keys()
    return tuple([g for g in program.guards if (names_in(g.lhs) | names_in(g.rhs)) & known])


def require(guard: Guard, sizes: Mapping[str, DimLike]) -> None:
    """Check a guard; for symbolic sizes, it becomes a guard of the enclosing trace.

    Raises:
        ShapeError: the guard does not hold.
    """
    left, right = filled_size(guard.lhs, sizes), filled_size(guard.rhs, sizes)
    if isinstance(left, Dim) or isinstance(right, Dim):
        assume(left, guard.op, right)
    elif not Guard(left, guard.op, right).holds({}):
        shown = ", ".join(f"{name}={sizes[name]}" for name in sorted(names_in(guard.lhs) | names_in(guard.rhs)))
        raise ShapeError(
            f"{guard.lhs} {guard.op} {guard.rhs} was assumed{f' at {guard.where}' if guard.where else ''}, "
            f"which does not hold for {shown}; correct the assumption or the data",
            guard=str(guard),
        )


def filled_size(value: Any, sizes: Mapping[str, DimLike]) -> Any:
    """A size or a tuple of sizes with others substituted for variables."""
    if isinstance(value, Dim):
        return value.substitute(sizes)
    return tuple([filled_size(v, sizes) for v in value]) if value.__class__ is tuple else value
