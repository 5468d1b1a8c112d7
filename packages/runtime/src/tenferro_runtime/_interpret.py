"""The reference executor: a loop over the equations, for any kind of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_runtime._program import Literal, Program


def interpret(program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """Run a program by applying its ops to values one after the other; slow, and obviously right."""
    env: dict[int, Any] = dict(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    for eq in program.equations:
        out = eq.op(*[v.value if isinstance(v, Literal) else env[v] for v in eq.operands])
        env.update(zip(eq.results, out if isinstance(out, tuple) else (out,), strict=True))
    return tuple([env[v] for v in program.output_ids])
