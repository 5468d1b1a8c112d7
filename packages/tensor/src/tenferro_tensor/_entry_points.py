"""Lazy discovery of installed parts: a group is scanned once, on first need, and each entry loaded on first use."""

from __future__ import annotations

import threading
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tenferro_tensor_core import RegistryError

_groups: dict[str, dict[str, EntryPoint]] = {}
_rivals: dict[tuple[str, str], EntryPoint] = {}
_lock = threading.RLock()


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; where two distributions claim one, `load` refuses that name alone."""
    with _lock:
        found = _groups.get(group)
        if found is None:
            found = {}
            for ep in entry_points(group=group):
                other = found.setdefault(ep.name, ep)
                if other.value != ep.value:
                    _rivals[group, ep.name] = ep
            _groups[group] = found
        return found


def load(group: str, name: str) -> Any:
    """Import what an entry point names.

    Raises:
        RegistryError: two distributions claim the name, or the import fails; the text names the distributions.
    """
    ep = installed(group)[name]
    rival = _rivals.get((group, name))
    if rival is not None:
        raise RegistryError(
            f"{group} {name!r} is claimed by {owner(ep)} and by {owner(rival)}; uninstall one of them",
            group=group,
            name=name,
        )
    try:
        return ep.load()
    except Exception as cause:
        raise RegistryError(
            f"{group} {name!r} of {owner(ep)} cannot be loaded from {ep.value}: {cause}; "
            "reinstall or remove that distribution",
            group=group,
            name=name,
        ) from cause


def rescan() -> None:
    """Forget what was found, for processes that install packages while they run."""
    with _lock:
        _groups.clear()
        _rivals.clear()


def owner(ep: EntryPoint) -> str:
    """Who installed an entry point, in words."""
    return f"distribution {ep.dist.name} {ep.dist.version}" if ep.dist else "an unnamed distribution"
