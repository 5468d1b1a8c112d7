"""Which step writes its result into the memory of an operand that nobody needs any more.

The law: memory is written over only if a step of this program made it, or the caller gave it away; only by a kernel
that reads all operands of an element before it writes the element; only where result and operand have one spec, as the
same expressions where sizes are open; and only after the last step that reads the value, or anything that may look at
its memory. A guest's step may keep its operands for ever. What a step may return is a table: steps of a few kinds make
new memory, all others are taken to return views of any of their operands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Equation, Literal, Program, inner_programs
from tenferro_tensor import REGISTRY, Backend, Place, Primitive, available_backends, catalog, get_backend

OVERWRITING: Final = "overwriting"
"""Under this name a program remembers whether its steps may write over operands."""

_PASSING: Final = frozenset({
    catalog.stop_gradient, catalog.convert, catalog.real, catalog.imag, catalog.conj, catalog.floor, catalog.ceil,
    catalog.trunc, catalog.round,
})  # fmt: skip
"""Element-wise primitives that may return their operand itself, or a view of it."""

_REDUCTIONS: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
    catalog.reduce_any,
})  # fmt: skip
"""Those that return their operand itself where there is no axis to reduce."""

_MAKING: Final = frozenset(
    {p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise} - _PASSING | {catalog.dot_general}
)
"""Primitives whose results are memory of their own."""


def overwriting(program: Program, donated: Sequence[int] = ()) -> Mapping[int, int]:
    """For each result that takes the memory of an operand, that operand.

    Args:
        program: a program as it is run, its regions fused.
        donated: positions of inputs whose memory was given away.
    """
    if not program.memo.get(OVERWRITING, True) or definitions(program):
        return {}
    backends = {place: _backend(place) for place in {spec.place for spec in program.specs.values()}}
    writers = [i for i, eq in enumerate(program.equations) if _writes(program, eq, backends)]
    if not writers:
        return {}
    own = {v for eq in program.equations for v in eq.results if makes(eq, v)}
    given = {program.input_ids[i] for i in donated}
    ends, groups = _ends(program, own), _groups(program, own)
    found: dict[int, int] = {}
    for i in writers:
        eq, specs = program.equations[i], program.specs
        operands = dict.fromkeys(eq.variables)
        for v in eq.results:
            for u in operands:
                if (
                    (u in own or (u in given and _is_region(eq)))
                    and ends[u] == i
                    and specs[u] == specs[v]
                    and specs[u].ndim  # NumPy's scalars cannot be written to
                    and all(w == u or groups[w] != groups[u] for w in operands)
                ):
                    found[v] = u
                    del operands[u]
                    break
    return found


def _backend(place: Place) -> Backend | None:
    return get_backend(place.device.kind) if place.device.kind in available_backends() else None


def _writes(program: Program, eq: Equation, backends: Mapping[Place, Backend | None]) -> bool:
    """Whether the kernel of a step takes arrays to write to, and reads an element before it writes it."""
    if not (_is_region(eq) or eq.op.primitive.elementwise):
        return False
    out = program.specs[eq.results[0]]
    backend = backends[out.place]
    if backend is None or REGISTRY.is_replaced(eq.op.primitive, backend.name):
        return False
    if _is_region(eq):
        return backend.overwrites and not any(e.op.primitive in _REDUCTIONS for e in _inner(eq))
    dtypes = tuple([out.dtype if isinstance(v, Literal) else program.specs[v].dtype for v in eq.operands])
    return backend.writes_into(eq.op, dtypes, out.dtype)


def _is_region(eq: Equation) -> bool:
    return eq.op.primitive.name == "fused"


def _inner(eq: Equation) -> tuple[Equation, ...]:
    program: Program = eq.op.params["program"]
    return program.equations


def makes(eq: Equation, v: int) -> bool:
    """Whether a result of a step is memory that nothing else looks at."""
    if not _is_region(eq):
        p = eq.op.primitive
        return p in _MAKING or (p in _REDUCTIONS and bool(eq.op.params["axes"]))
    inside: Any = eq.op.params["program"].output_ids[eq.results.index(v)]
    return any(inside in e.results and makes(e, inside) for e in _inner(eq))


def _ends(program: Program, own: set[int]) -> dict[int, float]:
    """The last step that reads a variable, or what may look at its memory; infinity for what is returned."""
    ends: dict[int, float] = dict.fromkeys(program.output_ids, math.inf)
    for i in range(len(program.equations) - 1, -1, -1):
        eq = program.equations[i]
        looking = [v for v in eq.results if v not in own]
        last = math.inf if _keeps(program, eq) else max([ends.get(v, i) for v in looking], default=i)
        for v in (*eq.variables, *(eq.results if looking else ())):
            ends[v] = max(ends.get(v, i), last)
    return ends


def _keeps(program: Program, eq: Equation) -> bool:
    """Whether code that is not tenferro's sees the operands of a step."""
    primitive = eq.op.primitive
    kind = program.specs[(*eq.variables, *eq.results)[0]].place.device.kind
    if not primitive.in_house or REGISTRY.is_replaced(primitive, kind):
        return True
    return any(_keeps(inner, step) for inner in inner_programs(eq.op.params) for step in inner.equations)


def _groups(program: Program, own: set[int]) -> dict[int, int]:
    """Variables that may share memory, whenever that is, have one number."""
    parent: dict[int, int] = {v: v for v in program.specs}

    def root(v: int) -> int:
        while parent[v] != v:
            parent[v] = v = parent[parent[v]]
        return v

    for eq in program.equations:
        if any(v not in own for v in eq.results):
            first, *rest = (*eq.variables, *eq.results)
            for v in rest:
                parent[root(v)] = root(first)
    return {v: root(v) for v in parent}
