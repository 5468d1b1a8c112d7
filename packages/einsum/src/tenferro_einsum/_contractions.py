"""`contractions`: a graph of contractions as one primitive, used by derivatives of contractions.

If the backend has an engine, one call computes all steps; otherwise each step runs as ops. Derivatives of graphs are
graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_einsum._contract import checked_extents, contract
from tenferro_einsum._graph import GraphSteps, placed, pushed, transposed, without_dead
from tenferro_einsum._pair import pair
from tenferro_einsum._pairwise import spread_diagonals
from tenferro_einsum._tree import Numbers, Steps, extents_by_label, numbered
from tenferro_runtime.extension import (
    ArgumentError,
    BoundedCache,
    Cost,
    DimLike,
    General,
    Op,
    Registry,
    Spec,
    Tensor,
    get_backend,
    primitive,
)
from tenferro_tensor import catalog
from tenferro_tensor.device_model import ContractionGraph, ContractionKernel

Maybe = Any | None

OPS: BoundedCache[Any, tuple[Op | None, Numbers]] = BoundedCache("tenferro_einsum: derivatives", 256)
"""Derivatives of graphs, with the indices of the operands or outputs that they belong to."""


@primitive(family="tenferro-einsum.contractions.v1", extension="einsum", widens=True)
def contractions(
    *xs: Spec, inputs: Steps, steps: GraphSteps, outputs: Numbers, conjugated: int = 0
) -> tuple[Spec, ...]:
    """Values that are sums of contractions of one or two earlier values; see `ContractionGraph`.

    Operand ``i`` has labels ``inputs[i]``; each of `steps` holds the labels of its value and its terms, each of one or
    two values; `outputs` are the numbers of the output values. The first `conjugated` operands are conjugated before,
    and, if there are any, all outputs after.
    """
    sizes, count = checked_extents("contractions", xs, inputs), len(inputs)
    have = {x for labels in inputs for x in labels}
    if any(not have.issuperset(labels) for labels, _ in steps):
        raise ArgumentError(f"contractions: values have labels of the operands, {sorted(have)}; got {steps}")
    return tuple([xs[0].with_(shape=tuple([sizes[x] for x in steps[v - count][0]])) for v in outputs])


def graph_of(
    ins: Sequence[Spec], inputs: Steps, steps: GraphSteps, outputs: Numbers, conjugated: int = 0
) -> ContractionGraph:
    """The graph for operands with these specs (symbolic sizes only for counting operations)."""
    sizes: Any = tuple(extents_by_label(inputs, [s.shape for s in ins]))
    return ContractionGraph(ins[0].dtype, inputs, sizes, steps, outputs, conjugated)


def graph_engine(
    ins: Sequence[Spec], inputs: Steps, steps: GraphSteps, outputs: Numbers, conjugated: int = 0
) -> ContractionKernel | None:
    """The backend's kernel for a whole graph, or ``None``."""
    device = ins[0].place.device
    return get_backend(device.kind).contraction(graph_of(ins, inputs, steps, outputs, conjugated), device)


def by_ops(values: Sequence[Any], inputs: Steps, steps: GraphSteps, outputs: Numbers, conjugated: int) -> list[Any]:
    """Compute the outputs step by step."""
    sizes = extents_by_label(inputs, [x.spec.shape for x in values])
    live: list[Any] = [_conj(x) if n < conjugated else x for n, x in enumerate(values)]
    labels_of = [*inputs, *[labels for labels, _ in steps]]
    last = {u: v for v, (_, terms) in enumerate(steps, len(inputs)) for term in terms for u in term}
    for v, (labels, terms) in enumerate(steps, len(inputs)):
        total = None
        for term in terms:
            have = {x for u in term for x in labels_of[u]}
            wanted = tuple([x for x in dict.fromkeys(labels) if x in have])
            if len(term) == 2:
                left, right = term
                part = pair(live[left], labels_of[left], live[right], labels_of[right], wanted)
            else:
                (of_x,), output = numbered([labels_of[term[0]]], wanted)
                x = live[term[0]]
                part = x if of_x == output else contract(x, inputs=(of_x,), output=output, steps=())
            part = _spread(part, wanted, labels, tuple([sizes[x] for x in labels]))
            total = part if total is None else total + part
        live.append(total)
        for u in {u for term in terms for u in term}:
            if last[u] == v and u not in outputs:
                live[u] = None  # free it as soon as nothing needs it
    return [_conj(live[v]) if conjugated else live[v] for v in outputs]


def _conj(x: Any) -> Any:
    return catalog.conj(x) if x.spec.cplx else x


def _spread(g: Any, have: Numbers, want: Numbers, shape: tuple[DimLike, ...]) -> Any:
    """Broadcast along labels that `have` lacks, and embed into the diagonals of labels that `want` repeats."""
    distinct = tuple(dict.fromkeys(want))
    if len(have) < len(distinct):
        g = catalog.broadcast_in_dim(
            g,
            shape=tuple([shape[want.index(x)] for x in distinct]),
            dims=tuple([a for a, x in enumerate(distinct) if x in have]),
        )
    diagonals = spread_diagonals(want)
    return g if diagonals is None else diagonals(g)


