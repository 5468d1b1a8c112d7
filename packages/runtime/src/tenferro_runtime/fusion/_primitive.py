"""`fused`: the step that a region becomes. It means its program, nothing more."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from tenferro_runtime.fusion._region import ORDERED, region_of
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.tracing._interpret import interpret
from tenferro_tensor import Op, Primitive, Spec, Tensor

_ops: WeakValueDictionary[Any, Op] = WeakValueDictionary()


class _FusedOp(Op):
    """Applied to traced or differentiated values it is the steps of its program, so that every rule holds for it."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        if all(a.__class__ is Tensor for a in args):
            return super().__call__(*args)
        outs = interpret(self.params["program"], args)
        return outs if len(outs) > 1 else outs[0]


class _Fused(Primitive):
    """The primitive `fused`: one op for all programs of one structure."""

    def op(self, **params: Any) -> Op:
        program = params.get("program")
        if len(params) != 1 or not isinstance(program, Program):
            raise ProgramError(f"fused needs program=, a Program, got {params!r}")
        found: Op | None = program.memo.get("fused")
        if found is None:
            key = _form(program)
            known = _ops.get(key)
            if known is None:
                region_of(program)  # refuses what is none
                known = _ops.setdefault(key, _FusedOp(self, {"program": program}))
            found = program.memo["fused"] = known
        return found


def _form(program: Program) -> tuple[Any, ...]:
    """Equal for programs that are written alike, number by number; cheap, for the pass makes many of one kind."""
    return (
        program.inputs,
        tuple([(eq.op, eq.operands, eq.results) for eq in program.equations]),
        program.output_ids,
        program.memo.get(ORDERED, False),
        tuple([(v, c.spec, c._data.tobytes()) for v, c in program.constants.items()]),
    )


def _fused(*xs: Spec, program: Program) -> Spec | tuple[Spec, ...]:
    """Apply a program of element-wise steps, with a reduction after them where there is one, in one pass."""
    region = region_of(program)
    for i, (x, own, axes) in enumerate(zip(xs, program.inputs, region.axes, strict=False)):
        if x.dtype != own.dtype or x.ndim != len(axes):
            raise ProgramError(f"operand {i} of a fused step is {own!r} but for its sizes, got {x!r}", operand=i)
    if len(xs) != len(region.axes):
        raise ProgramError(f"a fused step of {len(region.axes)} operands got {len(xs)}")
    outs = program.outputs if xs == program.inputs else region.outputs(*xs)
    return outs[0] if len(outs) == 1 else outs


_fused.__name__ = "fused"
fused = _Fused(_fused)
