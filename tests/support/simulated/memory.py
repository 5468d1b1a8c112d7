"""Memory of simulated devices, values in it that host code cannot read, and staging buffers in main memory."""

import threading
from collections import deque
from typing import Any

import numpy as np

from simulated.clocks import Checker, Tracked, covers
from tenferro_tensor_core import PlacementError


def poisoned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Memory that nobody has written: NaN, or a number that nobody expects."""
    array = np.empty(shape, dtype)
    if array.size:
        array.reshape(-1).view(np.uint8)[...] = 0xFF if array.dtype.kind in "fc" else 0x5A
    if array.dtype.kind == "b":
        array[...] = True
    return array


class Account:
    """Bytes of one device; values may be dropped by the garbage collector in any thread at any time."""

    def __init__(self, limit: int) -> None:
        self.limit, self.live, self.peak, self.values = limit, 0, 0, 0
        self._dropped: deque[int] = deque()
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> bool:
        """Whether there is room, which is then taken."""
        with self._lock:
            self._settle()
            if self.live + nbytes > self.limit:
                return False
            self.live, self.values = self.live + nbytes, self.values + 1
            self.peak = max(self.peak, self.live)
            return True

    def give_back(self, nbytes: int) -> None:
        """Room is free again; no lock, as the collector may call it inside of `take`."""
        self._dropped.append(nbytes)

    def stats(self) -> dict[str, int]:
        with self._lock:
            self._settle()
            return {"live": self.live, "peak": self.peak, "values": self.values, "limit": self.limit}

    def _settle(self) -> None:
        while self._dropped:
            self.live, self.values = self.live - self._dropped.popleft(), self.values - 1


class Buffer(Tracked):
    """Memory of a device; tasks that wait in streams hold it, so that dropping a value never takes it from them."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype, account: Account) -> None:
        super().__init__(name)
        self.data = poisoned(shape, dtype)
        self.nbytes, self._account, self._held = self.data.nbytes, account, True

    def give_back(self) -> None:
        if self._held:
            self._held = False
            self._account.give_back(self.nbytes)


class SimArray:
    """A raw value of a simulated device: shape and dtype are known at once, the elements are in the device's memory.

    Attributes:
        device: where it is.
        stream: the stream that computes it.
        buffer: its memory.
    """

    __array_priority__ = 1000

    def __init__(self, device: Any, stream: Any, buffer: Buffer) -> None:
        self.device, self.stream, self.buffer = device, stream, buffer
        self.shape, self.dtype = buffer.data.shape, buffer.data.dtype

    ndim = property(lambda self: len(self.shape))
    nbytes = property(lambda self: self.buffer.nbytes)
    size = property(lambda self: self.buffer.data.size)

    def copy(self) -> "SimArray":
        """The value once more."""
        return self.device.duplicate(self)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise PlacementError(f"host code reads {self!r}; download it first", device=str(self.device.id))

    __array__ = __iter__ = __bool__ = __int__ = __float__ = __index__ = __complex__ = __len__ = _refuse

    def __del__(self) -> None:
        buffer = getattr(self, "buffer", None)
        if buffer is not None:
            buffer.give_back()

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} in the memory of {self.device.id}>"


class Staging(Tracked):
    """Pinned main memory that copies go through; the host and streams share it, hence the checker watches it."""

    def __init__(self, checker: Checker, shape: tuple[int, ...], dtype: np.dtype) -> None:
        super().__init__("a staging buffer")
        self.data, self._checker = poisoned(shape, dtype), checker

    def write(self, array: np.ndarray) -> None:
        """The host overwrites it."""
        with self._checker.lock:
            actor, clock = self._checker.host_step()
            self._checker.write(self, actor, clock, "the host")
        self.data[...] = array

    def read(self) -> np.ndarray:
        """The host reads it."""
        with self._checker.lock:
            actor, clock = self._checker.host_step()
            if not covers(clock, self.writer):
                self._checker.note("host read of a staging buffer in flight", f"the host reads {self.name}")
            else:
                self._checker.read(self, actor, clock, "the host")
        return self.data
