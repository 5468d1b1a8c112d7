"""Common subexpressions: equal ops on equal operands are computed once, equal constants are stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._effects import effectful, has_effects
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.ir._structure import DIGEST_MAX_BYTES, content, structural
from tenferro_tensor import HOST, Primitive, Tensor, catalog

SAMPLED_ELEMENTS: Final = 64
"""Number of elements of a large constant that are compared first, before all of them."""

COMMUTES: Final[frozenset[Primitive]] = frozenset(
    {
        catalog.add, catalog.mul, catalog.eq, catalog.ne,
        catalog.bitwise_and, catalog.bitwise_or, catalog.bitwise_xor,
    }
)  # fmt: skip
"""Primitives whose value has the same bits in either order, NaN payloads aside.

This excludes extrema (for 0.0 and -0.0 the order decides) and complex products: with fused multiply-add, the rounding
of the imaginary part depends on the order of the factors.
"""


def share_common_subexpressions(program: Program) -> Program:
    """Replace equal constants, and later equal equations, by the first one.

    Constants are equal by bits, dtype and layout. Ops are pure and interned, so identity decides; ops that hold
    programs are equal where the programs have one structure; operands of `COMMUTES` are put in order for the
    comparison. Results whose shapes have sizes of their own, known only while the program runs, are left apart.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    stands_for = _equal_constants(program.constants)
    known: dict[tuple[Any, ...], tuple[int, ...]] = {}
    keys: dict[Any, Any] = {}
    equations: list[Equation] = []
    get = stands_for.get
    specs, effects = program.specs, has_effects(program)
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
        first = None if effects and effectful(op) else known.get(key)
        if first is not None and all(specs[a] is specs[b] for a, b in zip(first, eq.results)):
            stands_for.update(zip(eq.results, first, strict=True))
            continue
        known[key] = eq.results
        equations.append(eq if operands == eq.operands else Equation(op, operands, eq.results, eq.source))
    if not stands_for:
        return program
    return _without(program, equations, stands_for)


def share_constants(program: Program) -> Program:
    """Let equal constants be one."""
    stands_for = _equal_constants(program.constants)
    if not stands_for:
        return program
    get = stands_for.get
    equations = []
    for eq in program.equations:
        operands = tuple([get(v, v) if v.__class__ is int else v for v in eq.operands])
        equations.append(eq if operands == eq.operands else Equation(eq.op, operands, eq.results, eq.source))
    return _without(program, equations, stands_for)


def _without(program: Program, equations: Sequence[Equation], stands_for: Mapping[int, int]) -> Program:
    """The program of these equations, without the variables for which others stand."""
    return program.with_(
        equations=tuple(equations),
        output_ids=tuple([stands_for.get(v, v) for v in program.output_ids]),
        constants={v: c for v, c in program.constants.items() if v not in stands_for},
    )


def _equal_constants(constants: Mapping[int, Tensor]) -> dict[int, int]:
    """The variables of constants that have the elements of an earlier one, with the variable of that one."""
    stands_for: dict[int, int] = {}
    seen: dict[tuple[Any, ...], list[int]] = {}
    for v, c in constants.items():
        large = c.spec.place is HOST and c.data.nbytes > DIGEST_MAX_BYTES
        alike = seen.setdefault(_brief(c) if large else content(c), [])
        first = next((u for u in alike if not large or _same_bits(constants[u], c)), None)
        if first is None:
            alike.append(v)
        else:
            stands_for[v] = first
    return stands_for


def _brief(c: Tensor) -> tuple[Any, ...]:
    step = max(1, c.data.size // SAMPLED_ELEMENTS)
    return c.spec, c.data.strides, c.data.flat[::step].tobytes()


def _same_bits(a: Tensor, b: Tensor) -> bool:
    if a.data is b.data:
        return True
    x, y = (np.ascontiguousarray(c.data).reshape(-1).view(np.uint8) for c in (a, b))
    return np.array_equal(x, y)


def _ordered(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Two operands in an order that does not depend on how they were written: numbers last."""
    x, y = operands
    if isinstance(x, Literal) or (not isinstance(y, Literal) and y < x):
        return y, x
    return operands
