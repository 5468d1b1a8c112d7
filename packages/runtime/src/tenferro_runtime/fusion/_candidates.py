"""Which equations of a program may be fused: what the backend of their place says, and what exactness allows."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime._inference import operand_specs
from tenferro_runtime._program import Equation, Literal, Program
from tenferro_runtime.fusion._region import REDUCTIONS
from tenferro_tensor import Primitive, Spec, available_backends, catalog, get_backend
from tenferro_tensor_core import DimLike

Shape = tuple[DimLike, ...]

EXACT: Final[frozenset[Primitive]] = frozenset({
    catalog.add, catalog.sub, catalog.neg, catalog.sign, catalog.floor, catalog.ceil, catalog.trunc, catalog.round,
    catalog.copysign, catalog.convert, catalog.select, catalog.stop_gradient, catalog.real, catalog.imag,
    catalog.conj, catalog.eq, catalog.ne, catalog.lt, catalog.le, catalog.gt, catalog.ge, catalog.is_nan,
    catalog.is_inf, catalog.is_finite, catalog.bitwise_and, catalog.bitwise_or, catalog.bitwise_xor,
    catalog.bitwise_not,
})  # fmt: skip
"""Primitives of which every correct kernel gives the same bits."""

EXACT_REAL: Final[frozenset[Primitive]] = frozenset({catalog.mul, catalog.div, catalog.abs, catalog.sqrt})
"""The same for real numbers; of complex ones they are several roundings."""


class Candidates:
    """What may be fused.

    Attributes:
        spaces: for each equation the iteration space in which it may be a step, else None.
        ends: for each equation the kind and the axes of the reduction that it may end a region with, else None.
        any: whether there is a step at all.
    """

    def __init__(self, program: Program, exact: bool) -> None:
        self._specs, self._exact = program.specs, exact
        self._known: dict[Any, bool] = {}
        self._installed = frozenset(available_backends())
        self.spaces: list[Shape | None] = []
        self.ends: list[Any] = []
        for eq in program.equations:
            primitive = eq.op.primitive
            step = primitive.elementwise and len(eq.results) == 1 and self._fuses(eq)
            self.spaces.append(program.specs[eq.results[0]].shape if step else None)
            end = not exact and primitive in REDUCTIONS and eq.op.params["axes"] and self._fuses(eq)
            self.ends.append((primitive, eq.op.params["axes"]) if end else None)
        self.any = any(space is not None for space in self.spaces)

    def _fuses(self, eq: Equation) -> bool:
        seen = tuple([v.value.__class__ if isinstance(v, Literal) else self._specs[v] for v in eq.operands])
        out = self._specs[eq.results[0]]
        key = (eq.op, out.dtype, out.place, *[s.dtype if isinstance(s, Spec) else s for s in seen])
        rank = max([s.ndim for s in seen if isinstance(s, Spec)], default=0)
        if rank == 0:
            return False
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._asked(eq, seen, out)
        return (
            found and all(s.place is out.place for s in seen if isinstance(s, Spec)) and self._representable(eq, seen)
        )

    def _asked(self, eq: Equation, seen: tuple[Any, ...], out: Spec) -> bool:
        kind = out.place.device.kind
        if kind not in self._installed:
            return False
        dtypes = tuple([s.dtype for s in operand_specs(eq.op, seen)])
        if self._exact and not (
            eq.op.primitive in EXACT or (eq.op.primitive in EXACT_REAL and all(d.kind != "c" for d in dtypes))
        ):
            return False
        return get_backend(kind).fuses(eq.op, dtypes, out.dtype)

    def _representable(self, eq: Equation, seen: tuple[Any, ...]) -> bool:
        """Whether the numbers beside the arrays are numbers of their dtype; else the step refuses them when it runs."""
        if not any(isinstance(v, Literal) for v in eq.operands):
            return True
        for v, spec in zip(eq.operands, operand_specs(eq.op, seen), strict=True):
            if isinstance(v, Literal):
                try:
                    spec.dtype.type(v.value)
                except (OverflowError, TypeError, ValueError):
                    return False
        return True
