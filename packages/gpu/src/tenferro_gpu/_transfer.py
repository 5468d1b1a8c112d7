"""Explicit transfers between main memory and a device; those without handles are differentiable, as all transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from tenferro_gpu.devices import CupyRuntime
from tenferro_tensor import (
    HOST,
    Array,
    ComputeDevice,
    Event,
    MemorySpace,
    Place,
    Tensor,
    catalog,
    device_runtime,
    tensor,
)
from tenferro_tensor.transfers import book_raw
from tenferro_tensor_core import PlacementError


class PendingTransfer:
    """A transfer on its way, on the stream of its device that is kept for copies.

    Attributes:
        event: the event after the copy.
    """

    __slots__ = ("_result", "event")

    def __init__(self, event: Event, result: Callable[[], Tensor]) -> None:
        self.event, self._result = event, result

    @property
    def done(self) -> bool:
        """Whether the copy is done; never waits."""
        return self.event.done

    def synchronize(self) -> None:
        """Wait for the copy.

        Raises:
            AsynchronousError: the copy, or what computes its source, failed.
        """
        self.event.synchronize()

    def result(self) -> Tensor:
        """The tensor: of an upload at once, for work on the device waits for the copy by itself; of a download, in
        page-locked memory, when the copy is done.

        Raises:
            AsynchronousError: the download, or what computes its source, failed.
        """
        return self._result()


@overload
def upload(x: Any, device: str | ComputeDevice = ..., *, pending: Literal[False] = ...) -> Any: ...


@overload
def upload(x: Any, device: str | ComputeDevice = ..., *, pending: Literal[True]) -> PendingTransfer: ...


def upload(x: Any, device: str | ComputeDevice = "cuda:0", *, pending: bool = False) -> Any:
    """`x` in the memory of a device; returns before the copy is done, with `x` free to be changed.

    Args:
        x: array in main memory.
        device: where to, as in ``"cuda:1"``.
        pending: copy beside the work of the device, on a stream of its own, and return a handle. Derivatives do not
            pass.

    Raises:
        BackendUnavailableError: there is no such device; the text says what to install or check.
        PlacementError: a handle was asked for, and `x` is no concrete array in main memory.
        DeviceMemoryError: the memory of the device does not suffice.
    """
    target = ComputeDevice(device)
    value = x if isinstance(x, Array) else tensor(x, device=HOST.device)  # whatever the enclosing scope says
    place = Place(MemorySpace(str(target)))
    if not pending:
        return catalog.transfer(value, place=place)
    home = _runtime(target).device(target.index)
    source = _concrete("upload", value, "host")
    book_raw(HOST.memory_space, place.memory_space, "", source._data)
    raw = home.upload(source.numpy(), home.copy_stream)
    result = Tensor.wrap(raw, source.spec.with_(place=place))
    return PendingTransfer(home.copy_stream.record(), lambda: result)


@overload
def download(x: Array, *, pending: Literal[False] = ...) -> Any: ...


@overload
def download(x: Array, *, pending: Literal[True]) -> PendingTransfer: ...


def download(x: Array, *, pending: bool = False) -> Any:
    """`x` in main memory; waits for the work that computes it.

    Args:
        x: array in the memory of a device.
        pending: do not wait: copy beside later work of the device, on a stream of its own, and return a handle.
            Derivatives do not pass.

    Raises:
        PlacementError: a handle was asked for, and `x` is no concrete array of a device.
        AsynchronousError: what computes `x` failed.
    """
    if not pending:
        return catalog.transfer(x, place=HOST)
    source = _concrete("download", x, None)
    runtime = _runtime(source.spec.place.device)
    home = runtime.device_of(source._data)
    copying = home.copy_stream
    book_raw(source.spec.place.memory_space, HOST.memory_space, "", source._data)
    for other in runtime.others(copying, (source._data,)):
        copying.wait(other.record())
    way = home.download(source._data, copying)
    spec = source.spec.with_(place=HOST)
    return PendingTransfer(
        way.event,
        # In main memory, whatever scope the result is asked for in.
        lambda: tensor(way.result(), device=HOST.device) if spec.shape else Tensor.wrap(way.result()[()], spec),
    )


def _runtime(device: ComputeDevice) -> CupyRuntime:
    found = device_runtime(device.kind)
    assert isinstance(found, CupyRuntime)
    return found


def _concrete(what: str, x: Any, kind: str | None) -> Tensor:
    known = isinstance(x, Array)
    where = x.spec.place.memory_space.kind if known else "host"
    seen = f"{type(x).__name__} {x.spec!r}" if known else type(x).__name__
    if not isinstance(x, Tensor) or (where == "host") != (kind == "host"):
        raise PlacementError(
            f"{what} with a handle takes a concrete tensor in {'main' if kind else 'device'} memory, got {seen} in "
            f"{where} memory; leave pending=True out, or move and detach it first",
            memory_space=where,
        )
    return x
