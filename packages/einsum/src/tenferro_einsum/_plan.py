"""A contraction prepared for operands of given specs: path chosen, everything an op, run as often as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tenferro_einsum._contract import contract, engine
from tenferro_einsum._notation import Contraction, Labels, extents
from tenferro_einsum._out import into, target
from tenferro_einsum._pair import pair_op
from tenferro_einsum._pairwise import Unary, chain, ordered, simplify, spread_diagonals
from tenferro_einsum._path import find_pairs
from tenferro_einsum._report import PathReport, report
from tenferro_einsum._search import Search
from tenferro_einsum._tree import intermediates, numbered, reduced_first, structure
from tenferro_runtime.extension import ArgumentError, DimLike, Op, ShapeError, Spec, Tensor, promote, tensor
from tenferro_tensor import catalog
from tenferro_tensor._normalise import stretched
from tenferro_tensor.device_model import ContractionKernel

AXES = 60
"""Largest number of axes that a value may have before axes of extent 1 are left out; NumPy's own limit is 64."""


class ContractionPlan:
    """A contraction prepared for operands of given specs; calling it contracts new data.

    Attributes:
        contraction: labels of operands and output.
        specs: specs of the operands that the plan accepts.
        path: positions joined at each step, opt_einsum's convention.
        dtype: dtype of the result.
        steps: numbers of the values that each step takes, operands first.
    """

    def __init__(self, contraction: Contraction, specs: Sequence[Spec], search: Search = Search()) -> None:  # noqa: B008
        if not specs:
            raise ArgumentError("einsum needs at least one operand")
        self.contraction, self.specs = contraction, tuple(specs)
        self.dtype: np.dtype[Any] = promote(*[s.dtype for s in specs])
        sizes = self._sizes = extents(contraction, [s.shape for s in specs])
        pairs, self.path = find_pairs(contraction, list(sizes.values()), search)
        terms, once = self._terms(sizes), tuple(dict.fromkeys(contraction.output))
        self._labels, self._output = numbered(terms, once)
        number = {x: n for t, u in zip(terms, self._labels, strict=True) for x, n in zip(t, u, strict=True)}
        self._names = {n: str(x) for x, n in number.items()}
        self._extents: list[DimLike] = [sizes[x] for x in sorted(number, key=number.__getitem__)]
        self.steps = reduced_first(self._labels, self._output, pairs)
        finish: list[Any] = []
        if max(map(len, structure(self._labels, self._output, self.steps).values)) > AXES:
            finish += self._without_ones([sizes[x] for x in once])
        diagonals = spread_diagonals(contraction.output)
        self._finish: Unary | None = chain([*finish, *([] if diagonals is None else [diagonals])])
        self._prepares = any(self._prepare)
        self._run, self._recorded = self._ops()

    def _terms(self, sizes: dict[Any, DimLike]) -> list[Labels]:
        """Labels of the operands without axes that stretch; what brings operands to them and to the common dtype."""
        self._prepare: list[list[Any]] = []
        terms = []
        for labels, spec in zip(self.contraction.inputs, self.specs, strict=True):
            kept = [a for a, x in enumerate(labels) if not stretched(spec.shape[a], sizes[x])]
            ops = [] if spec.dtype == self.dtype else [catalog.convert.op(dtype=self.dtype)]
            if len(kept) < len(labels):
                ops.append(catalog.reshape.op(shape=tuple(spec.shape[a] for a in kept)))
            self._prepare.append(ops)
            terms.append(tuple(labels[a] for a in kept))
        return terms

    def _without_ones(self, shape: list[DimLike]) -> list[Any]:
        """Leave out labels of extent 1; the ops that put them back into the result."""
        ones = {n for n, d in enumerate(self._extents) if d.__class__ is int and d == 1}
        for ops, labels in zip(self._prepare, self._labels, strict=True):
            if ones.intersection(labels):
                ops.append(catalog.reshape.op(shape=tuple([self._extents[x] for x in labels if x not in ones])))
        left = [x for x in range(len(self._extents)) if x not in ones]
        self._labels = tuple([tuple([left.index(x) for x in t if x not in ones]) for t in self._labels])
        self._output = tuple([left.index(x) for x in self._output if x not in ones])
        self._extents = [self._extents[x] for x in left]
        self._names = {n: self._names[x] for n, x in enumerate(left)}
        return [catalog.reshape.op(shape=tuple(shape))]

    def _ops(self) -> tuple[Any, Op | None]:
        """What contracts prepared operands; for recording and tracing, an op that keeps its intermediates."""
        inputs, output, steps = self._labels, self._output, self.steps
        if len(inputs) == 1:
            ops, left = simplify(inputs[0], {*output})
            last = ordered(left, output)
            return chain([*ops, *([] if last is None else [last])]) or (lambda x: x), None
        if len(inputs) == 2:
            return pair_op(inputs[0], inputs[1], output, self._extents), None
        op = contract.op(inputs=inputs, output=output, steps=steps, kept=())
        return op, contract.op(inputs=inputs, output=output, steps=steps, kept=intermediates(inputs, steps))

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Contract operands with the specs that the plan was made for.

        Args:
            operands: tensors; NumPy arrays will do.
            out: a tensor or NumPy array in main memory that gets the result, and is returned as a tensor.

        Raises:
            ShapeError: operands or `out` have other specs.
        """
        values = [x if hasattr(x, "spec") else tensor(x) for x in operands]
        if tuple([x.spec for x in values]) != self.specs:
            raise ShapeError(
                f"the plan was made for {', '.join(map(repr, self.specs))}, got "
                f"{', '.join(repr(x.spec) for x in values)}; make another plan for these"
            )
        if out is None:
            return self.run(*values)
        raw = target(out, self._result, values)
        prepared = self._prepared(values)
        return into(raw, self._engine, prepared, lambda: self.run(*values))

    def run(self, *values: Any) -> Any:
        """Contract values whose specs are known to be right."""
        values = self._prepared(values)
        if self._recorded is not None and any(x.__class__ is not Tensor for x in values):
            result = self._recorded(*values)
            result = result[0] if result.__class__ is tuple else result
        else:
            result = self._run(*values)
        return result if self._finish is None else self._finish(result)

    @cached_property
    def report(self) -> PathReport:
        """What the steps cost."""
        return report(self._labels, self._output, self.steps, self.dtype, self._extents, self._names)

    def _prepared(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Operands in the common dtype, without axes that stretch."""
        if not self._prepares:
            return tuple(values)
        return tuple([_chained(ops, x) for ops, x in zip(self._prepare, values, strict=True)])

    @cached_property
    def _result(self) -> Spec:
        return self.specs[0].with_(shape=tuple([self._sizes[x] for x in self.contraction.output]), dtype=self.dtype)

    @cached_property
    def _engine(self) -> ContractionKernel | None:
        """What the backend has for the whole contraction, where nothing is left to do after it."""
        if self._finish is not None or not self.steps:
            return None
        specs = tuple([Spec(tuple([self._extents[x] for x in t]), self.dtype) for t in self._labels])
        found: ContractionKernel | None = engine(specs, self._labels, self._output, self.steps, ())
        return found

    def __repr__(self) -> str:
        return f"<contraction {self.contraction}, {len(self.steps)} step(s)>"


def _chained(ops: list[Any], x: Any) -> Any:
    for op in ops:
        x = op(x)
    return x
