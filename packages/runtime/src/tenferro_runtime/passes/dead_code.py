"""Dead code: unused equations are removed, and ops with some unused outputs become cheaper."""

from __future__ import annotations

from tenferro_runtime.ir._call import call
from tenferro_runtime.ir._data_sizes import defining, definitions, names_in
from tenferro_runtime.ir._effects import effectful, has_effects
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.passes._kinds import Rounding
from tenferro_runtime.passes._prunings import pruned
from tenferro_tensor import REGISTRY, Op
from tenferro_tensor_core import Guard


def remove_dead_code(program: Program) -> Program:
    """Remove equations without effects that no output depends on, and unused outputs of ops.

    The equation that defines a data-dependent size stays while an equation or an output mentions the size, as do guards
    on the size. Prunings of the registry that preserve bits replace ops by cheaper ones.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return _cleaned(program, rounding=False)


@Rounding
def prune_outputs(program: Program) -> Program:
    """As `remove_dead_code`, with prunings that may round differently, such as singular values without vectors.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return _cleaned(program, rounding=True)


def _cleaned(program: Program, *, rounding: bool) -> Program:
    live = set(program.output_ids)
    sizes, effects = bool(definitions(program)), has_effects(program)
    kept: list[Equation] = []
    for eq in reversed(program.equations):
        used = tuple([v in live for v in eq.results])
        if not any(used) and not (effects and effectful(eq.op)):
            continue
        if any(used) and not all(used):
            eq = _pruned(eq, used, rounding)
        kept.append(eq)
        live.update(eq.variables)
        if sizes:
            live.update(defining(program, eq))
    if len(kept) == len(program.equations) and all(a is b for a, b in zip(reversed(kept), program.equations)):
        equations = program.equations
    else:
        equations = tuple(reversed(kept))
    constants = {v: c for v, c in program.constants.items() if v in live}
    if equations is program.equations and len(constants) == len(program.constants):
        return program
    return program.with_(equations=equations, constants=constants, guards=_guards_of(program, live))


def _guards_of(program: Program, live: set[int]) -> tuple[Guard, ...]:
    """The guards, without those on sizes that no equation defines any more."""
    gone = {name for name, v in definitions(program).items() if v not in live}
    return tuple([g for g in program.guards if not gone & (names_in(g.lhs) | names_in(g.rhs))])


def _pruned(eq: Equation, used: tuple[bool, ...], rounding: bool) -> Equation:
    found = pruned(eq.op, used, rounding=rounding)
    if found is None:
        return eq
    op, outputs = found
    results: dict[int, int] = {new: eq.results[old] for old, new in enumerate(outputs) if new is not None}
    return Equation(op, eq.operands, tuple([results[i] for i in range(len(results))]), eq.source)


@kept
def with_outputs(program: Program, used: tuple[bool, ...]) -> Program:
    """The program without unused outputs; one object for each choice.

    Args:
        program: the program.
        used: which outputs are used.

    Returns:
        The program.
    """
    return remove_dead_code(program.with_(output_ids=tuple([v for v, u in zip(program.output_ids, used) if u])))


def _prune_call(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]]:
    """A call of the program without the unused outputs."""
    program: Program = op.params["program"]
    places = iter(range(len(used)))
    return call.op(program=with_outputs(program, used), sizes=op.params["sizes"]), tuple(
        [next(places) if there else None for there in used]
    )


REGISTRY.pruning(call, _prune_call, keeps_bits=True)
