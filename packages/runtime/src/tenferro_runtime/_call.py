"""`call`: a program as an operation, for programs inside programs and for programs that are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime._program import Program, ProgramError
from tenferro_runtime._render import render
from tenferro_runtime._sizes import specialised
from tenferro_tensor import REGISTRY, Op, Primitive, Spec
from tenferro_tensor._select import scoped_device


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


def _infer_call(*xs: Spec, program: Program) -> tuple[Spec, ...]:
    """Apply a program to operands; always a tuple of outputs."""
    return concrete(program, xs).outputs


_infer_call.__name__ = "call"
call = _Call(_infer_call)


def concrete(program: Program, specs: tuple[Spec, ...]) -> Program:
    """The program for operands of the given specs: itself, or with its open sizes filled in.

    Raises:
        ProgramError: the operands do not fit.
    """
    expected = program.inputs
    if specs == expected:
        return program
    if len(specs) != len(expected):
        raise ProgramError(
            f"the program takes {len(expected)} arrays, got {len(specs)}; its inputs are "
            f"({', '.join(map(repr, expected))})",
            expected=len(expected),
            given=len(specs),
        )
    if program.symbolic:
        return specialised(program, specs)
    i = next(i for i, (a, b) in enumerate(zip(specs, expected, strict=True)) if a is not b)
    name = program.names.get(program.input_ids[i])
    raise ProgramError(
        f"input {i}{f' ({name})' if name else ''} of the program is {expected[i]!r}, got {specs[i]!r}; "
        "convert the operand, or trace the function for such operands",
        input=i,
    )


def executable(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The program rendered over raw arrays, kept with the program for each device that a scope may choose."""
    key = ("raw", scoped_device())
    found = program.memo.get(key)
    if found is None:
        found = program.memo[key] = render(program, "raw")
    return found


def _call_kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, program: Program) -> Callable[..., Any]:
    return executable(concrete(program, ins))


REGISTRY.kernel(call, "*", _call_kernel)
