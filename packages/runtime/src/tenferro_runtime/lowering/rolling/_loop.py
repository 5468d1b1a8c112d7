"""`write_loop`: writes a rolled loop as one `scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_runtime.control_flow.primitives import scan
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.lowering.rolling._body import CannotRollError, GroupBody
from tenferro_runtime.lowering.rolling._flow import Flow, Listing
from tenferro_runtime.lowering.rolling._row_values import RowOf, Surroundings
from tenferro_runtime.passes.schedule import VIEWS, weight
from tenferro_tensor import HOST, Spec, catalog, tensor
from tenferro_tensor_core import kind_of

ROLLED: Final = "rolled"
"""Key of a body's memo: the loop was unrolled by Python."""

SPARSE_MAX_BYTES: Final = 1 << 20
"""If the values of few groups are read after the loop, those of all groups are stacked up to this many bytes."""


def write_loop(around: Surroundings, listing: Listing, flow: Flow, optimise: Callable[[Program], Program]) -> None:
    """Write a loop as one `scan`; its results become rows of stacked outputs or final carries.

    Raises:
        CannotRollError: it cannot be written, or costs more memory than the equations do.
    """
    body = GroupBody(around, listing, flow)
    body.write()
    _Scan(body).write(optimise)


class _Scan:
    """The equation of a loop whose body is written."""

    def __init__(self, body: GroupBody) -> None:
        self.body, self.around, self.flow, self.listing = body, body.around, body.flow, body.listing
        self.length = len(body.groups)
        self.first: list[int] = []  # outside variables of the carries
        self.carries: list[int] = []
        self.following: list[int] = []
        self.last: dict[int, int] = {}  # variables of the program, by the final carry that they equal
        self.kept: list[tuple[int, int]] = []  # (equation, result) pairs whose values are stacked

    def write(self, optimise: Callable[[Program], Program]) -> None:
        """Write the loop, and record its results."""
        body, around = self.body, self.around
        self._carry()
        self._results()
        backwards = self._backwards()
        arrays = [self._array(values, backwards) for values, _ in body.slices]
        source = body.source
        for v in body.fixed:
            around.value(v, source)
        fixed = [v for v in body.fixed if v not in around.constants]
        program = Program(
            (*[body.fixed[v] for v in fixed], *self.carries, *[v for _, v in body.slices]),
            body.constants,
            tuple(body.equations),
            (*self.following, *[body.result(q, r) for q, r in self.kept]),
            body.specs,
            examples=around.program.examples,
        )
        op = scan.op(body=_marked(optimise(program)), consts=len(fixed), carry=len(self.first), length=self.length,
                     reverse=backwards)  # fmt: skip
        results = [around.fresh(around.specs[v]) for v in self.first]
        specs = [body.specs[body.result(q, r)] for q, r in self.kept]
        results += [around.fresh(s.with_(shape=(self.length, *s.shape))) for s in specs]
        around.equations.append(Equation(op, (*fixed, *self.first, *arrays), tuple(results), source))
        for v, k in self.last.items():
            around.stands_for[v] = results[k]
        for (q, r), whole in zip(self.kept, results[len(self.first) :], strict=True):
            self._note(q, r, whole, backwards)

    def _carry(self) -> None:
        body, around = self.body, self.around
        for (q, r), chains in body.chains.items():
            self._require_own_memory(q)
            for chain in chains:
                for depth in range(1, max(chain.first) + 1):
                    self.first.append(around.value(chain.first[depth], body.source))  # type: ignore[arg-type]
                    self.carries.append(chain.inputs[depth - 1])
                    self.following.append(body.result(q, r) if depth == 1 else chain.inputs[depth - 2])
                    self.last.setdefault(self._variable(self.flow.end - depth, q, r), len(self.first) - 1)

    def _variable(self, group: int, q: int, r: int) -> int:
        return self.listing.equations[self.flow.at(group, q)].results[r]

    def _results(self) -> None:
        """Decide which values leave the loop as carries and which as stacked rows."""
        body, around, flow = self.body, self.around, self.flow
        last_use, ends = self.listing.last_use, flow.ends
        for q, eq in enumerate(self.listing.equations[flow.begins : flow.at(flow.first + 1)]):
            for r, v in enumerate(eq.results):
                read = [g for g in body.groups if last_use.get(self._variable(g, q, r), -1) >= ends]
                if not read:
                    continue
                if q in body.once:
                    for g in read:
                        around.stands_for[self._variable(g, q, r)] = body.once[q]
                    continue
                if all(self._variable(g, q, r) in self.last for g in read):
                    continue
                self._require_own_memory(q)
                spec = around.specs[v]
                if read == [flow.end - 1]:
                    self._hand_out(self._variable(read[0], q, r), body.result(q, r), spec)
                    continue
                size = weight(spec, around.program.examples) * self.length
                if 2 * len(read) < self.length and size > SPARSE_MAX_BYTES:
                    raise CannotRollError(self.flow)
                self.kept.append((q, r))

    def _require_own_memory(self, q: int) -> None:
        """Reject a view as a carry: sums and products may read it in another order than a separate array."""
        eq = self.listing.equations[self.flow.at(self.flow.first, q)]
        if self.around.exact and eq.op.primitive in VIEWS and self.around.specs[eq.results[0]].ndim:
            raise CannotRollError(self.flow)

    def _hand_out(self, v: int, inner: int, spec: Spec) -> None:
        """Return a value of the last group as a carry that the body does not read."""
        around = self.around
        if spec.place is not HOST or kind_of(spec.dtype) not in "biufc":
            raise CannotRollError(self.flow)
        zero = around.constant(tensor(np.zeros((), dtype=spec.dtype)))
        if spec.shape:
            op = catalog.broadcast_in_dim.op(shape=spec.shape, dims=())
            zero = around.emit(op, (zero,), spec, self.body.source)
        self.last[v] = len(self.first)
        self.first.append(zero)
        self.carries.append(self.body.fresh(spec))
        self.following.append(inner)

    def _backwards(self) -> bool:
        """Whether the loop reads most of its arrays in reverse."""
        ahead = back = 0
        for values, _ in self.body.slices:
            if values.__class__ is list:
                for segment in self.around.segments(values):
                    if segment.row is not None:
                        ahead += segment.count * (segment.step == 1)
                        back += segment.count * (segment.step == -1)
        return back > ahead

    def _array(self, values: Any, backwards: bool) -> int:
        if backwards:
            values = values[::-1]
        if values.__class__ is list:
            found = self.around.stacked(values, self.body.source)
            if found is None:
                raise CannotRollError(self.flow)
            return found
        return self.around.constant(tensor(np.ascontiguousarray(values)))

    def _note(self, q: int, r: int, whole: int, backwards: bool) -> None:
        around, last_use, ends = self.around, self.listing.last_use, self.flow.ends
        shape = around.specs[whole].shape
        for t, g in enumerate(self.body.groups):
            v = self._variable(g, q, r)
            if v not in self.last and last_use.get(v, -1) >= ends:
                around.rows[v] = RowOf(whole, self.length, shape[1:], self.length - 1 - t if backwards else t)
                around.gone.add(v)


def _marked(body: Program) -> Program:
    body.memo[ROLLED] = True
    return body
