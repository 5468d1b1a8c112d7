"""Which steps write their result into the memory of a dead operand.

The law: memory is overwritten only if a step of this program allocated it or the caller donated it; only by a kernel
that reads all operands of an element before it writes the element, or that updates a part of the operand in place; only
if result and operand have equal specs, symbolic sizes included; and only after the last read of the value and of
anything that may alias it. A third-party step may keep its operands forever. A table lists the primitives that allocate
their results; every other step may return views of any operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Equation, Literal, Program, inner_programs
from tenferro_tensor import REGISTRY, Backend, Op, Place, Primitive, available_backends, catalog, get_backend

OVERWRITING: Final = "overwriting"
"""Key of a program's memo: whether its steps may overwrite operands."""

_PASSING: Final = frozenset({
    catalog.stop_gradient, catalog.convert, catalog.real, catalog.imag, catalog.conj, catalog.floor, catalog.ceil,
    catalog.trunc, catalog.round,
})  # fmt: skip
"""Element-wise primitives that may return their operand itself, or a view of it."""

_REDUCTIONS: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
    catalog.reduce_any,
})  # fmt: skip
"""Primitives that return their operand itself if there is no axis to reduce."""

UPDATES: Final = frozenset({catalog.scatter, catalog.dynamic_update_slice, catalog.update_slice})
"""Primitives whose result is their first operand with a part replaced; in place, they write only that part."""

CARRIED: Final[dict[Primitive, Callable[[Op], Mapping[int, int]]]] = {}
"""For loops on the host: the operand whose memory each result may reuse, by position."""

_MAKING: Final = (
    frozenset({p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise}) - _PASSING
    | UPDATES
    | {catalog.dot_general, catalog.dynamic_slice}
)
"""Primitives that allocate their results."""


VIEWS_OF_FIRST: Final = frozenset({
    catalog.transpose, catalog.reshape, catalog.broadcast_in_dim, catalog.slice_, catalog.reverse,
    catalog.gather,
})  # fmt: skip
"""Primitives that may return a view of their first operand, and of no other."""


def overwriting(program: Program, donated: Sequence[int] = ()) -> Mapping[int, int]:
    """Maps each result that reuses an operand's memory to that operand.

    Args:
        program: a program as it runs, after fusion.
        donated: positions of donated inputs.
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
    """Maps each variable to the number of its group; variables of one group may share memory."""
    return _groups(program, _own(program))


def _own(program: Program) -> set[int]:
    """Variables whose memory the program allocated for them."""
    return {v for eq in program.equations for v in eq.results if makes(eq, v)}


def _backend(place: Place) -> Backend | None:
    return get_backend(place.device.kind) if place.device.kind in available_backends() else None


def _writes(program: Program, eq: Equation, backends: Mapping[Place, Backend | None]) -> bool:
    """Whether the kernel of a step accepts output arrays, and reads each element before it writes it."""
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
    """Maps each result that updates an operand to the position of that operand."""
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
    """Whether a step allocates a result, so that nothing aliases it."""
    if not _is_region(eq):
        p = eq.op.primitive
        if p in CARRIED:
            return eq.results.index(v) in _updated(eq)
        if p is catalog.gather:  # without indices it may be a view
            return bool(eq.op.params["start_index_map"])
        return p in _MAKING or (p in _REDUCTIONS and bool(eq.op.params["axes"]))
    inside: Any = eq.op.params["program"].output_ids[eq.results.index(v)]
    return any(inside in e.results and makes(e, inside) for e in _inner(eq))


def _ends(program: Program, own: set[int]) -> dict[int, float]:
    """The last step that reads each variable or an alias of it; infinity for outputs."""
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
    """Whether third-party code receives the operands of a step."""
    primitive = eq.op.primitive
    kind = program.specs[(*eq.variables, *eq.results)[0]].place.device.kind
    if not primitive.in_house or REGISTRY.is_replaced(primitive, kind):
        return True
    return any(keeps(inner, step) for inner in inner_programs(eq.op.params) for step in inner.equations)


def _seen(eq: Equation) -> tuple[int, ...]:
    """The operands that the results may alias."""
    return eq.variables[:1] if eq.op.primitive in VIEWS_OF_FIRST else eq.variables


def _groups(program: Program, own: set[int]) -> dict[int, int]:
    """The group of each variable; variables that may ever share memory are in one group."""
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
