"""Lazy discovery of entry points: a group is scanned once, when it is first needed, and each entry loaded on first use.

An error in one distribution is raised only when something of that distribution is requested.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tenferro_tensor._owners import HOUSE
from tenferro_tensor._requirements import normal, unmet
from tenferro_tensor_core import RegistryError, TenferroError
from tenferro_tensor_core.forks import importing, new_lock

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

R = TypeVar("R")

__all__ = [
    "BACKENDS", "COMPILERS", "EXTENSIONS", "NAMESPACES", "RESERVED", "TOOLCHAINS", "distribution_of", "installed",
    "load", "made_by", "owner", "own", "own_module", "rescan", "usurped", "version_of",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


EXTENSIONS: Final = "tenferro.extensions"
"""Entry point group of functions that register operation families."""

BACKENDS: Final = "tenferro.backends"
"""Entry point group of functions that create backends."""

COMPILERS: Final = "tenferro.compilers"
"""Entry point group of functions that create compilers of whole programs."""

NAMESPACES: Final = "tenferro.namespaces"
"""Entry point group of modules whose functions the namespace answers for."""

TOOLCHAINS: Final = "tenferro.toolchains"
"""Entry point group of functions that create toolchains of kernels for a kind of device."""

RESERVED: Final = {
    ("tenferro.extensions", "einsum"): "tenferro-einsum",
    ("tenferro.extensions", "fft"): "tenferro-fft",
    ("tenferro.extensions", "linalg"): "tenferro-linalg",
    ("tenferro.extensions", "xla"): "tenferro-xla",
    ("tenferro.namespaces", "ad"): "tenferro-ad",
    ("tenferro.backends", "cpu"): "tenferro-cpu",
    ("tenferro.backends", "xla"): "tenferro-xla",
    ("tenferro.compilers", "xla"): "tenferro-xla",
}
"""Names reserved for tenferro's own distributions: no other distribution can claim them or make them ambiguous."""

_groups: dict[str, dict[str, EntryPoint]] = {}
_rivals: dict[tuple[str, str], EntryPoint] = {}
_usurpers: dict[tuple[str, str], EntryPoint] = {}
_lock = new_lock()


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; if two distributions claim a name, only `load` of that name fails.

    Claims of a reserved name by other distributions are ignored.

    Args:
        group: name of the group.

    Returns:
        The entry points.
    """
    with _lock, importing():  # reading metadata imports further modules
        found = _groups.get(group)
        if found is None:
            found = {}
            for ep in _scanned(group):
                rightful = RESERVED.get((group, ep.name))
                if rightful is not None and _name(ep) != rightful:
                    _usurpers[group, ep.name] = ep
                    _warn("%s", usurped(group, ep.name))
                    continue
                other = found.setdefault(ep.name, ep)
                if other.value != ep.value:
                    _rivals[group, ep.name] = ep
            _groups[group] = found
        return found


def own(group: str, name: str) -> tuple[Callable[..., Any], str] | None:
    """The function that a reserved name names, found without a scan.

    The one distribution that may claim the name is found by the name of its folder. A scan reads the metadata of all
    distributions, with modules of Python that take half as long to import as NumPy.

    Args:
        group: name of the group.
        name: name of the entry point.

    Returns:
        The function, and the distribution as text; None if only a scan can tell.
    """
    for module, function, words in _own_claims(group, name):
        try:
            with importing():
                return getattr(import_module(module), function), words
        except Exception:  # broken, or in another folder: a scan finds it, and `load` says what is wrong
            continue
    return None


def own_module(group: str, name: str) -> str | None:
    """The module that a reserved name names, found without a scan and not imported; see `own`.

    Args:
        group: name of the group.
        name: name of the entry point.

    Returns:
        The name of the module; None if only a scan can tell.
    """
    return next((module for module, _, _ in _own_claims(group, name)), None)


def _own_claims(group: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Modules, functions and distributions as text that the owner of a reserved name installed under it."""
    rightful = RESERVED.get((group, name))
    if rightful is None or _groups.get(group) is not None:
        return
    head, tail = f"{rightful.replace('-', '_')}-", ".dist-info"
    for folder in sys.path:
        try:
            (found,) = [f for f in os.listdir(folder or os.curdir) if f.startswith(head) and f.endswith(tail)]
            with open(os.path.join(folder, found, "entry_points.txt"), encoding="utf-8") as file:
                section = file.read().partition(f"[{group}]")[2].partition("[")[0]
            named = {key.strip(): value.strip() for key, _, value in (x.partition("=") for x in section.splitlines())}
            module, _, function = named[name].partition(":")
        except Exception:  # in another folder or form
            continue
        yield module, function, f"distribution {rightful} {found[len(head) : -len(tail)]}"


def usurped(group: str, name: str) -> str:
    """A message about a distribution that claims a reserved name.

    Args:
        group: name of the group.
        name: name of the entry point.

    Returns:
        The message; empty if no distribution does.
    """
    ep = _usurpers.get((group, name))
    if ep is None:
        return ""
    return f"{owner(ep)} claims {group} {name!r}, which belongs to {RESERVED[group, name]}; the claim is ignored"


