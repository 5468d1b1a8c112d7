"""`Tiered`: a kernel that starts as one thing and becomes a faster one while the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

from tenferro_runtime.rendering._background import COMPILING
from tenferro_tensor_core.forks import new_lock

CALLS: Final = 2
"""Calls after which a kernel is worth compiling; programs that run once never pay for it."""

Kernel = Callable[..., Any]

TIERS: Final[WeakSet[Tiered]] = WeakSet()
"""All that there are."""
_LIVE_LOCK: Final = new_lock()


def build_all() -> None:
    """Make the final form of all that there are."""
    with _LIVE_LOCK:
        live = list(TIERS)
    for tier in live:
        tier.build()


class Tiered:
    """A callable on raw arrays; `run` is its fastest form so far.

    Whoever calls it often asks for `ready` and keeps what that gives in the place of `run`.

    Args:
        first: the form that is there at once.
        build: makes the fast form, or gives None where there is none; called once, in the background.
    """

    __slots__ = ("__weakref__", "_build", "_calls", "_first", "_lock", "_tell", "run", "state")

    def __init__(self, first: Kernel, build: Callable[[], Kernel | None]) -> None:
        self._first, self._build, self._calls = first, build, 0
        self._tell: list[Callable[[Kernel], object]] = []
        self._lock = new_lock()
        self.state = "waiting"
        """``"waiting"``, ``"queued"``, ``"native"``, or ``"op by op"`` for ever."""
        self.run: Kernel = self._counted
        with _LIVE_LOCK:
            TIERS.add(self)

    def __call__(self, *raws: Any) -> Any:
        return self.run(*raws)

    def ready(self, tell: Callable[[Kernel], object]) -> None:
        """Have `tell` called with every form that is better than the one before: now, or later, from any thread.

        It is called under a lock, one form after the other, and must not ask for anything here.
        """
        with self._lock:
            if self.state in ("waiting", "queued"):
                self._tell.append(tell)
            if self.state != "waiting":
                tell(self.run)

    def build(self) -> None:
        """Make the final form now, unless it is there."""
        with self._lock:
            if self.state in ("native", "op by op"):
                return
            self.state = "queued"
        try:
            made = self._build()
        except KeyboardInterrupt:  # somebody who waited gave up, and the next call may try again
            with self._lock:
                self.state, self._calls = "waiting", 0
                self._become(self._counted)
            raise
        except BaseException:
            self._end(None)
            raise
        self._end(made)

    def _end(self, made: Kernel | None) -> None:
        with self._lock:
            self.state = "op by op" if made is None else "native"
            self._become(self._first if made is None else made)
            self._tell.clear()

    def _become(self, kernel: Kernel) -> None:
        self.run = kernel
        for tell in self._tell:
            tell(kernel)

    def _counted(self, *raws: Any) -> Any:
        self._calls += 1
        if self._calls >= CALLS:
            with self._lock:
                first = self.state == "waiting"
                if first:
                    self.state = "queued"
                    self._become(self._first)
            if first:
                COMPILING.submit(self.build)
        return self._first(*raws)
