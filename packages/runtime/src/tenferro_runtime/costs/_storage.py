"""Which variable owns the memory of another: views share a block, and results may reuse one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor import Primitive, Spec, catalog
from tenferro_tensor_core import DimLike

VIEWS: Final[frozenset[Primitive]] = frozenset(
    {
        catalog.transpose, catalog.reverse, catalog.slice_, catalog.stop_gradient, catalog.broadcast_in_dim,
        catalog.define_size, catalog.real,
    }
)  # fmt: skip
"""Primitives that return views of their operand, up to small copies that are not counted."""

SCATTERED: Final[frozenset[Primitive]] = frozenset(
    {catalog.transpose, catalog.reverse, catalog.slice_, catalog.broadcast_in_dim}
)
"""Primitives whose results may not be row-major, so that a reshape copies them."""


class Storage:
    """The owner of the memory of each variable.

    Args:
        program: the program.
        victims: maps each result that reuses the memory of an operand to that operand.

    Attributes:
        victims: as given.
        owner: variable that owns the block of each variable.
        external: variables whose block belongs to the caller or the program: inputs and constants.
    """

    def __init__(self, program: Program, victims: Mapping[int, int] | None = None) -> None:
        self.program: Program = program
        victims = victims or {}
        self.victims: Mapping[int, int] = victims
        self._views: set[int] = set()
        self.external: frozenset[int] = frozenset((*program.input_ids, *program.constants))
        self.owner: dict[int, int] = {v: v for v in self.external}
        self._in_order: dict[int, bool] = dict.fromkeys(self.owner, True)
        for eq in program.equations:
            viewed = self._view(eq)
            if viewed is not None:
                self._views.update(eq.results)
            for v in eq.results:
                self.owner[v] = self.owner[victims[v]] if v in victims else v if viewed is None else self.owner[viewed]
                self._in_order[v] = self._ordered(eq)

    def is_view(self, eq: Equation) -> bool:
        """Whether the result shares the block of an operand."""
        return bool(eq.results) and eq.results[0] in self._views

    def _view(self, eq: Equation) -> int | None:
        """The operand that a result is a view of."""
        if not eq.operands or eq.operands[0].__class__ is not int or len(eq.results) != 1:
            return None
        (first, *rest), p = eq.operands, eq.op.primitive
        source, out = self.program.specs[first], self.program.specs[eq.results[0]]  # type: ignore[index]
        seen = (
            p in VIEWS
            or (p is catalog.imag and source.cplx)
            or (p is catalog.conj and not source.cplx)
            or (p is catalog.convert and source.dtype == out.dtype)
            or (p is catalog.concatenate and not rest)
            or (p is catalog.transfer and source.place.memory_space is out.place.memory_space)
            or (p is catalog.reshape and (self._in_order[first] or _without_ones(source) == _without_ones(out)))  # type: ignore[index]
        )
        return first if seen else None  # type: ignore[return-value]

    def _ordered(self, eq: Equation) -> bool:
        """Whether the results are row-major."""
        p = eq.op.primitive
        if p in SCATTERED:
            return False
        if p is catalog.reshape and eq.results[0] in self._views:
            return self._in_order[eq.operands[0]]  # type: ignore[index]
        if p.elementwise:  # NumPy keeps the order of the operands
            return all(self._in_order[v] for v in eq.variables)
        return True


def _without_ones(spec: Spec) -> tuple[DimLike, ...]:
    return tuple([n for n in spec.shape if n != 1])


def nbytes(spec: Spec) -> DimLike:
    """Size of an array in bytes."""
    return spec.size * spec.dtype.itemsize
