"""The cost of a step: operations and bytes by primitive, as data. Sizes may be symbolic.

A real addition, multiplication, comparison or elementary function of one element counts as one operation; complex
arithmetic counts as its real operations. Bytes are those of operands read and results written, each element once. Views
move nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any, Final

from tenferro_runtime.costs._storage import Storage, nbytes
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._reuse import UPDATES
from tenferro_runtime.running.rendering._overwriting import overwriting
from tenferro_tensor import REGISTRY, Cost, Primitive, Spec, catalog
from tenferro_tensor_core import Dim, RegistryError

Specs = tuple[Spec, ...]

COMPLEX: Final[dict[Primitive, int]] = {catalog.mul: 6, catalog.absorbing_mul: 6, catalog.div: 11, catalog.abs: 4}
"""Number of real operations in a complex one, if it is not two."""

FREE: Final = frozenset(
    {catalog.select, catalog.convert, catalog.conj, catalog.complex, catalog.copysign, catalog.real, catalog.imag}
)
"""Element-wise primitives that move elements and compute nothing."""

ALONG: Final = frozenset(
    {
        catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
        catalog.reduce_any, catalog.argmax, catalog.argmin, catalog.cumsum, catalog.cumprod, catalog.cummax,
        catalog.cummin,
    }
)  # fmt: skip
"""One operation for each element of the operand."""


def cost(program: Program, eq: Equation, storage: Storage) -> Cost:
    """The cost of an equation."""
    ins = tuple([program.specs[v] for v in eq.variables])
    outs = tuple([program.specs[v] for v in eq.results])
    if storage.is_view(eq):
        return Cost(0, 0)
    model = REGISTRY.find("cost", eq.op.primitive) or MODELS.get(eq.op.primitive, _unknown)
    found: Cost = model(ins, outs, **eq.op.params)
    if not isinstance(found, Cost) or not all(n is None or isinstance(n, (int, float, Dim)) for n in found):
        raise RegistryError(
            f"the cost model of {eq.op.primitive.name} returned {found!r:.80}; let it return a Cost of "
            "integers, symbolic sizes included",
            primitive=eq.op.primitive.name,
        )
    if eq.op.primitive in UPDATES and eq.results[0] in storage.victims:
        return found._replace(bytes=sum(map(nbytes, ins)) - nbytes(outs[0]) + 2 * nbytes(_update_of(eq, ins)))
    if found.bytes is None:
        return found._replace(bytes=sum(map(nbytes, (*ins, *outs))))
    return found


def _update_of(eq: Equation, ins: Specs) -> Spec:
    return ins[2] if eq.op.primitive is catalog.scatter else ins[1]


def _gather(ins: Specs, outs: Specs, **_: Any) -> Cost:
    """The cost of a gather, which reads only the gathered elements."""
    return Cost(0, 2 * nbytes(outs[0]) + sum(map(nbytes, ins[1:])))


def _elementwise(p: Primitive) -> Callable[..., Cost]:
    def model(ins: Specs, outs: Specs, **_: Any) -> Cost:
        each = 0 if p in FREE else COMPLEX.get(p, 2) if ins and ins[0].cplx else 1
        return Cost(each * outs[0].size)

    return model


def _along(ins: Specs, outs: Specs, **_: Any) -> Cost:
    return Cost(ins[0].size * (2 if ins[0].cplx else 1))


def _dot_general(ins: Specs, outs: Specs, *, contract: Any, batch: Any) -> Cost:
    summed = prod([ins[0].shape[i] for i in contract[0]])
    return Cost((8 if ins[0].cplx else 2) * summed * outs[0].size)


def _sort(ins: Specs, outs: Specs, *, axis: int, **_: Any) -> Cost:
    n = ins[0].shape[axis]
    # The logarithm of a symbolic size is not a polynomial.
    return Cost(int(prod(map(int, ins[0].shape)) * max(1.0, log2(n or 1)))) if not ins[0].symbolic else Cost(None)  # type: ignore[arg-type]


def _unknown(ins: Specs, outs: Specs, **_: Any) -> Cost:
    """The cost of a primitive without a model: bytes moved, and no operations."""
    return Cost(None)


def _nothing(ins: Specs, outs: Specs, **_: Any) -> Cost:
    return Cost(0)


def cost_of_steps(program: Program, donated: Sequence[int] = ()) -> Cost:
    """The cost of all steps of a program whose inputs `donated` may be overwritten."""
    storage = Storage(program, overwriting(program, donated))
    parts = [cost(program, eq, storage) for eq in program.equations]
    known = [c.flops for c in parts if c.flops is not None]
    return Cost(sum(known) if len(known) == len(parts) else None, sum([c.bytes for c in parts if c.bytes is not None]))


MOVERS: Final = (
    catalog.transfer, catalog.transpose, catalog.reshape, catalog.broadcast_in_dim, catalog.slice_, catalog.reverse,
    catalog.pad, catalog.concatenate, catalog.scatter, catalog.iota, catalog.dim_value, catalog.dynamic_update_slice,
    catalog.update_slice,
)  # fmt: skip
"""Primitives that move elements."""

MODELS: Final[dict[Primitive, Callable[..., Cost]]] = {
    **{p: _elementwise(p) for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise},
    **dict.fromkeys(ALONG, _along),
    **dict.fromkeys(MOVERS, _nothing),
    **dict.fromkeys((catalog.sort, catalog.argsort), _sort),
    **dict.fromkeys((catalog.gather, catalog.dynamic_slice), _gather),
    catalog.dot_general: _dot_general,
}
"""Models by primitive; those of calls, branches and loops come from `_bodies`."""
