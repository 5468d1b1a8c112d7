"""Progress of long work: bars in notebooks and terminals, on request.

Work that knows its length counts it with `counting`, which shows nothing outside of `show_progress`; work with an
argument `progress` of its own moves a `Bar`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

__all__ = ["PARTS", "Bar", "counting", "interactive", "is_shown", "show_progress"]


def __dir__() -> list[str]:
    return __all__.copy()


PARTS: Final = 100
"""Number of times that a bar moves on, at most."""

PATIENCE_SECONDS: Final = 0.5
"""Work that takes less long shows no bar, unless it was asked to."""

FORMAT: Final = "{desc} {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} {elapsed}{postfix}"

_shown: Final[ContextVar[bool]] = ContextVar("whether long work shows bars", default=False)


@contextmanager
def show_progress(always: bool = False) -> Iterator[None]:
    """Context manager in which long work shows bars: searches for contraction orders, slices, passes, profiles.

    Bars are drawn in notebooks and terminals, by tqdm where that is installed; where the output goes into a file, and
    for work that takes less than half a second, nothing is shown.

    Args:
        always: draw wherever the output goes.

    Yields:
        Nothing.

    >>> with tr.show_progress():
    ...     program = tr.trace(tr.sin, tr.ones(3))
    """
    token = _shown.set(always or interactive())
    try:
        yield
    finally:
        _shown.reset(token)


def is_shown() -> bool:
    """Whether long work shows bars.

    Returns:
        True inside of `show_progress`.
    """
    return _shown.get()


def interactive() -> bool:
    """Whether somebody looks on.

    Returns:
        True in a notebook and where the standard error stream is a terminal.
    """
    return _notebook() is not None or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def counting(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Context manager that returns what to call after each part of some work: it moves a bar in `show_progress`.

    Args:
        label: text in front of the bar.
        total: number of parts.

    Yields:
        The function to call after each part.
    """
    if not is_shown():
        yield _nothing
        return
    bar, start, done, every = Bar(label), time.perf_counter(), 0, max(1, total // PARTS)

    def one() -> None:
        nonlocal done
        done += 1
        if done % every == 0 or done == total:
            if bar.is_drawn or time.perf_counter() - start > PATIENCE_SECONDS:
                bar(done, total)

    try:
        yield one
    finally:
        bar.close()


class Bar:
    """Shows how many steps of some work are done, on the standard error stream or below the cell of a notebook.

    Args:
        label: text in front of it.
    """

    __slots__ = ("_done", "_drawn", "_label")

    def __init__(self, label: str) -> None:
        self._label, self._done = label, 0
        self._drawn: Any = None

    @property
    def is_drawn(self) -> bool:
        """Whether the bar is drawn."""
        return self._drawn is not None

    def __call__(self, done: Any, total: Any, note: str = "") -> None:
        """Show that so many of all steps are done, and a note. No more than before are those of another run."""
        done, total = int(done), int(total)
        if self._drawn is not None and done <= self._done:
            self.close()
        if self._drawn is None:
            self._drawn, self._done = _drawing(self._label, total), 0
        if note:
            self._drawn.set_postfix_str(f" {note}", refresh=False)
        self._drawn.update(done - self._done)
        self._done = done
        if done >= total:
            self.close()

    def close(self) -> None:
        """Finish the bar; the next step draws a new one."""
        if self._drawn is not None:
            self._drawn.close()
            self._drawn = None


class _Line:
    """A line of text with the interface of a bar of tqdm."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._done, self._start = label, total, 0, time.perf_counter()
        self._note = ""

    def set_postfix_str(self, note: str, refresh: bool = True) -> None:
        """Set the note at the end of the line."""
        self._note = note

    def update(self, steps: int) -> None:
        """Advance by some steps."""
        self._done += steps
        past = time.perf_counter() - self._start
        self._draw(100 * self._done // max(self._total, 1), f"{self._done}/{self._total} {past:.1f} s{self._note}")

    def _draw(self, percent: int, text: str) -> None:
        sys.stderr.write(f"\r{self._label} {percent:3d}% {text}")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line."""
        sys.stderr.write("\n")


class _NotebookBar(_Line):
    """The same below the cell of a notebook, without widgets."""

    def __init__(self, label: str, total: int, display: Any) -> None:
        super().__init__(label, total)
        self._display, self._handle = display, None

    def _draw(self, percent: int, text: str) -> None:
        markup = import_module("tenferro_tensor.markup")
        meter = markup.element("progress", value=percent, max=100)
        card = self._display.HTML(markup.card(markup.joined([f"{self._label} ", meter, f" {percent}% {text}"])))
        if self._handle is None:
            self._handle = self._display.display(card, display_id=True)
        else:
            self._handle.update(card)

    def close(self) -> None:
        """Leave it below the cell."""


def _nothing() -> None:
    return


def _notebook() -> Any:
    """`IPython.display` in the kernel of a notebook, ``None`` elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return import_module("IPython.display") if getattr(shell, "kernel", None) is not None else None


def _drawing(label: str, total: int) -> Any:
    display = _notebook()
    if display is not None:
        return _NotebookBar(label, total, display)
    try:
        tqdm = import_module("tqdm")
    except ModuleNotFoundError:
        return _Line(label, total)
    return tqdm.tqdm(total=total, desc=label, miniters=0, mininterval=0.0, bar_format=FORMAT)
