"""Sparsity rules: a value depends on the operand's elements with equal indices in all labels on the path between."""

from __future__ import annotations

from typing import Any

from tenferro_einsum._contractions import contractions
from tenferro_einsum._diagonal import embed_diagonal, take_diagonal
from tenferro_runtime.extension import IndexMap, Registry, SparsityStep, index_map

Parts = tuple[tuple[tuple[IndexMap] | None, ...], ...]


def _contractions(step: SparsityStep) -> Parts:
    p = step.op.params
    inputs, steps = p["inputs"], p["steps"]
    labels_of = [*inputs, *[labels for labels, _ in steps]]
    found: list[list[Any]] = [[] for _ in step.outs]
    for i, (labels, x) in enumerate(zip(inputs, step.ins, strict=True)):
        tied = _tied_labels(i, inputs, steps)
        for row, v, out in zip(found, p["outputs"], step.outs, strict=True):
            if v not in tied:
                row.append(None)
                continue
            rows, columns = (
                [n if n in tied[v] else (side, n) for n in names]
                for side, names in (("value", labels_of[v]), ("operand", labels))
            )
            row.append((index_map(rows, columns, out, x),))
    return tuple(map(tuple, found))


def _tied_labels(operand: int, inputs: Any, steps: Any) -> dict[int, set[int]]:
    """For each value that depends on an operand, the labels that occur on all paths between the two."""
    tied = {operand: {*inputs[operand]}}
    for v, (labels, terms) in enumerate(steps, len(inputs)):
        ways = [tied[u] for term in terms for u in term if u in tied]
        if ways:
            tied[v] = {*labels}.intersection(*ways)
    return tied


def _take_diagonal(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    names = _joint(step.op.params["axes"], x.ndim)
    return (((index_map(list(dict.fromkeys(names)), names, out, x),),),)


def _embed_diagonal(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    names = _joint(step.op.params["axes"], out.ndim)
    return (((index_map(names, list(dict.fromkeys(names)), out, x),),),)


def _joint(axes: tuple[int, ...], count: int) -> list[int]:
    """A name for each axis, equal for the axes of the diagonal."""
    return [axes[0] if a in axes else a for a in range(count)]


def register(registry: Registry) -> None:
    """Register the rules."""
    registry.sparsity(contractions, _contractions)
    registry.sparsity(take_diagonal, _take_diagonal)
    registry.sparsity(embed_diagonal, _embed_diagonal)
