"""The executable specification of programs: run after every pass in tests, and on every program read from a file.

1. Every variable is defined once, before it is used: as an input, as a constant, or by one equation.
2. Operands are variables and Python scalars; scalars occur only together with arrays, in element-wise equations.
3. The recorded specs equal the inferred ones, also those of constants. Symbolic extents are compared for all sizes,
   because inference after a substitution may find another form of them.
4. The operands of an element-wise equation have one shape and one dtype: promotion and broadcasting are explicit.
5. A program is closed: its constants are concrete tensors, and it refers to nothing outside.
6. Outputs are defined variables.
7. A size that depends on data is mentioned only after the equation that defines it.
8. Programs in the metadata of an equation obey the same rules.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

from tenferro_runtime.ir._data_sizes import decided, defining, definitions
from tenferro_runtime.ir._inference import infer
from tenferro_runtime.ir._program import Equation, Literal, Program, ProgramError, inner_programs
from tenferro_tensor import SCALARS, Spec, Tensor
from tenferro_tensor_core import TenferroError, decide


def check_program(program: Program) -> Program:
    """Check a program against the specification.

    Args:
        program: the program.

    Returns:
        The program.

    Raises:
        ProgramError: the program violates the specification; the text names the equation.
    """
    symbolic = any(spec.symbolic for spec in program.specs.values())
    with decided(program) if symbolic else nullcontext():
        defined: set[int] = set()
        sizes = definitions(program)
        for v in program.input_ids:
            _define(program, defined, v, "an input")
        for v, c in program.constants.items():
            _define(program, defined, v, "a constant")
            if c.__class__ is not Tensor:
                raise ProgramError(f"constant v{v} is a {type(c).__name__}, not a concrete tensor: not closed")
            if c.spec is not program.specs[v]:
                raise ProgramError(f"constant v{v} is {c.spec!r}, but recorded as {program.specs[v]!r}")
        for i, eq in enumerate(program.equations):
            _check_equation(program, defined, i, eq)
            late = [str(size) for size, v in sizes.items() if v in defining(program, eq) and v not in defined]
            if late:
                raise ProgramError(f"equation {i}, {program.show(eq)}: the size {late[0]} is not defined before it")
        for v in program.output_ids:
            if v not in defined:
                raise ProgramError(f"output v{v} is not defined by any input, constant or equation")
        extra = sorted(set(program.specs) - defined)
        if extra:
            raise ProgramError(f"specs are recorded for variables that nothing defines: {extra}")
    return program


def _define(program: Program, defined: set[int], v: Any, what: str) -> None:
    if v.__class__ is not int:
        raise ProgramError(f"variables are integers, got {v!r} as {what}")
    if v in defined:
        raise ProgramError(f"v{v} is defined twice, the second time as {what}")
    if v not in program.specs:
        raise ProgramError(f"v{v}, {what}, has no recorded spec")
    defined.add(v)


def _check_equation(program: Program, defined: set[int], i: int, eq: Equation) -> None:
    def broken(why: str, cause: BaseException | None = None) -> NoReturn:
        raise ProgramError(f"equation {i}, {program.show(eq)}: {why}", equation=i) from cause

    seen: list[Spec | type] = []
    for v in eq.operands:
        if isinstance(v, Literal):
            if v.value.__class__ not in SCALARS:
                broken(f"the literal {v.value!r} is not a Python scalar")
            if not eq.op.primitive.elementwise:
                broken(f"the literal {v.value!r} is an operand of a primitive that is not element-wise")
            seen.append(v.value.__class__)
        elif v not in defined:
            broken(f"its operand v{v} is not defined before it")
        else:
            seen.append(program.specs[v])
    key = tuple(seen)
    if eq.operands and not any(isinstance(s, Spec) for s in key):
        broken("it has no array operand")
    for inner in inner_programs(eq.op.params):
        check_program(inner)
    try:
        outs, _ = infer(eq.op, key)
    except TenferroError as cause:
        broken(f"inference rejects its operands: {cause}", cause)
    if len(outs) != len(eq.results):
        broken(f"it has {len(eq.results)} results, but the primitive has {len(outs)} outputs")
    for v, spec in zip(eq.results, outs, strict=True):
        try:
            _define(program, defined, v, "a result")
        except ProgramError as cause:
            broken(str(cause), cause)
        if not _same(program.specs[v], spec):
            broken(f"v{v} is recorded as {program.specs[v]!r}, but inferred as {spec!r}")


def _same(recorded: Spec, inferred: Spec) -> bool:
    if recorded is inferred:
        return True
    if recorded.ndim != inferred.ndim or recorded.with_(shape=inferred.shape) is not inferred:
        return False
    return all(decide(a, "==", b) for a, b in zip(recorded.shape, inferred.shape))
