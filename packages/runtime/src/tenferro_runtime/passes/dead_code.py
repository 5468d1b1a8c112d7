"""Dead code: equations whose results nobody uses go, and ops of which only some outputs are used become cheaper."""

from __future__ import annotations

from tenferro_runtime._data_sizes import defining, definitions
from tenferro_runtime._program import Equation, Program
from tenferro_tensor import REGISTRY


def remove_dead_code(program: Program) -> Program:
    """Keep the equations that the outputs depend on.

    Where a primitive has a pruning in the registry, ``prune(op, used)`` may name a replacement for an op of which not
    all outputs are used: ``(new_op, outputs)``, where ``outputs[i]`` is the index of old output ``i`` among the
    outputs of the new op, or ``None`` where it is gone; or ``None`` to keep the op.
    """
    live = set(program.output_ids)
    sizes = bool(definitions(program))
    kept: list[Equation] = []
    for eq in reversed(program.equations):
        used = tuple([v in live for v in eq.results])
        if not any(used):
            continue
        if not all(used):
            eq = _pruned(eq, used)
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
    return program.with_(equations=equations, constants=constants)


def _pruned(eq: Equation, used: tuple[bool, ...]) -> Equation:
    prune = REGISTRY.find("pruning", eq.op.primitive)
    found = None if prune is None else prune(eq.op, used)
    if found is None:
        return eq
    op, outputs = found
    results: dict[int, int] = {new: eq.results[old] for old, new in enumerate(outputs) if new is not None}
    return Equation(op, eq.operands, tuple([results[i] for i in range(len(results))]), eq.source)
