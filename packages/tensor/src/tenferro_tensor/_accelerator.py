"""`AcceleratorBackend`: the part of a backend that follows from the device runtime of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import Backend
from tenferro_tensor.device_runtimes import (
    DeviceRuntime,
    RuntimeDevice,
    Stream,
    current_stream,
    device_runtime,
)
from tenferro_tensor.device_runtimes._issuing import issuing_stream
from tenferro_tensor.reference import placement


class AcceleratorBackend(Backend):
    """A backend whose devices, copies and waits are those of the device runtime of its kind.

    A subclass implements `kernel`. A kernel issues its work to the stream of `stream_for` and returns. The runtime
    copies between two devices of the kind, without blocking the calling thread.
    """

    @property
    def runtime(self) -> DeviceRuntime:
        """The device runtime of the same kind, created on first use."""
        return device_runtime(self.name)

    def devices(self) -> tuple[ComputeDevice, ...]:
        """The devices of the runtime."""
        return tuple([d.id for d in self.runtime.devices()])

    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> Any:
        """Copy a host array to a device, on the stream that its work goes to.

        Args:
            array: host array of any shape.
            device: target device.

        Returns:
            A raw array in the memory of the device.
        """
        target = self.runtime.device(device.index)
        return target.upload(array, current_stream(target))

    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """Copy a raw array to main memory; waits for the work that computes it, and for no other stream.

        Args:
            raw: raw array.

        Returns:
            A host array.
        """
        source = self.runtime.device_of(raw)
        return source.download(raw, self.stream_for(source, (raw,))).result()

    def device_of(self, raw: Any) -> ComputeDevice:
        """The device whose memory holds a raw array, according to the runtime.

        Args:
            raw: raw array.

        Returns:
            The device.
        """
        return self.runtime.device_of(raw).id

    def synchronize(self) -> None:
        """Wait for all streams of all devices.

        Raises:
            AsynchronousError: work of a stream failed.
        """
        self.runtime.synchronize_all()

    def stream_for(self, device: RuntimeDevice, raws: Iterable[Any]) -> Stream:
        """The stream for work on raw arrays of a device, after making it wait for the streams that compute them.

        Inside `Stream.launch` of that device it is that stream, and the caller of `launch` is responsible for the
        order.

        Args:
            device: the device.
            raws: raw arrays that the work reads.

        Returns:
            The stream.
        """
        issuing = issuing_stream()
        if issuing is not None and issuing.device is device:
            return issuing  # type: ignore[no-any-return]
        stream = current_stream(device)
        for other in {self.runtime.stream_of(raw) for raw in raws}:
            if other is not None and other is not stream:
                stream.wait(other.record())
        return stream

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """As `Backend.kernel`; transfers from this kind of device need no registered kernel.

        Args:
            op: the op.
            ins: specs of the operands.
            outs: specs of the results.
            device: device that runs it.

        Returns:
            A callable on raw arrays.
        """
        if op.primitive is not catalog.transfer:
            return super().kernel(op, ins, outs, device)
        self.require(device)
        home, goal = ins[0].place.memory_space, outs[0].place.memory_space
        if home is goal or goal.kind != home.kind:
            return placement.transfer(ins, outs, **op.params)
        self.require(goal.default_device)
        return self._peer_copy(goal.default_device)

    def _peer_copy(self, device: ComputeDevice) -> Callable[..., Any]:
        def copy(raw: Any) -> Any:
            runtime, issuing = self.runtime, issuing_stream()
            target = runtime.device(device.index)
            if issuing is not None and issuing.device is target:
                return runtime.copy_peer(raw, None, issuing)
            return runtime.copy_peer(raw, runtime.stream_of(raw), current_stream(target))

        return copy
