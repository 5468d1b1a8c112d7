"""Going back through a step: a carry that a step updates in windows is restored from what the windows held before.

Then a derivative that reads the whole carry needs no copy of it for every step: the way back starts from the last
carry, and a step stacks the windows alone. What is restored has the bits of what was there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tenferro_runtime.extension import Equation, Program
from tenferro_tensor import Op, Spec
from tenferro_tensor import catalog as c


class CarryChain(NamedTuple):
    """The values of a carry within a step, from the first to the last.

    Attributes:
        carry: which carry.
        versions: its variables; the first is the input, the last the output.
        logs: variables that restoring reads and that must be stacked.
        indices: variables that restoring reads and that may be computed again.
        restores: equations that make each version from the next one, the last version but one first.
    """

    carry: int
    versions: tuple[int, ...]
    logs: tuple[int, ...]
    indices: tuple[int, ...]
    restores: tuple[Equation, ...]


def with_logs(first: Program, consts: int, carry: int) -> tuple[Program, list[CarryChain]]:
    """A first part that also computes what restoring its carries reads, and how they are restored.

    Carries that are not updated in windows have chains, too, with the carry itself as what is stacked.

    Args:
        first: the first part of a step.
        consts: number of inputs before the carry.
        carry: number of carries.
    """
    work = _Logging(first)
    found = [work.chain(j, first.input_ids[consts + j], first.output_ids[j]) for j in range(carry)]
    return work.close(), found


class _Logging:
    """A program while equations are added to it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made = {v: eq for eq in program.equations for v in eq.results}
        self.known = {(eq.op, eq.operands): eq.results[0] for eq in program.equations if len(eq.results) == 1}
        self.specs = dict(program.specs)
        self.equations = list(program.equations)

    def chain(self, j: int, start: int, end: int) -> CarryChain:
        """How a carry comes about, from its input `start` to its output `end`."""
        versions, logs, indices, restores = [end], [], [], []
        v = end
        while v != start:
            eq = self.made.get(v)
            p = None if eq is None else eq.op.primitive
            if eq is None or p not in (c.scatter, c.dynamic_update_slice) or eq.operands[0].__class__ is not int:
                return CarryChain(j, (start, end), (start,), (), ())
            x: int = eq.operands[0]
            at = eq.operands[1 if p is c.scatter else 2]
            window = eq.operands[2 if p is c.scatter else 1]
            if at.__class__ is not int or window.__class__ is not int:
                return CarryChain(j, (start, end), (start,), (), ())
            read, write = _both_ways(eq, self.specs[x], self.specs[window])
            old = self.emit(read, (x, at), self.specs[window].with_(dtype=self.specs[x].dtype), eq)
            operands = (v, at, old) if p is c.scatter else (v, old, at)
            restores.append(Equation(write, operands, (x,), eq.source))
            logs.append(old)
            indices.append(at)
            versions.append(x)
            v = x
        return CarryChain(j, tuple(versions[::-1]), tuple(logs), tuple(indices), tuple(restores))

    def emit(self, op: Op, operands: tuple[int, ...], spec: Spec, like: Equation) -> int:
        found = self.known.get((op, operands))
        if found is None:
            found = max(self.specs) + 1
            self.specs[found] = spec
            self.equations.append(Equation(op, operands, (found,), like.source))
            self.known[op, operands] = found
        return found

    def close(self) -> Program:
        if len(self.equations) == len(self.program.equations):
            return self.program
        return self.program.with_(equations=tuple(self.equations), specs=self.specs)


def _both_ways(eq: Equation, x: Spec, window: Spec) -> tuple[Op, Op]:
    """Reading the windows that an update writes, and writing them back."""
    if eq.op.primitive is c.dynamic_update_slice:
        return c.dynamic_slice.op(sizes=window.shape), eq.op
    p = eq.op.params
    extents = iter([window.shape[a] for a in p["update_window_dims"]])
    sizes = tuple([1 if d in p["inserted_dims"] else next(extents) for d in range(x.ndim)])
    read = c.gather.op(
        offset_dims=p["update_window_dims"],
        collapsed_dims=p["inserted_dims"],
        start_index_map=p["scatter_dims"],
        slice_sizes=sizes,
    )
    return read, c.scatter.op(**{**p, "mode": "set"})


def ordered(moves: Collection[Equation], restores: Collection[Equation]) -> list[Equation]:
    """Equations with those that restore among them: each version of a carry is read before the next one takes its
    memory."""
    stage = {eq.results[0]: i for i, eq in enumerate(restores)}
    for eq in moves:
        stage[eq.results[0]] = max([stage.get(u, -1) for u in eq.variables], default=-1)
    return sorted([*restores, *moves], key=lambda eq: stage[eq.results[0]])
