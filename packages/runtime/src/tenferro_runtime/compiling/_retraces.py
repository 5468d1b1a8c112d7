"""Why a compiled function was traced again: reported on request, and by a warning when it happens often."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenferro_runtime.ir._source import user_line, where
from tenferro_tensor import Spec
from tenferro_tensor_core import Dim, Guard
from tenferro_tensor_core.forks import new_lock

MAX_REASONS: Final = 64
"""Number of latest retraces whose reasons are kept."""

TRACES_BEFORE_WARNING: Final = 8
"""A function traced this many times logs a warning."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The state of a compiled function's cache.

    Attributes:
        traces: number of traces so far.
        size: number of cached programs.
        bound: largest number of cached programs.
        fast: number of argument kinds that take the fast path.
        reasons: reason of each trace, latest last, with the line of the call.
    """

    traces: int
    size: int
    bound: int
    fast: int
    reasons: tuple[str, ...]


class Retraces:
    """The traces of one compiled function.

    Args:
        title: name of the function.

    Attributes:
        count: number of traces.
        reasons: reason of each trace, latest last, with the line of the call.
    """

    title: str
    count: int

    def __init__(self, title: str) -> None:
        self.title, self.count = title, 0
        self.reasons: deque[str] = deque(maxlen=MAX_REASONS)
        self._causes: Counter[str] = Counter()
        self._lock = new_lock()

    def add(self, reason: str, cause: str) -> None:
        """Count a trace.

        Args:
            reason: how the arguments were new, with numbers.
            cause: the same without numbers, so that equal causes count together.
        """
        at = where(user_line())
        with self._lock:
            if self.count:
                self._causes[cause] += 1
            self.count += 1
            self.reasons.append(f"{reason}{f' ({at})' if at else ''}")
            if self.count == TRACES_BEFORE_WARNING:
                worst, times = self._causes.most_common(1)[0]
                import logging  # only if needed

                logging.getLogger("tenferro_runtime.compile").warning(
                    "%s has been traced %d times, %d of them because of: %s. Write the function without that question "
                    "about its arguments, or name arguments with few values in static_argnames; cache_info().reasons "
                    "lists every reason",
                    self.title,
                    self.count,
                    times,
                    worst,
                )

    def extend(self, text: str) -> None:
        """Append text to the reason of the latest trace."""
        with self._lock:
            self.reasons[-1] += text


def guard_failure(guard: Guard, labels: Sequence[str], specs: Sequence[Spec]) -> str:
    """Describe a guard that does not hold in terms of the arguments.

    Args:
        guard: a guard over sizes named by position.
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
