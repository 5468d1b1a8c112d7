"""Common subexpressions: the same op on the same operands is computed once."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.ir._structure import structural
from tenferro_tensor import Primitive, catalog

COMMUTES: Final[frozenset[Primitive]] = frozenset(
    {
        catalog.add, catalog.mul, catalog.eq, catalog.ne,
        catalog.bitwise_and, catalog.bitwise_or, catalog.bitwise_xor,
    }
)  # fmt: skip
"""Primitives whose value has the same bits in either order, NaN payloads aside.

Extrema are not among them (of 0.0 and -0.0 the order decides), nor are complex products: kernels with fused
multiply-add round the imaginary part by the order of the factors.
"""


def share_common_subexpressions(program: Program) -> Program:
    """Let later equal equations stand for the first one.

    Ops are pure and interned, so identity decides; ops that hold programs are equal where the programs have one
    structure; operands of `COMMUTES` are put in order for the comparison. Results whose shapes have sizes of their own,
    known only while the program runs, are left apart.
    """
    stands_for: dict[int, int] = {}
    known: dict[tuple[Any, ...], tuple[int, ...]] = {}
    keys: dict[Any, Any] = {}
    equations: list[Equation] = []
    get = stands_for.get
    specs = program.specs
    for eq in program.equations:
        operands: tuple[Operand, ...] = tuple([get(v, v) if v.__class__ is int else v for v in eq.operands])
        op = eq.op
        kind = keys.get(op)
        if kind is None:
            kind = keys[op] = structural(op)
        if op.primitive in COMMUTES and not (op.primitive is catalog.mul and specs[eq.results[0]].cplx):
            key = (kind, *_ordered(operands))
        else:
            key = (kind, *operands)
        first = known.get(key)
        if first is not None and all(specs[a] is specs[b] for a, b in zip(first, eq.results)):
            stands_for.update(zip(eq.results, first, strict=True))
            continue
        known[key] = eq.results
        equations.append(eq if operands == eq.operands else Equation(op, operands, eq.results, eq.source))
    if not stands_for:
        return program
    return program.with_(equations=tuple(equations), output_ids=tuple([get(v, v) for v in program.output_ids]))


def _ordered(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Two operands in an order that does not depend on how they were written: numbers last."""
    x, y = operands
    if isinstance(x, Literal) or (not isinstance(y, Literal) and y < x):
        return y, x
    return operands
