"""Contractions of many tensors by cuTENSOR, which accepts axes in any order."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tenferro_tensor.device_model import ContractionGraph, ContractionIR, ContractionKernel, StepReport
from tenferro_tensor_core.forks import cached_property


def taken(ir: ContractionIR | ContractionGraph) -> bool:
    """Whether cuTENSOR supports every step of a contraction.

    Results must have labels, none of them repeated, and every term two values, neither summed alone nor repeated.
    """
    graph = _graph(ir)
    if graph.dtype.kind not in "fc" or 0 in graph.extents:
        return False
    if any(len({*labels}) < len(labels) for labels in graph.values):
        return False
    for labels, terms in graph.steps:
        for term in terms:
            if len(term) != 2 or not labels:
                return False
            x, y = ({*graph.values[v]} for v in term)
            if not x ^ y <= {*labels} <= x | y:
                return False
    return True


def _graph(ir: ContractionIR | ContractionGraph) -> ContractionGraph:
    return ir if isinstance(ir, ContractionGraph) else ir.graph


class CutensorContraction(ContractionKernel):
    """A contraction, or a graph of them, whose steps cuTENSOR runs.

    Args:
        ir: the contraction, which `taken` accepts.
        xp: CuPy.
        contract: ``cupyx.cutensor.contraction``.
        start: runs a function of raw arrays on their device; the arrays that it writes are passed twice.
    """

    def __init__(
        self, ir: ContractionIR | ContractionGraph, xp: Any, contract: Callable[..., Any], start: Callable[..., Any]
    ) -> None:
        self.ir, self._xp, self._contract, self._start = ir, xp, contract, start
        self._graph = _graph(ir)
        self._several = isinstance(ir, ContractionGraph) or bool(ir.kept)

    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """See `ContractionKernel.__call__`."""
        return self._start(self._run, raws) if out is None else self._start(self._into, (out, *raws), (out,))

    def direct(self) -> Callable[..., Any]:
        """See `ContractionKernel.direct`."""
        return lambda *raws: self._start(self._run, raws)

    def _into(self, out: Any, *raws: Any) -> Any:
        found = self._run(*raws)
        out[...] = found[0] if self._several else found
        return (out, *found[1:]) if self._several else out

    def _run(self, *raws: Any) -> Any:
        graph, xp = self._graph, self._xp
        values: list[Any] = [self._described(xp.conj(x) if n < graph.conjugated else x) for n, x in enumerate(raws)]
        for number, (labels, terms) in enumerate(graph.steps, len(raws)):
            result = xp.empty(graph.shape(number), graph.dtype)
            for k, (i, j) in enumerate(terms):
                beta = 1.0 if k else 0.0
                self._contract(1.0, values[i], graph.values[i], values[j], graph.values[j], beta, result, labels)
            values.append(result)
            for v in self._spent[number]:
                values[v] = None
        results = [xp.conj(values[v]) if graph.conjugated else values[v] for v in graph.outputs]
        return tuple(results) if self._several else results[0]

    @cached_property
    def _spent(self) -> dict[int, list[int]]:
        """For each computed value, the values whose last use it is."""
        graph, count = self._graph, len(self._graph.operands)
        last = {v: v for v in range(count, len(graph.values))}
        last |= {v: n for n, (_, terms) in enumerate(graph.steps, count) for term in terms for v in term}
        return {
            n: [v for v, end in last.items() if end == n and v not in graph.outputs]
            for n in range(count, len(graph.values))
        }

    def _described(self, x: Any) -> Any:
        """A view without negative or zero strides, which cuTENSOR does not support."""
        plain = all(s > 0 or n == 1 for s, n in zip(x.strides, x.shape))
        return x if plain else self._xp.ascontiguousarray(x)

    @property
    def peak_bytes(self) -> int:
        """See `ContractionKernel.peak_bytes`; excludes cuTENSOR's own workspace."""
        graph, count = self._graph, len(self._graph.operands)
        live = most = 0
        sizes = [prod(graph.shape(v)) * graph.dtype.itemsize for v in range(len(graph.values))]
        for number, spent in self._spent.items():
            live += sizes[number]
            most = max(most, live)
            live -= sum([sizes[v] for v in spent if v >= count])
        return most

    def report(self) -> tuple[StepReport, ...]:
        """See `ContractionKernel.report`; kernel and sizes are those of a step's first term."""
        graph, count, found = self._graph, len(self._graph.operands), []
        factor = 8 if graph.dtype.kind == "c" else 2
        for number, (labels, terms) in enumerate(graph.steps):
            (i, j), out = terms[0], {*labels}
            x, y = ({*graph.values[v]} for v in (i, j))
            groups = x & y & out, (x - y) & out, (y - x) & out, (x & y) - out
            batch, rows, columns, summed = (prod([graph.extents[label] for label in group]) for group in groups)
            sizes = batch, rows, columns, summed
            touched = sum([prod(graph.shape(v)) for term in terms for v in term]) + prod(graph.shape(count + number))
            flops = factor * prod(sizes) * len(terms)
            found.append(StepReport(number, "cutensor", sizes, labels, flops, touched * graph.dtype.itemsize))
        return tuple(found)
