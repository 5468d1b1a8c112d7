"""`check_device_runtime` finds a planted mistake of every kind, and passes the simulated accelerator."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from simulated.faults import Faults
from simulated.installed import simulated
from simulated.memory import Account, Buffer, SimArray
from simulated.runtime import SimDevice, SimPending, SimRuntime
from simulated.streams import SimEvent, SimStream
from tenferro_tensor import Capabilities, Stream, get_backend
from tenferro_tensor.checking import CheckError
from tenferro_tensor.conformance import check_backend, check_device_runtime
from tenferro_tensor_core import ArgumentError, BackendUnavailableError

CHECKS = (
    "devices", "transfers", "pending", "destinations", "peers", "streams", "launches", "events", "times", "waiting",
    "memory", "memory in use", "contexts", "random work", "threads", "failures",
)  # fmt: skip

WAYS: dict[str, Any] = {
    "peers": {},
    "some peers": {"peers": {(0, 1), (1, 0)}},
    "no peers, delays": {"peers": False, "faults": Faults(seed=5, delayed=0.1, longest=5e-4)},
    "one device": {"count": 1},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_simulated_accelerator_passes(way: str) -> None:
    """Its vector clocks see no hazard: the checks issue every wait that is needed."""
    with simulated(**WAYS[way]):
        report = check_device_runtime("sim")
    assert [(f.check, f.outcome) for f in report.findings] == [(name, "passed") for name in CHECKS]


@contextmanager
def planted(owner: Any, **changes: Any) -> Iterator[None]:
    """Replaces methods of the simulated accelerator."""
    with ExitStack() as stack:
        for name, change in changes.items():
            stack.enter_context(mock.patch.object(owner, name, change))
        yield


def around(owner: Any, name: str, change: Callable[..., Any]) -> Any:
    """Replaces a method by ``change(right, self, ...)``."""
    right = getattr(owner, name)
    return planted(owner, **{name: lambda *given, **options: change(right, *given, **options)})


def out_of_order(right: Any, self: Any, what: str, run: Any, *rest: Any, **options: Any) -> None:
    """Kernels run when they like."""

    def later() -> None:
        thread = threading.Timer(2e-3, run)
        thread.daemon = True
        thread.start()

    right(self, what, later if options.get("kind", "kernel") == "kernel" else run, *rest, **options)


def done_early(right: Any, self: Any, **options: Any) -> Any:
    event = right(self, **options)
    event._passed.set()
    return event


def overwritten(self: Buffer) -> None:
    """The memory goes to somebody else as soon as nobody holds the value, whatever streams still read."""
    if self._held:
        self._held = False
        self._account.give_back(self.nbytes)
        self.data.reshape(-1).view(np.uint8)[...] = 0xEE


def released_at_once(right: Any, self: Any, raw: Any) -> None:
    raw.buffer.data.reshape(-1).view(np.uint8)[...] = 0xEE
    right(self, raw)


@contextmanager
def reused_at_once() -> Iterator[None]:
    """The next allocation, on whatever stream, takes the memory of a released value."""
    spare: list[SimArray] = []

    def reused(right: Any, self: Any, shape: Any, dtype: Any, stream: Any) -> Any:
        for i, raw in enumerate(spare):
            if raw.device is self and (raw.shape, raw.dtype) == (tuple(shape), dtype):
                return SimArray(self, stream, spare.pop(i).buffer)
        return right(self, shape, dtype, stream)

    with planted(SimStream, release=lambda s, raw: spare.append(raw)), around(SimDevice, "allocate", reused):
        yield


def borrowed(right: Any, self: Any, host: Any, stream: Any, out: Any = None) -> Any:
    """An upload that reads the host array later."""
    raw = right(self, host, stream, out)
    if isinstance(host, np.ndarray) and host.ndim:
        held, buffer = host, raw.buffer

        def copy() -> None:
            buffer.data[...] = held

        stream.queue.put("upload", copy, 2e-3)
    return raw


def rounded(right: Any, self: Any, host: Any, stream: Any, out: Any = None) -> Any:
    array = host.astype("float32").astype(host.dtype) if isinstance(host, np.ndarray) else host
    return right(self, array, stream, out)


def unread(right: Any, self: Any, host: Any, stream: Any, out: Any = None) -> Any:
    """An upload that does not wait for the download before it."""
    if isinstance(host, SimPending):
        return self.upload_staged(host.staging, stream, out)
    return right(self, host, stream, out)


def anew(right: Any, self: Any, host: Any, stream: Any, out: Any = None) -> Any:
    return right(self, host, stream)


def unchecked(right: Any, self: Any, host: Any, stream: Any, out: Any = None) -> Any:
    if out is not None and isinstance(host, np.ndarray) and host.shape != out.shape:
        return out
    return right(self, host, stream, out)


def elsewhere(right: Any, self: Any, host: Any, stream: Any, out: Any = None) -> Any:
    """A written value is still said to come from the stream that allocated it."""
    before = None if out is None else getattr(out, "stream", None)
    raw = right(self, host, stream, out)
    raw.stream = before or raw.stream
    return raw


def without_source(right: Any, self: Any, raw: Any, source: Any, target: Any, out: Any = None) -> Any:
    return right(self, raw, None, target, out)


def itself(right: Any, self: Any, raw: Any, source: Any, target: Any, out: Any = None) -> Any:
    return raw if self.device_of(raw) is target.device and out is None else right(self, raw, source, target, out)


def without_context(self: Any, kernel: Any, operands: Any, outs: Any = ()) -> Any:
    result = kernel(*operands)
    return (result,)


def racing(right: Any, self: Any, what: str, run: Any, operands: Any, shapes: Any) -> Any:
    """Operands pass through one place that all threads share."""
    self.runtime.passed = operands
    time.sleep(2e-4)
    return right(self, what, run, self.runtime.passed, shapes)


def three_times(right: Any, self: Any, event: Any) -> None:
    """Only the first waits of a stream count."""
    self.waits = getattr(self, "waits", 0) + 1
    if self.waits < 4:
        right(self, event)


def once(right: Any, self: Any) -> None:
    """An error is raised by the first wait only."""
    if self.error is not None and not hasattr(self.runtime, "told"):
        self.runtime.told = True
        right(self)


def unknown(right: Any, self: Any) -> None:
    try:
        right(self)
    except Exception as error:
        raise type(error)(str(error)) from None


def swallowing(right: Any, self: Any) -> None:
    """Errors of work leave no trace."""


def of_the_first(self: SimRuntime) -> None:
    self.devices()[0].synchronize()


def forgotten(right: Any, self: Any, nbytes: int) -> Any:
    """The peak is what there was after the last allocation."""
    room = right(self, nbytes)
    self.peak = self.live
    return room


Fault = Callable[[], Any]

FAULTS: dict[str, tuple[str, Fault, str]] = {
    "another name": (
        "devices", lambda: around(SimRuntime, "device", lambda f, s, i: s._devices[i - 1]), "return sim:0 for it"
    ),
    "a negative ordinal": (
        "devices", lambda: planted(SimRuntime, device=lambda s, i: s._devices[i]), "device(-1) is accepted"
    ),
    "no capabilities": (
        "devices", lambda: planted(SimDevice, capabilities=Capabilities("simulated", 0, 32, "numpy")), "fill in all"
    ),
    "fewer digits": ("transfers", lambda: around(SimDevice, "upload", rounded), "uploaded and downloaded"),
    "a host array read later": ("transfers", lambda: around(SimDevice, "upload", borrowed), "copy it before upload"),
    "a download that does not wait": (
        "pending", lambda: planted(SimPending, result=lambda s: s.staging.read()), "wait for the stream in `result`"
    ),
    "an upload that does not wait": ("pending", lambda: around(SimDevice, "upload", unread), "uploaded before"),
    "memory of its own": ("destinations", lambda: around(SimDevice, "upload", anew), "does not return `out`"),
    "any shape": ("destinations", lambda: around(SimDevice, "upload", unchecked), "raise ShapeError"),
    "a stream that stays": ("destinations", lambda: around(SimDevice, "upload", elsewhere), "is not its stream"),
    "memory of any device": (
        "destinations", lambda: planted(SimDevice, require_here=lambda s, raw, what: None), "raise PlacementError"
    ),
    "a copy that does not wait": (
        "peers", lambda: around(SimRuntime, "copy_peer", without_source), "let the target wait for the source"
    ),
    "no copy": ("peers", lambda: around(SimRuntime, "copy_peer", itself), "copy it"),
    "lost order": ("streams", lambda: around(SimStream, "issue", out_of_order), "in the order of issue"),
    "no priority": (
        "streams", lambda: around(SimDevice, "stream", lambda f, s, priority=0: f(s)), "as asked for"
    ),
    "a launch to the default stream": (
        "launches", lambda: planted(Stream, launch=without_context), "do not replace launch"
    ),
    "no wait": ("events", lambda: planted(SimStream, wait=lambda s, event: None), "let `wait` hold up the stream"),
    "an event that is early": ("events", lambda: around(SimStream, "record", done_early), "is done when all work"),
    "time without timing": (
        "times", lambda: planted(SimEvent, elapsed=lambda s, earlier: s.at - earlier.at), "without timing is accepted"
    ),
    "time backwards": (
        "times", lambda: around(SimEvent, "elapsed", lambda f, s, earlier: -f(s, earlier)), "elapsed gives seconds"
    ),
    "one device of several": ("waiting", lambda: planted(SimRuntime, synchronize_all=of_the_first), "not done"),
    "nothing counted": (
        "memory", lambda: planted(Account, stats=lambda s: {"live": 0, "peak": 0}), "count all values"
    ),
    "nothing freed": ("memory", lambda: planted(SimArray, __del__=lambda s: None), "is dropped is still counted"),
    "a release that does nothing": (
        "memory", lambda: planted(SimStream, release=lambda s, raw: None), "a released value is still counted"
    ),
    "a peak that falls": ("memory", lambda: around(Account, "take", forgotten), "it never falls"),
    "no limit": (
        "memory", lambda: around(Account, "take", lambda f, s, n: f(s, min(n, 2**21))), "raise DeviceMemoryError"
    ),
    "dropped memory that goes to others": ("memory in use", lambda: planted(Buffer, give_back=overwritten), "dropped"),
    "memory released out of order": (
        "memory in use", lambda: around(SimStream, "release", released_at_once), "released after a wait"
    ),
    "released memory that goes to other streams": ("memory in use", reused_at_once, "released after a wait"),
    "no known stream": (
        "contexts", lambda: planted(SimRuntime, stream_of=lambda s, raw: None), "let stream_of say"
    ),
    "waits that are forgotten": ("random work", lambda: around(SimStream, "wait", three_times), "random work"),
    "a place that threads share": ("threads", lambda: around(SimStream, "compute", racing), "work of thread"),
    "an error swallowed": ("failures", lambda: around(SimEvent, "raise_error", swallowing), "is accepted"),
    "an error raised once": ("failures", lambda: around(SimEvent, "raise_error", once), "is accepted"),
    "an error without a cause": ("failures", lambda: around(SimEvent, "raise_error", unknown), "keep the first"),
}  # fmt: skip
"""A mistake, the check that finds it, what plants it, and a part of the finding."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_mistake_is_found(fault: str) -> None:
    check, plant, text = FAULTS[fault]
    with (
        simulated(hazards=True, faults=Faults(delayed=1.0, longest=1e-3)),
        plant(),
        pytest.raises(CheckError) as caught,
    ):
        check_device_runtime("sim", skip=[name for name in CHECKS if name != check])
    (finding,) = caught.value.report.failed
    assert finding.check == check
    assert any(text in mistake for mistake in finding.mistakes), finding.mistakes[:5]


def test_every_check_has_a_mistake_to_find() -> None:
    assert {check for check, _, _ in FAULTS.values()} == set(CHECKS)


def test_a_kind_without_devices_is_refused() -> None:
    with simulated(), planted(SimRuntime, devices=lambda s: ()):
        with pytest.raises(BackendUnavailableError, match="the device runtime 'sim' has no device to check"):
            check_device_runtime("sim")
        for backend in ("sim", "sim:0", get_backend("sim")):
            with pytest.raises(BackendUnavailableError, match="the sim backend has no device to check"):
                check_backend(backend)


def test_unknown_checks_are_refused() -> None:
    with simulated(), pytest.raises(ArgumentError, match="check_device_runtime has no check speed; it has devices"):
        check_device_runtime("sim", skip=["speed"])
