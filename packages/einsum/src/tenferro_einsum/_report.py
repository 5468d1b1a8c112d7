"""The cost of a contraction: operations, memory, and a table of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from os import PathLike

from tenferro_einsum._memory import Network, Slicing
from tenferro_einsum._tree import Numbers, structure, with_extents
from tenferro_runtime.extension import library

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
        alive: bytes alive while the step is done by itself, its result included, the operands of the contraction not;
            in slices those of one slice, of values that are made once, and of the result of all slices.
    """

    equation: str
    operands: Numbers
    flops: int
    shape: tuple[int, ...]
    bytes: int
    kernel: str
    alive: int

    @property
    def result(self) -> str:
        """Labels of what it makes."""
        return self.equation.rpartition("->")[2]


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
        operands: labels of the operands.
        sliced: labels that are sliced, each with the number of parts into which its extent is cut.
    """

    flops: int
    naive_flops: int
    largest: int
    peak: int
    slices: int
    sliced_flops: int
    once_flops: int
    steps: tuple[ContractionStep, ...]
    operands: tuple[str, ...] = ()
    sliced: tuple[tuple[str, int], ...] = ()

    def draw(self, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
        """The tree of the contraction with the memory that is alive at each step; written to a file if a path is given.

        Args:
            path: where to write; its ending chooses the format where none is given.
            format: ``"text"`` for a terminal, ``"svg"``, or ``"html"`` for a page.

        Returns:
            The drawing as text of its format; for a terminal where neither a path nor a format is given.

        Raises:
            ArgumentError: another format.
        """
        drawn: str = library("tenferro_einsum._drawing").draw(self, path, format)
        return drawn

    def _repr_html_(self) -> str:
        html: str = library("tenferro_einsum._drawing").report_card(self)
        return html

    def __str__(self) -> str:
        head = [
            f"operations         {self.flops:.3e}  (one loop over all labels: {scientific(self.naive_flops)})",
            f"largest value      {amount(self.largest)}",
            f"memory at once     {amount(self.peak)}",
            "",
            f"{'step':>5}  {'operations':>10}  {'result':>10}  {'alive':>10}  {'memory':<10}  {'kernel':<16}  "
            "contraction",
        ]
        if self.slices > 1:
            once = f", {self.once_flops:.3e} of them once" if self.once_flops else ""
            names = ", ".join([f"{name} in {parts}" for name, parts in self.sliced])
            cut = f"slices             {self.slices} ({names}), {self.sliced_flops:.3e} operations together{once}"
            head.insert(3, cut)
        top = max([s.alive for s in self.steps], default=0)
        rows = [
            f"{n:>5}  {s.flops:>10.3e}  {amount(s.bytes):>10}  {amount(s.alive):>10}  {gauge(s.alive, top):<10}  "
            f"{s.kernel:<16}  "
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


def scientific(n: int) -> str:
    """An integer that may be larger than any float.

    >>> scientific(2500), scientific(10**400)
    ('2.500e+03', '1.000e+400')
    """
    return f"{n:.3e}" if n < 1e300 else f"{Decimal(n):.3e}"


def gauge(part: float, whole: float, length: int = 10) -> str:
    """A part of a whole as a bar of characters, in eighths of one.

    >>> gauge(1, 2, 4), gauge(1, 7, 4)
    ('██', '▋')
    """
    eighths = round(8 * length * part / whole) if whole else 0
    return "█" * (eighths // 8) + ["", *"▏▎▍▌▋▊▉"][eighths % 8]


def report(network: Network, names: Mapping[int, str], peak: int, slicing: Slicing | None) -> PathReport:
    """The report on a contraction; `names` are those of its labels, `peak` the bytes that a call allocates at once."""
    dtype, sizes = network.like.dtype, network.sizes
    ir = with_extents(structure(network.inputs, network.output, network.steps), dtype, sizes)
    factor = 8 if dtype.kind == "c" else 2
    width = max(map(len, names.values()), default=1)

    def spell(labels: Numbers) -> str:
        return ("" if width == 1 else " ").join(names[x] for x in labels)

    kernels, alive = network.kernels(), _alive(network, slicing)
    rows = []
    for n, step in enumerate(network.steps):
        result = len(network.inputs) + n
        space = {x for v in step for x in ir.values[v]}
        equation = f"{','.join(spell(ir.values[v]) for v in step)}->{spell(ir.values[result])}"
        flops = factor * prod([sizes[x] for x in space])
        size = network.bytes(ir.values[result])
        rows.append(
            ContractionStep(equation, step, flops, ir.shape(result), size, kernels.get(n, "pairwise"), alive[n])
        )
    everything = {x for labels in network.inputs for x in labels}
    naive = max(len(network.inputs), 1) * factor // 2 * prod([sizes[x] for x in everything])
    largest = max([row.bytes for row in rows], default=network.bytes(network.output))
    flops = sum(row.flops for row in rows)
    operands = tuple([spell(labels) for labels in network.inputs])
    if slicing is None:
        return PathReport(flops, naive, largest, peak, 1, flops, 0, tuple(rows), operands)
    sliced = tuple([(names[x], parts) for x, parts in slicing.sliced])
    return PathReport(
        flops, naive, largest, peak, slicing.count, slicing.flops, slicing.once_flops, tuple(rows), operands, sliced
    )


def _alive(network: Network, slicing: Slicing | None) -> list[int]:
    """Bytes alive at each step."""
    if slicing is None:
        return network.alive()
    whole = network.bytes(network.output)
    return [n + whole for n in network.cut(dict(slicing.sliced)).alive(slicing.once)]
