"""Short cuts: compiled code that a backend puts in front of the interpreted ways of eager values.

A short cut does what an interpreted function does where everything is as usual, and calls that function otherwise. So
what a program means never depends on whether one is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenferro_tensor_core.forks import new_lock


@dataclass(frozen=True, slots=True)
class Entering:
    """What the way into a compiled function reads.

    Attributes:
        arguments: number of arguments.
        table: tuples by the spec of the only argument, or the tuple of specs. Each holds the program ``run(values,
            *raws)``, the values, the spec of the result or None, what makes the result otherwise, what says whether
            the program is still right or None, the only step or None, and the tuple of specs. A step is a tuple of the
            kernel, its operands as bytes (their number, then the position of each among raw arguments and extras),
            and the extras.
        recent: list of one item: what the call found, or None where it was handed on. Where it is not None and specs
            are the same, the next call does not look into the table.
        slow: called with the tuple of arguments in all other cases.
        tiered: class of kernels that keep their fastest form in the slot ``run``.
    """

    arguments: int
    table: dict[Any, Any]
    recent: list[Any]
    slow: Callable[[tuple[Any, ...]], Any]
    tiered: type


class Shortcuts(ABC):
    """What a backend may offer; every method may return the function that it was given."""

    @abstractmethod
    def copied(self, array: Any) -> Any:
        """A copy of a large NumPy array, of its layout, in memory from where results have theirs."""

    @abstractmethod
    def entry(self, entering: Entering) -> Callable[..., Any] | None:
        """A function of positional arguments, each of any class, or None."""


_lock = new_lock()
_offered: Shortcuts | None = None
_waiting: list[Callable[[Shortcuts], None]] = []


def offer(shortcuts: Shortcuts) -> None:
    """Let all that may be shortened use these; the first offer of a process stays."""
    global _offered
    with _lock:
        if _offered is not None:
            return
        _offered = shortcuts
        waiting = _waiting.copy()
        _waiting.clear()
    for use in waiting:
        use(shortcuts)


def shortcuts() -> Shortcuts | None:
    """The short cuts, where some are offered by now."""
    return _offered


def when_offered(use: Callable[[Shortcuts], None]) -> None:
    """Call a function with the short cuts: now where some are offered, else when they are."""
    with _lock:
        if _offered is None:
            _waiting.append(use)
            return
    use(_offered)
