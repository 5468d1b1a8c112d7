"""Explicit transfers between main memory and a device; differentiable unless they return handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from tenferro_gpu.devices import CupyRuntime, CupyStream
from tenferro_tensor import (
    HOST,
    Array,
    ComputeDevice,
    Event,
    MemorySpace,
    Place,
    Tensor,
    catalog,
    current_stream,
    device_runtime,
    tensor,
)
from tenferro_tensor.device_runtimes import require_destination
from tenferro_tensor.transfers import book_raw
from tenferro_tensor_core import PlacementError


class PendingTransfer:
    """A transfer in progress, on the copy stream of its device.

    Attributes:
        event: the event after the copy.
    """

    __slots__ = ("_result", "event")

    def __init__(self, event: Event, result: Callable[[], Tensor]) -> None:
        self.event: Event = event
        self._result = result

    @property
    def done(self) -> bool:
        """Whether the copy is done; never waits."""
        return self.event.done

    def synchronize(self) -> None:
        """Wait for the copy.

        Raises:
            AsynchronousError: the copy, or the computation of its source, failed.
        """
        self.event.synchronize()

    def result(self) -> Tensor:
        """The transferred tensor.

        An upload returns at once, because work on the device waits for the copy; a download waits for the copy, and
        returns page-locked memory.

        Raises:
            AsynchronousError: the download, or the computation of its source, failed.
        """
        return self._result()


@overload
def upload(x: Any, device: str | ComputeDevice = ..., *, out: Any = ..., pending: Literal[False] = ...) -> Array: ...


@overload
def upload(x: Any, device: str | ComputeDevice = ..., *, out: Any = ..., pending: Literal[True]) -> PendingTransfer: ...


def upload(x: Any, device: str | ComputeDevice = "cuda:0", *, out: Any = None, pending: bool = False) -> Any:
    """Copy an array to the memory of a device.

    Returns before the copy is done; `x` may be modified at once.

    Args:
        x: array in main memory.
        device: the target, such as ``"cuda:1"``.
        out: an array of CuPy on that device to copy into, of the same shape and dtype; the tensor shares its memory,
            like one of ``from_dlpack``. Not differentiable.
        pending: copy beside the work of the device, on a separate stream, and return a handle. Not differentiable.

    Returns:
        The tensor on the device, of the shape and dtype of `x`; with `pending`, a `PendingTransfer`.

    Raises:
        BackendUnavailableError: there is no such device; the text says what to install or check.
        PlacementError: a handle or `out` is requested, and `x` is not a concrete array in main memory, or `out` is
            elsewhere.
        ShapeError, DTypeError, ArgumentError: `out` does not fit; nothing is converted or copied twice.
        DeviceMemoryError: the device has not enough memory.

    >>> from tenferro_tensor_core import BackendUnavailableError
    >>> try:
    ...     x = upload([1.0, 2.0], "cuda:0")
    ... except BackendUnavailableError:
    ...     x = None  # no such device here
    """
    target = ComputeDevice(device)
    value = x if isinstance(x, Array) else tensor(x, device=HOST.device)  # regardless of the enclosing scope
    place = Place(MemorySpace(str(target)))
    if not pending and out is None:
        return catalog.transfer(value, place=place)
    runtime = _runtime(target)
    home = runtime.device(target.index)
    source = _concrete("upload", value, "host")
    if out is not None:
        home.require_own(out, source.shape, source.dtype)
    copying = home.copy_stream if pending else current_stream(home)
    assert isinstance(copying, CupyStream)
    for other in () if out is None else runtime.others(copying, (out,)):
        copying.wait(other.record())
    book_raw(HOST.memory_space, place.memory_space, "", source._data)
    raw = home.upload(source.numpy(), copying, out)
    result = Tensor.wrap(raw, source.spec.with_(place=place))
    return PendingTransfer(copying.record(), lambda: result) if pending else result


@overload
def download(x: Array, *, out: Any = ..., pending: Literal[False] = ...) -> Array: ...


@overload
def download(x: Array, *, out: Any = ..., pending: Literal[True]) -> PendingTransfer: ...


def download(x: Array, *, out: np.ndarray[Any, Any] | None = None, pending: bool = False) -> Any:
    """Copy an array to main memory, after the work that computes it.

    Args:
        x: array in the memory of a device.
        out: a NumPy array to copy into, of the same shape and dtype; the tensor shares its memory. If that is not
            page-locked, the driver copies during the call. Not differentiable.
        pending: do not wait: copy beside later work of the device, on a separate stream, and return a handle. Not
            differentiable.

    Returns:
        The tensor in main memory, of the shape and dtype of `x`; with `pending`, a `PendingTransfer`.

    Raises:
        PlacementError: a handle or `out` is requested, and `x` is not a concrete array of a device.
        ShapeError, DTypeError, ArgumentError: `out` does not fit; nothing is converted or copied twice.
        AsynchronousError: the computation of `x` failed.

    >>> from tenferro_tensor_core import BackendUnavailableError
    >>> try:
    ...     x = download(upload([1.0, 2.0], "cuda:0"))
    ... except BackendUnavailableError:
    ...     x = None  # no such device here
    """
    if not pending and out is None:
        return catalog.transfer(x, place=HOST)
    source = _concrete("download", x, None)
    if out is not None:
        require_destination(out, source.shape, source.dtype)
    runtime = _runtime(source.spec.place.device)
    home = runtime.device_of(source._data)
    copying = home.copy_stream
    book_raw(source.spec.place.memory_space, HOST.memory_space, "", source._data)
    for other in runtime.others(copying, (source._data,)):
        copying.wait(other.record())
    way = home.download(source._data, copying, out)
    spec = source.spec.with_(place=HOST)
    going = PendingTransfer(
        way.event,
        # In main memory, regardless of the scope of the call.
        lambda: (
            tensor(way.result(), device=HOST.device)
            if spec.shape or out is not None
            else Tensor.wrap(way.result()[()], spec)
        ),
    )
    return going if pending else going.result()


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
            f"{what} with a handle or out= takes a concrete tensor in {'main' if kind else 'device'} memory, got "
            f"{seen} in {where} memory; leave both out, or move and detach it first",
            memory_space=where,
        )
    return x
