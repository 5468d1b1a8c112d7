"""`Area`: one kind of thing that a campaign tries, and `Mismatch`: what it finds."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]
"""One trial as plain data, so that it can be written to a file and tried again: names, shapes, seeds, texts."""

WITH, WITHOUT, ALWAYS, QUICK = "with", "without", "always", "quick"
"""How a process uses machine code: as users get it, not at all, also where results are small (and waited for), or as
users get it but for LLVM's own optimisation, which takes most of the time and decides on no access.
"""


class Mismatch(AssertionError):
    """The library did something other than its oracle; the text says what was expected and what was seen.

    What belongs to the one case only stands between backticks.
    """


class Area:
    """Draws cases, runs them, makes them smaller, and writes them as programs.

    Everything follows from the case: `draw` from the random numbers it is given alone, `run` from the case alone.

    Attributes:
        name: on the command line and in corpus files.
        patience: seconds after which one case counts as a hang.
        machines: how the processes of this area use machine code, in turn.
        group: cases of one batch; 0 where only time ends it.
        rounds: machines that try the same batch one after the other, for batch after batch in turn; in place of
            `machines`.
        counts: what else `run` counts.
        share: part of the time of a campaign, relative to other areas.
        composed: cases have many parts, so that only a reduced one tells its subject.
    """

    name: str
    patience: float = 60.0
    machines: tuple[str, ...] = (WITH, WITHOUT)
    group: int = 0
    rounds: tuple[tuple[str, ...], ...] = ()
    share: float = 1.0
    composed: bool = False

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def draw(self, rng: random.Random) -> Case:
        """A new case."""
        raise NotImplementedError

    def run(self, case: Case) -> None:
        """Try it.

        Raises:
            Mismatch: expected and seen differ. Every other error that comes out is a finding too.
        """
        raise NotImplementedError

    def trials(self, case: Case) -> int:
        """How many comparisons the case makes, for the count."""
        return 1

    def subject(self, case: Case) -> str:
        """What a reduced case is about: failures of one subject that read alike are one finding."""
        return ""

    def shrink(self, case: Case) -> Iterator[Case]:
        """Smaller cases, the boldest first; any of them may turn out to be fine."""
        yield from ()

    def code(self, case: Case) -> str:
        """A program of few lines that shows the same without this package."""
        raise NotImplementedError


def halves(items: list[Any]) -> Iterator[list[Any]]:
    """The list without a half, a quarter, ... of it, last of all without single items."""
    size = len(items) // 2
    while size:
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
        size //= 2
