"""`Bar`: how far a loop is, drawn on the standard error stream."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any, Final

PARTS: Final = 100
"""Number of times that a bar moves on, at most."""


class Bar:
    """Shows how many steps of a loop are done, by tqdm where that is installed, else as a line of text.

    Args:
        label: text in front of it.
    """

    __slots__ = ("_done", "_drawn", "_label")

    def __init__(self, label: str) -> None:
        self._label, self._done = label, 0
        self._drawn: Any = None

    def __call__(self, done: Any, total: Any) -> None:
        """Show that so many of all steps are done. Fewer than before are those of another run."""
        done, total = int(done), int(total)
        if self._drawn is not None and done <= self._done:
            self._drawn.close()
            self._drawn = None
        if self._drawn is None:
            self._drawn, self._done = _drawing(self._label, total), 0
        self._drawn.update(done - self._done)
        self._done = done
        if done >= total:
            self._drawn.close()
            self._drawn = None


class _Line:
    """A line of text with the interface of a bar of tqdm."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._done, self._start = label, total, 0, time.perf_counter()

    def update(self, steps: int) -> None:
        """Go on by some steps."""
        self._done += steps
        past = time.perf_counter() - self._start
        share = 100 * self._done // max(self._total, 1)
        sys.stderr.write(f"\r{self._label} {share:3d}% {self._done}/{self._total} {past:.1f} s")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line."""
        sys.stderr.write("\n")


def _drawing(label: str, total: int) -> Any:
    try:
        tqdm = import_module("tqdm")
    except ModuleNotFoundError:
        return _Line(label, total)
    return tqdm.tqdm(total=total, desc=label, miniters=0, mininterval=0.0)
