"""A contraction prepared for operands of given specs, with its path and its ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Any, Final

import numpy as np

from tenferro_einsum._contract import contract, engine
from tenferro_einsum._contractible import dense, run_steps
from tenferro_einsum._memory import Network, Slicing, choose
from tenferro_einsum._notation import Contraction, Labels, extents
from tenferro_einsum._out import into, target
from tenferro_einsum._pair import core_pair
from tenferro_einsum._pairwise import Unary, chain, ordered, simplify, spread_diagonals
from tenferro_einsum._path import find_pairs
from tenferro_einsum._report import PathReport, report
from tenferro_einsum._search import Search
from tenferro_einsum._slices import contract_slices
from tenferro_einsum._tree import Path, Steps, numbered, reduced_first, structure
from tenferro_einsum._workers import active
from tenferro_runtime.batching import inner_array
from tenferro_runtime.extension import (
    ArgumentError,
    Array,
    DimLike,
    Op,
    ShapeError,
    Spec,
    Tensor,
    UnsupportedError,
    is_traced,
    promote,
    tensor,
)
from tenferro_tensor import SCALARS, catalog
from tenferro_tensor.contractible import has_contractible, is_contractible
from tenferro_tensor.device_model import ContractionKernel
from tenferro_tensor.promotion import stretched
from tenferro_tensor_core import example_of, weak
from tenferro_tensor_core.forks import cached_property

MAX_PLAN_AXES: Final = 60
"""Maximum number of axes of a value; above it, axes of extent 1 are dropped."""

NUMPY_MAX_AXES: Final = 64
"""Maximum number of axes of NumPy's arrays."""


