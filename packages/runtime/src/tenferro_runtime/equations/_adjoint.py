"""`adjoint`: the adjoint of a linear function, as an operation that `tenferro_ad` expands."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.control_flow.primitives import ProgramHolding
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_tensor import Spec


def _adjoint(*xs: Spec, program: Program, consts: int) -> tuple[Spec, ...]:
    """Apply the adjoint of `program`, linear in its operands after the first `consts`; always a tuple.

    The operands are these constants, then one for each output of the program. ``tenferro_ad`` provides the expansion.

    Args:
        xs: the constants, then one operand for each output of the program.
        program: the linear program.
        consts: number of constants.

    Returns:
        One result for each linear operand of the program, a tuple.
    """
    wanted = (*program.inputs[:consts], *program.outputs)
    if xs != wanted:
        raise ProgramError(f"adjoint takes ({', '.join(map(repr, wanted))}), got ({', '.join(map(repr, xs))})")
    return program.inputs[consts:]


_adjoint.__name__ = "adjoint"
adjoint: Any = ProgramHolding(_adjoint, family="tenferro-runtime.adjoint.v1")
