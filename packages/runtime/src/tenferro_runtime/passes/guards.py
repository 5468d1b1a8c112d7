"""Guards: removes conditions on sizes that follow from bounds or from other guards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeGuard

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Program
from tenferro_tensor_core import Dim, DimLike, Guard, ShapeError, decide, dim

_FROM: Final = {">": 1, ">=": 0, "<": -1, "<=": 0}
"""Offset from the right-hand side of a strict inequality to the bound that is attained."""

_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def simplify_guards(program: Program) -> Program:
    """Drop guards that follow from bounds or from the remaining guards, which keep their order and source lines.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    if definitions(program):
        return program  # guards on data-dependent sizes answer questions literally, so they stay
    kept = list(_unimplied(_strongest(program.guards)))
    if len(kept) > 1:
        kept = list(_unimplied(reversed(kept)))[::-1]
    return program if len(kept) == len(program.guards) else program.with_(guards=tuple(kept))


def _strongest(guards: Sequence[Guard]) -> list[Guard]:
    """The guards without weaker bounds of the same variable, of which a loop over ``x[i]`` produces many."""
    best: dict[tuple[Dim, bool], tuple[int, int]] = {}
    bounds = [_bound(guard) for guard in guards]
    for i, bound in enumerate(bounds):
        if bound is not None:
            v, below, n = bound
            known = best.get((v, below))
            if known is None or (n > known[0] if below else n < known[0]):
                best[v, below] = n, i
    return [g for i, (g, b) in enumerate(zip(guards, bounds, strict=True)) if b is None or best[b[:2]][1] == i]


def _bound(guard: Guard) -> tuple[Dim, bool, int] | None:
    """A guard as a variable, whether the bound is a lower one, and the bound."""
    for v, op, n in ((guard.lhs, guard.op, guard.rhs), (guard.rhs, _MIRRORED[guard.op], guard.lhs)):
        if isinstance(n, int) and op in _FROM and _is_variable(v):
            return v, op[0] == ">", n + _FROM[op]
    return None


def _unimplied(guards: Iterable[Guard]) -> Iterable[Guard]:
    """The guards that do not follow from earlier ones."""
    facts = _Facts()
    for guard in guards:
        try:
            if facts.imply(guard):
                continue
            facts.learn(guard)
        except ShapeError:
            pass  # the guards contradict each other: a size is outside its bounds
        yield guard


class _Facts:
    """Facts from guards: equalities and bounds of variables for substitution, and all other guards unchanged."""

    def __init__(self) -> None:
        self.said: set[tuple[DimLike, str, DimLike]] = set()
        self.stands_for: dict[str, DimLike] = {}

    def imply(self, guard: Guard) -> bool:
        a, b = self._now(guard.lhs), self._now(guard.rhs)
        return (a, guard.op, b) in self.said or decide(a, guard.op, b) is True

    def learn(self, guard: Guard) -> None:
        a, op, b = self._now(guard.lhs), guard.op, self._now(guard.rhs)
        self.said |= {(a, op, b), (b, _MIRRORED[op], a)}
        for v, how, other in ((a, op, b), (b, _MIRRORED[op], a)):
            if _is_variable(v):
                known = _narrowed(v, how, other)
                if known is not None:
                    name = next(iter(v.variables))
                    self.stands_for = {n: self._with(d, name, known) for n, d in self.stands_for.items()}
                    self.stands_for[name] = known
                    self.said = {(self._with(x, name, known), o, self._with(y, name, known)) for x, o, y in self.said}
                    return

    def _now(self, d: DimLike) -> DimLike:
        return d.substitute(self.stands_for) if isinstance(d, Dim) and self.stands_for else d

    def _with(self, d: DimLike, name: str, known: DimLike) -> DimLike:
        return d.substitute({name: known}) if isinstance(d, Dim) else d


def _is_variable(d: DimLike) -> TypeGuard[Dim]:
    return isinstance(d, Dim) and len(d.variables) == 1 and str(d) in d.variables


def _narrowed(v: Dim, op: str, other: DimLike) -> DimLike | None:
    """The replacement of a variable: its equal, or the variable within narrower bounds."""
    name = next(iter(v.variables))
    if op == "==":
        return None if isinstance(other, Dim) and name in other.variables else other
    if not isinstance(other, int):
        return None
    low, high = v.lower or 0, v.upper
    if op in (">", ">="):
        low = max(low, other + (op == ">"))
    elif op in ("<", "<="):
        high = other - (op == "<") if high is None else min(high, other - (op == "<"))
    elif other == low:
        low += 1  # excludes its smallest value
    else:
        return None
    return dim(name, min=low, max=high) if high is None or low <= high else None
