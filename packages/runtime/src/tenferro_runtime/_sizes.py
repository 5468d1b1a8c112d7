"""Filling in the open sizes of a program: binding them to the shapes of the operands, and substituting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime._data_sizes import conditions
from tenferro_runtime._program import Equation, Program, ProgramError
from tenferro_tensor import Op, Spec
from tenferro_tensor_core import Dim, ShapeError, evaluate

SPECIALISED = 256
"""Number of concrete forms that one symbolic program keeps."""


def bind_sizes(program: Program, specs: tuple[Spec, ...]) -> dict[str, int]:
    """Values of the program's sizes for operands of the given specs.

    Raises:
        ShapeError: a shape does not fit, or a guard of the trace does not hold; the text names both.
    """
    sizes: dict[str, int] = {}
    pending = []
    for i, (open_, given) in enumerate(zip(program.inputs, specs, strict=True)):
        if (open_.dtype, open_.place, open_.ndim) != (given.dtype, given.place, given.ndim):
            raise ProgramError(
                f"input {i} ({program.label(program.input_ids[i])}) of the program is {open_!r}, got {given!r}; "
                "only sizes are open: convert the operand, or trace the function for such operands",
                input=i,
            )
        for axis, (d, n) in enumerate(zip(open_.shape, given.shape, strict=True)):
            if isinstance(d, Dim) and len(d.variables) == 1 and str(d) in d.variables and str(d) not in sizes:
                sizes[str(d)] = d.evaluate({str(d): n})  # type: ignore[dict-item]
            else:
                pending.append((i, axis, d, n))
    for i, axis, d, n in pending:
        expected = evaluate(d, sizes)
        if expected != n:
            where = f"axis {axis} of input {i} ({program.label(program.input_ids[i])})"
            bound = ", ".join(f"{k}={v}" for k, v in sizes.items())
            raise ShapeError(
                f"{where} has extent {n}, but the program needs {d}"
                + (f" = {expected} with {bound}" if isinstance(d, Dim) else "")
                + "; pass an operand of that extent",
                input=i,
                axis=axis,
            )
    later = conditions(program)
    for guard in program.guards:
        if guard not in later and not guard.holds(sizes):
            bound = ", ".join(f"{k}={v}" for k, v in sizes.items())
            raise ShapeError(
                f"the program was traced under the condition {guard}, which does not hold for {bound}; "
                "trace the function with example sizes like these",
                guard=str(guard),
                sizes=sizes,
            )
    return sizes


def specialised(program: Program, specs: tuple[Spec, ...]) -> Program:
    """The program with its sizes filled in for operands of the given specs; kept with the program."""
    cache = program.memo.get("specialised")
    if cache is None:
        cache = program.memo.setdefault("specialised", BoundedCache(f"sizes of {program!r}", SPECIALISED))
    return cache.get_or_make(specs, lambda: substitute(program, bind_sizes(program, specs)))  # type: ignore[no-any-return]


def substitute(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program with numbers in the place of sizes, in specs and in metadata."""
    known: dict[Spec, Spec] = {}

    def filled(spec: Spec) -> Spec:
        if not spec.symbolic:
            return spec
        found = known.get(spec)
        if found is None:
            found = known[spec] = spec.with_(shape=tuple([evaluate(d, sizes) for d in spec.shape]))
        return found

    ops: dict[Op, Op] = {}

    def of_op(op: Op) -> Op:
        found = ops.get(op)
        if found is None:
            params = {k: _filled(v, sizes) for k, v in op.params.items()}
            found = ops[op] = op if params == dict(op.params) else op.primitive.op(**params)
        return found

    equations = tuple([Equation(of_op(eq.op), eq.operands, eq.results, eq.source) for eq in program.equations])
    return Program(
        program.input_ids,
        program.constants,
        equations,
        program.output_ids,
        {v: filled(s) for v, s in program.specs.items()},
        names=program.names,
    )


def is_open(program: Program) -> bool:
    """Whether sizes occur anywhere in a program, its inputs or not."""
    found: bool | None = program.memo.get("open")
    if found is None:
        found = any(s.symbolic for s in program.specs.values()) or any(
            _holds_sizes(v) for eq in program.equations for v in eq.op.params.values()
        )
        program.memo["open"] = found
    return found


def _holds_sizes(value: Any) -> bool:
    if value.__class__ is tuple:
        return any(map(_holds_sizes, value))
    return is_open(value) if isinstance(value, Program) else isinstance(value, Dim)


def _filled(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, Dim):
        return value.evaluate(sizes)
    if value.__class__ is tuple:
        return tuple([_filled(v, sizes) for v in value])
    if isinstance(value, Program):
        return substitute(value, sizes) if is_open(value) else value
    return value
