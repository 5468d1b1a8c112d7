"""Reordering of equations that respects their dependences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tenferro_runtime.ir._program import Equation, Program


def reordered(
    program: Program, delayed: Collection[int], eager: Mapping[int, Sequence[Equation]] | None = None
) -> list[Equation]:
    """Reorder equations in one pass: delay some until their results are read, and advance others.

    Args:
        program: the program.
        delayed: ids of the equations to delay.
        eager: equations, by variable, to place as soon as all their operands are computed.
    """
    made = {v: eq for eq in program.equations for v in eq.results}
    followers = eager or {}
    placed: set[int] = set()
    order: list[Equation] = []

    def place(eq: Equation) -> None:
        stack = [eq]
        while stack:
            eq = stack[-1]
            missing = [made[u] for u in eq.variables if u in made and id(made[u]) not in placed]
            if missing:
                stack += missing[::-1]
                continue
            stack.pop()
            if id(eq) in placed:
                continue
            placed.add(id(eq))
            order.append(eq)
            for v in eq.results:
                for user in followers.get(v, ()):
                    if id(user) not in placed and all(u not in made or id(made[u]) in placed for u in user.variables):
                        stack.append(user)

    for eq in program.equations:
        if id(eq) not in delayed:
            place(eq)
    for eq in program.equations:
        place(eq)
    return order
