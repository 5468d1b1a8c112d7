"""`roll`: rolls the loops of a program that Python unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import WRITTEN_OUT, Literal, Program
from tenferro_runtime.ir._sizes import OPEN
from tenferro_runtime.lowering.rolling._body import CannotRollError
from tenferro_runtime.lowering.rolling._flow import Flow, Listing, ManyValues, flow_of
from tenferro_runtime.lowering.rolling._loop import ROLLED, write_loop
from tenferro_runtime.lowering.rolling._periods import Stretch, keys_of, runs_in
from tenferro_runtime.lowering.rolling._row_values import Surroundings
from tenferro_runtime.passes.common_subexpressions import share_constants
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_tensor import HOST

Unroll = bool | int | None
"""Which loops stay unrolled: all, none, or those of up to that many steps; ``None`` to decide by savings."""

Optimise = Callable[[Program], Program]

MIN_STEPS: Final = 3
"""Smallest number of iterations of a recognized loop."""

DEFAULT_MIN_STEPS: Final = 8
DEFAULT_MIN_SAVED: Final = 64
"""By default, a loop is rolled if it has at least this many iterations and saves at least this many equations."""

MAX_NESTED: Final = 4
"""Largest depth of nested loops that are rolled from the inside out."""

MAX_ATTEMPTS: Final = 8
"""How often loops are written again after one of them could not be rolled."""

MAX_LOOKS: Final = 16
"""Bound of the search: the number of equations looked at, per equation of the program."""


def is_rolled(body: Program) -> bool:
    """Whether a program is the body of a loop that Python unrolled.

    Args:
        body: the body of a loop.

    Returns:
        True if it is.
    """
    return ROLLED in body.memo or (OPEN in body.memo and is_rolled(body.memo[OPEN][0]))


def roll(program: Program, unroll: Unroll, optimise: Optimise, *, exact: bool = False) -> Program:
    """Roll long runs of equal groups of equations into loops, with bitwise equal results.

    Args:
        program: any program.
        unroll: which loops stay unrolled.
        optimise: passes for the body of a loop.
        exact: keep loops unrolled if rolling would change the memory layout of values.

    Returns:
        The rewritten program.
    """
    if unroll is True or (unroll is None and WRITTEN_OUT in program.memo):
        return program
    if unroll is None:
        steps, saved = DEFAULT_MIN_STEPS, DEFAULT_MIN_SAVED
    else:
        steps, saved = max(MIN_STEPS, int(unroll) + 1), 1
    if len(program.equations) < steps or len(program.equations) <= saved:
        return program
    if definitions(program) or any(s.place is not HOST for s in set(program.specs.values())):
        return program
    for _ in range(MAX_NESTED):
        before, program = program, _once(program, steps, saved, optimise, exact)
        if program is before:
            break
    return program


def _once(program: Program, steps: int, saved: int, optimise: Optimise, exact: bool) -> Program:
    program = share_constants(remove_dead_code(program))
    runs = runs_in(program, keys_of(program), steps, saved)
    if not runs:
        return program
    listing = Listing(program)
    flows = _chosen(listing, runs, steps, saved)
    for _ in range(MAX_ATTEMPTS):
        try:
            return _written(Surroundings(program, exact), listing, flows, steps, optimise) if flows else program
        except CannotRollError as error:
            flows = [flow for flow in flows if flow is not error.flow]
    return program


def _chosen(listing: Listing, runs: list[Stretch], steps: int, saved: int) -> list[Flow]:
    """Loops that do not overlap, chosen by savings, in order of position."""
    taken = bytearray(len(listing.equations) + 1)
    left = MAX_LOOKS * len(listing.equations)
    found: list[Flow] = []
    waiting = runs[::-1]
    while waiting and left > 0:
        run = waiting.pop()
        start, end = _free(taken, run)
        run = Stretch(start, run.period, end - start)
        if run.length < steps * run.period or run.saved < saved:
            continue
        left -= run.length
        flow = flow_of(listing, run)
        if flow is None or flow.end - flow.first < steps or (flow.end - flow.first - 1) * flow.period < saved:
            if flow is not None and flow.end - flow.first > 0:
                waiting += _rest(run, flow)
            continue
        taken[flow.begins : flow.ends] = b"\1" * (flow.ends - flow.begins)
        found.append(flow)
        waiting += _rest(run, flow)
    return sorted(found, key=lambda flow: flow.begins)


def _rest(run: Stretch, flow: Flow) -> list[Stretch]:
    """The parts of a run before and after a loop."""
    after = Stretch(flow.ends, run.period, run.start + run.length - flow.ends)
    return [Stretch(run.start, run.period, flow.begins - run.start), after]


def _free(taken: bytearray, run: Stretch) -> tuple[int, int]:
    """The longest part of a run that is not in a loop yet."""
    best, start, end = (run.start, run.start), run.start, run.start + run.length
    while start < end:
        stop = taken.find(1, start, end)
        stop = end if stop < 0 else stop
        if stop - start > best[1] - best[0]:
            best = start, stop
        start = taken.find(0, stop, end)
        if start < 0:
            break
    return best


def _written(around: Surroundings, listing: Listing, flows: list[Flow], steps: int, optimise: Optimise) -> Program:
    program, at = listing.program, 0
    for flow in flows:
        for eq in listing.equations[at : flow.begins]:
            around.keep(eq)
        at = flow.begins
        _trim(around, flow)
        if flow.end - flow.first < steps:
            raise CannotRollError(flow)
        for eq in listing.equations[at : flow.begins]:
            around.keep(eq)
        write_loop(around, listing, flow, optimise)
        at = flow.ends
    for eq in listing.equations[at:]:
        around.keep(eq)
    outputs = tuple([around.value(v) for v in program.output_ids])
    written = program.with_(
        equations=tuple(around.equations), output_ids=outputs, constants=around.constants, specs=around.specs
    )
    return remove_dead_code(written)


def _trim(around: Surroundings, flow: Flow) -> None:
    """Exclude groups at both ends whose operands are not rows of the array that the other groups read."""
    for slots in flow.slots:
        for slot in slots:
            if isinstance(slot, ManyValues) and not isinstance(slot.operands[0], Literal):
                part = around.longest(slot.operands[flow.first : flow.end])  # type: ignore[arg-type]
                flow.first, flow.end = flow.first + part.start, flow.first + part.stop
