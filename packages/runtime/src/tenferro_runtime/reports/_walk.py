"""The walk over steps and the programs that they run, which tables of costs and of times share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, NamedTuple


class Visit(NamedTuple):
    """A row of a walk: a step, or the heading of a program that a step runs.

    Attributes:
        number: number of the step after those of the steps around it; empty for a heading.
        step: the step, ``None`` for a heading.
        bodies: the programs around it; for a heading, the last one is its own.
    """

    number: str
    step: Any
    bodies: tuple[Any, ...]

    @property
    def indent(self) -> str:
        """Spaces that show how deep it is."""
        return "  " * (2 * len(self.bodies) - (self.step is None))

    @property
    def times(self) -> int:
        """How often it ran, in a profile."""
        return prod([body.times for body in self.bodies])


def walk(steps: Iterable[Any], outer: str = "", bodies: tuple[Any, ...] = ()) -> Iterator[Visit]:
    """Walk over steps, of costs or of times; the programs that a step runs follow it."""
    for s in steps:
        number = f"{outer}{getattr(s, 'cost', s).index}"
        yield Visit(number, s, bodies)
        for body in s.bodies:
            yield Visit("", None, (*bodies, body))
            yield from walk(body.steps, f"{number}.", (*bodies, body))
