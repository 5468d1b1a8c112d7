"""Rematerialization: cheap values that only the second part reads move there, so there are fewer residuals.

Splitting a program computes as much as possible in the first part: for ``tanh`` it would save both the output y, which
is saved anyway, and 1 - y * y. Moving ``1 - y * y`` to the second part costs nothing and saves its memory. Views are
recomputed in the second part even if the first needs them too, because they share the memory of their operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_runtime.extension import Equation, Program, interpret
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_runtime.runtime import optimised_like, promised_like
from tenferro_runtime.tracing import staged


def _cheap(eq: Equation) -> bool:
    return len(eq.results) == 1 and (eq.op.primitive.elementwise or eq.op.primitive in VIEWS)


def movable(first: Program, count: int) -> list[Equation]:
    """The equations of a first part (`count` outputs, then residuals) that may move to the second."""
    residuals = set(first.output_ids[count:])
    fixed = set(first.output_ids[:count])
    held = residuals | set(first.input_ids) | set(first.constants)
    made = {v: eq for eq in first.equations for v in eq.results}
    users: dict[int, list[Equation]] = {}
    for eq in first.equations:
        for v in set(eq.variables):
            users.setdefault(v, []).append(eq)
    moved: dict[int, Equation] = {}
    for eq in reversed(first.equations):
        v = eq.results[0] if eq.results else -1
        read = users.get(v, [])
        if _cheap(eq) and v not in fixed and (read or v in residuals) and all(u.results[0] in moved for u in read):
            moved[v] = eq
    while True:
        # Operands of moved equations must be residuals or move too; equations that stay must keep their operands.
        wrong = {v for v, eq in moved.items() if any(u not in held and u not in moved for u in eq.variables)}
        wrong |= {u for v, eq in made.items() if v not in moved or v in wrong for u in eq.variables if u in moved}
        if not wrong:
            break
        for v in wrong:
            del moved[v]
    return [eq for eq in first.equations if eq.results and eq.results[0] in moved]


def _seen_again(first: Program, count: int, moves: list[Equation]) -> list[Equation]:
    """The moves, plus the chains of views that produce residuals."""
    made = {v: eq for eq in first.equations for v in eq.results}
    chosen = {eq.results[0] for eq in moves}
    waiting = [v for v in first.output_ids[count:] if v not in chosen]
    waiting += [u for eq in moves for u in eq.variables if u not in chosen]
    while waiting:
        v = waiting.pop()
        eq = made.get(v)
        if eq is not None and v not in chosen and eq.op.primitive in VIEWS:
            chosen.add(v)
            waiting += eq.variables
    return [eq for eq in first.equations if eq.results and eq.results[0] in chosen]


def thinned(
    first: Program, count: int, seconds: Sequence[tuple[Program, tuple[int, ...]]]
) -> tuple[Program, list[tuple[Program, tuple[int, ...]]]]:
    """A first part with fewer residuals, and second parts that recompute them.

    Args:
        first: program from the operands to `count` outputs, then residuals.
        count: number of outputs.
        seconds: programs of some inputs, then residuals, with the indices of those residuals.
    """
    moves = _seen_again(first, count, movable(first, count))
    if not moves and len(set(first.output_ids[count:])) == len(first.output_ids) - count:
        return first, list(seconds)
    gone = {eq.results[0] for eq in moves}
    old = first.output_ids[count:]
    kept = [v for v in dict.fromkeys(old) if v not in gone]
    wanted = {u for eq in moves for u in eq.variables if u not in gone and u not in first.constants}
    kept += sorted(wanted - set(kept))
    at = {v: i for i, v in enumerate(kept)}
    lighter = promised_like(remove_dead_code(first.with_(output_ids=(*first.output_ids[:count], *kept))), first)
    return lighter, [with_moves(program, taken, old, moves, at, first) for program, taken in seconds]


def with_moves(
    second: Program,
    taken: tuple[int, ...],
    old: tuple[int, ...],
    moves: list[Equation],
    at: dict[int, int],
    first: Program,
    given_back: Sequence[int] = (),
) -> tuple[Program, tuple[int, ...]]:
    """The second part with moved equations prepended, as a program of its inputs and the remaining residuals.

    Args:
        second: program of some inputs, then residuals.
        taken: indices of its residuals in `old`.
        old: the variables of the first part that were residuals.
        moves: equations of the first part that the second part computes too.
        at: index of each remaining residual, by variable.
        first: the first part.
        given_back: variables of the first part that become additional outputs.
    """
    given = second.inputs[: len(second.inputs) - len(taken)]
    needed = {*[old[i] for i in taken], *given_back}
    for eq in reversed(moves):
        if eq.results[0] in needed:
            needed.update(eq.variables)
    now = [v for v in at if v in needed]
    again = first.with_(
        input_ids=tuple(now),
        equations=tuple([eq for eq in moves if eq.results[0] in needed]),
        output_ids=(*[old[i] for i in taken], *given_back),
    )

    def outputs(*xs: Any) -> list[Any]:
        found = interpret(again, xs[len(given) :])
        return [*interpret(second, [*xs[: len(given)], *found[: len(taken)]]), *found[len(taken) :]]

    # Alone, so that equations of constants and sizes alone are recorded too.
    made = staged(outputs, [*given, *[first.specs[v] for v in now]], alone=True, examples=second.examples)
    return optimised_like(made.program, first), tuple([at[v] for v in now])
