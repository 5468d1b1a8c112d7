"""Why a compiled function was traced again: reported on request, and by a warning when it happens often."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenferro_runtime.compiling._kind import Cause
from tenferro_runtime.ir._source import user_line, where
from tenferro_tensor import Spec
from tenferro_tensor_core import Dim, Guard
from tenferro_tensor_core.forks import new_lock

MAX_REASONS: Final = 64
"""Number of latest retraces whose reasons are kept."""

TRACES_BEFORE_WARNING: Final = 8
"""A function traced this many times logs a warning."""

NO_QUESTIONS: Final = (
    "write the function without that question about sizes (a loop or branch of Python, int() or range() of an extent): "
    "fori_loop, scan, where and masks serve all sizes"
)
"""The remedy where the code depends on sizes."""


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
        self._remedies: dict[str, Cause] = {}
        self._lock = new_lock()

    def add(self, cause: Cause) -> None:
        """Count a trace.

        Args:
            cause: its cause.
        """
        at = where(user_line())
        with self._lock:
            if self.count:
                self._causes[cause.group] += 1
                self._remedies[cause.group] = cause
            self.count += 1
            self.reasons.append(f"{cause.text}{f' ({at})' if at else ''}")
            if self.count == TRACES_BEFORE_WARNING:
                worst, times = self._causes.most_common(1)[0]
                found = self._remedies[worst]
                import logging  # only if needed

                logging.getLogger("tenferro_runtime.compile").warning(
                    "%s has been traced %d times, %d of them for this reason: %s%s. To avoid traces, %s; "
                    "cache_info().reasons lists every reason",
                    self.title,
                    self.count,
                    times,
                    worst,
                    f" (most recently {found.text})" if found.text != worst else "",
                    found.remedy,
                )

    def extend(self, text: str) -> None:
        """Append text to the reason of the latest trace."""
        with self._lock:
            self.reasons[-1] += text


def guard_failure(guard: Guard, labels: Sequence[str], specs: Sequence[Spec]) -> Cause:
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
    asked = f"{f'{guard.reason} ' if guard.reason else ''}{f'at {guard.where}' if guard.where else ''}".strip()
    return Cause(
        f"the guard {guard} does not hold for {shown}",
        f"a question about sizes{f', {asked}' if asked else ''}",
        NO_QUESTIONS,
    )
