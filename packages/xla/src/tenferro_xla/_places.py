"""XLA devices by name: ``xla:cpu:0`` is the first device of JAX's platform ``cpu``."""

from __future__ import annotations

from functools import cache
from typing import Any

from tenferro_tensor import ComputeDevice
from tenferro_tensor_core import BackendUnavailableError
from tenferro_tensor_core.forks import importing
from tenferro_xla._jax_modules import library


def jax_devices(platform: str) -> list[Any]:
    """Return the devices of a platform that this process computes on.

    Raises:
        BackendUnavailableError: JAX is missing, or does not have the platform here.
    """
    try:
        jax = library()
    except ImportError as cause:
        raise BackendUnavailableError(
            "computing with XLA requires JAX, which is not installed; pip install tenferro-xla", platform=platform
        ) from cause
    try:
        return list(jax.local_devices(backend=platform))
    except RuntimeError as cause:
        raise BackendUnavailableError(
            f"JAX has no {platform!r} devices here ({cause}); install jax with that platform, or use 'xla:cpu:0'",
            platform=platform,
        ) from cause


def jax_device(device: ComputeDevice) -> Any:
    """Return the JAX device of a name ``xla:<platform>:<i>``.

    Raises:
        BackendUnavailableError: JAX is missing, or has no such device.
    """
    platform = device.kind.partition(":")[2]
    devices = jax_devices(platform)
    if device.index >= len(devices):
        raise BackendUnavailableError(
            f"no device {device}; JAX has {len(devices)} devices of this platform",
            platform=platform,
            index=device.index,
        )
    return devices[device.index]


@cache
def host_device() -> Any:
    """Return the JAX device that computes on main memory while the caller waits.

    JAX's own client passes all but the smallest programs to another thread, which takes longer than running many of
    them. This device belongs to a client that runs them in the calling thread. jaxlib makes one without promising to;
    where it does not, this is JAX's own device.

    Raises:
        BackendUnavailableError: JAX is missing, or does not compute on the CPU here.
    """
    shared = jax_devices("cpu")[0]
    try:
        with importing():
            from jaxlib import xla_client
        return xla_client.make_cpu_client(asynchronous=False, num_devices=1).devices()[0]
    except (ImportError, AttributeError, TypeError):
        return shared
