"""`call`: a program as an operation, for nested programs and for differentiation of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._program import Equation, Program, ProgramError
from tenferro_runtime.ir._sizes import filled, named, open_sizes, shown, sizes_of, substitute, variables
from tenferro_tensor import Op, Primitive, Spec
from tenferro_tensor_core import DimLike, ShapeError, ask

PART: Final = "part"
"""Key of the memo of a program that is part of another one: steps that run as one native function."""

MAX_KEPT_OPS: Final = 256
"""Number of sizes for which a program caches its op."""


class ProgramPrimitive(Primitive):
    """A primitive whose metadata are a program and values of its symbolic sizes.

    The program owns its ops, so that no table of ops keeps programs alive. By default the sizes follow from the
    operands; derivatives of a program receive them explicitly, because their operands need not determine them.
    """

    anywhere = True

    def op(self, **params: Any) -> Op:
        """The op that applies a program.

        Args:
            params: ``program``, and ``sizes``, a tuple of values of its symbolic sizes.

        Returns:
            The op, cached with the program.

        Raises:
            ProgramError: there is no program, or `sizes` is not a tuple of sizes.
        """
        program, sizes = params.get("program"), params.get("sizes", ())
        if not isinstance(program, Program) or len(params) != 1 + ("sizes" in params) or sizes.__class__ is not tuple:
            raise ProgramError(f"{self.name} needs program=, a Program, and sizes=, a tuple of sizes, got {params!r}")
        table = program.memo.setdefault(("ops", self), {})
        found: Op | None = table.get(sizes)
        if found is None:
            if len(table) >= MAX_KEPT_OPS:
                table.clear()
            found = table.setdefault(sizes, Op(self, {"program": program, "sizes": sizes}))
        return found


def called(*xs: Spec, program: Program, sizes: tuple[DimLike, ...] = ()) -> tuple[Spec, ...]:
    """Output specs of a program for operands.

    Args:
        xs: specs of the operands.
        program: the program.
        sizes: values of its symbolic sizes.

    Returns:
        The specs.

    Raises:
        ProgramError: the operands do not fit.
        ShapeError: their extents do not fit.
    """
    if definitions(program):
        raise ProgramError(
            "the program has sizes that depend on data, so that its outputs have no shape before it runs; run it with "
            "program.run, which replaces the call by its steps"
        )
    if not program.symbolic:
        require_fit(program, xs)
        return program.outputs
    known = named(program, sizes_for(program, xs, sizes))
    return tuple([s.with_(shape=filled(s.shape, known)) for s in program.outputs])


def sizes_for(program: Program, specs: Sequence[Spec], sizes: tuple[DimLike, ...] = ()) -> tuple[DimLike, ...]:
    """Values of the symbolic sizes: given ones, checked against the operands, or those of the operands.

    Args:
        program: the program.
        specs: specs of the operands.
        sizes: given values, or an empty tuple.

    Returns:
        The values.

    Raises:
        ShapeError: an operand does not have the given sizes.
    """
    require_fit(program, specs)
    if not program.symbolic:
        return ()
    if not sizes:
        return sizes_of(program, specs)
    known = named(program, sizes)
    for i, (open_, given) in enumerate(zip(program.inputs, specs, strict=True)):
        want = filled(open_.shape, known)
        if want != given.shape and not all(a == b or ask(a, "==", b) for a, b in zip(want, given.shape, strict=True)):
            raise ShapeError(
                f"input {i} ({program.label(program.input_ids[i])}) of the program has shape {want} for sizes "
                f"{shown(known)}, got {given!r}; pass an operand of that shape",
                input=i,
            )
    return sizes


def require_fit(program: Program, specs: Sequence[Spec]) -> None:
    """Check the number, ranks, dtypes and places of operands against the program's inputs.

    Raises:
        ProgramError: they differ.
    """
    expected = program.inputs
    if len(specs) != len(expected):
        raise ProgramError(
            f"the program takes {len(expected)} arrays, got {len(specs)}; its inputs are "
            f"({', '.join(map(repr, expected))})",
            expected=len(expected),
            given=len(specs),
        )
    open_ = program.symbolic
    for i, (a, b) in enumerate(zip(specs, expected, strict=True)):
        if a is b or (open_ and (a.dtype, a.place, a.ndim) == (b.dtype, b.place, b.ndim)):
            continue
        raise ProgramError(
            f"input {i} ({program.label(program.input_ids[i])}) of the program is {b!r}, got {a!r}; "
            + ("only sizes are symbolic: " if open_ else "")
            + "convert the operand, or trace the function for such operands",
            input=i,
        )


def instance(program: Program, sizes: tuple[DimLike, ...]) -> Program:
    """The program with numbers, or sizes of a calling program, substituted for its symbolic sizes.

    Args:
        program: the program.
        sizes: values of its symbolic sizes.

    Returns:
        The program.
    """
    names = variables(program)
    if all(str(n) == name for n, name in zip(sizes, names, strict=True)):
        return program
    return substitute(program, dict(zip(names, sizes, strict=True)))


def concrete(program: Program, specs: Sequence[Spec]) -> Program:
    """The program with numbers for its symbolic sizes, for inspection and for other compilers.

    Args:
        program: the program.
        specs: specs of concrete operands.

    Returns:
        The program.

    Raises:
        ProgramError: the operands do not fit.
    """
    sizes = sizes_for(program, specs)
    return instance(program, sizes) if sizes else program


def _call(*xs: Spec, program: Program, sizes: tuple[DimLike, ...] = ()) -> tuple[Spec, ...]:
    """Apply a program to operands; always a tuple of outputs.

    Args:
        xs: the operands.
        program: the program.
        sizes: values of its symbolic sizes.

    Returns:
        The outputs, a tuple.
    """
    return called(*xs, program=program, sizes=sizes)


_call.__name__ = "call"
call: Final[ProgramPrimitive] = ProgramPrimitive(_call)


def is_part(eq: Equation) -> bool:
    """Whether a step calls a part of its program.

    Args:
        eq: the step.

    Returns:
        True if it does.
    """
    return eq.op.primitive is call and PART in eq.op.params["program"].memo


def name_of(eq: Equation) -> str:
    """The name of a step: ``"part"``, or that of its primitive.

    Args:
        eq: the step.

    Returns:
        The name.
    """
    return PART if is_part(eq) else eq.op.primitive.name


def applied(program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs of a branch or a body for values of a trace that shares its sizes.

    Args:
        program: the branch or body.
        values: one value for each input.

    Returns:
        The outputs.
    """
    sizes = open_sizes(program)
    if definitions(program):
        return interpret(program, values, named(program, sizes))
    return call(*values, program=program, sizes=sizes)  # type: ignore[no-any-return]
