"""`CupyRuntime`: all devices of a kind, the writing streams of values, and copies between devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar
from weakref import ref

from tenferro_gpu._stack import checked_index, cupy, device_count
from tenferro_gpu.devices._device import CupyDevice
from tenferro_gpu.devices._pools import DevicePool, pool_of
from tenferro_gpu.devices._streams import CupyStream
from tenferro_tensor import DeviceRuntime, RuntimeDevice, Stream, register_device_runtime
from tenferro_tensor_core import ArgumentError


class CupyRuntime(DeviceRuntime):
    """The devices that CuPy sees; implements `DeviceRuntime`.

    Methods take:
        ordinal: number of a device.
        raw, raws: arrays of CuPy.
        stream: a stream.
        source, target: devices of a copy.
        out: array to write to.

    Methods return:
        As specified by the contract of device runtimes.

    Attributes:
        cupy: the module.
        pool: the memory pool of the devices.

    Raises:
        BackendUnavailableError: CuPy, the driver or a device is missing; the text says what to do.
    """

    kind: ClassVar[str]

    def __init__(self) -> None:
        self.cupy: Any = cupy(self.kind)
        self.pool: DevicePool = pool_of(self.cupy, self.kind)
        self._devices = tuple([CupyDevice(self, i) for i in range(device_count(self.kind))])
        # The non-default streams that wrote values, by identity of the value.
        self._marks: dict[int, tuple[ref[Any], CupyStream]] = {}

    def devices(self) -> tuple[CupyDevice, ...]:
        """All devices."""
        return self._devices

    def device(self, ordinal: int) -> CupyDevice:
        """The device with a number.

        Raises:
            BackendUnavailableError: there is no such device.
        """
        return self._devices[checked_index(self.kind, ordinal)]

    def device_of(self, raw: Any) -> CupyDevice:
        """The device of an array."""
        if not isinstance(raw, self.cupy.ndarray):
            raise ArgumentError(f"an array of CuPy was expected, got {type(raw).__name__}; move it with to_device")
        found: CupyDevice = self._devices[raw.device.id]
        return found

    @property
    def marked(self) -> bool:
        """Whether any value of a stream other than the default ones is alive."""
        return bool(self._marks)

    def stream_of(self, raw: Any) -> CupyStream | None:
        """The stream that writes a value; for unmarked values, the default stream of their device."""
        if not isinstance(raw, self.cupy.ndarray):
            return None
        found = self._marks.get(id(raw))
        return self._devices[raw.device.id].default_stream if found is None else found[1]

    def mark(self, stream: CupyStream, *raws: Any) -> None:
        """Note that a stream writes these values."""
        if stream is stream.device.default_stream:
            return
        for raw in raws:
            if isinstance(raw, self.cupy.ndarray):
                key = id(raw)
                # Reading and dropping an entry are atomic, so that the end of a value needs no lock.
                self._marks[key] = ref(raw, lambda _, key=key: self._marks.pop(key, None)), stream  # type: ignore[misc]

    def others(self, stream: CupyStream, raws: Iterable[Any]) -> tuple[CupyStream, ...]:
        """The other streams that write any of the values."""
        found = {self.stream_of(raw) for raw in raws} - {None, stream}
        return tuple([other for other in found if other is not None])

    def lent(self, stream: CupyStream, raws: Iterable[Any]) -> bool:
        """Whether the memory of any value belongs to another stream, which reuses it regardless of this one.

        The memory of a view is that of its base, even if another stream created the view.
        """
        arrays = [raw for raw in raws if isinstance(raw, self.cupy.ndarray)]
        return bool(self.others(stream, [raw if raw.base is None else raw.base for raw in arrays]))

    def can_access_peer(self, source: RuntimeDevice, target: RuntimeDevice) -> bool:
        """Whether a device accesses the memory of another directly."""
        if source is target:
            return True
        return bool(self.cupy.cuda.runtime.deviceCanAccessPeer(target.ordinal, source.ordinal))

    def copy_peer(self, raw: Any, source: Stream | None, target: Stream, out: Any = None) -> Any:
        """Copy between devices; the driver copies through main memory if they have no peer access."""
        assert isinstance(target, CupyStream)
        home, goal = self.device_of(raw), target.device
        if out is not None:
            goal.require_own(out, raw.shape, raw.dtype)
        if source is not None:
            target.wait(source.record())
        lying = raw
        if not raw.flags.c_contiguous:
            writer = self.stream_of(raw) if source is None else source
            assert isinstance(writer, CupyStream)
            with home.enough(raw.size, raw.dtype), writer:
                lying = self.cupy.ascontiguousarray(raw)
            target.wait(writer.record())
        with goal.enough(raw.size, raw.dtype), target:
            copy = self.cupy.empty(raw.shape, raw.dtype) if out is None else out
            if raw.size:
                self.cupy.cuda.runtime.memcpyPeerAsync(
                    copy.data.ptr, goal.ordinal, lying.data.ptr, home.ordinal, raw.nbytes, target.raw.ptr
                )
        goal.keeping.keep(target.record(), raw, lying)
        self.mark(target, copy)
        return copy


class CudaRuntime(CupyRuntime):
    """The runtime of NVIDIA devices."""

    kind = "cuda"


class RocmRuntime(CupyRuntime):
    """The runtime of AMD devices."""

    kind = "rocm"


def register_cuda() -> None:
    """Register the runtime of CUDA devices; an entry point.

    >>> from importlib.metadata import entry_points
    >>> {point.value for point in entry_points(name="cuda") if "register" in point.value}
    {'tenferro_gpu:register_cuda'}
    """
    register_device_runtime("cuda", CudaRuntime)


def register_rocm() -> None:
    """Register the runtime of ROCm devices; an entry point.

    >>> from importlib.metadata import entry_points
    >>> {point.value for point in entry_points(name="rocm") if "register" in point.value}
    {'tenferro_gpu:register_rocm'}
    """
    register_device_runtime("rocm", RocmRuntime)
