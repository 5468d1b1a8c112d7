"""What a contraction costs: operations, memory, and a table of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tenferro_einsum._tree import Numbers, Steps, structure, with_extents
from tenferro_runtime.extension import DimLike
from tenferro_tensor_core import example_of

MANY = 40
"""A table of more steps is printed without those in the middle."""


@dataclass(frozen=True)
class StepCost:
    """One step of a contraction.

    Attributes:
        equation: labels of what it takes and gives, in einsum notation.
        operands: numbers of the values that it takes, operands first, then the results of steps.
        flops: multiplications and additions, complex ones counted as the real ones that they are made of.
        shape: shape of its result.
        bytes: bytes of its result.
    """

    equation: str
    operands: Numbers
    flops: int
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class PathReport:
    """What a contraction along a path costs; its text is a table.

    Attributes:
        flops: multiplications and additions of all steps.
        naive_flops: those of one loop over all labels.
        largest: bytes of the largest value that a step makes.
        steps: the steps.
    """

    flops: int
    naive_flops: int
    largest: int
    steps: tuple[StepCost, ...]

    def __str__(self) -> str:
        head = [
            f"operations         {self.flops:.3e}  (one loop over all labels: {self.naive_flops:.3e})",
            f"largest value      {amount(self.largest)}",
            "",
            f"{'step':>5}  {'operations':>10}  {'result':>10}  contraction",
        ]
        rows = [
            f"{n:>5}  {s.flops:>10.3e}  {amount(s.bytes):>10}  {' , '.join(map(str, s.operands))}: {s.equation}"
            for n, s in enumerate(self.steps)
        ]
        if len(rows) > MANY:
            rows[MANY // 2 : -MANY // 2] = [f"       ... {len(rows) - MANY} more steps"]
        return "\n".join(head + rows)


def amount(n: float) -> str:
    """Bytes in a readable unit.

    >>> amount(2048), amount(3 * 2**30)
    ('2.0 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


def report(
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    dtype: np.dtype[Any],
    extents: Sequence[DimLike],
    names: Mapping[int, str],
) -> PathReport:
    """The report on a contraction; open extents count as their examples."""
    sizes = [example_of(d) or 0 for d in extents]
    ir = with_extents(structure(inputs, output, steps), dtype, sizes)
    factor = 8 if dtype.kind == "c" else 2
    width = max(map(len, names.values()), default=1)

    def spell(labels: Numbers) -> str:
        return ("" if width == 1 else " ").join(names[x] for x in labels)

    rows = []
    for n, step in enumerate(steps):
        space = {x for v in step for x in ir.values[v]}
        shape = ir.shape(len(inputs) + n)
        equation = f"{','.join(spell(ir.values[v]) for v in step)}->{spell(ir.values[len(inputs) + n])}"
        flops = factor * prod([sizes[x] for x in space])
        rows.append(StepCost(equation, step, flops, shape, dtype.itemsize * prod(shape)))
    everything = {x for labels in inputs for x in labels}
    naive = max(len(inputs), 1) * factor // 2 * prod([sizes[x] for x in everything])
    largest = max([row.bytes for row in rows], default=dtype.itemsize * prod([sizes[x] for x in output]))
    return PathReport(sum(row.flops for row in rows), naive, largest, tuple(rows))
