"""From user functions to closed programs: traced, brought to a common form, and closed over captured values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from tenferro_runtime.control_flow._agreement import next_kind
from tenferro_runtime.control_flow._values import LeafKind, leaf_values
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._source import here
from tenferro_runtime.runtime import current_runtime
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staging import stage
from tenferro_runtime.trees._tree import flatten
from tenferro_tensor import catalog
from tenferro_tensor.identity import Identity, identity
from tenferro_tensor_core import TenferroError, UnsupportedError

FRAMES_PER_BODY: Final = 12
"""Most frames of Python's stack that a pass over programs needs for each body inside another."""

_depth: Final = ContextVar("depth of bodies", default=0)


class NestingError(UnsupportedError, RecursionError):
    """Branches or loops are inside one another deeper than Python's stack allows."""


class Run:
    """A function that has been run on traced inputs, while its program is still being recorded.

    Attributes:
        builder: records the program.
        leaves: leaves of the result.
        tree: their structure.
    """

    def __init__(self, what: str, f: Callable[[list[Any]], Any], kinds: Sequence[LeafKind]) -> None:
        depth, most = _depth.get() + 1, sys.getrecursionlimit() // FRAMES_PER_BODY
        if depth > most:
            raise NestingError(
                f"{what} is inside of {depth - 1} other branches or loops{here()}, of at most {most}; write them as "
                "one switch or a loop, or raise the limit with sys.setrecursionlimit",
                depth=depth,
            )
        self.builder = Builder()
        entered = _depth.set(depth)
        try:
            inputs = [self.builder.input(kind.spec, None, kind.weak, kind.interval) for kind in kinds]
            with stage(self.builder):
                out = f(inputs)
            leaves, self.tree = flatten(out)
            self.leaves = leaf_values(leaves, self.tree, f"the result of a function given to {what}")
        except BaseException:
            self.builder.closed = True
            raise
        finally:
            _depth.reset(entered)

    def drop(self) -> None:
        """Discard the program."""
        self.builder.closed = True


def settled(
    what: str, f: Callable[[list[Any]], Any], entry: Sequence[LeafKind], others: Sequence[LeafKind]
) -> tuple[Run, list[LeafKind]]:
    """Trace a body until the kinds of its carry are stable: a Python number combined with arrays takes their dtype.

    Args:
        what: name of the loop.
        f: the body, a function of the leaves of carry and slices; its first results are the leaves of the carry.
        entry: kinds of the carry.
        others: kinds of the other inputs.
    """
    kinds = list(entry)
    while True:
        run = Run(what, f, [*kinds, *others])
        now = [next_kind(kind, leaf) for kind, leaf in zip(kinds, run.leaves)]
        if now == kinds or len(now) < len(kinds):  # the caller checks the structure
            return run, kinds
        kinds = now  # each iteration widens a number or makes it an array, so there are few
        run.drop()


def closed(runs: Sequence[Run], outputs: Sequence[Sequence[Any]]) -> tuple[list[Program], list[Any]]:
    """The programs of runs that take the same operands, and the values that they capture.

    Captured values become leading inputs of all programs.
    """
    try:
        programs = [run.builder.close(outs) for run, outs in zip(runs, outputs, strict=True)]
    except TenferroError:
        for run in runs:
            run.drop()
        raise
    for program in programs:
        _require_known_sizes(program)
    captured = {identity(value): value for run in runs for value, _ in run.builder.captured}
    optimise = current_runtime().optimise
    return [
        optimise(_with_leading_inputs(program, run, captured)) for program, run in zip(programs, runs, strict=True)
    ], list(captured.values())


def _require_known_sizes(program: Program) -> None:
    """Check that no data-dependent size is defined inside the loop or branch."""
    for eq in program.equations:
        if eq.op.primitive is catalog.define_size:
            raise UnsupportedError(
                f"{eq.op.params['size']} is a size that depends on data of a recorded branch or loop{here()}; "
                "keep the full extent there and mask, where(arange(n) < k, x, 0) instead of truncate(x, k), or "
                "truncate before it or after it",
                size=str(eq.op.params["size"]),
            )


def _with_leading_inputs(program: Program, run: Run, captured: dict[Identity, Any]) -> Program:
    if not captured:
        return program
    own = {identity(value): v for value, v in run.builder.captured}
    specs = dict(program.specs)
    fresh = max(specs, default=-1) + 1
    leading = []
    for key, value in captured.items():
        v = own.get(key)
        if v is None:
            v, fresh = fresh, fresh + 1
            specs[v] = value.spec
        leading.append(v)
    declared = program.input_ids[: len(program.input_ids) - len(own)]
    return program.with_(input_ids=(*leading, *declared), specs=specs)
