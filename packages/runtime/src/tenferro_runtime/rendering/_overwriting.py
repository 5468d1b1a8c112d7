"""Which step writes its result into the memory of an operand that nobody needs any more.

The law: memory is written over only if a step of this program made it, or the caller gave it away; only by a kernel
that reads all operands of an element before it writes the element, or that changes a part of the operand and leaves the
rest as it is; only where result and operand have one spec, as the same expressions where sizes are open; and only after
the last step that reads the value, or anything that may look at its memory. A guest's step may keep its operands for
ever. What a step may return is a table: steps of a few kinds make new memory, all others are taken to return views of
any of their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Equation, Literal, Program, inner_programs
from tenferro_tensor import REGISTRY, Backend, Op, Place, Primitive, available_backends, catalog, get_backend

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

UPDATES: Final = frozenset({catalog.scatter, catalog.dynamic_update_slice, catalog.update_slice})
"""Primitives whose result is their first operand but for a part of it: in its memory, only that part is written."""

CARRIED: Final[dict[Primitive, Callable[[Op], Mapping[int, int]]]] = {}
"""For loops on the host: which results may take the memory of which operand, by position."""

_MAKING: Final = (
    frozenset({p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise}) - _PASSING
    | UPDATES
    | {catalog.dot_general, catalog.dynamic_slice}
)
"""Primitives whose results are memory of their own."""


LOOK_AT_FIRST: Final = frozenset({
    catalog.transpose, catalog.reshape, catalog.broadcast_in_dim, catalog.slice_, catalog.reverse,
    catalog.gather,
})  # fmt: skip
"""Primitives that may return a view of their first operand, and of no other."""


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
    own = _own(program)
    given = {program.input_ids[i] for i in donated}
    ends, groups = _ends(program, own), _groups(program, own)
    found: dict[int, int] = {}
    for i in writers:
        eq, specs = program.equations[i], program.specs
        operands = dict.fromkeys(eq.variables)
        anywhere = eq.op.primitive.elementwise
        partners = {} if anywhere else _updated(eq)
        for k, v in enumerate(eq.results):
            for u in list(operands) if anywhere else _at(eq, partners.get(k)):
                if (
                    (u in own or (u in given and partners))
                    and u in operands
                    and ends[u] == i
                    and specs[u] == specs[v]
                    and specs[u].ndim  # NumPy's scalars cannot be written to
                    and all(w == u or groups[w] != groups[u] for w in operands)
                ):
                    found[v] = u
                    del operands[u]
                    break
    return found


def memory_groups(program: Program) -> Mapping[int, int]:
    """A number for each variable; those that may share memory have the same one."""
    return _groups(program, _own(program))


def _own(program: Program) -> set[int]:
    """Variables whose memory nothing looked at before them."""
    return {v for eq in program.equations for v in eq.results if makes(eq, v)}


def _backend(place: Place) -> Backend | None:
    return get_backend(place.device.kind) if place.device.kind in available_backends() else None


def _writes(program: Program, eq: Equation, backends: Mapping[Place, Backend | None]) -> bool:
    """Whether the kernel of a step takes arrays to write to, and reads an element before it writes it."""
    if eq.op.primitive in CARRIED:
        return all(program.specs[v].place.on_host for v in (*eq.variables, *eq.results))
    if not (eq.op.primitive.elementwise or eq.op.primitive in UPDATES):
        return False
    out = program.specs[eq.results[0]]
    backend = backends[out.place]
    if backend is None or REGISTRY.is_replaced(eq.op.primitive, backend.name):
        return False
    dtypes = tuple([out.dtype if isinstance(v, Literal) else program.specs[v].dtype for v in eq.operands])
    return backend.writes_into(eq.op, dtypes, out.dtype)


def _updated(eq: Equation) -> Mapping[int, int]:
    """Which results are what an operand was, but for a part."""
    carried = CARRIED.get(eq.op.primitive)
    return {0: 0} if carried is None else carried(eq.op)


def _at(eq: Equation, i: int | None) -> tuple[int, ...]:
    return tuple([v for v in eq.operands[i : i + 1] if v.__class__ is int]) if i is not None else ()


def _is_region(eq: Equation) -> bool:
    return eq.op.primitive.name == "fused"


def _inner(eq: Equation) -> tuple[Equation, ...]:
    program: Program = eq.op.params["program"]
    return program.equations


def makes(eq: Equation, v: int) -> bool:
    """Whether a result of a step is memory that nothing else looks at."""
    if not _is_region(eq):
        p = eq.op.primitive
        if p in CARRIED:
            return eq.results.index(v) in _updated(eq)
        if p is catalog.gather:  # without an index it may be a view
            return bool(eq.op.params["start_index_map"])
        return p in _MAKING or (p in _REDUCTIONS and bool(eq.op.params["axes"]))
    inside: Any = eq.op.params["program"].output_ids[eq.results.index(v)]
    return any(inside in e.results and makes(e, inside) for e in _inner(eq))


def _ends(program: Program, own: set[int]) -> dict[int, float]:
    """The last step that reads a variable, or what may look at its memory; infinity for what is returned."""
    ends: dict[int, float] = dict.fromkeys(program.output_ids, math.inf)
    for i in range(len(program.equations) - 1, -1, -1):
        eq = program.equations[i]
        looking = [v for v in eq.results if v not in own]
        last = math.inf if keeps(program, eq) else max([ends.get(v, i) for v in looking], default=i)
        seen = eq.variables if last is math.inf else _seen(eq)
        for v in (*seen, *(eq.results if looking else ())):
            ends[v] = max(ends.get(v, i), last)
        for v in eq.variables:
            if v not in seen:
                ends[v] = max(ends.get(v, i), i)
    return ends


def keeps(program: Program, eq: Equation) -> bool:
    """Whether code that is not tenferro's sees the operands of a step."""
    primitive = eq.op.primitive
    kind = program.specs[(*eq.variables, *eq.results)[0]].place.device.kind
    if not primitive.in_house or REGISTRY.is_replaced(primitive, kind):
        return True
    return any(keeps(inner, step) for inner in inner_programs(eq.op.params) for step in inner.equations)


def _seen(eq: Equation) -> tuple[int, ...]:
    """The operands that results may be views of."""
    return eq.variables[:1] if eq.op.primitive in LOOK_AT_FIRST else eq.variables


def _groups(program: Program, own: set[int]) -> dict[int, int]:
    """Variables that may share memory, whenever that is, have one number."""
    parent: dict[int, int] = {v: v for v in program.specs}

    def root(v: int) -> int:
        while parent[v] != v:
            parent[v] = v = parent[parent[v]]
        return v

    for eq in program.equations:
        if any(v not in own for v in eq.results):
            first, *rest = (*_seen(eq), *eq.results)
            for v in rest:
                parent[root(v)] = root(first)
    return {v: root(v) for v in parent}
