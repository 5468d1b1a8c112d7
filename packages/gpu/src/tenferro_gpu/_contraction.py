"""Contractions of many tensors by cuTENSOR, which takes axes in any order without moving them first."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tenferro_tensor.device_model import ContractionIR, ContractionKernel, StepReport


def taken(ir: ContractionIR) -> bool:
    """Whether cuTENSOR does every step: of two operands, none with a label twice or with one that it alone sums."""
    if ir.dtype.kind not in "fc" or not ir.steps or 0 in ir.extents:
        return False
    if any(len({*labels}) < len(labels) for labels in ir.operands):
        return False
    for number, step in enumerate(ir.steps):
        result = ir.values[len(ir.operands) + number]
        if len(step) != 2 or not result:
            return False
        x, y = ({*ir.values[v]} for v in step)
        if (x ^ y) - {*result}:
            return False
    return True


class CutensorContraction(ContractionKernel):
    """A contraction of which cuTENSOR does the steps.

    Args:
        ir: what it computes; `taken` tells whether that works.
        xp: CuPy.
        contract: ``cupyx.cutensor.contraction``.
        start: runs a function of raw arrays where these are; those that it writes to are named once more.
    """

    ir: ContractionIR

    def __init__(self, ir: ContractionIR, xp: Any, contract: Callable[..., Any], start: Callable[..., Any]) -> None:
        self.ir, self._xp, self._contract, self._start = ir, xp, contract, start

    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """As the contract says."""
        return self._start(self._run, raws) if out is None else self._start(self._into, (out, *raws), (out,))

    def direct(self) -> Callable[..., Any]:
        """As the contract says."""
        return lambda *raws: self._start(self._run, raws)

    def _into(self, out: Any, *raws: Any) -> Any:
        found = self._run(*raws)
        out[...] = found[0] if self.ir.kept else found
        return (out, *found[1:]) if self.ir.kept else out

    def _run(self, *raws: Any) -> Any:
        ir, count = self.ir, len(raws)
        values: list[Any] = [self._described(x) for x in raws]
        for number, (i, j) in enumerate(ir.steps):
            result = self._xp.empty(ir.shape(count + number), ir.dtype)
            self._contract(
                1.0, values[i], ir.values[i], values[j], ir.values[j], 0.0, result, ir.values[count + number]
            )
            values[i], values[j] = (values[v] if v in ir.kept else None for v in (i, j))
            values.append(result)
        return (values[-1], *[values[v] for v in ir.kept]) if ir.kept else values[-1]

    def _described(self, x: Any) -> Any:
        """cuTENSOR knows neither axes that run backwards nor elements that stand for several."""
        plain = all(s > 0 or n == 1 for s, n in zip(x.strides, x.shape))
        return x if plain else self._xp.ascontiguousarray(x)

    @property
    def peak_bytes(self) -> int:
        """As the contract says; cuTENSOR's own work space is left out."""
        ir, count = self.ir, len(self.ir.operands)
        live, most = 0, 0
        sizes = [prod(ir.shape(v)) * ir.dtype.itemsize for v in range(len(ir.values))]
        for number, step in enumerate(ir.steps):
            live += sizes[count + number]
            most = max(most, live)
            live -= sum([sizes[v] for v in step if v >= count and v not in ir.kept])
        return most

    def report(self) -> tuple[StepReport, ...]:
        """As the contract says."""
        ir, count, found = self.ir, len(self.ir.operands), []
        factor = 8 if ir.dtype.kind == "c" else 2
        for number, (i, j) in enumerate(ir.steps):
            x, y, out = ({*ir.values[v]} for v in (i, j, count + number))
            batch, rows, columns, summed = (
                prod([ir.extents[label] for label in group])
                for group in (x & y & out, (x - y) & out, (y - x) & out, (x & y) - out)
            )
            moved = sum([prod(ir.shape(v)) for v in (i, j, count + number)]) * ir.dtype.itemsize
            sizes = batch, rows, columns, summed
            found.append(StepReport(number, "cutensor", sizes, ir.values[count + number], factor * prod(sizes), moved))
        return tuple(found)
