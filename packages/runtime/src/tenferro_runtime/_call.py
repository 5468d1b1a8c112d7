"""`call`: a program as an operation, for programs inside programs and for programs that are differentiated."""

from __future__ import annotations

from typing import Any

from tenferro_runtime._data_sizes import definitions
from tenferro_runtime._program import Program, ProgramError
from tenferro_runtime._sizes import specialised
from tenferro_tensor import Op, Primitive, Spec


class _Call(Primitive):
    """The primitive `call`; a program owns its op, so that no table of ops keeps programs alive."""

    def op(self, **params: Any) -> Op:
        program = params.get("program")
        if len(params) != 1 or not isinstance(program, Program):
            raise ProgramError(f"call needs program=, a Program, got {params!r}")
        found: Op | None = program.memo.get("op")
        if found is None:
            found = program.memo.setdefault("op", Op(self, {"program": program}))
        return found


def _call(*xs: Spec, program: Program) -> tuple[Spec, ...]:
    """Apply a program to operands; always a tuple of outputs."""
    return concrete(program, xs).outputs


_call.__name__ = "call"
call = _Call(_call)


def concrete(program: Program, specs: tuple[Spec, ...]) -> Program:
    """The program for operands of the given specs: itself, or with its open sizes filled in.

    Raises:
        ProgramError: the operands do not fit.
    """
    if definitions(program):
        raise ProgramError(
            "the program has sizes that depend on data, so that its outputs have no shape before it runs; run it by "
            "program.run, which puts its steps in the place of the call"
        )
    expected = program.inputs
    if specs == expected:
        return program
    require_count(program, specs)
    if program.symbolic:
        return specialised(program, specs)
    i = next(i for i, (a, b) in enumerate(zip(specs, expected, strict=True)) if a is not b)
    raise ProgramError(
        f"input {i} ({program.label(program.input_ids[i])}) of the program is {expected[i]!r}, got {specs[i]!r}; "
        "convert the operand, or trace the function for such operands",
        input=i,
    )


def require_count(program: Program, specs: tuple[Spec, ...]) -> None:
    """Raise unless there are as many operands as the program has inputs."""
    expected = program.inputs
    if len(specs) != len(expected):
        raise ProgramError(
            f"the program takes {len(expected)} arrays, got {len(specs)}; its inputs are "
            f"({', '.join(map(repr, expected))})",
            expected=len(expected),
            given=len(specs),
        )
