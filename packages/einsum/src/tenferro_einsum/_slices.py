"""Contractions in slices: of some labels one part of the extent at a time, which makes intermediates smaller.

A slice is a contraction of parts of the operands. The results of all slices add up, or stand side by side where the
output has the label. The gradient goes through the slices in the same way, each with its intermediates made anew, so
that neither direction needs more memory than one slice, its operands' gradients and its result.

Values that are the same in every slice may be made once, before; the gradient then collects their cotangents over the
slices, and carries them on once, after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tenferro_einsum import _derivatives
from tenferro_einsum._branches import Part, Split, split, split_at
from tenferro_einsum._contract import checked_extents, contract
from tenferro_einsum._contract import kernel as whole_kernel
from tenferro_einsum._contract import lower as lower_whole
from tenferro_einsum._contractions import kernel as graph_kernel
from tenferro_einsum._graph import GraphSteps, of_tree, transposed
from tenferro_einsum._tree import Numbers, Sliced, Steps, extents_by_label
from tenferro_einsum._workers import Workers, active, each_job, each_task
from tenferro_runtime import trace
from tenferro_runtime.extension import Cost, General, Op, Registry, Spec, UnsupportedError, primitive
from tenferro_tensor.device_model import ContractionGraph

Result = tuple[int, tuple[Any, ...], Any]
"""Number of an output, index into it, and what is added there."""


@primitive(family="tenferro-einsum.contract_slices.v1", extension="einsum")
def contract_slices(
    *xs: Spec, inputs: Steps, output: Numbers, steps: Steps, sliced: Sliced, once: Numbers = (), branches: bool = False
) -> Spec:
    """What `contract` computes, slice by slice; `sliced` holds pairs of a label and the number of its parts.

    The values with the numbers `once`, which have no sliced label below them, are made before the slices. With
    `branches`, what is one slice is done in branches where there are workers.
    """
    return contract.infer(*xs, inputs=inputs, output=output, steps=steps, kept=())  # type: ignore[return-value]


@primitive(family="tenferro-einsum.contract_slices_pull.v1", extension="einsum")
def contract_slices_pull(
    g: Spec,
    *xs: Spec,
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    sliced: Sliced,
    wanted: Numbers,
    once: Numbers = (),
    branches: bool = False,
) -> tuple[Spec, ...]:
    """Cotangents of the operands with the numbers `wanted` from the cotangent of `contract_slices`, slice by slice."""
    checked_extents("contract_slices_pull", (g, *xs), (output, *inputs))
    return tuple([xs[i] for i in wanted])


@dataclass(frozen=True)
class Job:
    """What is done for each slice; it can be sent to another process.

    Attributes:
        inputs: labels of the operands.
        output: labels of the result.
        steps: values joined by each step.
        sliced: labels, each with the number of parts into which its extent is cut.
        specs: specs of the operands.
        wanted: operands whose cotangents are computed, or ``None`` for the contraction itself; the cotangent of the
            result is then the first array.
        once: values that are made before the slices.
        branches: whether workers do branches of what is one slice.
        begins: labels of which operands have a part only, each with the index at which it begins.
    """

    inputs: Steps
    output: Numbers
    steps: Steps
    sliced: Sliced
    specs: tuple[Spec, ...]
    wanted: Numbers | None = None
    once: Numbers = ()
    branches: bool = False
    begins: Sliced = ()

    def __reduce__(self) -> tuple[Any, ...]:
        # What is remembered here stays here: kernels are made where they run.
        return Job, tuple([getattr(self, field.name) for field in fields(self)])

    @cached_property
    def extents(self) -> list[int]:
        """Extent of each label."""
        return extents_by_label(self.inputs, [s.shape for s in self.specs])  # type: ignore[return-value]

    @property
    def count(self) -> int:
        """Number of slices."""
        return prod([parts for _, parts in self.sliced])

    def bounds(self, number: int) -> dict[int, slice]:
        """The part of each sliced label in a slice; the first label varies slowest."""
        found = {}
        for label, parts in reversed(self.sliced):
            number, part = divmod(number, parts)
            n = self.extents[label]
            found[label] = slice(n * part // parts, n * (part + 1) // parts)
        return found

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the outputs."""
        terms = [self.output] if self.wanted is None else [self.inputs[i] for i in self.wanted]
        return [tuple([self.extents[x] for x in t]) for t in terms]

    def split(self, workers: int) -> Split | None:
        """What is done before the slices, or branches that so many workers do at the same time, where there are any."""
        if self.once:
            return self._before
        return split(self.inputs, self.output, self.steps, self.extents, workers) if self.branches and workers else None

    @cached_property
    def _before(self) -> Split:
        return split_at(self.inputs, self.output, self.steps, self.once)

    def part(self, part: Part, wanted: Numbers | None = None, sliced: Sliced = ()) -> Job:
        """The job of a branch or of the trunk."""
        found = self._jobs.get((part, wanted))
        if found is None:
            specs = tuple([self.specs[0].with_(shape=tuple([self.extents[x] for x in t])) for t in part.inputs])
            found = Job(part.inputs, part.output, part.steps, sliced, specs, wanted)
            self._jobs[part, wanted] = found
        return found

    @cached_property
    def _jobs(self) -> dict[tuple[Part, Numbers | None], Job]:
        return {}

    def sent(self, numbers: range, arrays: Sequence[Any]) -> tuple[Job, list[Any]]:
        """The job for slices with consecutive numbers, and the parts of the arrays that these take."""
        box, apart = {}, 1
        for label, parts in reversed(self.sliced):
            first, last, n = numbers[0] // apart, numbers[-1] // apart, self.extents[label]
            if first // parts == last // parts:
                box[label] = slice(n * (first % parts) // parts, n * (last % parts + 1) // parts)
            apart *= parts
        parts_of = [x[_index(t, box)] if t else x for t, x in zip(self._operands, arrays, strict=True)]
        return replace(self, begins=tuple([(x, part.start) for x, part in box.items()])), parts_of

    @property
    def _operands(self) -> Steps:
        """Labels of the arrays."""
        return (self.output, *self.inputs) if self.wanted is not None else self.inputs

    def run(self, numbers: Sequence[int], arrays: Sequence[Any]) -> Iterator[Result]:
        """What the slices with the given numbers add to the outputs."""
        terms = [self.output] if self.wanted is None else [self.inputs[i] for i in self.wanted]
        for number in numbers:
            bounds = self.bounds(number)
            there = bounds if not self.begins else self._moved(bounds)
            parts = [
                x[_index(labels, there)] if labels else x for labels, x in zip(self._operands, arrays, strict=True)
            ]
            results = self._compute(bounds)(*parts)
            for k, labels in enumerate(terms):
                yield k, _index(labels, bounds), results[k]
                results[k] = None  # added up before the next slice begins

    def _moved(self, bounds: dict[int, slice]) -> dict[int, slice]:
        begin = dict(self.begins)
        return {x: slice(part.start - begin.get(x, 0), part.stop - begin.get(x, 0)) for x, part in bounds.items()}

    @cached_property
    def _kernels(self) -> dict[tuple[int, ...], Callable[..., list[Any]]]:
        return {}

    def _compute(self, bounds: dict[int, slice]) -> Callable[..., list[Any]]:
        """What gives the outputs of a slice; there are two sizes of parts of a label at most."""
        sizes = list(self.extents)
        for label, part in bounds.items():
            sizes[label] = part.stop - part.start
        found = self._kernels.get(tuple(sizes))
        if found is None:
            found = self._kernels[tuple(sizes)] = self._made(sizes)
        return found

    def _made(self, sizes: list[int]) -> Callable[..., list[Any]]:
        specs = tuple([self.specs[0].with_(shape=tuple([sizes[x] for x in t])) for t in self._operands])
        if self.wanted is None:
            run = whole_kernel(specs, (), inputs=self.inputs, output=self.output, steps=self.steps)
            return lambda *parts: [run(*parts)]
        steps, outputs = self._steps
        conjugated = 1 if specs[0].cplx else 0
        pull = graph_kernel(specs, (), inputs=self._operands, steps=steps, outputs=outputs, conjugated=conjugated)
        return lambda *parts: list(pull(*parts))

    @cached_property
    def _steps(self) -> tuple[GraphSteps, Numbers]:
        """What a slice does, as a graph on `_operands`: its steps, and the numbers of its outputs."""
        steps, last = of_tree(self.inputs, self.output, self.steps)
        if self.wanted is None:
            return steps, (last,)
        operands, steps, outputs, those = transposed(self.inputs, steps, (last,), self.wanted, ())
        assert (operands, those) == (self._operands, self.wanted)
        return steps, outputs

    @property
    def flops(self) -> int:
        """Operations of all slices, each as large as the largest."""
        parts = dict(self.sliced)
        sizes = tuple([-(-n // parts.get(x, 1)) for x, n in enumerate(self.extents)])
        return self.count * ContractionGraph(self.specs[0].dtype, self._operands, sizes, *self._steps).flops


def _index(labels: Numbers, bounds: dict[int, slice]) -> tuple[slice, ...]:
    return tuple([bounds.get(x, slice(None)) for x in labels])


def work(job: Job, numbers: Sequence[int], arrays: Sequence[Any]) -> list[Result]:
    """The part of a job that one worker does; what belongs to one place is added up before it is sent back."""
    found: dict[tuple[int, str], Result] = {}
    for k, index, part in job.run(numbers, arrays):
        key = (k, repr(index))  # slices cannot be hashed before Python 3.12
        before = found.get(key)
        found[key] = (k, index, part if before is None else before[2] + part)
    return list(found.values())


def _run(job: Job, arrays: Sequence[Any]) -> list[Any]:
    workers = active()
    found = job.split(0 if workers is None else workers.tasks)
    if found is not None:
        return _run_parts(job, found, arrays, workers if job.branches else None)
    if job.count == 1:
        return [x for _, _, x in job.run((0,), arrays)]
    xp = _array_module(arrays[0])
    outs = [xp.zeros(shape, job.specs[0].dtype) for shape in job.shapes]
    with closing(each_task(work, job, job.count, arrays)) as results:
        for k, index, part in results:
            outs[k][index] += part
            del part  # gone before the next slice begins
    return outs


def _run_parts(job: Job, split: Split, arrays: Sequence[Any], workers: Workers | None) -> list[Any]:
    """Branches, on workers where there are any, then the trunk; for gradients the branches a second time, from the
    cotangents of their values."""
    given, xs = (arrays[:1], arrays[1:]) if job.wanted is not None else ((), arrays)
    own = [[xs[i] for i in branch.operands] for branch in split.branches]
    jobs = [job.part(branch) for branch in split.branches]
    values = [x for (x,) in _each(workers, list(zip(jobs, own, strict=True)))]
    count = len(values)
    rest = split.trunk.operands[count:]
    held = [*given, *values, *[xs[i] for i in rest]]
    del values
    if job.wanted is None:
        return _run(job.part(split.trunk, sliced=job.sliced), held)
    pulled = {k: tuple([n for n, i in enumerate(b.operands) if i in job.wanted]) for k, b in enumerate(split.branches)}
    pulled = {k: wanted for k, wanted in pulled.items() if wanted}
    wanted = (*pulled, *[count + n for n, i in enumerate(rest) if i in job.wanted])
    found = dict(zip(wanted, _run(job.part(split.trunk, wanted, job.sliced), held), strict=True))
    held.clear()
    gradients = {i: found[count + n] for n, i in enumerate(rest) if count + n in found}
    tasks = [(job.part(split.branches[k], wanted), [found[k], *own[k]]) for k, wanted in pulled.items()]
    for (k, wanted), parts in zip(pulled.items(), _each(workers, tasks), strict=True):
        operands = split.branches[k].operands
        gradients |= {operands[n]: x for n, x in zip(wanted, parts, strict=True)}
    return [gradients[i] for i in job.wanted]


def _each(workers: Workers | None, tasks: Sequence[tuple[Job, Sequence[Any]]]) -> Iterator[list[Any]]:
    """The outputs of jobs in one slice, in their order."""
    if workers is None:
        return (_run(job, arrays) for job, arrays in tasks)
    return iter([[x for _, _, x in found] for found in each_job(work, workers, tasks)])


def _array_module(raw: Any) -> Any:
    if isinstance(raw, (np.ndarray, np.generic)):
        return np
    if type(raw).__module__.partition(".")[0] != "cupy":
        raise UnsupportedError(
            f"contractions in slices have no kernel for {raw!r}; leave out memory_budget, or move them to the CPU"
        )
    import cupy  # type: ignore[import-not-found, unused-ignore]

    return cupy


def _kernel(ins: Any, outs: Any, **params: Any) -> Callable[..., Any]:
    job = Job(specs=tuple(ins), **params)
    return lambda *raws: _run(job, raws)[0]


def _pull_kernel(ins: Any, outs: Any, **params: Any) -> Callable[..., Any]:
    job = Job(specs=tuple(ins[1:]), **params)
    return lambda *raws: tuple(_run(job, raws))


def _pull(primals: Sequence[Any], outs: Any, cotangents: Any, **params: Any) -> tuple[Any, ...]:
    return contract_slices_pull(  # type: ignore[no-any-return]
        cotangents[0], *primals, **params, wanted=tuple(range(len(primals)))
    )


def _push(primals: Sequence[Any], tangents: Sequence[Any], outs: Any, **params: Any) -> tuple[Any, ...]:
    """Linear in each operand: one contraction for each tangent."""
    return (_sum([contract_slices(*_with(primals, i, t), **params) for i, t in _given(tangents)]),)


def _pull_pull(
    primals: Sequence[Any], outs: Any, cotangents: Any, *, wanted: Numbers, **params: Any
) -> tuple[Any, ...]:
    """The pullback is the adjoint of the push: cotangents h of its outputs are tangents of the contraction."""
    g, *xs = primals
    given = [(wanted[k], h) for k, h in _given(cotangents)]
    back = _sum([contract_slices(*_with(xs, i, h), **params) for i, h in given])
    terms: list[list[Any]] = [[] for _ in xs]
    for i, h in given:
        others = tuple([j for j in range(len(xs)) if j != i])
        if others:
            found = contract_slices_pull(g, *_with(xs, i, h), **params, wanted=others)
            for j, part in zip(others, found, strict=True):
                terms[j].append(part)
    return (back, *map(_sum, terms))


def _pull_push(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Any, *, wanted: Numbers, **params: Any
) -> tuple[Any, ...]:
    g, *xs = primals
    terms: list[list[Any]] = [[] for _ in wanted]
    for i, t in _given(tangents):
        h, ys = (t, xs) if i == 0 else (g, _with(xs, i - 1, t))
        others = tuple([j for j in wanted if j != i - 1])
        if others:
            for j, part in zip(others, contract_slices_pull(h, *ys, **params, wanted=others), strict=True):
                terms[wanted.index(j)].append(part)
    return tuple(map(_sum, terms))


def _given(values: Sequence[Any]) -> list[tuple[int, Any]]:
    return [(i, v) for i, v in enumerate(values) if v is not None]


def _with(xs: Sequence[Any], i: int, x: Any) -> list[Any]:
    return [x if k == i else y for k, y in enumerate(xs)]


def _sum(terms: list[Any]) -> Any:
    return None if not terms else sum(terms[1:], start=terms[0])


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    wanted = op.params["wanted"]
    left = tuple([i for i, u in zip(wanted, used, strict=True) if u])
    if left == wanted or not left:
        return None
    where = tuple([left.index(i) if i in left else None for i in wanted])
    return contract_slices_pull.op(**{**op.params, "wanted": left}), where


def _cost(ins: Any, outs: Any, **params: Any) -> Cost:
    return Cost(_flops(Job(specs=tuple(ins), **params)))


def _pull_cost(ins: Any, outs: Any, **params: Any) -> Cost:
    return Cost(_flops(Job(specs=tuple(ins[1:]), **params)))


def _flops(job: Job) -> int:
    """Operations of all slices, and of what is done once."""
    found = job.split(0)
    if found is None:
        return job.flops
    trunk, rest = found.trunk, () if job.wanted is None else job.wanted
    pulled = [tuple([n for n, i in enumerate(branch.operands) if i in rest]) for branch in found.branches]
    wanted = (*[k for k, those in enumerate(pulled) if those], *[n for n, i in enumerate(trunk.operands) if i in rest])
    total = _flops(job.part(trunk, None if job.wanted is None else wanted, job.sliced))
    for branch, those in zip(found.branches, pulled, strict=True):
        total += _flops(job.part(branch)) + (_flops(job.part(branch, those)) if those else 0)
    return total


def _lower(
    e: Any, xs: Any, outs: Any, *, sliced: Sliced, once: Numbers = (), branches: bool = False, **params: Any
) -> Any:
    """XLA plans memory by itself: the contraction as a whole."""
    return lower_whole(e, xs, outs, **params)


def _lower_pull(
    e: Any,
    xs: Any,
    outs: Any,
    *,
    sliced: Sliced,
    wanted: Numbers,
    once: Numbers = (),
    branches: bool = False,
    **params: Any,
) -> Any:
    def pulled(g: Any, *values: Any) -> Any:
        found = _derivatives.pull(values, (None,), (g,), **params)
        return tuple([found[i] for i in wanted])

    return tuple(e.inline(trace(pulled, *[x.spec for x in xs]), xs))


def register(registry: Registry) -> None:
    """Kernels, rules, lowerings, costs, pruning."""
    registry.kernel(contract_slices, "*", _kernel)
    registry.kernel(contract_slices_pull, "*", _pull_kernel)
    registry.rule(contract_slices, General(jvp=_push, vjp=_pull))
    registry.rule(contract_slices_pull, General(jvp=_pull_push, vjp=_pull_pull))
    registry.lowering(contract_slices, _lower)
    registry.lowering(contract_slices_pull, _lower_pull)
    registry.cost(contract_slices, _cost)
    registry.cost(contract_slices_pull, _pull_cost)
    registry.pruning(contract_slices_pull, _prune, keeps_bits=True)
