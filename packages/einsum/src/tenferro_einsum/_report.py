"""The cost of a contraction: operations, memory, and a table of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Final

from tenferro_einsum._memory import Network, Slicing
from tenferro_einsum._tree import Numbers, structure, with_extents
from tenferro_runtime.extension import library
from tenferro_tensor_core.forks import importing

MAX_PRINTED_STEPS: Final = 40
"""Maximum number of steps in a printed table, which omits the middle of longer ones."""


@dataclass(frozen=True)
class ContractionStep:
    """One step of a contraction.

    Attributes:
        equation: labels of its operands and its result, in einsum notation.
        operands: numbers of its operands; values are numbered operands first, then results of steps.
        flops: real multiplications and additions.
        shape: shape of its result.
        bytes: bytes of its result.
        kernel: name of the engine's kernel for the step, or of the op without an engine.
        alive: live bytes during the step, including its result but not the operands of the contraction; for a sliced
            contraction, those of one slice, of values computed once, and of the whole result.
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
        """Labels of the result."""
        return self.equation.rpartition("->")[2]


@dataclass(frozen=True)
class PathReport:
    """The cost of a contraction along a path; prints as a table.

    Attributes:
        flops: multiplications and additions of all steps.
        naive_flops: operations of one loop over all labels.
        largest: bytes of the largest intermediate value.
        peak: peak memory of a call in bytes, including its result but not its operands.
        slices: number of slices required by the memory budget.
        sliced_flops: operations of all slices, and of values computed once for all of them.
        once_flops: operations of the values computed once.
        steps: the steps.
        operands: labels of the operands.
        sliced: sliced labels, each with its number of parts.
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
        """Draw the contraction tree with the live memory at each step.

        Args:
            path: file to write; its extension selects the format unless `format` is given.
            format: ``"text"`` for a terminal (the default without a path), ``"svg"``, or ``"html"`` for a page.

        Returns:
            The drawing, as text in its format.

        Raises:
            ArgumentError: the format is unknown.
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
    """Format an integer, which may exceed the range of floats, in scientific notation.

    >>> scientific(2500), scientific(10**400)
    ('2.500e+03', '1.000e+400')
    """
    if n < 1e300:
        return f"{n:.3e}"
    with importing():
        from decimal import Decimal
    return f"{Decimal(n):.3e}"


def gauge(part: float, whole: float, length: int = 10) -> str:
    """A fraction as a bar of characters, in eighths of a character.

    >>> gauge(1, 2, 4), gauge(1, 7, 4)
    ('██', '▋')
    """
    eighths = round(8 * length * part / whole) if whole else 0
    return "█" * (eighths // 8) + ["", *"▏▎▍▌▋▊▉"][eighths % 8]


def report(network: Network, names: Mapping[int, str], peak: int, slicing: Slicing | None) -> PathReport:
    """The report of a contraction, with the names of its labels and the peak memory of a call in bytes."""
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
    """Live bytes at each step."""
    if slicing is None:
        return network.alive()
    whole = network.bytes(network.output)
    return [n + whole for n in network.cut(dict(slicing.sliced)).alive(slicing.once)]