def load(group: str, name: str) -> Callable[..., Any]:
    """Import the function that an entry point names.

    Args:
        group: name of the group.
        name: name of the entry point.

    Returns:
        The function.

    Raises:
        RegistryError: two distributions claim the name, the distribution needs other versions of tenferro, or the
            import fails; the text names the distributions.
    """
    ep = installed(group)[name]
    rival = _rivals.get((group, name))
    if rival is not None:
        raise RegistryError(
            f"{group} {name!r} is claimed by {owner(ep)} and by {owner(rival)}; uninstall one of them",
            group=group,
            name=name,
        )
    if _name(ep) not in HOUSE:
        _require_versions(ep)
    if not isinstance(ep.value, str) or ep.pattern.match(ep.value) is None:
        raise _broken(ep, f"{ep.value!r} is not of the form 'package.module:function'")
    try:
        with importing():
            found = ep.load()
    except KeyboardInterrupt:
        raise
    except BaseException as cause:  # a guest that calls sys.exit must not end the program
        what = str(cause) if isinstance(cause, (ImportError, TenferroError)) else f"{type(cause).__name__}: {cause}"
        raise _broken(ep, what) from cause
    if not callable(found):
        raise _broken(ep, f"it is the {type(found).__name__} {found!r:.60}, expected a function")
    return found  # type: ignore[no-any-return]


def made_by(make: Callable[[], R], guest: str, **details: Any) -> R:
    """Call a factory of a guest distribution.

    Args:
        make: the factory.
        guest: what it creates and who offers it, for the error.
        details: payload of the error.

    Returns:
        The result of the factory.

    Raises:
        RegistryError: it raises an exception that is not one of tenferro's.
    """
    try:
        return make()
    except (TenferroError, KeyboardInterrupt):
        raise
    except BaseException as cause:  # a guest that calls sys.exit must not end the program
        raise RegistryError(
            f"{guest} cannot be made: {type(cause).__name__}: {cause}; reinstall or remove what offers it", **details
        ) from cause


def rescan() -> None:
    """Forget all entry points, for processes that install packages while they run."""
    with _lock:
        _groups.clear()
        _rivals.clear()
        _usurpers.clear()


def owner(ep: EntryPoint) -> str:
    """The distribution that installed an entry point, with its version, as text.

    Args:
        ep: the entry point.

    Returns:
        The text.
    """
    name = _name(ep)
    version = version_of(ep)
    return f"distribution {name}{f' {version}' if version else ''}" if name else "an unnamed distribution"


def distribution_of(ep: EntryPoint) -> str:
    """Name of the distribution that installed an entry point.

    Args:
        ep: the entry point.

    Returns:
        The name; empty if its metadata lack it.
    """
    return _name(ep)


def version_of(ep: EntryPoint) -> str:
    """Version of the distribution that installed an entry point.

    Args:
        ep: the entry point.

    Returns:
        The version; empty if its metadata lack it.
    """
    return _metadata(ep, "version")


def _name(ep: EntryPoint) -> str:
    return normal(_metadata(ep, "name"))


def _metadata(ep: EntryPoint, what: str) -> str:
    """An item of a distribution's metadata; the parser of damaged metadata may raise any exception."""
    try:
        with importing():
            found = getattr(ep.dist, what)
    except Exception:
        return ""
    return found if isinstance(found, str) else ""


def _scanned(group: str) -> Iterable[EntryPoint]:
    from importlib.metadata import distributions, entry_points  # importing it takes half as long as NumPy

    try:
        return list(entry_points(group=group))
    except Exception as cause:  # one malformed entry point file; the parser does not name its distribution
        _warn("the entry points of an installed distribution cannot be read: %s: %s", type(cause).__name__, cause)
    found: list[EntryPoint] = []
    seen: set[str] = set()
    for distribution in distributions():
        try:
            name = normal(distribution.metadata["Name"])
            points = [] if name in seen else [ep for ep in distribution.entry_points if ep.group == group]
        except Exception as cause:
            _warn("%s is skipped: %s: %s", distribution, type(cause).__name__, cause)
            continue
        seen.add(name)
        found += points
    return found


def _warn(text: str, *values: Any) -> None:
    import logging  # only when needed

    logging.getLogger("tenferro").warning(text, *values)


def _require_versions(ep: EntryPoint) -> None:
    for wanted, name, version in unmet(ep.dist):
        raise RegistryError(
            f"{ep.group} {ep.name!r} of {owner(ep)} needs {wanted}, but {name} "
            f"{f'{version} is installed' if version else 'is not installed'}; install a version of {name} that it "
            f"takes, or a version of {_name(ep)} for the one that is there",
            group=ep.group,
            name=ep.name,
            requirement=wanted,
            installed=version,
        )


def _broken(ep: EntryPoint, what: str) -> RegistryError:
    return RegistryError(
        f"{ep.group} {ep.name!r} of {owner(ep)} cannot be loaded from {ep.value}: {what}; "
        "reinstall or remove that distribution",
        group=ep.group,
        name=ep.name,
    )
