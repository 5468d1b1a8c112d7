"""Accumulate: an array that is zero outside a window is added by updating that window of the other summand.

Derivatives of reads are such arrays: the cotangent of ``a[i, j]`` is a full array with one nonzero element, and a sum
of many of them costs the size of `a` for each. An update of the other summand costs the window, and runs in place if
that summand has no other reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_runtime.passes._accumulating_branches import start_branches_from_sums
from tenferro_runtime.passes._accumulating_loops import SUMMING, added_block, start_loops_from_sums
from tenferro_runtime.passes._blocks import same_starts
from tenferro_runtime.passes._kinds import Rounding
from tenferro_runtime.passes._rewriting import Rewriting, Rules
from tenferro_runtime.passes.schedule import extent_in_trace, weight
from tenferro_tensor import HOST
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike

__all__ = ["SUMMING", "accumulate", "accumulate_in_body"]


def __dir__() -> list[str]:
    return __all__.copy()


_WINDOWED: Final = frozenset({c.scatter, c.dynamic_update_slice, c.pad, c.add})
"""Primitives whose results may be zero outside windows."""

WINDOW_MIN_RATIO: Final = 4
"""A padded array is added by its window if it is at least this many times larger than the window."""

PADDED_MAX_ELEMENTS: Final = 16
"""In the body of a loop, arrays of at most this many elements are padded and added in full."""

ZERO_SCAN_MAX_ELEMENTS: Final = 1 << 16
"""Largest constant, in elements, that is searched for being zero; larger zeros are one repeated element."""


@Rounding
def accumulate(program: Program) -> Program:
    """Add scattered updates, updated blocks and padded arrays to the other summand directly.

    Elements in several windows are summed in another order; outside windows ``-0.0 + 0.0`` stays ``-0.0``.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return _run(program, RULES)


def accumulate_in_body(program: Program, *, in_turn: bool) -> Program:
    """The same for the body of a loop whose sum is a carry, updated in place: windows of any size are added.

    Args:
        program: the body.
        in_turn: only updates that meet each element once, as if the sums were formed one after the other.

    Returns:
        The rewritten body.
    """
    return _run(program, IN_TURN if in_turn else IN_BODY)


def _run(program: Program, rules: Rules) -> Program:
    program = start_branches_from_sums(Rewriting(program, rules).run(), lambda branch: _run(branch, rules))
    return start_loops_from_sums(program)


def _added(work: Rewriting, eq: Equation) -> int | None:
    x, y = eq.operands
    if x.__class__ is not int or y.__class__ is not int or work.specs[x] is not work.specs[y]:
        return None
    found = _onto(work, y, x, eq)
    return _onto(work, x, y, eq) if found is None else found


def _onto(work: Rewriting, v: Operand, total: int, eq: Equation, reads: int = 1) -> int | None:
    """The sum of `total` and `v`, if `v` is zero outside windows and read at most `reads` times."""
    made = work.made_by(v)
    if made is None or v == total or work.uses(v) > reads:  # type: ignore[arg-type]
        return None
    p = made.op.primitive
    if p in (c.scatter, c.update_slice) and made.op.params["mode"] == "add" and _in_turn(work, made):
        into = _started(work, made.operands[0], total, eq)
        return None if into is None else work.emit(made.op, (into, *made.operands[1:]), work.specs[total], eq.source)
    if p is c.dynamic_update_slice:
        _, update, *starts = made.operands
        if _is_zero(work, made.operands[0]):
            return _block_added(work, total, update, starts, eq)
        added = added_block(made, work.made_by)
        into = None if added is None else _onto(work, made.operands[0], total, eq, reads=2)
        return None if into is None else _block_added(work, into, added, starts, eq)
    if p is c.update_slice and _is_zero(work, made.operands[0]):
        return _slice_added(work, total, made.operands[1], made.op.params["start"], made.op.params["stride"], eq)
    if p is c.pad and _is_zero(work, made.operands[1]):
        return _padded_added(work, total, made, eq)
    if p is c.add and all(_may_be_windows(work, u, total) for u in made.operands):
        first = _onto(work, made.operands[0], total, eq)
        return None if first is None else _onto(work, made.operands[1], first, eq)
    return None


