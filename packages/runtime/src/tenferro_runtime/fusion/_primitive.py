"""`fused`: the step that a region becomes, equivalent to its program."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakValueDictionary

from tenferro_runtime.fusion._region import ORDERED, region_of
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.tracing._interpret import interpret
from tenferro_tensor import Op, Primitive, Spec, Tensor

_ops: WeakValueDictionary[Any, Op] = WeakValueDictionary()


class _FusedOp(Op):
    """On traced or differentiated values, it applies the steps of its program, so that all rules apply."""

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
                region_of(program)  # rejects programs that are not regions
                known = _ops.setdefault(key, _FusedOp(self, {"program": program}))
            found = program.memo["fused"] = known
        return found


def _form(program: Program) -> tuple[Any, ...]:
    """A cheap key that is equal for programs with equal variable numbers, of which the pass makes many."""
    return (
        program.inputs,
        tuple([(eq.op, eq.operands, eq.results) for eq in program.equations]),
        program.output_ids,
        program.memo.get(ORDERED, False),
        tuple([(v, c.spec, c._data.tobytes()) for v, c in program.constants.items()]),
    )


def _fused(*xs: Spec, program: Program) -> Spec | tuple[Spec, ...]:
    """Apply a program of element-wise steps, possibly followed by a reduction, in one pass.

    Args:
        xs: the operands.
        program: the program of the region.

    Returns:
        The outputs.
    """
    region = region_of(program)
    for i, (x, own, axes) in enumerate(zip(xs, program.inputs, region.axes, strict=False)):
        if x.dtype != own.dtype or x.ndim != len(axes):
            raise ProgramError(f"operand {i} of a fused step is {own!r} up to its sizes, got {x!r}", operand=i)
    if len(xs) != len(region.axes):
        raise ProgramError(f"a fused step of {len(region.axes)} operands got {len(xs)}")
    outs = program.outputs if xs == program.inputs else region.outputs(*xs)
    return outs[0] if len(outs) == 1 else outs


_fused.__name__ = "fused"
fused: Final[Primitive] = _Fused(_fused)
