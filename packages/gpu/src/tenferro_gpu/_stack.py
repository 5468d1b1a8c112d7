"""CuPy and the devices that it sees, found on first use; each cause of their absence has its own message."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

from tenferro_tensor import Capabilities
from tenferro_tensor_core import BackendUnavailableError

_INSTALL: Final = {
    "cuda": "pip install 'tenferro-gpu[cuda12]' or 'tenferro-gpu[cuda13]', whichever fits the driver",
    "rocm": "pip install 'tenferro-gpu[rocm]'",
}
_CHECK: Final = {"cuda": "nvidia-smi", "rocm": "rocminfo"}


OLDEST: Final = 14
"""Oldest major version of CuPy: general eigenvalues, bfloat16, priorities of streams, and solutions of stacks."""


@cache
def cupy(kind: str) -> Any:
    """CuPy, if it is new enough, is built for the kind of device and sees at least one.

    Args:
        kind: ``"cuda"`` or ``"rocm"``.

    Raises:
        BackendUnavailableError: CuPy, the driver or a device is missing, or CuPy is too old or built for the other
            kind.
    """
    try:
        module = import_module("cupy")
    except ImportError as cause:
        raise BackendUnavailableError(
            f"a {kind} device was requested, but CuPy cannot be imported ({cause}); {_INSTALL[kind]}", backend=kind
        ) from cause
    if int(module.__version__.partition(".")[0]) < OLDEST:
        raise BackendUnavailableError(
            f"a {kind} device was requested, but CuPy {module.__version__} is older than {OLDEST}; {_INSTALL[kind]}",
            backend=kind,
        )
    runtime = module.cuda.runtime
    built = "rocm" if runtime.is_hip else "cuda"
    if built != kind:
        raise BackendUnavailableError(
            f"a {kind} device was requested, but the installed CuPy is built for {built}; "
            f"remove it and {_INSTALL[kind]}",
            backend=kind,
        )
    try:
        count = int(runtime.getDeviceCount())
    except Exception as cause:  # CuPy's error classes are only known once it is imported
        raise BackendUnavailableError(
            f"a {kind} device was requested, but CuPy finds no usable driver ({cause}); check that `{_CHECK[kind]}` "
            "lists a device, and that the driver is new enough for this CuPy",
            backend=kind,
        ) from cause
    if not count:
        raise BackendUnavailableError(
            f"a {kind} device was requested, but there is none; check that `{_CHECK[kind]}` lists one, and "
            "CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES",
            backend=kind,
        )
    return module


def device_count(kind: str) -> int:
    """Number of devices of a kind; at least one."""
    return int(cupy(kind).cuda.runtime.getDeviceCount())


def checked_index(kind: str, index: int) -> int:
    """The index, if there is such a device; CuPy itself would detect the error only at the first launch.

    Raises:
        BackendUnavailableError: there is no such device.
    """
    count = device_count(kind)
    if not 0 <= index < count:
        have = f"{kind}:0" if count == 1 else f"{kind}:0 to {kind}:{count - 1}"
        raise BackendUnavailableError(
            f"{kind}:{index} was requested, but there is only {have}; use one of these", backend=kind, index=index
        )
    return index


def capabilities(kind: str, index: int) -> Capabilities:
    """Capabilities of device `index`."""
    found = cupy(kind).cuda.runtime.getDeviceProperties(checked_index(kind, index))
    arch = f"{found['major']}{found['minor']}" if kind == "cuda" else _text(found["gcnArchName"])
    return Capabilities(
        _text(found["name"]), int(found["totalGlobalMem"]), int(found["warpSize"]), arch, reference_counted=True
    )


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
