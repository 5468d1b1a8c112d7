"""A gate in a stream: what is issued after it waits until it is opened, so that a test sees who waits for whom."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Gate:
    """Holds a stream up.

    Attributes:
        forced: whether nobody opened it in time, because somebody waited for the stream.
    """

    def __init__(self) -> None:
        self._open, self.forced = threading.Event(), False

    def open(self) -> None:
        self._open.set()

    def pass_(self) -> None:
        self.forced = not self._open.wait(60)


@contextmanager
def held(*streams: Any) -> Iterator[Gate]:
    """The streams do nothing until the block is left; it fails where something in it waited for them."""
    gate = Gate()
    for stream in streams:
        stream.issue("gate", gate.pass_)
    try:
        yield gate
        assert not gate.forced, "something waited for the device"
    finally:
        gate.open()
