"""A program with all values in main memory: the form that is lowered, and that runs again after a failure.

StableHLO has no placements. After a failure, the CPU backend reports which step failed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.extension import HOST, Equation, Op, Place, Program, Spec, Tensor, catalog
from tenferro_tensor_core import PlacementError


def at_host(program: Program) -> Program:
    """Return the program with main memory as the placement of all values; constants are copied there.

    Raises:
        PlacementError: the program moves data between memory spaces.
    """
    ops: dict[Op, Op] = {}
    equations = []
    for eq in program.equations:
        if eq.op.primitive is catalog.transfer:
            source, target = (program.specs[v] for v in (*eq.variables, *eq.results))
            if source.place.memory_space is not target.place.memory_space:
                where = f" ({eq.where})" if eq.where else ""
                raise PlacementError(
                    f"transfer{where} moves {source!r} to {target.place.device}, but XLA runs a program on one device; "
                    "move arrays before or after the compiled function",
                    source=eq.where,
                )
        op = ops.get(eq.op)
        if op is None:
            op = ops[eq.op] = op_at_host(eq.op)
        if op.primitive is catalog.transfer:  # to another compute device of the same memory space
            op = catalog.convert.op(dtype=program.specs[eq.results[0]].dtype)
        equations.append(Equation(op, eq.operands, eq.results, eq.source))
    return Program(
        program.input_ids,
        {v: _near(c) for v, c in program.constants.items()},
        tuple(equations),
        program.output_ids,
        {v: s.with_(place=HOST) for v, s in program.specs.items()},
        names=program.names,
        guards=program.guards,
        examples=program.examples,
    )


def op_at_host(op: Op) -> Op:
    """Return an op with main memory instead of devices in its parameters."""
    params = {name: _placed(value) for name, value in op.params.items()}
    return op.primitive.op(**params) if params else op


def _placed(value: Any) -> Any:
    if isinstance(value, Place):
        return HOST
    if isinstance(value, Spec):
        return value.with_(place=HOST)
    if isinstance(value, Program):
        return at_host(value)
    if value.__class__ is tuple:
        return tuple(map(_placed, value))
    return value


def _near(constant: Tensor) -> Tensor:
    if constant.spec.place.on_host:
        return constant
    return Tensor.wrap(np.asarray(constant._data), constant.spec.with_(place=HOST))
