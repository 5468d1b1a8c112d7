"""The symbolic sizes of a program: their names, their values for given operands, and substitution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tenferro_runtime.ir._bind import is_open, is_open_op, render_fit, variable_of
from tenferro_runtime.ir._data_sizes import conditions, definitions, names_in
from tenferro_runtime.ir._program import WRITTEN_OUT, Equation, Program, ProgramError
from tenferro_tensor import Op, Spec
from tenferro_tensor_core import Dim, DimLike, Guard, ShapeError, ask, decisions, dim, evaluate


def variables(program: Program) -> tuple[str, ...]:
    """Names of the symbolic sizes, in the order in which their values are passed.

    Args:
        program: the program.

    Returns:
        The names.
    """
    found: tuple[str, ...] | None = program.memo.get("variables")
    if found is None:
        names = dict.fromkeys(program.examples if program.symbolic else ())
        for spec in (*program.inputs, *program.specs.values()):
            if spec.symbolic:
                names.update(dict.fromkeys(sorted(names_in(spec.shape))))
        hidden: dict[str, DimLike] = {}
        for eq in program.equations:
            if is_open_op(eq.op):
                _collect(eq.op.params, hidden)
        names.update(dict.fromkeys(sorted(hidden)))
        found = program.memo["variables"] = tuple([name for name in names if name not in definitions(program)])
    return found


def open_sizes(program: Program) -> tuple[DimLike, ...]:
    """The symbolic sizes themselves, in the order of `variables`: the program's sizes within its own trace.

    Args:
        program: the program.

    Returns:
        The sizes.
    """
    found: dict[str, DimLike] = {}
    for spec in {s for s in program.specs.values() if s.symbolic}:
        for d in spec.shape:
            if isinstance(d, Dim):
                found.update((str(n), n) for n in d.bare())
    return tuple([found[name] if name in found else dim(name) for name in variables(program)])


def sizes_of(program: Program, specs: Sequence[Spec]) -> tuple[DimLike, ...]:
    """Values of the symbolic sizes for operands of given specs; symbolic if the specs are.

    Args:
        program: the program.
        specs: specs of the operands.

    Returns:
        The values, in the order of `variables`.

    Raises:
        ProgramError: dtype, place or number of axes of an operand do not fit.
        ShapeError: an extent does not fit, or a guard does not hold; the text names both.
    """
    if any(s.symbolic for s in specs) and tuple(specs) == program.inputs:
        return open_sizes(program)
    fit: Callable[[Any], tuple[int, ...] | None] | None = program.memo.get("fit")
    if fit is None:
        inputs = [spec.shape for spec in program.inputs]
        bare = {variable_of(d) for shape in inputs for d in shape}
        hidden = [name for name in variables(program) if name not in bare]
        if hidden:
            raise ProgramError(
                f"the sizes {', '.join(hidden)} of the program are not extents of its inputs "
                f"({', '.join(map(repr, program.inputs))}), so that the operands do not determine them; "
                "call it with sizes=",
                sizes=tuple(hidden),
            )
        later = conditions(program)
        guards = [g for g in program.guards if g not in later]
        fit = program.memo["fit"] = render_fit(inputs, guards, variables(program))
    if all(_alike(a, b) and not b.symbolic for a, b in zip(program.inputs, specs, strict=True)):
        found = fit([spec.shape for spec in specs])
        if found is not None:
            return found
    return _bound_one_by_one(program, specs)


def chosen(program: Program, sizes: Mapping[str, DimLike]) -> tuple[DimLike, ...]:
    """The values of a program's symbolic sizes, selected from those of the program that it was derived from.

    Args:
        program: the program.
        sizes: values of the sizes by name.

    Returns:
        The values, in the order of `variables`.
    """
    return tuple([sizes[name] for name in variables(program)])


def named(program: Program, sizes: Sequence[DimLike]) -> dict[str, DimLike]:
    """The values of a program's symbolic sizes by name.

    Args:
        program: the program.
        sizes: values in the order of `variables`.

    Returns:
        The values by name; empty for a program without symbolic sizes.
    """
    return dict(zip(variables(program), sizes, strict=True)) if program.symbolic else {}


def _alike(open_: Spec, given: Spec) -> bool:
    return open_ is given or (open_.dtype, open_.place, open_.ndim) == (given.dtype, given.place, given.ndim)


def _bound_one_by_one(program: Program, specs: Sequence[Spec]) -> tuple[DimLike, ...]:
    """As `sizes_of`, for symbolic specs, and for error texts that say which part does not fit."""
    sizes: dict[str, DimLike] = {}
    pending = []
    for i, (open_, given) in enumerate(zip(program.inputs, specs, strict=True)):
        if not _alike(open_, given):
            raise ProgramError(
                f"input {i} ({program.label(program.input_ids[i])}) of the program is {open_!r}, got {given!r}; "
                "only sizes are symbolic: convert the operand, or trace the function for such operands",
                input=i,
            )
        for axis, (d, n) in enumerate(zip(open_.shape, given.shape, strict=True)):
            name = variable_of(d)
            if name is not None and name not in sizes:
                sizes[name] = filled(d, {name: n})  # checks the bounds
            else:
                pending.append((i, axis, d, n))
    for i, axis, d, n in pending:
        expected = filled(d, sizes)
        if not ask(expected, "==", n):
            where = f"axis {axis} of input {i} ({program.label(program.input_ids[i])})"
            raise ShapeError(
                f"{where} has extent {n}, but the program needs {d}"
                + (f" = {expected} with {shown(sizes)}" if isinstance(d, Dim) else "")
                + "; pass an operand of that extent",
                input=i,
                axis=axis,
            )
    later = conditions(program)
    for guard in program.guards:
        if guard not in later and not holds(guard, sizes):
            raise ShapeError(
                f"the program was traced under the condition {guard}, which does not hold for {shown(sizes)}; "
                "trace the function with example sizes like these",
                guard=str(guard),
                sizes=sizes,
            )
    return tuple([sizes[name] for name in variables(program)])


def example_of(n: DimLike) -> int:
    """A number for a size: its value, or its example in the enclosing trace.

    Args:
        n: the size.

    Returns:
        The number.
    """
    going_on = decisions()
    return evaluate(n, going_on.examples if going_on is not None else {})


def holds(guard: Guard, sizes: Mapping[str, DimLike]) -> bool:
    """Whether a guard holds; for symbolic sizes, the enclosing trace decides.

    Args:
        guard: the guard.
        sizes: values of the sizes by name.

    Returns:
        True if it holds.
    """
    return ask(filled(guard.lhs, sizes), guard.op, filled(guard.rhs, sizes))


OPEN: Final = "open"
"""Key of a program's memo: the symbolic program that it is an instance of, and the sizes."""


