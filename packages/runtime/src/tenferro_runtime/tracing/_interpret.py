"""The reference executor: a loop over the equations, for values of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_runtime.ir._effects import effectful, has_effects
from tenferro_runtime.ir._program import Literal, Program
from tenferro_runtime.tracing._traced import recording
from tenferro_tensor import SCALARS, Tensor


def interpret(program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """Run a program by applying its ops to values one after the other; slow, and obviously correct.

    If the run is recorded, the equations keep their source lines.

    Args:
        program: the program.
        values: one value for each input.

    Returns:
        The outputs.
    """
    env: dict[int, Any] = dict(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    effects = has_effects(program)
    recorder = next((b for b in map(recording, values) if b is not None), None)
    before = None if recorder is None else recorder.blame
    try:
        for eq in program.equations:
            if recorder is not None:
                recorder.blame = before or eq.source
            operands = [v.value if isinstance(v, Literal) else env[v] for v in eq.operands]
            if effects and recorder is not None and effectful(eq.op) and all(map(_is_concrete, operands)):
                out = recorder.emit(eq.op, operands)  # takes place when the recorded program runs, not now
            else:
                out = eq.op(*operands)
            env.update(zip(eq.results, out if isinstance(out, tuple) else (out,), strict=True))
    finally:
        if recorder is not None:
            recorder.blame = before
    return tuple([env[v] for v in program.output_ids])


def _is_concrete(x: Any) -> bool:
    return x.__class__ is Tensor or x.__class__ in SCALARS
