"""The steps of a rendered program: kernels on raw arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

from tenferro_runtime.ir._bind import Binder, is_open, is_open_op
from tenferro_runtime.ir._data_sizes import defining
from tenferro_runtime.ir._inference import infer
from tenferro_runtime.ir._moves import moves_of, moving
from tenferro_runtime.ir._placement import stays
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.running.rendering._data_dependent import DataDependentSizes
from tenferro_runtime.running.rendering._step import Step, unused
from tenferro_tensor import Op, Spec, catalog
from tenferro_tensor.entries import entry_of, open_step
from tenferro_tensor.kernels import open_kernel_of
from tenferro_tensor.transfers import Booked, book_raw, require_allowed
from tenferro_tensor_core import DimLike, TenferroError


def raw_steps(program: Program, binder: Binder | None = None) -> list[Step]:
    """The kernels of a program as steps on raw arrays, specialized where the specs are concrete.

    Args:
        program: the program.
        binder: collects the sizes that the steps of a symbolic program need: kernels for all sizes receive them as
            arguments, other kernels are found when the program is bound.

    Returns:
        The steps, with the bookkeeping of transfers between them.
    """
    thin = _thin_broadcasts(program)
    steps: list[Step] = []
    dependent = None if binder is None else DataDependentSizes(program, binder, steps)
    for eq in program.equations:
        if eq.results and eq.results[0] in thin:
            shape = thin[eq.results[0]]
            if shape is None:
                steps.append(Step(_same, eq.operands, eq.results, False, eq))
            elif dependent is not None and is_open(shape):
                steps.append(Step(_reshaped, eq.operands, eq.results, False, eq, (dependent.size(shape, eq),)))
            else:
                steps.append(Step(methodcaller("reshape", shape), eq.operands, eq.results, False, eq))
        elif stays(program, eq):
            steps.append(Step(_same, eq.operands, eq.results, False, eq))
        elif dependent is not None and eq.op.primitive is catalog.define_size:
            dependent.define(eq)
        elif dependent is not None and binder is not None and _is_open(program, eq):
            _open_step(program, eq, binder, dependent)
        else:
            plan = plan_of(eq.op, _seen(program, eq), eq)
            steps.append(Step(plan.run, eq.operands, eq.results, plan.many, eq))
        if moving(program, eq) is not None:
            steps[-1:] = _booked(program, steps[-1])
    moves = moves_of(program)
    if moves:
        guard = partial(require_allowed, moves, " by this program, before any of its steps ran")
        steps.insert(0, Step(guard, (), (), False, program.equations[0]))
    return steps


def _booked(program: Program, step: Step) -> list[Step]:
    """A transfer between memories, preceded by a step that logs it under its own line, not that of the call."""
    source, target = (program.specs[v].place.memory_space for v in (*step.equation.variables, *step.results))
    line = step.equation.where
    booking = Step(partial(book_raw, source, target, line), step.operands, (), False, step.equation)
    kernel = step.function.run if isinstance(step.function, Booked) else step.function
    return [booking, step._replace(function=kernel)]


def _is_open(program: Program, eq: Equation) -> bool:
    return (
        any(program.specs[v].symbolic for v in (*eq.variables, *eq.results))
        or is_open_op(eq.op)
    )  # fmt: skip


def _open_step(program: Program, eq: Equation, binder: Binder, dependent: DataDependentSizes) -> None:
    seen, many = _seen(program, eq), _many(program, eq)
    outs = tuple([program.specs[v] for v in eq.results])
    step = open_step(eq.op, seen, outs)
    kernel = open_kernel_of(step.backend, eq.op, step.operands, outs, step.device)
    if defining(program, eq):
        if kernel is None or kernel.large is not None:
            dependent.kernel(eq, seen, many, lambda op, specs: plan_of(op, specs, eq).run)
            return
    else:
        binder.made(outs)
        if kernel is None:
            dependent.steps.append(Step(unused, eq.operands, eq.results, many, eq, entry=binder.kernel(step)))
            return
        if kernel.large is not None:
            dependent.steps.append(Step(unused, eq.operands, eq.results, many, eq, entry=binder.chosen(step, kernel)))
            return
    sizes = tuple([dependent.size(size, eq) for size in kernel.sizes])
    dependent.steps.append(Step(kernel.run, eq.operands, eq.results, many, eq, sizes))


def aliases(steps: list[Step]) -> tuple[list[Step], dict[int, int]]:
    """Remove the steps that only rename a variable.

    Args:
        steps: the steps.

    Returns:
        The other steps, and for each removed result the variable that replaces it.
    """
    alias: dict[int, int] = {}
    kept = []
    for step in steps:
        operands = tuple([alias.get(v, v) if v.__class__ is int else v for v in step.operands])
        if step.function is _same:
            alias[step.results[0]] = operands[0]  # type: ignore[assignment]
        else:
            kept.append(step if operands == step.operands else step._replace(operands=operands))
    return kept, alias


def _same(x: Any) -> Any:
    return x


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


def _many(program: Program, eq: Equation) -> bool:
    if len(eq.results) != 1:
        return True
    return infer(eq.op, _seen(program, eq))[1]


def _seen(program: Program, eq: Equation) -> tuple[Spec | type, ...]:
    return tuple([v.value.__class__ if isinstance(v, Literal) else program.specs[v] for v in eq.operands])


def plan_of(op: Op, seen: tuple[Spec | type, ...], eq: Equation | None = None) -> Any:
    """The forward plan that a concrete call of the op would use; an error names `eq`."""
    try:
        return entry_of(op, seen)
    except TenferroError as error:
        if eq is not None and eq.where:
            error.add_note(f"in {op.primitive.name}, traced at {eq.where}")
        raise


def step_kernel(program: Program, eq: Equation) -> Callable[..., tuple[Any, ...]]:
    """The kernel of one equation with concrete specs, for compilers that have no form of their own for it.

    A loop or a branch is one kernel as well, which runs its programs.

    Args:
        program: the program.
        eq: an equation of it.

    Returns:
        A function of the raw operands, literals included, that returns the tuple of results, also of a single one.

    Raises:
        UnsupportedError: there is no kernel; a note names the line of user code.

    >>> import numpy as np
    >>> import tenferro_runtime as tr
    >>> program = tr.trace(lambda x: x * 2.0, np.ones(2))
    >>> step_kernel(program, program.equations[0])(np.ones(2), 2.0)
    (array([2., 2.]),)
    """
    plan = plan_of(eq.op, _seen(program, eq), eq)
    run: Callable[..., Any] = plan.run
    return run if plan.many else lambda *raws: (run(*raws),)


def _thin_broadcasts(program: Program) -> dict[int, tuple[DimLike, ...] | None]:
    """Broadcasts that can be skipped, because the kernels that read them broadcast their operands.

    Such a variable is read by element-wise kernels only, whose other operands have the full shape. Maps the variable to
    the shape, with axes of extent 1, that replaces it, or to ``None`` if the operand serves unchanged.
    """
    thin: dict[int, tuple[DimLike, ...]] = {}
    specs = program.specs
    for eq in program.equations:
        if eq.op.primitive is catalog.broadcast_in_dim:
            source, out = specs[eq.operands[0]], specs[eq.results[0]]  # type: ignore[index]
            dims = eq.op.params["dims"]
            shape: list[Any] = [1] * out.ndim
            for i, d in enumerate(dims):
                shape[d] = source.shape[i]
            lead = dims[0] if dims else out.ndim
            if list(dims) == sorted(dims):
                thin[eq.results[0]] = tuple(shape[lead:])
    for v in program.output_ids:
        thin.pop(v, None)
    if not thin:
        return {}
    for eq in program.equations:
        used = [v for v in eq.operands if v.__class__ is int and v in thin]
        if not used:
            continue
        if not eq.op.primitive.elementwise:
            for v in used:
                thin.pop(v, None)
            continue
        full = specs[eq.results[0]].shape
        while used:
            read = [thin.get(v, specs[v].shape) for v in eq.operands if v.__class__ is int]
            if _covers(read, full):
                break
            thin.pop(used.pop(), None)
    sources = {eq.results[0]: eq.operands[0] for eq in program.equations if eq.results and eq.results[0] in thin}
    found = {v: None if specs[sources[v]].shape == shape else shape for v, shape in thin.items()}  # type: ignore[index]
    # Reshaping is a method of NumPy arrays, but a kernel on other devices.
    return {v: s for v, s in found.items() if s is None or specs[v].place.on_host}


def _covers(shapes: list[tuple[DimLike, ...]], full: tuple[DimLike, ...]) -> bool:
    """Whether operands of these shapes broadcast to `full`; adds no guard."""
    return all(any(len(s) >= i and s[-i] == full[-i] for s in shapes) for i in range(1, len(full) + 1))
