"""Toolchains that other distributions offer by entry points, and the user's choice of one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tenferro_tensor import entry_points
from tenferro_tensor.entry_points import TOOLCHAINS
from tenferro_tensor_core import ArgumentError, RegistryError
from tenferro_tensor_core.forks import new_lock

_made: dict[str, Any] = {}
_lock = new_lock()


def chosen_toolchain(kind: str) -> str | None:
    """The name of the toolchain that the environment variable ``TENFERRO_<KIND>_TOOLCHAIN`` selects.

    It is read whenever a kernel or a program is prepared.

    Args:
        kind: kind of device.

    Returns:
        The name, or None for the default.

    >>> chosen_toolchain("abacus") is None
    True
    """
    return os.environ.get(f"TENFERRO_{kind.upper()}_TOOLCHAIN") or None


def offered_toolchain(kind: str, name: str, own: Iterable[str]) -> Any:
    """The toolchain that an installed distribution offers under a name, made on first use.

    Args:
        kind: kind of device.
        name: name of the entry point.
        own: names of the toolchains of the device, for the error.

    Returns:
        The `Toolchain`.

    Raises:
        ArgumentError: no distribution offers it, or it is for another kind of device.
        RegistryError: it cannot be loaded, or is not a toolchain; the text names the distribution.
    """
    offered = entry_points.installed(TOOLCHAINS)
    if name not in offered:
        raise ArgumentError(
            f"{kind} has no toolchain {name!r}; it has {', '.join([*own, *sorted(offered)])}", using=name
        )
    with _lock:
        if name not in _made:
            who = f"the toolchain {name!r} of {entry_points.owner(offered[name])}"
            made = entry_points.made_by(entry_points.load(TOOLCHAINS, name), who, toolchain=name)
            if not hasattr(made, "renderer"):
                raise RegistryError(f"{who} is {made!r:.80}, which is not a Toolchain", toolchain=name)
            _made[name] = made
    if _made[name].renderer.device != kind:
        raise ArgumentError(f"the toolchain {name!r} is for {_made[name].renderer.device}, not for {kind}", using=name)
    return _made[name]
