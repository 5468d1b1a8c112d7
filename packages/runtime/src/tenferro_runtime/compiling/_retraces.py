"""Why a compiled function was traced again: told on request, and by a warning when it happens often."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenferro_runtime.ir._source import user_line, where
from tenferro_tensor import Spec
from tenferro_tensor_core import Dim, Guard
from tenferro_tensor_core.forks import new_lock

REASONS: Final = 64
"""Number of retraces whose reasons are remembered."""

MANY: Final = 8
"""Number of traces of one function that are worth a warning."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What a compiled function has done so far.

    Attributes:
        traces: number of times that the function was traced.
        size: number of programs kept now.
        bound: largest number of programs kept.
        fast: number of argument kinds that take the short way now.
        reasons: why it was traced, latest last, with the line of the call.
    """

    traces: int
    size: int
    bound: int
    fast: int
    reasons: tuple[str, ...]


class Retraces:
    """The traces of one compiled function.

    Args:
        title: its name.

    Attributes:
        count: number of traces.
        reasons: why, latest last, each with the line of the call.
    """

    def __init__(self, title: str) -> None:
        self.title, self.count = title, 0
        self.reasons: deque[str] = deque(maxlen=REASONS)
        self._causes: Counter[str] = Counter()
        self._lock = new_lock()

    def add(self, reason: str, cause: str) -> None:
        """Take note of a trace.

        Args:
            reason: what was new, with numbers.
            cause: the same without numbers, so that equal causes count together.
        """
        at = where(user_line())
        with self._lock:
            if self.count:
                self._causes[cause] += 1
            self.count += 1
            self.reasons.append(f"{reason}{f' ({at})' if at else ''}")
            if self.count == MANY:
                worst, times = self._causes.most_common(1)[0]
                import logging  # when there is something to say

                logging.getLogger("tenferro_runtime.compile").warning(
                    "%s has been traced %d times, %d of them because of: %s. Write the function without that question "
                    "about its arguments, or name in static_argnames what has few values; cache_info().reasons has "
                    "them all",
                    self.title,
                    self.count,
                    times,
                    worst,
                )

    def extend(self, text: str) -> None:
        """Say more about the latest trace."""
        with self._lock:
            self.reasons[-1] += text


def guard_failure(guard: Guard, labels: Sequence[str], specs: Sequence[Spec]) -> str:
    """What a guard that does not hold says about the arguments.

    Args:
        guard: over sizes named by position.
        labels: names of the arguments.
        specs: their concrete specs.
    """
    extents = [
        (f"n{i}", f"{label}.shape[{axis}] = {n}")
        for i, (label, axis, n) in enumerate(
            (label, axis, n) for label, s in zip(labels, specs, strict=True) for axis, n in enumerate(s.shape)
        )
    ]
    used = {name for d in (guard.lhs, guard.rhs) if isinstance(d, Dim) for name in d.variables}
    shown = ", ".join(f"{name} = {text}" for name, text in extents if name in used)
    return f"the guard {guard} does not hold for {shown}"
