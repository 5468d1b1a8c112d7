"""`check_backend`: compares the kernels of a backend with NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence

from tenferro_tensor._place import ComputeDevice
from tenferro_tensor.backends import Backend, get_backend
from tenferro_tensor.checking import CheckReport, run_checks
from tenferro_tensor.conformance import _backend_checks as checks
from tenferro_tensor.conformance._backend import CheckedBackend
from tenferro_tensor_core import ArgumentError, BackendUnavailableError


def check_backend(backend: str | ComputeDevice | Backend, *, skip: Sequence[str] = ()) -> CheckReport:
    """Check the kernels of a backend against the reference kernels on NumPy, for its author.

    Every core operation and every element-wise operation of a loaded family runs on small arrays. Operations for which
    the backend has no kernel are listed as absent. The checks, by name:

    - ``transfers``: arrays of all dtypes, shapes and layouts come back bit for bit, and share no memory with values
    - ``devices``: names of devices, errors for other ones, and the device of a value
    - ``missing kernels``: an operation that the backend cannot know is refused with an `UnsupportedError`
    - ``results``: shapes, dtypes and elements for all dtypes
    - ``sizes``: operands without axes, without elements, and with extents of 1
    - ``special values``: NaN, infinities and zeros of both signs
    - ``layouts``: read-only, reversed, strided, repeated and column-major operands
    - ``broadcasting``: element-wise kernels repeat operands, and take numbers of Python
    - ``operands unchanged``: kernels do not write to operands
    - ``memory``: no call changes an earlier result, and computed results share no memory with operands

    A kernel may refuse a dtype with an `UnsupportedError`.

    Args:
        backend: the backend, or one of its devices.
        skip: names of checks to leave out.

    Returns:
        The report, with the outcome of each check, and the absent operations.

    Raises:
        CheckError: a check failed; the message lists all mistakes.
        ArgumentError: `skip` names an unknown check, or `backend` is none.
        BackendUnavailableError: no installed distribution offers the backend, or it has no device.

    See also:
        check_device_runtime: checks streams, events and memory of an accelerator.

    >>> check_backend("cpu", skip=("results", "layouts", "broadcasting", "sizes")).failed
    ()
    """
    if isinstance(backend, Backend):
        found, device = backend, next(iter(backend.devices()), None)
    elif isinstance(backend, (str, ComputeDevice)):
        device = ComputeDevice(backend)
        found = get_backend(device.kind)
        if found.devices():
            found.require(device)
        else:
            device = None
    else:
        raise ArgumentError(f"{backend!r:.80} is not a backend; pass a Backend, or the name of a device")
    if device is None:
        raise BackendUnavailableError(
            f"the {found.name} backend has no device to check; attach one, or run the check where there is one",
            backend=found.name,
        )
    table: dict[str, Callable[[CheckedBackend], Iterator[str]]] = {
        "transfers": checks.transfers,
        "devices": checks.devices,
        "missing kernels": checks.missing_kernels,
        "results": checks.results,
        "sizes": checks.sizes,
        "special values": checks.special_values,
        "layouts": checks.layouts,
        "broadcasting": checks.broadcasting,
        "operands unchanged": checks.operands_unchanged,
        "memory": checks.memory,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        subject = CheckedBackend(found, device)
        return run_checks(
            "check_backend", f"the backend {device}", table, subject, skip,
            first="values do not come back from the device; correct that first", absent=subject.absent,
        )  # fmt: skip
