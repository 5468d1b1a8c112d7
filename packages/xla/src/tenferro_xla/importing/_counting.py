"""Recognizes counting loops: their invariant carries, and their carries that are functions of the step number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenferro_xla.importing._types import constant_of
from tenferro_xla.importing._values import Splat, Value, known_integers


class Counting(NamedTuple):
    """The structure of a loop.

    Attributes:
        fixed: positions of the carries that no step changes.
        indices: start and step of the carries that grow by a constant, by position.
        first: initial value of the carry that ends the loop.
        steps: number of steps; ``None`` if it depends on data.
    """

    fixed: frozenset[int]
    indices: Mapping[int, tuple[int, int]]
    first: int
    steps: int | None


class _Frame(NamedTuple):
    """The operands of a call, for the arguments of the called function."""

    block: Any
    operands: Sequence[tuple[Any, Any]]


def counting(reader: Any, test: Any, body: Any, start: Sequence[Value]) -> Counting:
    """Analyze the regions and initial values of a ``while``."""
    results = list(list(body.operations)[-1].operation.operands)
    seen = [_resolved(reader, v, None) for v in results]
    fixed = frozenset(i for i, (v, _) in enumerate(seen) if v == body.arguments[i])
    indices: dict[int, tuple[int, int]] = {}
    for i, found in enumerate(seen):
        step = _step(reader, found, body.arguments[i])
        known = known_integers(start[i]) if step is not None and start[i].spec.ndim == 0 else None
        if step is not None and known is not None:
            indices[i] = (known[0], step)
    steps, first = _steps(reader, test, start, fixed, indices)
    return Counting(fixed, indices if steps is not None else {}, first, steps)


def _steps(
    reader: Any, test: Any, start: Sequence[Value], fixed: frozenset[int], indices: Mapping[int, tuple[int, int]]
) -> tuple[int | None, int]:
    """Return the number of steps for which ``index < bound`` holds, and the first index."""
    (result,) = list(test.operations)[-1].operation.operands
    value, frame = _resolved(reader, result, None)
    op = _owner(value)
    if op is None or op.name != "stablehlo.compare":
        return None, 0
    from tenferro_xla.importing.elementwise import direction

    sides = [_resolved(reader, v, frame) for v in op.operands]
    which = direction(op)
    if which in ("GT", "GE"):
        sides.reverse()
        which = {"GT": "LT", "GE": "LE"}[which]
    index = next((i for i in indices if sides[0][0] == test.arguments[i]), None)
    if index is None or which not in ("LT", "LE") or indices[index][1] != 1:
        return None, 0
    bound = _constant(sides[1][0])
    if bound is None:
        place = next((i for i in fixed if sides[1][0] == test.arguments[i]), None)
        known = known_integers(start[place]) if place is not None else None
        if known is None:
            return None, 0
        bound = known[0]
    first = indices[index][0]
    return max(0, bound + (which == "LE") - first), first


def _step(reader: Any, found: tuple[Any, Any], argument: Any) -> int | None:
    """Return the constant that is added to an argument, or ``None`` for other expressions."""
    value, frame = found
    op = _owner(value)
    if op is None or op.name != "stablehlo.add":
        return None
    sides = [_resolved(reader, v, frame)[0] for v in op.operands]
    for x, y in (sides, sides[::-1]):
        if x == argument:
            return _constant(y)
    return None


def _constant(value: Any) -> int | None:
    """Return the integer of a scalar constant, or ``None``."""
    op = _owner(value)
    if op is None or op.name != "stablehlo.constant":
        return None
    found = constant_of(op)
    return int(found.number) if isinstance(found, Splat) and found.spec.dtype.kind in "iu" else None


def _resolved(reader: Any, value: Any, frame: _Frame | None) -> tuple[Any, _Frame | None]:
    """Resolve a value through calls and trivial conversions."""
    while True:
        op = _owner(value)
        if op is None:
            if frame is None:
                return value, None
            position = next((i for i, a in enumerate(frame.block.arguments) if a == value), None)
            if position is None:
                return value, frame
            value, frame = frame.operands[position]
            continue
        if op.name in ("func.call", "call"):
            block = reader.functions[op.attributes["callee"].value].regions[0].blocks[0]
            place = next(i for i, r in enumerate(op.results) if r == value)
            frame = _Frame(block, [(v, frame) for v in op.operands])
            value = list(block.operations)[-1].operation.operands[place]
            continue
        if op.name == "stablehlo.convert" and op.operands[0].type == value.type:
            value = op.operands[0]
            continue
        return value, frame


def _owner(value: Any) -> Any:
    owner = value.owner
    op = getattr(owner, "operation", owner)
    return op if hasattr(op, "operands") else None
