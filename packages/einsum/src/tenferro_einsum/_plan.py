"""A contraction prepared for operands of given specs: path chosen, every step an op, run as often as wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_einsum._notation import Contraction, Labels, extents
from tenferro_einsum._path import Path, find_path
from tenferro_einsum._steps import Binary, Unary, chain, finish, join, simplify, squeeze
from tenferro_tensor import Spec, catalog
from tenferro_tensor_core import ArgumentError, promote


class ContractionPlan:
    """A contraction prepared for operands of given specs; calling it contracts new data.

    Attributes:
        contraction: labels of operands and output.
        specs: specs of the operands that the plan accepts.
        path: positions joined at each step, opt_einsum's convention.
        report: opt_einsum's report on flops and sizes, ``None`` where no search was needed.
        dtype: dtype of the result.
    """

    __slots__ = ("_finish", "_prepare", "_steps", "contraction", "dtype", "path", "report", "specs")

    def __init__(self, contraction: Contraction, specs: Sequence[Spec], optimize: Any = "auto") -> None:
        if not specs:
            raise ArgumentError("einsum needs at least one operand")
        self.contraction, self.specs = contraction, tuple(specs)
        self.dtype: np.dtype[Any] = promote(*[s.dtype for s in specs])
        shapes = [s.shape for s in specs]
        sizes = extents(contraction, shapes)
        self.path, self.report = find_path(contraction, shapes, optimize)
        self._build(shapes, sizes)

    def _build(self, shapes: Any, sizes: Any) -> None:
        c = self.contraction
        squeezed = [squeeze(labels, shape, sizes) for labels, shape in zip(c.inputs, shapes, strict=True)]
        need = Counter(x for _, labels in squeezed for x in {*labels}) + Counter({*c.output})
        self._prepare: list[Unary | None] = []
        live: list[Labels] = []
        for spec, (ops, labels) in zip(self.specs, squeezed, strict=True):
            if spec.dtype != self.dtype:
                ops = [catalog.convert.op(dtype=self.dtype), *ops]
            more, left = simplify(labels, {x for x in labels if need[x] > 1})
            self._prepare.append(chain(ops + more))
            live.append(left)
        self._steps: list[tuple[int, int, Binary]] = []
        for i, j in joins(self.path, len(live)):
            # Both operands give up their labels, the result takes up what the output or another operand needs.
            need.subtract([*live[i], *live[j]])
            step, left = join(live[i], live[j], sizes, {x for x in (*live[i], *live[j]) if need[x] > 0})
            need.update(left)
            live.append(left)
            self._steps.append((i, j, step))
        self._finish = finish(live[-1], c.output)

    def __call__(self, *operands: Any) -> Any:
        """Contract `operands`, whose specs must be those that the plan was made for."""
        live: list[Any] = [x if f is None else f(x) for f, x in zip(self._prepare, operands, strict=True)]
        for i, j, step in self._steps:
            live.append(step(live[i], live[j]))
            live[i] = live[j] = None  # intermediates are dropped as soon as they are used
        return live[-1] if self._finish is None else self._finish(live[-1])

    def __repr__(self) -> str:
        return f"<contraction {self.contraction}, {len(self._steps)} step(s)>"


def joins(path: Path, operands: int) -> list[tuple[int, int]]:
    """A path as joins of two by number: operands first, then each join's result; larger steps go left to right."""
    live = list(range(operands))
    pairs: list[tuple[int, int]] = []
    for step in path:
        taken = [live[i] for i in step]
        live = [n for i, n in enumerate(live) if i not in step]
        result = taken[0]
        for n in taken[1:]:
            pairs.append((result, n))
            result = operands + len(pairs) - 1
        live.append(result)
    return pairs
