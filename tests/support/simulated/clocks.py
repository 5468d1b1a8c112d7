"""Happens-before with vector clocks: what is ordered by streams, events and waits, and what merely ran in that order.

Clocks move when work is issued, not when it runs: a missing wait is found whatever the timing.

Actors are streams and the host. A clock says, for each actor, up to which of its steps everything has happened.
"""

import threading
import traceback
from dataclasses import dataclass, field
from typing import Any

Clock = dict[Any, int]
HOST = "host"


@dataclass(frozen=True)
class Hazard:
    """Two accesses to one memory that nothing orders, or an access to memory that is not there."""

    rule: str
    text: str
    line: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}\n    issued at {self.line}"


class HazardError(AssertionError):
    """What a strict checker raises at the access."""


@dataclass(eq=False)
class Tracked:
    """Memory that the checker watches: who wrote it, who has read it since, who took it and gave it back."""

    name: str
    born: tuple[Any, int] | None = None
    writer: tuple[Any, int] | None = None
    readers: Clock = field(default_factory=dict)
    freed: str | None = None


def merge(clock: Clock, other: Clock) -> None:
    """Whatever `other` has seen happen, `clock` has seen too."""
    for actor, k in other.items():
        if k > clock.get(actor, 0):
            clock[actor] = k


def covers(clock: Clock, epoch: tuple[Any, int] | None) -> bool:
    return epoch is None or clock.get(epoch[0], 0) >= epoch[1]


class Checker:
    """The clocks of one runtime.

    Args:
        strict: raise a `HazardError` at once instead of noting the hazard.
        threads: give each host thread its own clock. Code that hands work from thread to thread then carries them, by
            `publish` and `observe`; else all host threads are one actor, and no order among them is missed.
    """

    def __init__(self, *, strict: bool = False, threads: bool = False) -> None:
        self.hazards: list[Hazard] = []
        self.strict, self.threads = strict, threads
        self.lock = threading.RLock()
        self._host: dict[Any, Clock] = {}

    def host(self) -> tuple[Any, Clock]:
        """The actor that the calling thread is, and its clock."""
        actor: Any = (HOST, threading.get_ident()) if self.threads else HOST
        return actor, self._host.setdefault(actor, {})

    def publish(self) -> Clock:
        """What the calling thread has seen, for another thread to `observe`."""
        with self.lock:
            return dict(self.host()[1])

    def observe(self, seen: Clock) -> None:
        """The calling thread has learnt what another one (or an event) has seen."""
        with self.lock:
            merge(self.host()[1], seen)

    def step(self, actor: Any, clock: Clock) -> int:
        """The next step of a stream; it comes after all that the issuing thread has seen."""
        merge(clock, self.host()[1])
        clock[actor] = clock.get(actor, 0) + 1
        return clock[actor]

    def host_step(self) -> tuple[Any, Clock]:
        actor, clock = self.host()
        clock[actor] = clock.get(actor, 0) + 1
        return actor, clock

    def allocate(self, memory: Tracked, actor: Any, clock: Clock) -> None:
        memory.born = (actor, clock.get(actor, 0))

    def read(self, memory: Tracked, actor: Any, clock: Clock, what: str) -> None:
        if not self._there(memory, clock, what):
            return
        if memory.writer is None:
            self.note("read of memory that nobody has written", f"{what} reads {memory.name}")
        elif not covers(clock, memory.writer):
            self.note("read not ordered after the write", f"{what} reads {memory.name}, written by {memory.writer[0]}")
        memory.readers[actor] = clock[actor]

    def write(self, memory: Tracked, actor: Any, clock: Clock, what: str) -> None:
        if not self._there(memory, clock, what):
            return
        if not covers(clock, memory.writer):
            text = f"{what} overwrites {memory.name}, written by {memory.writer[0]}"
            self.note("overwrite not ordered after the write", text)
        late = [reader for reader in memory.readers.items() if not covers(clock, reader)]
        if late:
            self.note("overwrite not ordered after a read", f"{what} overwrites {memory.name}, read by {late[0][0]}")
        memory.writer, memory.readers = (actor, clock[actor]), {}

    def free(self, memory: Tracked, clock: Clock, what: str) -> None:
        if memory.freed is not None:
            return
        users = [*memory.readers.items(), *([memory.writer] if memory.writer else [])]
        late = [user for user in users if not covers(clock, user)]
        if late:
            self.note("free while another stream uses it", f"{what} frees {memory.name}, used by {late[0][0]}")
        memory.freed = what

    def _there(self, memory: Tracked, clock: Clock, what: str) -> bool:
        if memory.freed is not None:
            self.note("use after free", f"{what} uses {memory.name}, freed by {memory.freed}")
            return False
        if not covers(clock, memory.born):
            self.note("use not ordered after the allocation", f"{what} uses {memory.name}")
        return True

    def note(self, rule: str, text: str) -> None:
        frames = [f for f in traceback.extract_stack() if "/simulated/" not in f.filename.replace("\\", "/")]
        mine = [f for f in frames if "tenferro_tensor" not in f.filename] or frames
        hazard = Hazard(rule, text, f"{mine[-1].filename}:{mine[-1].lineno}: {mine[-1].line}")
        self.hazards.append(hazard)
        if self.strict:
            raise HazardError(str(hazard))
