"""Jobs: the work of one slice of a contraction, and the execution of all slices and of their common part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np

from tenferro_einsum._branches import BranchPlan, Part, split, split_at
from tenferro_einsum._contract import by_pairs
from tenferro_einsum._contract import kernel as whole_kernel
from tenferro_einsum._contractions import by_ops
from tenferro_einsum._contractions import kernel as graph_kernel
from tenferro_einsum._graph import GraphSteps, of_tree, transposed
from tenferro_einsum._task_programs import INDEX, SliceLoop, SliceTask
from tenferro_einsum._tree import Numbers, Sliced, Steps, extents_by_label
from tenferro_einsum._workers import Workers, active, each_job, each_task
from tenferro_runtime.extension import Program, Spec, UnsupportedError, get_backend
from tenferro_runtime.progress import counting
from tenferro_tensor.device_model import ContractionGraph
from tenferro_tensor_core.forks import cached_property

Result = tuple[int, tuple[Any, ...], Any]
"""Index of an output, a region of it, and the array to add there."""


@dataclass(frozen=True)
class Job:
    """The work of each slice; picklable.

    Attributes:
        inputs: labels of the operands.
        output: labels of the result.
        steps: values contracted by each step.
        sliced: sliced labels, each with its number of parts.
        specs: specs of the operands.
        wanted: operands whose cotangents are computed, from the cotangent of the result as first array; ``None`` for
            the contraction itself.
        once: values that are computed before the slices.
        branches: whether workers run branches of a single slice.
        begins: labels that are sliced in the operands, each with the start of its part.
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
        # Caches are not pickled: kernels are compiled where they run.
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
        """The range of each sliced label in a slice; the first label varies slowest."""
        found = {}
        for label, parts in reversed(self.sliced):
            number, part = divmod(number, parts)
            n = self.extents[label]
            found[label] = slice(n * part // parts, n * (part + 1) // parts)
        return found

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the outputs."""
        return [tuple([self.extents[x] for x in t]) for t in self.results]

    def split(self, workers: int) -> BranchPlan | None:
        """The work before the slices, or branches for a number of workers, or ``None``."""
        if self.once:
            return self._before
        return split(self.inputs, self.output, self.steps, self.extents, workers) if self.branches and workers else None

    @cached_property
    def _before(self) -> BranchPlan:
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

    def box(self, numbers: range) -> dict[int, slice]:
        """The range of each sliced label that consecutive slices cover, where it is not the whole extent."""
        found, apart = {}, 1
        for label, parts in reversed(self.sliced):
            first, last, n = numbers[0] // apart, numbers[-1] // apart, self.extents[label]
            if first // parts == last // parts:
                found[label] = slice(n * (first % parts) // parts, n * (last % parts + 1) // parts)
            apart *= parts
        return found

    def sent(self, numbers: range, arrays: Sequence[Any]) -> tuple[Job, list[Any]]:
        """The job for consecutive slices, and the parts of the arrays that they read."""
        box = self.box(numbers)
        parts_of = [x[_index(t, box)] if t else x for t, x in zip(self.operands, arrays, strict=True)]
        mine = replace(self, begins=tuple([(x, part.start) for x, part in box.items()]))
        mine.__dict__["_kernels"] = self._kernels  # threads share them
        return mine, parts_of

    @property
    def operands(self) -> Steps:
        """Labels of the arrays."""
        return (self.output, *self.inputs) if self.wanted is not None else self.inputs

    @cached_property
    def results(self) -> Steps:
        """Labels of the outputs."""
        return (self.output,) if self.wanted is None else tuple([self.inputs[i] for i in self.wanted])

    def task(self, numbers: range, arrays: Sequence[Any]) -> SliceTask:
        """The work for consecutive slices as a program, and the parts of the arrays that it reads."""
        _, parts = self.sent(numbers, arrays)
        box = {x: slice(0, n) for x, n in enumerate(self.extents)} | self.box(numbers)
        tables: dict[tuple[int, ...], list[list[int]]] = {}
        for bounds in map(self.bounds, numbers):
            sizes = tuple([part.stop - part.start for part in bounds.values()])
            tables.setdefault(sizes, []).append([part.start - box[x].start for x, part in bounds.items()])
        extents = tuple([part.stop - part.start for part in box.values()])
        groups = tuple([(sizes, len(rows)) for sizes, rows in tables.items()])
        program = self._programs.get((extents, groups))
        if program is None:
            program = self._programs[extents, groups] = self._loop.program(extents, groups)
        rows = [np.asarray(table, INDEX).reshape(len(table), len(self.sliced)) for table in tables.values()]
        return SliceTask(program, [*parts, *rows], [_index(t, box) for t in self.results])

    @cached_property
    def _programs(self) -> dict[Any, Program]:
        return {}

    @property
    def _loop(self) -> SliceLoop:
        labels = tuple([x for x, _ in reversed(self.sliced)])  # the order of `bounds`
        return SliceLoop(self._by_ops, self.specs[0], self.operands, self.results, labels)

    def _by_ops(self, parts: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a slice by ops, for tracing."""
        if self.wanted is None:
            return [by_pairs(*parts, inputs=self.inputs, output=self.output, steps=self.steps)]
        steps, outputs = self.graph
        return by_ops(parts, self.operands, steps, outputs, 1 if self.specs[0].cplx else 0)

    def run(self, numbers: Sequence[int], arrays: Sequence[Any]) -> Iterator[Result]:
        """The sum of the given slices, for each output."""
        for number in numbers:
            bounds = self.bounds(number)
            there = bounds if not self.begins else self._moved(bounds)
            parts = [x[_index(labels, there)] if labels else x for labels, x in zip(self.operands, arrays, strict=True)]
            results = self._compute(bounds)(*parts)
            for k, labels in enumerate(self.results):
                yield k, _index(labels, bounds), results[k]
                results[k] = None  # added before the next slice starts

    def _moved(self, bounds: dict[int, slice]) -> dict[int, slice]:
        begin = dict(self.begins)
        return {x: slice(part.start - begin.get(x, 0), part.stop - begin.get(x, 0)) for x, part in bounds.items()}

    @cached_property
    def _kernels(self) -> dict[tuple[int, ...], Callable[..., list[Any]]]:
        return {}

    def _compute(self, bounds: dict[int, slice]) -> Callable[..., list[Any]]:
        """The function that computes the outputs of a slice; the parts of a label have at most two sizes."""
        sizes = list(self.extents)
        for label, part in bounds.items():
            sizes[label] = part.stop - part.start
        found = self._kernels.get(tuple(sizes))
        if found is None:
            found = self._kernels[tuple(sizes)] = self._made(sizes)
        return found

    def _made(self, sizes: list[int]) -> Callable[..., list[Any]]:
        specs = tuple([self.specs[0].with_(shape=tuple([sizes[x] for x in t])) for t in self.operands])
        if self.wanted is None:
            run = whole_kernel(specs, (), inputs=self.inputs, output=self.output, steps=self.steps)
            return lambda *parts: [run(*parts)]
        steps, outputs = self.graph
        conjugated = 1 if specs[0].cplx else 0
        pull = graph_kernel(specs, (), inputs=self.operands, steps=steps, outputs=outputs, conjugated=conjugated)
        return lambda *parts: list(pull(*parts))

    @cached_property
    def graph(self) -> tuple[GraphSteps, Numbers]:
        """A slice as a graph on `operands`: its steps, and the indices of its outputs."""
        steps, last = of_tree(self.inputs, self.output, self.steps)
        if self.wanted is None:
            return steps, (last,)
        operands, steps, outputs, those = transposed(self.inputs, steps, (last,), self.wanted, ())
        assert (operands, those) == (self.operands, self.wanted)
        return steps, outputs

    @property
    def flops(self) -> int:
        """Operations of all slices, each counted like the largest."""
        parts = dict(self.sliced)
        sizes = tuple([-(-n // parts.get(x, 1)) for x, n in enumerate(self.extents)])
        return self.count * ContractionGraph(self.specs[0].dtype, self.operands, sizes, *self.graph).flops


def _index(labels: Numbers, bounds: dict[int, slice]) -> tuple[slice, ...]:
    return tuple([bounds.get(x, slice(None)) for x in labels])


def work(job: Job, numbers: Sequence[int], arrays: Sequence[Any]) -> list[Result]:
    """The part of a job for one worker; results for the same region are summed before they are returned."""
    found: dict[tuple[int, str], Result] = {}
    for k, index, part in job.run(numbers, arrays):
        key = (k, repr(index))  # slices cannot be hashed before Python 3.12
        before = found.get(key)
        found[key] = (k, index, part if before is None else before[2] + part)
    return list(found.values())


def run(job: Job, arrays: Sequence[Any]) -> list[Any]:
    """Compute the outputs, slice by slice or on workers, after the common part and branches."""
    workers = active()
    found = job.split(0 if workers is None else workers.tasks)
    if found is not None:
        return _run_parts(job, found, arrays, workers if job.branches else None)
    if job.count == 1:
        return [x for _, _, x in job.run((0,), arrays)]
    xp = _array_module(job.specs[0])
    outs = [xp.zeros(shape, job.specs[0].dtype) for shape in job.shapes]
    parts = 0 if workers is not None else job.count * len(job.results)  # workers count their tasks
    with counting("einsum slices", parts) as done, closing(each_task(work, job, job.count, arrays)) as results:
        for k, index, part in results:
            outs[k][index] += part
            del part  # free it before the next slice starts
            done()
    return outs


def _run_parts(job: Job, split: BranchPlan, arrays: Sequence[Any], workers: Workers | None) -> list[Any]:
    """Run the branches, on workers if there are any, then the trunk; for gradients, run the branches again from the
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
        return run(job.part(split.trunk, sliced=job.sliced), held)
    pulled = {k: tuple([n for n, i in enumerate(b.operands) if i in job.wanted]) for k, b in enumerate(split.branches)}
    pulled = {k: wanted for k, wanted in pulled.items() if wanted}
    wanted = (*pulled, *[count + n for n, i in enumerate(rest) if i in job.wanted])
    found = dict(zip(wanted, run(job.part(split.trunk, wanted, job.sliced), held), strict=True))
    held.clear()
    gradients = {i: found[count + n] for n, i in enumerate(rest) if count + n in found}
    tasks = [(job.part(split.branches[k], wanted), [found[k], *own[k]]) for k, wanted in pulled.items()]
    for (k, wanted), parts in zip(pulled.items(), _each(workers, tasks), strict=True):
        operands = split.branches[k].operands
        gradients |= {operands[n]: x for n, x in zip(wanted, parts, strict=True)}
    return [gradients[i] for i in job.wanted]


def _each(workers: Workers | None, tasks: Sequence[tuple[Job, Sequence[Any]]]) -> Iterator[list[Any]]:
    """The outputs of single-slice jobs, in order."""
    if workers is None:
        return (run(job, arrays) for job, arrays in tasks)
    return iter([[x for _, _, x in found] for found in each_job(work, workers, tasks)])


def _array_module(spec: Spec) -> Any:
    """NumPy, or the array library of the operands' backend."""
    kind = spec.place.device.kind
    try:
        return get_backend(kind).library("numpy")
    except UnsupportedError as cause:
        raise UnsupportedError(
            f"sliced contractions have no kernel for {kind} devices; leave out memory_budget, or move the operands "
            "to the CPU"
        ) from cause


def flops_of(job: Job) -> int:
    """Operations of all slices, and of their common part."""
    found = job.split(0)
    if found is None:
        return job.flops
    trunk, rest = found.trunk, () if job.wanted is None else job.wanted
    pulled = [tuple([n for n, i in enumerate(branch.operands) if i in rest]) for branch in found.branches]
    wanted = (*[k for k, those in enumerate(pulled) if those], *[n for n, i in enumerate(trunk.operands) if i in rest])
    total = flops_of(job.part(trunk, None if job.wanted is None else wanted, job.sliced))
    for branch, those in zip(found.branches, pulled, strict=True):
        total += flops_of(job.part(branch)) + (flops_of(job.part(branch, those)) if those else 0)
    return total
