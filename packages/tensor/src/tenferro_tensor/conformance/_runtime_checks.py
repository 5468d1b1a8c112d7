"""The checks of devices, transfers, memory and failures: each yields mistakes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_tensor._accelerator import AcceleratorBackend
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._primitive import Primitive
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend
from tenferro_tensor.checking import laid_out
from tenferro_tensor.conformance._examples import SHAPES
from tenferro_tensor.conformance._examples import numbers as example
from tenferro_tensor.conformance._runtime import (
    LARGE,
    CheckedRuntime,
    holds,
    keep_busy,
    launch,
    numbers,
    read,
    refuses,
    same,
    spec_on,
)
from tenferro_tensor.device_runtimes import (
    AsynchronousError,
    Capabilities,
    DeviceMemoryError,
    DeviceRuntime,
    Event,
    Pending,
    RuntimeDevice,
    device_runtime,
)
from tenferro_tensor_core import (
    DTYPES,
    ArgumentError,
    BackendUnavailableError,
    DTypeError,
    NumericalError,
    PlacementError,
    ShapeError,
)


def devices(subject: CheckedRuntime) -> Iterator[str]:
    """Check names, capabilities, and errors for devices that do not exist."""
    runtime, kind = subject.runtime, subject.runtime.kind
    if not isinstance(runtime, DeviceRuntime) or device_runtime(kind) is not runtime:
        yield f"{runtime!r} is not the device runtime of the process; pass register_device_runtime a factory of it"
        return
    for i, device in enumerate(runtime.devices()):
        right = isinstance(device, RuntimeDevice) and device.id is ComputeDevice(f"{kind}:{i}")
        yield from holds(right and runtime.device(i) is device, f"device {i} is {device!r}; return {kind}:{i} for it")
        found = device.capabilities
        right = isinstance(found, Capabilities) and found == device.capabilities
        right = right and bool(found.name and found.architecture) and found.memory > 0 and found.warp > 0
        yield from holds(right, f"the capabilities of {device!r} are {found!r}; fill in all of them, always the same")
    names = [device.id for device in runtime.devices()]
    backend = get_backend(kind)
    yield from holds(isinstance(backend, AcceleratorBackend), f"the backend is {backend!r}, not an AcceleratorBackend")
    yield from holds(
        list(backend.devices()) == names, f"the devices are {names}, and the backend's {backend.devices()}"
    )
    for ordinal in (-1, 1000):
        missing = (PlacementError, BackendUnavailableError)
        yield from refuses(f"device({ordinal})", partial(runtime.device, ordinal), missing)


def transfers(subject: CheckedRuntime) -> Iterator[str]:
    """Check that data come back as they went, in every dtype, shape and layout."""
    device = subject.first
    for dtype in DTYPES:
        for shape in SHAPES:
            host = example(shape, dtype, -1.5, 2.5)
            for what, (array,) in [("row-major", [host]), *laid_out([host])]:
                raw = device.upload(array, device.default_stream)
                yield from same(f"a {what} array, uploaded and downloaded", read(raw, device.default_stream), array)
    host, raws = np.ones(1000), []
    for i in range(10):
        host[...] = i
        raws.append(device.upload(host, device.copy_stream))
    for i, raw in enumerate(raws):
        text = f"an array that changes after `upload`; copy it before upload returns ({i})"
        yield from same(text, read(raw, device.copy_stream), np.full(1000, float(i)))


def pending(subject: CheckedRuntime) -> Iterator[str]:
    """Check downloads in progress: they wait for the work before them, and can be uploaded without the host."""
    for device in subject.devices:
        s, t = device.stream(), subject.last.stream()
        keep_busy(s)
        raw = launch(s, "neg", device.upload(numbers(2), s))
        found = device.download(raw, s)
        if not isinstance(found, Pending) or not isinstance(found.event, Event):
            yield f"download returned {found!r:.80}; return a Pending with an event"
            return
        again = subject.last.upload(found, t)
        yield from same("a download after long work; wait for the stream in `result`", found.result(), -numbers(2))
        yield from holds(found.event.done, "the event of a download is not done after `result`")
        yield from same("the second `result` of a download", found.result(), -numbers(2))
        yield from same("a download uploaded before its `result`", read(again, t), -numbers(2))


def destinations(subject: CheckedRuntime) -> Iterator[str]:
    """Check copies into memory that is given, and that memory which does not fit is refused."""
    first, last = subject.first, subject.last
    s, t = first.stream(), last.stream()
    for shape in ((), (0,), (2, 3)):
        host, back = numbers(12, shape), np.empty(shape)
        made = first.stream()
        raw, other = first.empty(spec_on(first, shape), made), last.empty(spec_on(last, shape), t)
        s.wait(made.record())
        yield from holds(first.upload(host, s, raw) is raw, "upload(out=...) does not return `out`")
        yield from holds(subject.runtime.stream_of(raw) in (None, s), "stream_of a written value is not its stream")
        yield from holds(
            subject.runtime.copy_peer(raw, s, t, other) is other, "copy_peer(out=...) does not return `out`"
        )
        yield from holds(last.download(other, t, back).result() is back, "download(out=...) does not return `out`")
        yield from same("a value copied into memory that was given", back, host)
        yield from same("a download into given memory", read(first.upload(last.download(other, t), s, raw), s), host)
    raw = first.upload(numbers(0), s)
    for host, error in ((numbers(0, (4,)), ShapeError), (numbers(0).astype("float32"), DTypeError)):
        seen = f"{host.dtype}{list(host.shape)} and a value float64[8]"
        yield from refuses(f"upload of {seen}", partial(first.upload, host, s, raw), error)
        yield from refuses(f"download of {seen}", partial(first.download, raw, s, host.copy()), error)
        source = first.upload(host, s)
        yield from refuses(f"copy_peer of {seen}", partial(subject.runtime.copy_peer, source, None, s, raw), error)
    foreign: dict[str, Any] = {"main memory": np.zeros(8)}
    if first is not last:
        foreign["another device"] = last.empty(spec_on(last, (8,)), t)
    for where, out in foreign.items():
        yield from refuses(f"upload into {where}", partial(first.upload, numbers(0), s, out), PlacementError)
        copy = partial(subject.runtime.copy_peer, raw, None, s, out)
        yield from refuses(f"copy_peer into {where}, not that of its stream", copy, PlacementError)
    fixed = np.zeros(8)
    fixed.flags.writeable = False
    wrong: dict[str, Any] = {"a read-only": fixed, "a strided": np.zeros(16)[::2], "no": [0.0] * 8}
    for what, out in wrong.items():
        yield from refuses(f"download into {what} array", partial(first.download, raw, s, out), ArgumentError)
    yield from same("a value after refused transfers", read(raw, s), numbers(0))


def peers(subject: CheckedRuntime) -> Iterator[str]:
    """Check copies between devices, which wait for the source, and are copies."""
    runtime = subject.runtime
    for source in runtime.devices():
        yield from holds(runtime.can_access_peer(source, source), f"{source!r} cannot access itself")
        for target in runtime.devices():
            s, t = source.stream(), target.stream()
            keep_busy(s)
            copy = runtime.copy_peer(launch(s, "neg", source.upload(numbers(7), s)), s, t)
            what = f"a copy from {source.id} to {target.id}"
            yield from holds(runtime.device_of(copy) is target, f"{what} is on {runtime.device_of(copy)!r}")
            yield from holds(runtime.can_access_peer(source, target) in (True, False), "can_access_peer is no boolean")
            yield from same(f"{what} after long work; let the target wait for the source", read(copy, t), -numbers(7))
    s = subject.first.stream()
    raw = subject.first.upload(numbers(8), s)
    copy = runtime.copy_peer(raw, s, s)
    yield from holds(copy is not raw, "copy_peer returns the value itself; copy it")
    s.release(raw)
    yield from same("a copy whose source is released", read(copy, s), numbers(8))


def memory(subject: CheckedRuntime) -> Iterator[str]:
    """Check what `memory` counts, `release`, and errors where there is no room."""
    for device in subject.devices:
        s, nbytes = device.default_stream, 8 * LARGE[0]
        s.synchronize()
        gc.collect()
        before = device.memory()
        yield from holds(0 <= before["live"] <= before["peak"], f"memory is {before}; peak is the maximum of live")
        raw = device.upload(np.ones(LARGE), s)
        during = device.memory()
        counted = during["live"] >= before["live"] + nbytes and during["peak"] >= during["live"]
        yield from holds(counted, f"memory is {during} with {nbytes} bytes more than {before}; count all values")
        yield from holds(subject.runtime.device_of(raw) is device, f"device_of a value on {device!r} is another device")
        s.release(raw)
        s.release(raw)
        s.synchronize()
        freed = device.capabilities.reference_counted or device.memory()["live"] <= before["live"]
        yield from holds(freed, "a released value is still counted; free it in `release`, whoever refers to it")
        del raw
        yield from holds(device.memory()["live"] <= before["live"], "a value that is released twice is still counted")
        raw = device.upload(np.ones(LARGE), s)
        del raw
        s.synchronize()
        yield from holds(device.memory()["live"] <= before["live"], "a value that is dropped is still counted")
        few = device.empty(spec_on(device, (3, 4)), s)
        after = device.memory()["peak"]
        yield from holds(after >= during["peak"], f"the peak fell from {during['peak']} to {after}; it never falls")
        much = spec_on(device, (device.capabilities.memory // 4,))
        yield from refuses("a value of twice the memory", partial(device.empty, much, s), DeviceMemoryError)
        s.release(few)


def memory_in_use(subject: CheckedRuntime) -> Iterator[str]:
    """Check that memory is not given to another value while a stream still reads it."""
    for device in subject.devices:
        s, t, u = device.stream(), device.stream(), device.stream()
        for dropped, stream in ((True, s), (False, s), (False, u)):
            x = device.upload(np.ones(LARGE), s)
            t.wait(s.record())
            keep_busy(t)
            y = launch(t, "neg", x, shape=LARGE)
            if not dropped:
                s.wait(t.record())
                s.release(x)
            del x
            others = [device.upload(np.full(LARGE, 7.0), stream) for _ in range(4)]
            how = "dropped while a stream is to read it" if dropped else "released after a wait for its reader"
            yield from same(f"the negative of ones that are {how}", read(y, t), np.full(LARGE, -1.0))
            for other in others:
                yield from same("a value made meanwhile", read(other, stream), np.full(LARGE, 7.0))


def failing(x: Spec) -> Spec:
    """An operation whose kernel fails."""
    return x


_FAILING: Final = Primitive(failing, family="nobody.failing.v1")


def failures(subject: CheckedRuntime) -> Iterator[str]:
    """Check that a failing kernel is an error at once or at every later wait, and stays with its streams."""

    def fail(*raws: Any) -> Any:
        raise NumericalError("planted by check_device_runtime")

    device = subject.last
    spec, s, t = spec_on(device, (8,)), device.stream(), device.stream()
    x = device.upload(numbers(0), s)
    with (
        REGISTRY.kernel(_FAILING, "cpu", lambda ins, outs: fail),
        REGISTRY.kernel(_FAILING, device.id.kind, lambda ins, outs: fail),
    ):
        run = get_backend(device.id.kind).kernel(_FAILING.op(), (spec,), (spec,), device.id)
        try:
            (out,) = s.launch(run, (x,), (spec,))
        except NumericalError:
            yield from same("a value beside a kernel that failed", read(x, s), numbers(0))
            raise_at_once = True
        else:
            raise_at_once = False
    if raise_at_once:
        return
    event = s.record()
    t.wait(event)
    waits = {
        "result of its download": lambda: device.download(out, s).result(),
        "synchronize of its stream": s.synchronize,
        "synchronize of an event after it": event.synchronize,
        "synchronize of a stream that waits for it": t.synchronize,
        "synchronize of its stream, for the second time": s.synchronize,
    }
    for what, wait in waits.items():
        yield from refuses(f"a kernel has failed, and the {what}", wait, AsynchronousError)
        try:
            wait()
        except AsynchronousError as error:
            kept = isinstance(error.__cause__, NumericalError)
            yield from holds(kept, f"the error of the {what} has the cause {error.__cause__!r}; keep the first failure")
        except Exception:
            pass
    other = device.stream()
    yield from same("work of another stream", read(device.upload(numbers(3), other), other), numbers(3))
