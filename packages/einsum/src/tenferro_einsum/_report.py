"""The cost of a contraction: operations, memory, and a table of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tenferro_einsum._memory import Network, Slicing
from tenferro_einsum._tree import Numbers, structure, with_extents

MAX_PRINTED_STEPS = 40
"""A table of more steps is printed without those in the middle."""


@dataclass(frozen=True)
class ContractionStep:
    """One step of a contraction.

    Attributes:
        equation: labels of what it takes and gives, in einsum notation.
        operands: numbers of the values that it takes, operands first, then the results of steps.
        flops: multiplications and additions, complex ones counted as the real ones that they are made of.
        shape: shape of its result.
        bytes: bytes of its result.
        kernel: what the engine of the backend computes it with; where there is none, steps are done one by one.
    """

    equation: str
    operands: Numbers
    flops: int
    shape: tuple[int, ...]
    bytes: int
    kernel: str


@dataclass(frozen=True)
class PathReport:
    """The cost of a contraction along a path; prints as a table.

    Attributes:
        flops: multiplications and additions of all steps.
        naive_flops: those of one loop over all labels.
        largest: bytes of the largest value that a step makes.
        peak: bytes that a call allocates at once, its result included, its operands not.
        slices: number of slices in which a memory budget has it done.
        sliced_flops: operations of all slices, and of what is made once for all of them.
        once_flops: operations of what is made once.
        steps: the steps.
    """

    flops: int
    naive_flops: int
    largest: int
    peak: int
    slices: int
    sliced_flops: int
    once_flops: int
    steps: tuple[ContractionStep, ...]

    def __str__(self) -> str:
        head = [
            f"operations         {self.flops:.3e}  (one loop over all labels: {self.naive_flops:.3e})",
            f"largest value      {amount(self.largest)}",
            f"memory at once     {amount(self.peak)}",
            "",
            f"{'step':>5}  {'operations':>10}  {'result':>10}  {'kernel':<12}  contraction",
        ]
        if self.slices > 1:
            once = f", {self.once_flops:.3e} of them once" if self.once_flops else ""
            head.insert(3, f"slices             {self.slices}, {self.sliced_flops:.3e} operations together{once}")
        rows = [
            f"{n:>5}  {s.flops:>10.3e}  {amount(s.bytes):>10}  {s.kernel:<12}  "
            f"{', '.join(map(str, s.operands))}: {s.equation}"
            for n, s in enumerate(self.steps)
        ]
        if len(rows) > MAX_PRINTED_STEPS:
            rows[MAX_PRINTED_STEPS // 2 : -MAX_PRINTED_STEPS // 2] = [
                f"       ... {len(rows) - MAX_PRINTED_STEPS} more steps"
            ]
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


def report(network: Network, names: Mapping[int, str], peak: int, slicing: Slicing | None) -> PathReport:
    """The report on a contraction; `names` are those of its labels, `peak` the bytes that a call allocates at once."""
    dtype, sizes = network.like.dtype, network.sizes
    ir = with_extents(structure(network.inputs, network.output, network.steps), dtype, sizes)
    factor = 8 if dtype.kind == "c" else 2
    width = max(map(len, names.values()), default=1)

    def spell(labels: Numbers) -> str:
        return ("" if width == 1 else " ").join(names[x] for x in labels)

    kernels = network.kernels()
    rows = []
    for n, step in enumerate(network.steps):
        result = len(network.inputs) + n
        space = {x for v in step for x in ir.values[v]}
        equation = f"{','.join(spell(ir.values[v]) for v in step)}->{spell(ir.values[result])}"
        flops = factor * prod([sizes[x] for x in space])
        size = network.bytes(ir.values[result])
        rows.append(ContractionStep(equation, step, flops, ir.shape(result), size, kernels.get(n, "pairwise")))
    everything = {x for labels in network.inputs for x in labels}
    naive = max(len(network.inputs), 1) * factor // 2 * prod([sizes[x] for x in everything])
    largest = max([row.bytes for row in rows], default=network.bytes(network.output))
    flops = sum(row.flops for row in rows)
    if slicing is None:
        return PathReport(flops, naive, largest, peak, 1, flops, 0, tuple(rows))
    return PathReport(flops, naive, largest, peak, slicing.count, slicing.flops, slicing.once_flops, tuple(rows))
