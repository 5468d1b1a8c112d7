"""Lazy discovery of installed parts: a group is scanned once, on first need, and each entry loaded on first use."""

from __future__ import annotations

import threading
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tenferro_tensor_core import RegistryError

_groups: dict[str, dict[str, EntryPoint]] = {}
_lock = threading.RLock()


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; two distributions claiming one name is an error."""
    with _lock:
        found = _groups.get(group)
        if found is None:
            found = {}
            for ep in entry_points(group=group):
                other = found.setdefault(ep.name, ep)
                if other is not ep and other.value != ep.value:
                    raise RegistryError(
                        f"{group} {ep.name!r} is claimed by {_owner(other)} and by {_owner(ep)}; uninstall one of them",
                        group=group,
                        name=ep.name,
                    )
            _groups[group] = found
        return found


def load(group: str, name: str) -> Any:
    """Import what an entry point names; a plug-in that fails to import is named in the error."""
    ep = installed(group)[name]
    try:
        return ep.load()
    except Exception as cause:
        raise RegistryError(
            f"{group} {name!r} of {_owner(ep)} cannot be loaded from {ep.value}: {cause}; "
            "reinstall or remove that distribution",
            group=group,
            name=name,
        ) from cause


def rescan() -> None:
    """Forget what was found, for processes that install packages while they run."""
    with _lock:
        _groups.clear()


def _owner(ep: EntryPoint) -> str:
    return f"distribution {ep.dist.name} {ep.dist.version}" if ep.dist else "an unnamed distribution"
