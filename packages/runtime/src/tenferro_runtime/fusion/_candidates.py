"""Which equations of a program may be fused, by backend and exactness."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.fusion._region import REDUCTIONS
from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_tensor import REGISTRY, Primitive, Spec, available_backends, catalog, get_backend
from tenferro_tensor.device_model import Literal as Number
from tenferro_tensor_core import DimLike

Shape = tuple[DimLike, ...]

EXACT: Final[frozenset[Primitive]] = frozenset({
    catalog.add, catalog.sub, catalog.neg, catalog.floor, catalog.ceil, catalog.trunc, catalog.round,
    catalog.copysign, catalog.convert, catalog.select, catalog.stop_gradient, catalog.conj,
    catalog.eq, catalog.ne, catalog.lt, catalog.le, catalog.gt, catalog.ge, catalog.is_nan,
    catalog.is_inf, catalog.is_finite, catalog.bitwise_and, catalog.bitwise_or, catalog.bitwise_xor,
    catalog.bitwise_not,
})  # fmt: skip
"""Primitives whose results have equal bits in all correct kernels and new memory, unlike parts of complex numbers."""

EXACT_REAL: Final[frozenset[Primitive]] = frozenset({catalog.mul, catalog.div, catalog.abs, catalog.sign, catalog.sqrt})
"""The same for real numbers only; for complex numbers they round several times."""


class Candidates:
    """The equations that may be fused.

    Attributes:
        spaces: iteration space of each equation that may be a step of a region, else None.
        ends: kind and axes of each reduction that may end a region, else None.
        any: whether any equation may be a step.
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
        out = self._specs[eq.results[0]]
        key: list[Any] = [eq.op, out.dtype, out.place]
        rank = 0
        for v in eq.operands:
            if isinstance(v, Literal):
                key.append(v)
            else:
                spec = self._specs[v]
                if spec.place is not out.place:
                    return False
                rank = max(rank, spec.ndim)
                key.append(spec.dtype)
        if rank == 0:
            return False
        kind = tuple(key)
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = self._asked(eq, out)
        return found

    def _asked(self, eq: Equation, out: Spec) -> bool:
        backend = out.place.device.kind
        if backend not in self._installed or REGISTRY.is_replaced(eq.op.primitive, backend):
            return False
        seen = tuple([v.value.__class__ if isinstance(v, Literal) else self._specs[v] for v in eq.operands])
        dtypes = tuple([s.dtype for s in operand_specs(eq.op, seen)])
        if self._exact and not (
            eq.op.primitive in EXACT or (eq.op.primitive in EXACT_REAL and all(d.kind != "c" for d in dtypes))
        ):
            return False
        operands: list[Any] = list(dtypes)
        for number, (v, dtype) in enumerate(zip(eq.operands, dtypes, strict=True)):
            if isinstance(v, Literal):
                try:
                    operands[number] = Number(dtype.type(v.value).item(), dtype)
                except (OverflowError, TypeError, ValueError):
                    return False  # the step rejects the number when it runs
        return get_backend(backend).fuses(eq.op, tuple(operands), out.dtype)
