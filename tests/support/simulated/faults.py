"""Failures and delays that a test asks for, drawn from one seed."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


class InjectedFault(RuntimeError):
    """A failure that a test asked for."""


@dataclass
class Faults:
    """What goes wrong, and how long things take.

    Attributes:
        seed: of the random draws; they are made when work is issued.
        kernel: probability that a kernel fails while it runs.
        transfer: probability that a copy fails while it runs.
        allocation: probability that an allocation finds no memory.
        delayed: probability that work is held up.
        longest: seconds that it is held up at most.
    """

    seed: int = 0
    kernel: float = 0.0
    transfer: float = 0.0
    allocation: float = 0.0
    delayed: float = 0.0
    longest: float = 1e-3
    injected: int = 0
    _planned: dict[str, list[Callable[[], Exception]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random, self._lock = random.Random(self.seed), threading.Lock()

    def next(self, kind: str, after: int = 0, error: Callable[[], Exception] | None = None) -> None:
        """Have the next piece of work of a kind fail, or one that comes later.

        Args:
            kind: ``"kernel"``, ``"transfer"`` or ``"allocation"``.
            after: number of pieces that go well before it.
            error: makes the exception; by default an `InjectedFault`.
        """
        planned = self._planned.setdefault(kind, [])
        planned.extend([_none] * (after - len(planned)))
        planned.append(error or (lambda: InjectedFault(f"the {kind} was told to fail")))

    def draw(self, kind: str) -> Exception | None:
        """The failure of the next piece of work of a kind, if it is to fail."""
        with self._lock:
            planned = self._planned.get(kind)
            error = planned.pop(0)() if planned else None
            error = None if isinstance(error, _NoFault) else error
            if error is None and self._random.random() < getattr(self, kind):
                error = InjectedFault(f"the {kind} failed by chance")
            self.injected += error is not None
            return error

    def delay(self) -> float:
        """Seconds that the next piece of work is held up."""
        with self._lock:
            return self._random.random() * self.longest if self._random.random() < self.delayed else 0.0


class _NoFault(Exception):
    """The place of a piece of work that goes well."""


def _none() -> Exception:
    return _NoFault()