def _may_be_windows(work: Rewriting, v: Operand, total: int) -> bool:
    """Whether a summand may consist of windows; a cheap first test, since each summand of a long sum is visited."""
    made = work.made_by(v)
    return made is not None and made.op.primitive in _WINDOWED and work.specs[v] is work.specs[total]  # type: ignore[index]


def _started(work: Rewriting, x: Operand, total: int, eq: Equation) -> int | None:
    """A chain of updates that starts from `total` instead of zeros."""
    return total if _is_zero(work, x) else _onto(work, x, total, eq)


def _is_zero(work: Rewriting, v: Operand) -> bool:
    number = work.number(v)
    if number is None and v in work.program.constants:
        constant = work.program.constants[v]  # type: ignore[index]
        return (
            constant.spec.place is HOST and constant._data.size <= ZERO_SCAN_MAX_ELEMENTS and not constant._data.any()
        )
    return number is not None and number == 0


def _block_added(
    work: Rewriting, total: int, update: Operand | None, starts: Sequence[Operand], eq: Equation
) -> int | None:
    """Read the block at `starts`, add `update`, and write it back; `added_block` recognizes this form."""
    if update.__class__ is not int:
        return None
    spec = work.specs[update]
    cleared = work.maker(total, c.dynamic_update_slice)
    if cleared is not None and work.specs[cleared.operands[1]] is spec and _is_zero(work, cleared.operands[1]):  # type: ignore[index]
        x, _, *at = cleared.operands
        if same_starts(work, at, starts):
            return work.emit(cleared.op, (x, update, *starts), work.specs[total], eq.source)
    there = work.emit(c.dynamic_slice.op(sizes=spec.shape), (total, *starts), spec, eq.source)
    both = work.emit(c.add.op(), (there, update), spec, eq.source)
    return work.emit(c.dynamic_update_slice.op(), (total, both, *starts), work.specs[total], eq.source)


def _padded_added(work: Rewriting, total: int, made: Equation, eq: Equation) -> int | None:
    x, params = made.operands[0], made.op.params
    low, high = params["low"], params["high"]
    if x.__class__ is not int or any(_may_crop(n, work.program) for n in (*low, *high)):
        return None
    if work.specs[total].place is not HOST or not _is_worth_a_window(work, x, total):
        return None
    return _slice_added(work, total, x, low, tuple([n + 1 for n in params["interior"]]), eq)


def _slice_added(
    work: Rewriting, total: int, update: Operand, start: tuple[DimLike, ...], stride: tuple[int, ...], eq: Equation
) -> int | None:
    if update.__class__ is not int:
        return None
    mode, cleared = "add", work.maker(total, c.update_slice)
    if cleared is not None and work.specs[cleared.operands[1]] is work.specs[update]:  # type: ignore[index]
        p = cleared.op.params
        if (p["start"], p["stride"], p["mode"]) == (start, stride, "set") and _is_zero(work, cleared.operands[1]):
            mode, total = "set", cleared.operands[0]  # type: ignore[assignment]
    op = c.update_slice.op(start=start, stride=stride, mode=mode)
    return work.emit(op, (total, update), work.specs[total], eq.source)


def _is_worth_a_window(work: Rewriting, x: int, total: int) -> bool:
    whole = weight(work.specs[total], work.program.examples)
    if work.rules is RULES:
        return WINDOW_MIN_RATIO * weight(work.specs[x], work.program.examples) <= whole
    return whole > PADDED_MAX_ELEMENTS * work.specs[total].dtype.itemsize


def _may_crop(n: DimLike, program: Program) -> bool:
    """Whether padding may remove elements; guards ensure that symbolic sizes are large enough."""
    return (n if isinstance(n, int) else extent_in_trace(n, program.examples)) < 0


def _in_turn(work: Rewriting, update: Equation) -> bool:
    """Whether an update meets each element once, if that is required."""
    if work.rules is not IN_TURN or update.op.primitive is c.update_slice:
        return True
    indices = update.operands[1]
    return isinstance(indices, int) and all(n == 1 for n in work.specs[indices].shape[:-1])


RULES: Final[Rules] = {c.add: (_added,)}
IN_BODY: Final[Rules] = {c.add: (_added,)}
IN_TURN: Final[Rules] = {c.add: (_added,)}
