"""`check_device_runtime`: checks the contract of device runtimes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tenferro_tensor.checking import CheckReport, run_checks
from tenferro_tensor.conformance import _runtime_checks, _stream_checks
from tenferro_tensor.conformance._runtime import CheckedRuntime
from tenferro_tensor.device_runtimes import DeviceRuntime, device_runtime
from tenferro_tensor_core import ArgumentError, BackendUnavailableError

_CHECKS: Final[dict[str, Callable[[CheckedRuntime], Iterator[str]]]] = {
    "devices": _runtime_checks.devices,
    "transfers": _runtime_checks.transfers,
    "pending": _runtime_checks.pending,
    "destinations": _runtime_checks.destinations,
    "peers": _runtime_checks.peers,
    "streams": _stream_checks.streams,
    "launches": _stream_checks.launches,
    "events": _stream_checks.events,
    "times": _stream_checks.times,
    "waiting": _stream_checks.waiting,
    "memory": _runtime_checks.memory,
    "memory in use": _runtime_checks.memory_in_use,
    "contexts": _stream_checks.contexts,
    "random work": _stream_checks.random_work,
    "threads": _stream_checks.threads,
    "failures": _runtime_checks.failures,
}


def check_device_runtime(runtime: str | DeviceRuntime, *, skip: Sequence[str] = ()) -> CheckReport:
    """Check devices, streams, events and memory of an accelerator, for the author of its device runtime.

    The runtime must be that of the process, and its backend must have kernels for ``add``, ``sub``, ``mul``, ``neg``
    and ``maximum``. The checks, by name:

    - ``devices``: names, capabilities, and errors for devices that do not exist
    - ``transfers``: data of every dtype, shape and layout come back; the host array is free when `upload` returns
    - ``pending``: downloads wait for the work before them, and can be uploaded without the host
    - ``destinations``: transfers into memory that is given, and errors where it does not fit
    - ``peers``: copies between devices, after the work of the source
    - ``streams``, ``launches``: work of a stream runs in order, and kernels go to the stream of a launch
    - ``events``, ``times``: events order streams, are done when the work before them is, and measure time
    - ``waiting``: all work of a device, and of all devices, can be waited for
    - ``memory``: what is counted, what `release` frees, and errors where there is no room
    - ``memory in use``: memory that a stream still reads goes to no other value
    - ``contexts``: contexts have streams of their own, and eager work is ordered between them
    - ``random work``: random steps on all devices return the bits of NumPy
    - ``threads``: several threads issue work at once
    - ``failures``: the failure of a kernel is raised at once, or at every later wait

    Args:
        runtime: the runtime, or its kind.
        skip: names of checks to leave out.

    Returns:
        The report, with the outcome of each check.

    Raises:
        CheckError: a check failed; the message lists all mistakes.
        ArgumentError: `skip` names an unknown check, or `runtime` is none.
        BackendUnavailableError: no device runtime of that kind is installed or registered, or it has no device.

    See also:
        check_backend: checks kernels.

    >>> check_device_runtime(3)
    Traceback (most recent call last):
    tenferro_tensor_core._errors.ArgumentError: 3 is not a device runtime; pass a DeviceRuntime, or the kind ...
    """
    if isinstance(runtime, str):
        runtime = device_runtime(runtime)
    if not isinstance(runtime, DeviceRuntime):
        raise ArgumentError(
            f"{runtime!r:.80} is not a device runtime; pass a DeviceRuntime, or the kind of its devices"
        )
    if not runtime.devices():
        raise BackendUnavailableError(
            f"the device runtime {runtime.kind!r} has no device to check; attach one, or run the check where there is "
            "one",
            backend=runtime.kind,
        )
    subject = CheckedRuntime(runtime)
    return run_checks("check_device_runtime", f"the device runtime {runtime.kind!r}", _CHECKS, subject, skip)
