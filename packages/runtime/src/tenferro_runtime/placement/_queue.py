"""`Queue`: a thread or a stream of a plan."""

from __future__ import annotations

from typing import Final, NamedTuple

from tenferro_tensor import HOST, ComputeDevice


class Queue(NamedTuple):
    """A sequence of actions: a thread of the host, or a stream of an accelerator.

    Attributes:
        device: a pool, or an accelerator.
        role: ``"host"``, ``"copy"``, ``"compute"``, or ``"compute 2"`` for parallel work.
    """

    device: ComputeDevice
    role: str

    @property
    def host(self) -> bool:
        """Whether it is a thread of the host."""
        return self.role == "host"

    def __str__(self) -> str:
        return str(self.device) if self.role == "host" else f"{self.device}/{self.role}"


CALLER: Final = Queue(HOST.device, "host")
"""The calling thread is the pool ``cpu:0``; it also issues what the streams do."""