class ContractionPlan:
    """A contraction prepared for operands of given specs, which it contracts when called; made by `plan`.

    Attributes:
        specs: specs of the operands that the plan accepts.
        path: positions contracted at each step, in opt_einsum's convention.
        dtype: dtype of the result.
        steps: numbers of the values that each step takes, operands first.
        budget: memory budget of a call, or of a call and its gradient, in bytes; or ``None``.
    """

    specs: tuple[Spec, ...]
    path: Path
    dtype: np.dtype[Any]
    steps: Steps
    budget: int | None

    def __init__(
        self, contraction: Contraction, specs: Sequence[Spec], search: Search | None = None, budget: int | None = None
    ) -> None:
        if not specs:
            raise ArgumentError("einsum needs at least one operand")
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, Integral) or budget < 1):
            raise ArgumentError(f"einsum takes memory_budget as a positive number of bytes, got {budget!r}")
        if len(contraction.output) > NUMPY_MAX_AXES:
            raise UnsupportedError(
                f"einsum: the result has {len(contraction.output)} axes, but arrays have {NUMPY_MAX_AXES} at most; "
                "leave out axes of extent 1, or sum some"
            )
        self._read: Callable[[], Contraction] = lambda: contraction
        self._first, self.specs = contraction, tuple(specs)
        self.dtype = promote(*[s.dtype for s in specs])
        sizes = self._sizes = extents(contraction, [s.shape for s in specs])
        pairs, self.path = find_pairs(contraction, list(sizes.values()), search or Search())
        terms, once = self._terms(sizes), tuple(dict.fromkeys(contraction.output))
        self._labels, self._output = numbered(terms, once)
        self._own = list(dict.fromkeys([x for t in terms for x in t]))
        self._extents: list[DimLike] = [sizes[x] for x in self._own]
        self.steps = reduced_first(self._labels, self._output, pairs)
        finish: list[Any] = []
        if max(map(len, structure(self._labels, self._output, self.steps).values)) > MAX_PLAN_AXES:
            finish += self._without_ones([sizes[x] for x in once])
        diagonals = spread_diagonals(contraction.output)
        self._finish: Unary | None = chain([*finish, *([] if diagonals is None else [diagonals])])
        self._prepares = any(self._prepare)
        self.budget = budget
        self._run = self._whole()

    def relabelled(self, read: Callable[[], Contraction]) -> ContractionPlan:
        """The same plan with other labels, which are parsed on demand.

        Args:
            read: returns the contraction with the other labels.

        Returns:
            The plan.
        """
        made = object.__new__(ContractionPlan)
        made.__dict__.update(self.__dict__, _read=read)
        for name in ("contraction", "report"):
            made.__dict__.pop(name, None)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # Kernels are compiled where the plan is unpickled; its order is already known.
        return _planned, (replace(self.contraction, groups=None), self.specs, self.path, self.budget)

    @cached_property
    def contraction(self) -> Contraction:
        """Labels of operands and output."""
        return self._read()

    @property
    def _names(self) -> dict[int, str]:
        """Names of the labels."""
        now = zip(self._first.inputs, self.contraction.inputs, strict=True)
        called = {x: str(y) for before, after in now for x, y in zip(before, after, strict=True)}
        return {n: called[x] for n, x in enumerate(self._own)}

    def _terms(self, sizes: dict[Any, DimLike]) -> list[Labels]:
        """Labels of the operands without broadcast axes, and the ops that convert operands to them."""
        self._prepare: list[list[Any]] = []
        terms = []
        for labels, spec in zip(self._first.inputs, self.specs, strict=True):
            ops = [] if spec.dtype == self.dtype else [catalog.convert.op(dtype=self.dtype)]
            if spec.symbolic or 1 in spec.shape:
                kept = [a for a, x in enumerate(labels) if not stretched(spec.shape[a], sizes[x])]
                if len(kept) < len(labels):
                    ops.append(catalog.reshape.op(shape=tuple(spec.shape[a] for a in kept)))
                    labels = tuple(labels[a] for a in kept)
            self._prepare.append(ops)
            terms.append(labels)
        return terms

    def _without_ones(self, shape: list[DimLike]) -> list[Any]:
        """Drop labels of extent 1: the ops that reinsert them into the result."""
        ones = {n for n, d in enumerate(self._extents) if d.__class__ is int and d == 1}
        for ops, labels in zip(self._prepare, self._labels, strict=True):
            if ones.intersection(labels):
                ops.append(catalog.reshape.op(shape=tuple([self._extents[x] for x in labels if x not in ones])))
        left = [x for x in range(len(self._extents)) if x not in ones]
        self._labels = tuple([tuple([left.index(x) for x in t if x not in ones]) for t in self._labels])
        self._output = tuple([left.index(x) for x in self._output if x not in ones])
        self._extents = [self._extents[x] for x in left]
        self._own = [self._own[x] for x in left]
        return [catalog.reshape.op(shape=tuple(shape))]

    def _whole(self) -> Any:
        """The function that contracts prepared operands."""
        inputs, output, steps = self._labels, self._output, self.steps
        if len(inputs) == 1:
            ops, left = simplify(inputs[0], {*output})
            last = ordered(left, output)
            return chain([*ops, *([] if last is None else [last])]) or (lambda x: x)
        if self.slicing is not None:
            return self._in_slices(self.slicing)
        if len(inputs) == 2 and self.budget is None:
            core = core_pair(inputs[0], inputs[1], output, self._extents)
            if core is not None:
                return core
        return contract.op(inputs=inputs, output=output, steps=steps, kept=())

    @cached_property
    def slicing(self) -> Slicing | None:
        """The slices required by the memory budget, ``None`` if the contraction is not sliced."""
        found = self._sliced(gradient=False)
        return found if found is not None and found.sliced else None

    @cached_property
    def backward_slicing(self) -> Slicing | None:
        """The slices required by the memory budget if a gradient is needed, ``None`` without a budget.

        With a budget, even for a single slice, the gradient recomputes intermediates and frees each as soon as it can.

        Raises:
            MemoryBudgetError: the gradient does not fit into the budget.
        """
        return self._sliced(gradient=True)

    @property
    def op(self) -> Op | None:
        """The single op that contracts two operands directly, or ``None`` if there is more to do."""
        plain = len(self.specs) == 2 and not self._prepares and self._finish is None and self._concrete is None
        return self._run if plain and isinstance(self._run, Op) else None

    @cached_property
    def _concrete(self) -> Op | None:
        """For concrete tensors, an engine's kernel instead of several ops, with bitwise equal results."""
        if len(self.specs) != 2 or self.slicing is not None or isinstance(self._run, Op):
            return None
        if any(s.symbolic for s in self.specs) or self._whole_engine is None:
            return None
        return contract.op(inputs=self._labels, output=self._output, steps=self.steps, kept=())

    @property
    def peak_bytes(self) -> int:
        """Peak memory of a call in bytes, including its result but not its operands, at the examples' extents."""
        if self.slicing is not None:
            return self.slicing.peak
        return self._network.stepwise() if self._by_core else self._network.forward()

    @property
    def backward_peak_bytes(self) -> int:
        """Peak memory of a call and the gradients of all operands in bytes, including these and the result."""
        if self.backward_slicing is not None:
            return self.backward_slicing.peak
        if self._by_core and self._recorded is None:
            return self._network.backward_by_ops()
        return self._network.backward(self._network.worth_keeping())

    def _sliced(self, *, gradient: bool) -> Slicing | None:
        if self.budget is None or len(self.specs) == 1:
            return None
        if any(s.symbolic for s in self.specs):
            raise ArgumentError(
                "einsum: a memory budget needs operands with numeric sizes; contract outside the trace, or "
                "compile with fixed sizes"
            )
        return choose(self._network, self.budget, gradient=gradient)

    @cached_property
    def _network(self) -> Network:
        sizes = tuple([example_of(d) or 0 for d in self._extents])
        return Network(self._labels, self._output, self.steps, sizes, self.specs[0].with_((), self.dtype))

    @property
    def _by_core(self) -> bool:
        """Whether core ops, one or several, contract two operands."""
        run = self._run
        return len(self.specs) == 2 and not (isinstance(run, Op) and run.primitive in (contract, contract_slices))

    @cached_property
    def _recorded(self) -> Op | None:
        """The op for recording and tracing: it keeps intermediates, or slices so that the gradient fits the budget."""
        if self.backward_slicing is not None:
            return self._in_slices(self.backward_slicing)
        if len(self.specs) < 2 or (self._by_core and isinstance(self._run, Op)):
            return None
        kept = self._network.worth_keeping()
        return contract.op(inputs=self._labels, output=self._output, steps=self.steps, kept=kept)

    def _in_slices(self, slicing: Slicing) -> Op:
        params = {"inputs": self._labels, "output": self._output, "steps": self.steps}
        return contract_slices.op(**params, sliced=slicing.sliced, once=slicing.once)

    @cached_property
    def _branching(self) -> Op:
        """The op for workers, which run branches."""
        params: dict[str, Any] = {"inputs": self._labels, "output": self._output, "steps": self.steps}
        return contract_slices.op(**params, sliced=(), branches=True)

    def __call__(self, *operands: Any, out: Any = None) -> Array:
        """Contract operands with the specs of the plan.

        Args:
            operands: tensors or NumPy arrays.
            out: a NumPy array for the result, which is returned as a tensor that shares its memory.

        Returns:
            Array with one axis per output label, of the plan's dtype.

        Raises:
            ArgumentError: `out` is not a writable array of its own.
            ShapeError: operands or `out` have other specs.
        """
        values: Sequence[Any] = operands
        try:
            specs = tuple([x.spec for x in operands])
        except AttributeError:
            values = [x if hasattr(x, "spec") else tensor(x) for x in operands]
            specs = tuple([x.spec for x in values])
        if specs != self.specs:
            values = self._adapted(values, operands)
        if out is None:
            return self.run(*values)
        raw = target(out, self._result, values)
        prepared = self._prepared(values)
        return into(raw, self._engine, prepared, lambda: self.run(*values))

    def _adapted(self, values: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """Convert Python scalars to their planned dtype, and check the specs of all other operands."""
        if len(values) != len(self.specs):
            raise ShapeError(
                f"the plan was made for {len(self.specs)} operands, got {len(values)}; pass one for each term"
            )
        found = []
        for n, (x, spec) in enumerate(zip(values, self.specs, strict=True)):
            if given[n].__class__ in SCALARS and not spec.ndim:
                x = tensor(given[n], dtype=weak(given[n].__class__, spec.dtype), device=spec.place.device)
            if x.spec != spec:
                raise ShapeError(
                    f"the plan was made for {spec!r} as operand {n}, got {x.spec!r}; make another plan for it",
                    operand=n,
                )
            found.append(x)
        return found

    def run(self, *values: Any) -> Array:
        """Contract values without checking their specs.

        Args:
            values: values of any level, with the specs of the plan.

        Returns:
            Array with one axis per output label, of the plan's dtype.
        """
        values = self._prepared(values)
        run = self._run
        for x in values:
            if x.__class__ is not Tensor and inner_array(x).__class__ is not Tensor:
                if not self._by_core or not any(
                    map(is_traced, map(inner_array, values))
                ):  # programs fuse elementwise ops
                    run = self._recorded or run
                break
        else:
            run = self._concrete or run
        if len(values) > 2 and self.budget is None and active() is not None and not any(map(is_traced, values)):
            run = self._branching
        result = run(*values)
        if result.__class__ is tuple:
            result = result[0]
        return result if self._finish is None else self._finish(result)

    def run_steps(self, operands: Sequence[Any], einsum: Callable[..., Any]) -> Array:
        """Contract operands some of which are no arrays, such as sparse matrices.

        Args:
            operands: values and sparse matrices, of the shapes that the plan was made for.
            einsum: contraction of arrays.

        Returns:
            Dense value with one axis per output label.
        """
        values: list[Any] = []
        for x, labels, ops in zip(operands, self._labels, self._prepare, strict=True):
            if is_contractible(x) and len(labels) == len(x.shape):
                values.append(x)
            else:  # an array, or a matrix with an axis that stretches
                values.append(_chained(ops, dense(x) if is_contractible(x) else x))
        if not has_contractible(*values):
            return self.run(*[dense(x) if is_contractible(x) else x for x in operands])
        result = run_steps(self._labels, self._output, self.steps, values, einsum)
        return result if self._finish is None else self._finish(result)

    @cached_property
    def report(self) -> PathReport:
        """The costs of the steps."""
        return report(self._network, self._names, self.peak_bytes, self.slicing)

    def draw(self, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
        """Draw the contraction tree with the live memory at each step; see `PathReport.draw`.

        Args:
            path: file to write; without `format`, its ending chooses the format.
            format: ``"text"``, ``"svg"`` or ``"html"``.

        Returns:
            The drawing as text of its format.
        """
        return self.report.draw(path, format)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def _prepared(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Operands in the common dtype, without broadcast axes."""
        if not self._prepares:
            return tuple(values)
        return tuple([_chained(ops, x) for ops, x in zip(self._prepare, values, strict=True)])

    @cached_property
    def _result(self) -> Spec:
        return self.specs[0].with_(shape=tuple([self._sizes[x] for x in self._first.output]), dtype=self.dtype)

    @cached_property
    def _engine(self) -> ContractionKernel | None:
        """The backend's kernel for the whole contraction, if nothing follows it."""
        return self._whole_engine if self._finish is None and self.steps and self.slicing is None else None

    @cached_property
    def _whole_engine(self) -> ContractionKernel | None:
        """The backend's kernel for all steps."""
        specs = tuple([self.specs[0].with_(tuple([self._extents[x] for x in t]), self.dtype) for t in self._labels])
        found: ContractionKernel | None = engine(specs, self._labels, self._output, self.steps, ())
        return found

    def __repr__(self) -> str:
        return f"<contraction {self.contraction}, {len(self.steps)} step(s)>"


def _planned(contraction: Contraction, specs: tuple[Spec, ...], path: Path, budget: int | None) -> ContractionPlan:
    return ContractionPlan(contraction, specs, Search(path), budget)


def _chained(ops: list[Any], x: Any) -> Any:
    for op in ops:
        x = op(x)
    return x
