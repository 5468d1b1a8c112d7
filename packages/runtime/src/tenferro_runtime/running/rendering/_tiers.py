"""`Tiered`: a kernel that starts in a slow form and switches to a faster one while the program runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from weakref import WeakSet, ref

from tenferro_runtime.running.rendering._background import COMPILING
from tenferro_tensor_core.forks import new_lock

CALLS_BEFORE_COMPILING: Final = 2
"""A kernel is compiled after this many calls, so that a program that runs once does not pay for it."""

Kernel = Callable[..., Any]

_CALLED: Final[WeakSet[Tiered]] = WeakSet()
"""Kernels that have run and that may still be used."""
_CALLED_LOCK: Final = new_lock()


def wait() -> None:
    """Compile all programs that have run, and wait for them.

    For tests and measurements, after the first run of a program.
    """
    for tier in _called():
        tier.build()
    COMPILING.drain()


def kernel_stats() -> dict[str, int]:
    """Number of programs that have run, by state.

    Returns:
        Counts of ``"waiting"``, ``"queued"``, ``"native"`` and ``"step by step"``; the last two are final.
    """
    counts = dict.fromkeys(("waiting", "queued", "native", "step by step"), 0)
    for tier in _called():
        counts[tier.state] += 1
    return counts


def _called() -> list[Tiered]:
    with _CALLED_LOCK:
        return list(_CALLED)


def _build_if_used(tier: ref[Tiered]) -> None:
    """Build the fast form of a kernel unless its program is gone by then."""
    found = tier()
    if found is not None:
        found.build()


class Tiered:
    """A callable on raw arrays; `run` is its fastest form so far.

    Frequent callers store `run` themselves and keep it current with `on_faster`.

    Args:
        first: the form that is available immediately.
        build: returns the fast form, or None if there is none; called once, in the background.
    """

    __slots__ = ("__weakref__", "_build", "_callbacks", "_calls", "_first", "_lock", "run", "state")

    def __init__(self, first: Kernel, build: Callable[[], Kernel | None]) -> None:
        self._first, self._build, self._calls = first, build, 0
        self._callbacks: list[Callable[[Kernel], object]] = []
        self._lock = new_lock()
        self.state = "waiting"
        """``"waiting"``, ``"queued"``, and finally ``"native"`` or ``"step by step"``."""
        self.run: Kernel = self._counted

    def __call__(self, *raws: Any) -> Any:
        return self.run(*raws)

    def on_faster(self, callback: Callable[[Kernel], object]) -> None:
        """Call `callback` with each faster form, immediately or later, from any thread.

        Calls are serialized under the lock of this kernel; `callback` must not use the kernel's methods.
        """
        with self._lock:
            if self.state in ("waiting", "queued"):
                self._callbacks.append(callback)
            if self.state != "waiting":
                callback(self.run)

    def build(self) -> None:
        """Build the final form now unless it is already built."""
        with self._lock:
            if self.state in ("native", "step by step"):
                return
            self.state = "queued"
        try:
            made = self._build()
        except KeyboardInterrupt:  # the waiting user gave up; the next call may try again
            with self._lock:
                self.state, self._calls = "waiting", 0
                self._switch_to(self._counted)
            raise
        except BaseException:
            self._finish(None)
            raise
        self._finish(made)

    def _finish(self, made: Kernel | None) -> None:
        with self._lock:
            self.state = "step by step" if made is None else "native"
            self._switch_to(self._first if made is None else made)
            self._callbacks.clear()

    def _switch_to(self, kernel: Kernel) -> None:
        self.run = kernel
        for callback in self._callbacks:
            callback(kernel)

    def _counted(self, *raws: Any) -> Any:
        self._calls += 1
        with _CALLED_LOCK:
            _CALLED.add(self)
        if self._calls >= CALLS_BEFORE_COMPILING:
            with self._lock:
                first = self.state == "waiting"
                if first:
                    self.state = "queued"
                    self._switch_to(self._first)
            if first:
                COMPILING.submit(partial(_build_if_used, ref(self)))
        return self._first(*raws)
