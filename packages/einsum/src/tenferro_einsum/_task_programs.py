"""The slices of a task as one program, for executors that run programs instead of functions.

The program takes the parts of the arrays that the slices need, and tables of their start indices; it returns the sums.
Tasks with equally many slices of the same extents share one program and its compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from tenferro_einsum._tree import Numbers, Steps
from tenferro_runtime import fori_loop, trace, zeros
from tenferro_runtime.extension import HOST, Program, Spec, catalog, tensor
from tenferro_tensor.results import Maker, Results

Extents = tuple[int, ...]

_MAKER: Final = Maker(
    "submit_program of the executor", "the outputs of the program are", lambda: "correct the executor", {}
)

INDEX: Final[np.dtype[Any]] = np.dtype(np.int32)
"""Dtype of the tables."""


@runtime_checkable
class ProgramExecutor(Protocol):
    """An executor that also runs programs, such as one for accelerators."""

    def submit_program(self, program: Program, arrays: Sequence[Any]) -> Future[Sequence[Any]]:
        """Schedule a program of fixed sizes.

        Args:
            program: the program; equal programs are the same object.
            arrays: host arrays with the specs of its inputs.

        Returns:
            A future of its results, as tensors or host arrays.
        """


@dataclass(frozen=True)
class SliceTask:
    """A program, its arguments, and the regions of the outputs that its results are added to."""

    program: Program
    arrays: list[Any]
    regions: list[tuple[slice, ...]]

    def read(self, found: Sequence[Any]) -> list[tuple[int, tuple[slice, ...], Any]]:
        """For each output, its index, a region of it, and the array to add there.

        Raises:
            RegistryError: the executor returned something else than the outputs of the program.
        """
        outs = tuple([s.with_(place=HOST) for s in self.program.outputs])
        results = Results(_MAKER, (), outs, True).held(tuple(map(np.asarray, found)), (), [s.shape for s in outs])
        return [(k, region, x) for k, (region, x) in enumerate(zip(self.regions, results, strict=True))]


@dataclass(frozen=True)
class SliceLoop:
    """The sum of slices as a program.

    Attributes:
        compute: the outputs of one slice, from its parts of the arrays.
        like: a spec with the dtype and device of the arrays.
        operands: labels of the arrays.
        results: labels of the outputs.
        labels: the sliced labels.
    """

    compute: Callable[[Sequence[Any]], Sequence[Any]]
    like: Spec
    operands: Steps
    results: Steps
    labels: Numbers

    def program(self, extents: Extents, groups: Sequence[tuple[Extents, int]]) -> Program:
        """The program for arrays with the given extents, by label.

        Args:
            extents: extents of the arrays.
            groups: for slices with the same extents of `labels`, these extents and the number of slices.
        """

        def run(*given: Any) -> tuple[Any, ...]:
            arrays, tables = given[: len(self.operands)], given[len(self.operands) :]
            if sum([count for _, count in groups]) == 1:
                return tuple(self.compute(arrays))
            outs = [zeros(tuple([extents[x] for x in t]), dtype=self.like.dtype) for t in self.results]
            for (sizes, count), table in zip(groups, tables, strict=True):
                small = list(extents)
                for x, n in zip(self.labels, sizes, strict=True):
                    small[x] = n
                add = partial(self._add, arrays, table, extents, small)
                outs = add(0, outs) if count == 1 else fori_loop(0, count, add, outs)
            return tuple(outs)

        arrays = [self.like.with_(shape=tuple([extents[x] for x in t])) for t in self.operands]
        tables = [self.like.with_(shape=(count, len(self.labels)), dtype=INDEX) for _, count in groups]
        return trace(run, *arrays, *tables)

    def _add(
        self, arrays: Sequence[Any], table: Any, extents: Extents, small: Sequence[int], k: Any, outs: Sequence[Any]
    ) -> list[Any]:
        """The outputs after adding the slice in row `k` of the table, with the extents `small`."""
        row = catalog.convert(k, dtype=INDEX) if hasattr(k, "spec") else _index(k)
        begins = {
            x: catalog.reshape(catalog.dynamic_slice(table, row, _index(a), sizes=(1, 1)), shape=())
            for a, x in enumerate(self.labels)
        }

        def starts(t: Numbers) -> list[Any] | None:
            """Start indices of the slice in an array with labels `t`, ``None`` if it is the whole array."""
            return None if all(extents[x] == small[x] for x in t) else [begins.get(x, _index(0)) for x in t]

        def part(x: Any, t: Numbers) -> Any:
            there = starts(t)
            return x if there is None else catalog.dynamic_slice(x, *there, sizes=tuple([small[x] for x in t]))

        found = self.compute([part(x, t) for x, t in zip(arrays, self.operands, strict=True)])
        after = []
        for out, x, t in zip(outs, found, self.results, strict=True):
            now, there = part(out, t) + x, starts(t)
            after.append(now if there is None else catalog.dynamic_update_slice(out, now, *there))
        return after


def _index(n: int) -> Any:
    return tensor(np.asarray(n, INDEX))
