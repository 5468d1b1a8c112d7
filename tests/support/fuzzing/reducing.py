"""Makes a failing case small: first without the cases that ran before it, then by its area's own suggestions."""

import re
import time
from threading import Event
from typing import Any

from fuzzing.area import Area, Case, halves
from fuzzing.process import Gone, Process

Failure = dict[str, Any]


def signature(area: str, subject: str, failure: Failure) -> str:
    """What findings of one defect have in common: subject, kind and place, or the text without what is particular."""
    if failure["kind"] != "Mismatch":
        return f"{area}: {failure['kind']} {failure['place']}"
    text = re.sub(r"`[^`]*`", "_", failure["text"].splitlines()[0])
    text = re.sub(r"\[[^\]]*\]|\([^()]*\)", "", text)
    text = re.sub(r"np\.\w+|\b(u?int|float|complex)\d+\b|\b(bool|array)\b|-?\d+(\.\d*)?(e[-+]?\d+)?j?", "#", text)
    text = re.sub(r"-?\b(nan|inf|True|False)j?\b", "#", text)
    return f"{area}: {subject} {text[:90]}"


class Reducer:
    """Tries cases in child processes of their own.

    Args:
        area: the area of the cases.
        machine: how the failing process used machine code.
        seconds: time for one reduction.
    """

    def __init__(self, area: Area, machine: str, seconds: float, stopping: Event | None = None) -> None:
        self.area, self.machine, self.seconds, self.stopping = area, machine, seconds, stopping
        self._process: Process | None = None

    def fails(self, cases: list[Case], alone: bool = False) -> Failure | None:
        """What the last of some cases shows after the others; `alone` in a new process."""
        if alone:
            self.close()
        if self._process is None:
            self._process = Process(self.machine, self.area.patience, self.stopping)
        try:
            (reply,) = self._process.ask({"area": self.area.name, "trial": cases})
        except Gone as gone:
            self.close()
            return gone.failure
        return reply["failure"]

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def reduce(self, history: list[Case], case: Case, failure: Failure) -> tuple[list[Case], Failure, bool]:
        """Fewest cases, the last of which fails as the given one did; its failure; and whether it happened again."""
        end = time.monotonic() + self.seconds
        again = self.fails([case], alone=True)
        if not same(again, failure):
            return self._with_history(history, case, failure, end)
        assert again is not None
        moved = True
        while moved and time.monotonic() < end:
            moved = False
            for smaller in self.area.shrink(case):
                if time.monotonic() > end:
                    break
                found = self.fails([smaller])
                if same(found, failure) and found is not None:
                    case, again, moved = smaller, found, True
                    break
        return [case], again, True

    def _with_history(
        self, history: list[Case], case: Case, failure: Failure, end: float
    ) -> tuple[list[Case], Failure, bool]:
        """It depends on what ran before: drop as much of that as possible."""
        if not history or not same(self.fails([*history, case], alone=True), failure):
            return [case], failure, False
        moved = True
        while moved and time.monotonic() < end:
            moved = False
            for fewer in halves(history):
                if time.monotonic() > end:
                    break
                if same(self.fails([*fewer, case], alone=True), failure):
                    history, moved = fewer, True
                    break
        return [*history, case], failure, True


def same(found: Failure | None, wanted: Failure) -> bool:
    """Whether two failures are of one kind, and errors from one place."""
    if found is None or found["kind"] != wanted["kind"]:
        return False
    return wanted["kind"] in ("Mismatch", "Hang") or found["place"] == wanted["place"] or wanted["kind"][:5] == "Crash"
