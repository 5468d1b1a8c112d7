"""Converts programs of one lane to programs of all lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tenferro_runtime.batching._batched import Batched, batched
from tenferro_runtime.batching._records import (
    BatchingRule,
    Flags,
    Shared,
    Values,
    batch_of,
    lane_specs,
    open_number_of_lanes,
    with_lanes,
)
from tenferro_runtime.ir._call import ProgramPrimitive, sizes_for
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import chosen, example_of, named, substitute
from tenferro_runtime.runtime import optimised_like
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staged import staged
from tenferro_runtime.tracing.derived import derived
from tenferro_tensor import next_level
from tenferro_tensor_core import Dim, DimLike, key_of


class BatchedProgram(NamedTuple):
    """A program of all lanes.

    Attributes:
        program: the program.
        batched: which of its outputs have a lane axis; the others are the same for all lanes.
    """

    program: Program
    batched: Flags


def batched_body(program: Program, batched: Flags, size: DimLike, outputs: Flags | None = None) -> BatchedProgram:
    """A branch or a body for all lanes, which shares the sizes of its surroundings; cached with the program.

    Args:
        program: the program of one lane.
        batched: which of its inputs have a lane axis.
        size: number of lanes.
        outputs: which outputs get a lane axis even if they are the same for all lanes.

    Returns:
        The program of all lanes.
    """
    key = ("batched", batched, key_of(size), outputs)
    return derived(program, key, None, lambda p, builder: _batched(p, builder, batched, size, outputs))


def _batched(
    program: Program,
    builder: Builder,
    flags: Flags,
    size: DimLike,
    outputs: Flags | None = None,
    example: int | None = None,
) -> BatchedProgram:
    there: list[bool] = []

    def on_lanes(*xs: Any) -> list[Any]:
        level = next_level()
        outs = interpret(program, [batched(x, level) if lanes else x for x, lanes in zip(xs, flags, strict=True)])
        there.extend([o.__class__ is Batched and o.level == level for o in outs])
        return [
            o.value if lanes else with_lanes(size, builder.lift(o)) if outputs and outputs[i] else o
            for i, (o, lanes) in enumerate(zip(outs, there, strict=True))
        ]

    # A program that is not symbolic takes no sizes, even if it was derived from one that did.
    examples = dict(program.examples) if program.symbolic else {}
    if example is not None:
        examples[str(size)] = example
    specs = [batch_of(s, size) if lanes else s for s, lanes in zip(program.inputs, flags, strict=True)]
    made = staged(on_lanes, specs, builder, alone=isinstance(size, Dim), examples=examples).program
    found = tuple([lanes or bool(outputs and outputs[i]) for i, lanes in enumerate(there)])
    return BatchedProgram(optimised_like(made, program), found)


@kept
def _number_of_lanes(_: Program) -> DimLike:
    return open_number_of_lanes()


def calling(primitive: ProgramPrimitive) -> BatchingRule:
    """The batching rule of a primitive that runs a program: it runs the program of all lanes.

    Args:
        primitive: the primitive.

    Returns:
        The rule.
    """

    def rule(
        size: DimLike, values: Values, batched: Flags, *, program: Program, sizes: tuple[DimLike, ...] = ()
    ) -> Any:
        lanes = lane_specs(values, batched)
        open_ = _number_of_lanes(program)
        known = {**named(program, sizes_for(program, lanes, sizes)), str(open_): size}
        made = derived(
            program,
            ("batched", batched),
            known,
            lambda p, builder: _batched(p, builder, batched, open_, example=example_of(open_)),
            _unified,
            lambda p, builder: _batched(p, builder, batched, size),
        )
        outs = primitive(*values, program=made.program, sizes=chosen(made.program, known))
        return tuple([x if there else Shared(x) for x, there in zip(outs, made.batched, strict=True)])

    return rule


def _unified(found: BatchedProgram, equalities: Mapping[str, DimLike]) -> BatchedProgram:
    return found._replace(program=substitute(found.program, equalities))