def shown(sizes: Mapping[str, DimLike]) -> str:
    """Sizes as text: ``n=3, m=2``."""
    return ", ".join(f"{k}={v}" for k, v in sizes.items())


def filled(value: Any, sizes: Mapping[str, DimLike]) -> Any:
    """Metadata with sizes substituted for variables.

    Args:
        value: the metadata.
        sizes: sizes by name.

    Returns:
        The metadata.
    """
    if isinstance(value, Dim):
        used = [sizes.get(name) for name in value.variables]
        if all(n.__class__ is int for n in used):
            return evaluate(value, sizes)  # type: ignore[arg-type]  # checks the bounds
        return value.substitute(sizes)
    if value.__class__ is tuple:
        return tuple([filled(v, sizes) for v in value])
    if isinstance(value, Program):  # a branch or a body
        return substitute(value, sizes) if value.symbolic else value
    return value


def substitute(program: Program, sizes: Mapping[str, DimLike]) -> Program:
    """The program with other sizes, such as numbers, substituted for variables in specs and metadata.

    Guards that are then trivial are dropped.

    Args:
        program: the program.
        sizes: sizes by name.

    Returns:
        The program.
    """
    known: dict[Spec, Spec] = {}

    def of_spec(spec: Spec) -> Spec:
        if not spec.symbolic:
            return spec
        found = known.get(spec)
        if found is None:
            found = known[spec] = spec.with_(shape=filled(spec.shape, sizes))
        return found

    ops: dict[Op, Op] = {}

    def of_op(op: Op) -> Op:
        found = ops.get(op)
        if found is None:
            found = ops[op] = substituted(op, sizes)
        return found

    equations = tuple([Equation(of_op(eq.op), eq.operands, eq.results, eq.source) for eq in program.equations])
    left = [Guard(filled(g.lhs, sizes), g.op, filled(g.rhs, sizes), g.where) for g in program.guards]
    found = Program(
        program.input_ids,
        program.constants,
        equations,
        program.output_ids,
        {v: of_spec(s) for v, s in program.specs.items()},
        names=program.names,
        guards=tuple([g for g in left if g.lhs is not g.rhs and (is_open(g.lhs) or is_open(g.rhs))]),
        examples={name: n for name, n in program.examples.items() if name not in sizes},
    )
    found.memo[OPEN] = program, sizes
    if WRITTEN_OUT in program.memo:
        found.memo[WRITTEN_OUT] = True
    return found


def substituted(op: Op, sizes: Mapping[str, DimLike]) -> Op:
    """An op with other sizes in its metadata.

    Args:
        op: the op.
        sizes: sizes by name.

    Returns:
        The op.
    """
    params = dict(op.params)
    if "sizes" in params and "program" in params:  # of a call: its program has its own sizes
        params["sizes"] = filled(params["sizes"], sizes)
        if params["sizes"] and not is_open(params["sizes"]):
            # A called program has no symbolic sizes left when its sizes are numbers.
            inner = params["program"]
            params = {"program": substitute(inner, named(inner, params["sizes"])), "sizes": ()}
    else:
        params = {k: filled(v, sizes) for k, v in params.items()}
    return op if params == dict(op.params) else op.primitive.op(**params)


def occurring(*programs: Program) -> dict[str, DimLike]:
    """All sizes that occur in programs, by name, whether or not they are extents of inputs."""
    found: dict[str, DimLike] = {}
    for program in programs:
        for value in (*[s.shape for s in program.specs.values()], *[eq.op.params for eq in program.equations]):
            _collect(value, found)
    return dict(sorted(found.items()))


def _collect(value: Any, found: dict[str, DimLike]) -> None:
    if isinstance(value, Dim):
        if not value.variables <= found.keys():
            found.update((str(n), n) for n in value.bare())
    elif isinstance(value, Program):
        found.update(occurring(value))
    elif value.__class__ is tuple:
        for part in value:
            _collect(part, found)
    elif isinstance(value, Mapping):
        for part in (value["sizes"],) if "sizes" in value else value.values():
            _collect(part, found)
