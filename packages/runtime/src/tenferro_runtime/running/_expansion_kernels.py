"""Kernels of operations that are defined by an expansion: its program, compiled for the specs of the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime.expanding import expansion_of
from tenferro_runtime.ir._program import Program
from tenferro_runtime.running._execute import executable
from tenferro_runtime.runtime import Runtime
from tenferro_tensor import SCALARS, Op, Spec, get_backend
from tenferro_tensor.expansions import Expansion
from tenferro_tensor_core import UnsupportedError

_OPTIMISED: Final = "optimised expansion"


def make_kernel(expansion: Expansion, ins: tuple[Spec, ...], params: dict[str, Any]) -> Callable[..., Any]:
    """The kernel of an expansion; operands of an element-wise op may be numbers or broadcast.

    Args:
        expansion: the expansion.
        ins: specs of the operands.
        params: metadata of the op.

    Returns:
        A function of raw arrays.
    """
    op: Op = expansion.primitive.op(**params)
    program = _optimised(op, ins)
    run = executable(program)
    if not isinstance(op.infer(*ins), tuple):
        many = run
        run = lambda *raws: many(*raws)[0]
    if not expansion.primitive.elementwise or len(ins) == 1:
        return run
    return _broadcasting(run, ins)


def _optimised(op: Op, ins: tuple[Spec, ...]) -> Program:
    program = expansion_of(op, ins)
    if program is None:
        raise UnsupportedError(
            f"the expansion of {op!r} asks for sizes that have no number here; pass operands of known sizes",
            primitive=op.primitive.name,
        )
    found: Program | None = program.memo.get(_OPTIMISED)
    if found is None:
        found = program.memo[_OPTIMISED] = Runtime().optimise(program)
    return found


def _broadcasting(run: Callable[..., Any], ins: tuple[Spec, ...]) -> Callable[..., Any]:
    xp = get_backend(ins[0].place.device.kind).library("numpy")
    shape, dtypes = ins[0].shape, [s.dtype for s in ins]

    def run_broadcast(*raws: Any) -> Any:
        arrays = [
            xp.asarray(raw, dtype) if raw.__class__ in SCALARS else raw for raw, dtype in zip(raws, dtypes, strict=True)
        ]
        return run(*[x if x.shape == shape else xp.broadcast_to(x, shape) for x in arrays])

    return run_broadcast


Expansion.make_kernel = staticmethod(make_kernel)
