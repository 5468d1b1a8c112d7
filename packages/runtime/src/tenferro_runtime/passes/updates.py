"""Updates: moves a step that changes a part of an array behind the steps that read the old array.

The step can then run in place, because the old array is dead.
"""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._effects import effects_of
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._reuse import UPDATES

MAX_DISTANCE: Final = 1000
"""Largest distance, in steps, between an update and a reader that is moved before it."""


def put_off_updates(program: Program) -> Program:
    """Move readers of an updated array before the update, unless they depend on it.

    Args:
        program: the program.

    Returns:
        The reordered program.
    """
    order = list(program.equations)
    last: dict[int, int] = {}
    for i, eq in enumerate(order):
        last.update(dict.fromkeys(eq.variables, i))
    changed = False
    updates = [(eq, i) for i, eq in enumerate(order) if any(last[v] > i for v in _updated(eq))]
    if not updates or definitions(program) or len(effects_of(program)) > 1:
        return program
    for eq, i in updates:
        at = i if order[i] is eq else order.index(eq)
        segment = order[at : at + MAX_DISTANCE]
        earlier = _readers(segment, _updated(eq))
        if earlier:
            later = [other for other in segment if id(other) not in earlier]
            order[at : at + MAX_DISTANCE] = [*[other for other in segment if id(other) in earlier], *later]
            changed = True
    return program.with_(equations=tuple(order)) if changed else program


def _updated(eq: Equation) -> tuple[int, ...]:
    """The arrays that an equation updates, or that a loop starts from."""
    if eq.op.primitive in UPDATES:
        return eq.variables[:1]
    if eq.op.primitive.name == "scan":
        consts, carry = eq.op.params["consts"], eq.op.params["carry"]
        return tuple([v for v in eq.operands[consts : consts + carry] if v.__class__ is int])
    return ()


def _readers(segment: list[Equation], arrays: tuple[int, ...]) -> set[int]:
    """Ids of the equations that read the arrays and of their dependences, without the first equation."""
    after = set(segment[0].results)
    readers = []
    made: dict[int, Equation] = {}
    for eq in segment[1:]:
        made.update(dict.fromkeys(eq.results, eq))
        if any(v in after for v in eq.variables):
            after.update(eq.results)
        elif any(v in arrays for v in eq.variables) and not set(_updated(eq)) & set(arrays):
            readers.append(eq)
    found = {id(eq) for eq in readers}
    for eq in readers:  # grows while it is iterated
        for v in eq.variables:
            needed = made.get(v)
            if needed is not None and id(needed) not in found:
                found.add(id(needed))
                readers.append(needed)
    return found
