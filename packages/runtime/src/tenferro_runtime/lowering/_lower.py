"""`lower`: from a program to loop nests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import variables
from tenferro_runtime.ir._source import Source, where
from tenferro_runtime.lowering import (  # noqa: F401 - rules register themselves
    _branches,
    _indexing,
    _joining,
    _loops,
    _products,
    _reductions,
    _sorting,
    _views,
)
from tenferro_runtime.lowering._calls import call
from tenferro_runtime.lowering._elementwise import elementwise
from tenferro_runtime.lowering._lowering import Lowering, Step
from tenferro_runtime.lowering._overwriting import overwriting
from tenferro_runtime.lowering._prepared import prepared
from tenferro_runtime.lowering._rewriting import renamed, swapped
from tenferro_runtime.lowering._values import Lowered, Stored, write
from tenferro_runtime.lowering.passes import bound_accesses, improved, reuse_memory
from tenferro_runtime.passes.schedule import extent_in_trace
from tenferro_runtime.runtime import how_of
from tenferro_runtime.tracing.expanding import expand, expansion_of, has_expansion, specs_of, stays
from tenferro_tensor import REGISTRY
from tenferro_tensor.loop_ir import Buffer, LoopFunction, Requirement, Role
from tenferro_tensor_core import Dim, UnsupportedError


def lower(program: Program, donated: Sequence[int] = (), *, kind: str = "cpu") -> LoopFunction:
    """Lower a program to loop nests over buffers; sizes may be symbolic.

    Args:
        program: the program.
        donated: positions of inputs whose memory outputs may reuse.
        kind: kind of the target device. For main memory, nests are ordered for caches and families use their inline
            routines; other devices call kernels instead.

    Returns:
        The function.

    Raises:
        UnsupportedError: a step is neither loops nor a kernel on arrays in one memory, such as a data-dependent size or
            a transfer.
    """
    if kind == "cpu":
        function = improved(written(program))
    else:
        function = improved(_written(program, Lowering(_other, kind)), cached=False)
    return bound_accesses(reuse_memory(overwriting(function, donated)))


def written(program: Program) -> LoopFunction:
    """Lower a program equation by equation, without passes over its loop nests."""
    return _written(program, Lowering(_other))


def _written(program: Program, lowering: Lowering) -> LoopFunction:
    lowering.exact = how_of(program).exact
    program = prepared(expand(program))
    if lowering.on_host:
        _require_main_memory(program)
    else:
        _require_one_device(program, lowering.kind)
    w, lowering.guards, lowering.examples = lowering.w, program.guards, program.examples
    inputs = [w.buffer(s.dtype, s.shape, Role.INPUT) for s in program.inputs]
    outs = lowering.run(program, [Stored.whole_of(b) for b in inputs])
    outputs, taken = [], swapped(w.statements)
    moved: dict[int, Buffer] = {}
    for x in outs:
        to = w.buffer(x.dtype, x.shape, Role.OUTPUT)
        outputs.append(to)
        if isinstance(x, Stored) and x.whole and x.buffer.role is Role.TEMPORARY and x.buffer.number not in taken:
            moved[x.buffer.number] = to
            taken.add(x.buffer.number)
        else:
            write(w, x, Stored.whole_of(to))
    return LoopFunction(
        tuple(variables(program)),
        tuple(inputs),
        tuple(outputs),
        tuple(lowering.constants),
        tuple([b for b in w.buffers[Role.TEMPORARY] if b.number not in moved]),
        renamed(w.statements, moved) if moved else tuple(w.statements),
        (*dict.fromkeys((*relied_on(program), *w.requires)),),
        where=partial(_where, w.sources),
        examples=program.examples,
    )


def _where(sources: Mapping[int, Source], number: int) -> str:
    return where(sources.get(number))


def relied_on(program: Program) -> Iterator[Requirement]:
    """The guards of a program as requirements of its function; inequations (!=) are left out.

    Args:
        program: the program.
    """
    for g in program.guards:
        low, high = (g.rhs, g.lhs) if g.op in (">", ">=") else (g.lhs, g.rhs)
        if g.op == "==":
            yield Requirement(g.lhs - g.rhs)
            yield Requirement(g.rhs - g.lhs)
        elif g.op != "!=":
            yield Requirement(high - low - (g.op in ("<", ">")))


def _require_main_memory(program: Program) -> None:
    makers = {v: eq for eq in program.equations for v in eq.results}
    for v, spec in program.specs.items():
        if not spec.place.on_host:
            eq = makers.get(v)
            by = (
                ""
                if eq is None
                else f", the result of {eq.op.primitive.name}" + (f" at {eq.where}" if eq.where else "")
            )
            raise UnsupportedError(
                f"only programs in main memory are lowered to loops, and a value{by} is {spec!r}",
                where="" if eq is None else eq.where,
            )


def _require_one_device(program: Program, kind: str) -> None:
    """Check that inputs and outputs are on one device; counters inside loops may be in main memory."""
    specs = [*program.inputs, *program.outputs]
    spaces = {s.place.memory_space for s in specs}
    if len(spaces) != 1 or specs[0].place.device.kind != kind:
        raise UnsupportedError(
            f"only programs on one device of kind {kind} are lowered to loops for it, and this one has "
            f"{', '.join(map(repr, specs))}"
        )


KERNEL_MIN_OPERATIONS: Final = 4_000_000
"""Smallest number of operations for which an op keeps its kernel instead of its expansion, to move fewer data."""


def _is_large(step: Step) -> bool:
    """Whether a step is one kernel for large operands, as contractions are, and its operands are large."""
    model, specs = REGISTRY.find("cost", step.op.primitive), specs_of(step.body.program.specs, step.eq)
    if model is None or not step.lowering.on_host or not stays(step.op, specs):
        return False
    flops = model(specs, step.outs, **step.params).flops
    return (
        extent_in_trace(flops, step.lowering.examples) if isinstance(flops, Dim) else flops or 0
    ) >= KERNEL_MIN_OPERATIONS


def _other(step: Step) -> Lowered | Sequence[Lowered]:
    """Lower a primitive without a rule here: by its family's rule, its expansion, or its kernel."""
    rule = REGISTRY.find("loops", step.op.primitive)
    if rule is not None and step.lowering.on_host:
        return rule(step)  # type: ignore[no-any-return]
    if has_expansion(step.op.primitive) and not _is_large(step):
        return by_expansion(step)
    return elementwise(step) if step.op.primitive.elementwise else call(step)


def by_expansion(step: Step) -> Lowered | Sequence[Lowered]:
    """Lower a primitive by its expansion, or by its kernel if that has none for these operands.

    Families register this rule for primitives of which a single one gains as a native function.

    Args:
        step: the equation.

    Returns:
        The lowered results.
    """
    known = step.lowering
    found = expansion_of(step.op, specs_of(step.body.program.specs, step.eq), known.guards, known.examples)
    if found is not None:
        dtypes = [s.dtype for s in found.inputs]
        return step.lowering.run(prepared(found), [step.operand(k, dtype) for k, dtype in enumerate(dtypes)])
    return elementwise(step) if step.op.primitive.elementwise else call(step)
