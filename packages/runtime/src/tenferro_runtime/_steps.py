"""What a rendered program calls, step by step: kernels on raw arrays, or ops on values."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, NamedTuple

from tenferro_runtime._inference import infer
from tenferro_runtime._program import Equation, Literal, Operand, Program
from tenferro_tensor import Spec, broadcast_shapes, catalog
from tenferro_tensor import _select as select
from tenferro_tensor._plan import make_plan, remember
from tenferro_tensor_core import Decisions, TenferroError


class Step(NamedTuple):
    """One call of a rendered program: ``results = function(*operands)``."""

    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    results: tuple[int, ...]
    many: bool
    equation: Equation


def value_steps(program: Program) -> list[Step]:
    """Ops on values: works at every level."""
    with Decisions(program.examples):
        return [Step(eq.op, eq.operands, eq.results, _many(program, eq), eq) for eq in program.equations]


def raw_steps(program: Program) -> list[Step]:
    """Kernels on raw arrays, specialised for the specs."""
    thin = _thin_broadcasts(program)
    steps = []
    for eq in program.equations:
        if eq.results and eq.results[0] in thin:
            shape = thin[eq.results[0]]
            function: Callable[..., Any] = _same if shape is None else methodcaller("reshape", shape)
            steps.append(Step(function, eq.operands, eq.results, False, eq))
        else:
            plan = _plan(program, eq)
            steps.append(Step(plan.run, eq.operands, eq.results, plan.many, eq))
    return steps


def aliases(steps: list[Step]) -> tuple[list[Step], dict[int, int]]:
    """The steps that do something, and which variable stands for another."""
    alias: dict[int, int] = {}
    kept = []
    for step in steps:
        operands = tuple([v if isinstance(v, Literal) else alias.get(v, v) for v in step.operands])
        if step.function is _same:
            alias[step.results[0]] = operands[0]  # type: ignore[assignment]
        else:
            kept.append(step if operands == step.operands else step._replace(operands=operands))
    return kept, alias


def _same(x: Any) -> Any:
    return x


def _many(program: Program, eq: Equation) -> bool:
    if len(eq.results) != 1:
        return True
    return infer(eq.op, _seen(program, eq))[1]


def _seen(program: Program, eq: Equation) -> tuple[Spec | type, ...]:
    return tuple([v.value.__class__ if isinstance(v, Literal) else program.specs[v] for v in eq.operands])


def _plan(program: Program, eq: Equation) -> Any:
    """The forward plan that a concrete call of the op would use."""
    key = _seen(program, eq)
    try:
        if select.open_scopes:
            return make_plan(eq.op, key)
        plan = eq.op.plans.get(key)
        if plan is None:
            plan = remember(eq.op.plans, key, make_plan(eq.op, key))
            if key and isinstance(key[0], Spec) and all(k is key[0] for k in key) and len(key) <= 2 and not plan.many:
                remember(eq.op.same if len(key) == 2 else eq.op.one, key[0], plan)  # where concrete operators look
        return plan
    except TenferroError as error:
        if eq.where:
            error.add_note(f"in {eq.op.primitive.name}, traced at {eq.where}")
        raise


def _thin_broadcasts(program: Program) -> dict[int, tuple[int, ...] | None]:
    """Broadcasts that need not be carried out, because kernels that read them broadcast by themselves.

    Such a variable feeds element-wise kernels only, and beside it stands enough to give the result its full shape.
    Maps it to the shape with axes of extent 1 that it is read with, or ``None`` when the operand does as it is.
    """
    thin: dict[int, tuple[int, ...]] = {}
    specs = program.specs
    for eq in program.equations:
        if eq.op.primitive is catalog.broadcast_in_dim and not specs[eq.results[0]].symbolic:
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
            if broadcast_shapes(*read) == full:
                break
            thin.pop(used.pop(), None)
    sources = {eq.results[0]: eq.operands[0] for eq in program.equations if eq.results and eq.results[0] in thin}
    return {v: None if specs[sources[v]].shape == shape else shape for v, shape in thin.items()}  # type: ignore[index]
