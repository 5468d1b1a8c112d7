"""Removes sums over devices whose operands do not differ between these devices."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_runtime.extension import Equation, Literal, Program, catalog
from tenferro_xla.mesh import collectives
from tenferro_xla.mesh._varying import Axes, varying


def cheaper(program: Program, inputs: Sequence[Axes]) -> Program:
    """Replace sums along mesh axes over which their operands do not differ by products.

    Args:
        program: the program of one device.
        inputs: for each input, the mesh axes over which it may differ.
    """
    found = varying(program, inputs)
    specs = dict(program.specs)
    equations: list[Equation] = []
    for eq in program.equations:
        operand = eq.operands[0] if eq.operands else None
        if eq.op.primitive is not collectives.sum_devices or not isinstance(operand, int):
            equations.append(eq)
            continue
        along = eq.op.params["axes"]
        axes = tuple([(n, k) for n, k in along if n in found[operand]])
        if axes == along or not specs[operand].inexact:
            equations.append(eq)
            continue
        times = Literal(float(collectives.size_of(along) // collectives.size_of(axes)))
        if axes:
            v = max(specs) + 1
            specs[v] = specs[operand]
            equations.append(Equation(collectives.sum_devices.op(axes=axes), eq.operands, (v,), eq.source))
            operand = v
        equations.append(Equation(catalog.mul.op(), (operand, times), eq.results, eq.source))
    return program.with_(equations=tuple(equations), specs=specs)