def kernel(
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    inputs: Steps,
    steps: GraphSteps,
    outputs: Numbers,
    conjugated: int = 0,
) -> Callable[..., Any]:
    """The engine of the backend, or ops on tensors."""
    found = graph_engine(ins, inputs, steps, outputs, conjugated)
    if found is not None:
        return found
    wrap = Tensor.wrap

    def run(*raws: Any) -> Any:
        values = [wrap(x, s) for x, s in zip(raws, ins, strict=True)]
        return tuple([z._data for z in by_ops(values, inputs, steps, outputs, conjugated)])

    return run


def graph_vjp(
    primals: Sequence[Any],
    known: Sequence[Any],
    cotangents: Sequence[Maybe],
    inputs: Steps,
    steps: GraphSteps,
    outputs: Numbers,
    of_known: Numbers = (),
) -> list[Maybe]:
    """Cotangents of a graph's operands from those of its outputs; `known` are the values with numbers `of_known`."""
    given = tuple([v for v, g in zip(outputs, cotangents, strict=True) if g is not None])
    key = ("vjp", inputs, steps, given, of_known, primals[0].spec.cplx)
    found = OPS.table.get(key)
    if found is None:
        conjugated = len(given) if primals[0].spec.cplx else 0
        found = OPS.put(key, _op(transposed(inputs, steps, given, tuple(range(len(inputs))), of_known), conjugated))
    op, those = found
    if op is None:
        return [None] * len(inputs)
    return placed(op(*[g for g in cotangents if g is not None], *primals, *known), those, len(inputs))


def graph_jvp(
    primals: Sequence[Any],
    known: Sequence[Any],
    tangents: Sequence[Maybe],
    inputs: Steps,
    steps: GraphSteps,
    outputs: Numbers,
    of_known: Numbers = (),
) -> list[Maybe]:
    """Tangents of a graph's outputs from those of its operands; `known` are the values with numbers `of_known`."""
    given = tuple([n for n, t in enumerate(tangents) if t is not None])
    key = ("jvp", inputs, steps, outputs, given, of_known)
    found = OPS.table.get(key)
    if found is None:
        found = OPS.put(key, _op(pushed(inputs, steps, outputs, given, of_known), 0))
    op, those = found
    if op is None:
        return [None] * len(outputs)
    return placed(op(*[tangents[n] for n in given], *primals, *known), those, len(outputs))


def _op(graph: tuple[Steps, GraphSteps, Numbers, Numbers], conjugated: int) -> tuple[Op | None, Numbers]:
    inputs, steps, outputs, those = graph
    if not those:
        return None, those
    return contractions.op(inputs=inputs, steps=steps, outputs=outputs, conjugated=conjugated), those


def _vjp(
    primals: Sequence[Any],
    outs: Any,
    cotangents: Sequence[Maybe],
    *,
    inputs: Steps,
    steps: GraphSteps,
    outputs: Numbers,
    conjugated: int = 0,
) -> tuple[Maybe, ...]:
    inner = [_conj(x) if n < conjugated else x for n, x in enumerate(primals)]
    if conjugated:
        cotangents = [None if g is None else _conj(g) for g in cotangents]
    found = graph_vjp(inner, (), cotangents, inputs, steps, outputs)
    return tuple([_conj(g) if n < conjugated and g is not None else g for n, g in enumerate(found)])


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Maybe],
    outs: Any,
    *,
    inputs: Steps,
    steps: GraphSteps,
    outputs: Numbers,
    conjugated: int = 0,
) -> tuple[Maybe, ...]:
    inner = [_conj(x) if n < conjugated else x for n, x in enumerate(primals)]
    moving = [_conj(t) if n < conjugated and t is not None else t for n, t in enumerate(tangents)]
    found = graph_jvp(inner, (), moving, inputs, steps, outputs)
    return tuple([_conj(t) if conjugated and t is not None else t for t in found])


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    left = tuple([v for v, u in zip(op.params["outputs"], used, strict=True) if u])
    if all(used) or not left:
        return None
    steps, outputs = without_dead(op.params["inputs"], op.params["steps"], left)
    places = iter(range(len(left)))
    where = tuple([next(places) if u else None for u in used])
    return contractions.op(**{**op.params, "steps": steps, "outputs": outputs}), where


def _cost(ins: Any, outs: Any, **params: Any) -> Cost:
    return Cost(graph_of(ins, **params).flops)


def _expansion(*xs: Any, inputs: Steps, steps: GraphSteps, outputs: Numbers, conjugated: int = 0) -> tuple[Any, ...]:
    return tuple(by_ops(xs, inputs, steps, outputs, conjugated))


def register(registry: Registry) -> None:
    """Register kernel, rule, expansion, pruning and cost."""
    registry.kernel(contractions, "*", kernel)
    registry.rule(contractions, General(jvp=_jvp, vjp=_vjp))
    registry.expansion(contractions, _expansion, keep=True)
    registry.pruning(contractions, _prune, keeps_bits=True)
    registry.cost(contractions, _cost)
