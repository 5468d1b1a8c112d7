"""Short cuts: compiled code that a backend puts in front of the interpreted ways of eager values.

A short cut does what an interpreted function does where everything is as usual, and calls that function otherwise. So
what a program means never depends on whether one is there.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenferro_tensor._primitive import Op


@dataclass(frozen=True, slots=True)
class Recording:
    """What the recording of an operator reads and makes.

    Attributes:
        eager: class of recorded values, with the slots ``value, spec, level, node``.
        node: class of their nodes, with the slots ``seq, pull, parents, saved``.
        pullback: class of pullback plans, with the slot ``how``, whose second item a node calls.
        count: iterator that gives nodes their place.
        modes: namespace whose ``slow`` is 0 where nothing special is asked of recording.
        tables: entries (kernel, output spec, pullback plan) by spec: ``both`` for operands of one spec, ``mixed`` by
            both specs, ``left`` and ``right`` where only that operand is recorded.
        save: positions among (x, y, result) of what a node saves, for ``both``, ``left`` and ``right``.
    """

    eager: type
    node: type
    pullback: type
    count: Any
    modes: dict[str, Any]
    tables: Mapping[str, dict[Any, Any]]
    save: Mapping[str, Sequence[int]]


class Shortcuts(ABC):
    """What a backend may offer; every method may return the function that it was given."""

    @abstractmethod
    def tensor_operator(self, name: str, method: Callable[..., Any], op: Op, *, reflected: bool) -> Callable[..., Any]:
        """A method of concrete tensors for an operator of two operands."""

    @abstractmethod
    def record_operator(
        self, name: str, method: Callable[..., Any], recording: Recording, *, reflected: bool
    ) -> Callable[..., Any]:
        """A method of recorded values for an operator of two operands."""


_lock = threading.Lock()
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


def when_offered(use: Callable[[Shortcuts], None]) -> None:
    """Call a function with the short cuts: now where some are offered, else when they are."""
    with _lock:
        if _offered is None:
            _waiting.append(use)
            return
    use(_offered)
