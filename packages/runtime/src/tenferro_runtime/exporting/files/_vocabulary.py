"""Names by which another process finds a primitive."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

from tenferro_runtime import callbacks, control_flow  # noqa: F401 - for the primitives they define
from tenferro_runtime.exporting.files._errors import ProgramFileError
from tenferro_runtime.tracing import effects  # noqa: F401 - for the primitives they define
from tenferro_tensor import REGISTRY, Primitive, primitives
from tenferro_tensor.entry_points import EXTENSIONS, distribution_of, installed, version_of
from tenferro_tensor.families import member, members
from tenferro_tensor_core import RegistryError
from tenferro_tensor_core.forks import importing

CORE: Final = ("tenferro_tensor.", "tenferro_runtime.")
"""Modules whose primitives are identified by name only."""

HOUSE: Final = {"tenferro-ad": "tenferro_ad"}
"""Distributions with primitives but no entry point, and their modules; a file cannot name a module to import."""

_FAMILY: Final = re.compile(r"(.+)\.v([1-9][0-9]*)", re.ASCII)


def identify(p: Primitive) -> list[Any]:
    """The name of a primitive in a file, ``[name, family, extension]``.

    Raises:
        ProgramFileError: another process could not find it.
    """
    if p.family is None and not p._rule.__module__.startswith(CORE):
        raise ProgramFileError(
            f"the primitive {p.name} of {p._rule.__module__} has no family id, so that no other process can find it; "
            "give it one, primitive(family='<distribution>.<op>.v1', extension=...) or custom_rule(family=)",
            primitive=p.name,
        )
    return [p.name, p.family, p.extension]


def brought(extension: str) -> list[str] | None:
    """Distribution and version of an extension; ``None`` if it is not installed."""
    point = installed(EXTENSIONS).get(extension)
    return None if point is None else [distribution_of(point), version_of(point)]


class Vocabulary:
    """Finds primitives by their names in a file; loads their extensions.

    Args:
        bringers: distribution and version of each extension when the file was written; older files lack them.
    """

    def __init__(self, bringers: dict[str, list[str]]) -> None:
        self.bringers = bringers
        self.core = {p.name: p for p in primitives() if p.family is None and p._rule.__module__.startswith(CORE)}

    def find(self, name: str, family: str | None, extension: str | None) -> Primitive:
        """The primitive.

        Raises:
            ProgramFileError: it is not installed, has another version, or its name belongs to another primitive; the
                text names the distribution.
        """
        if family is None:
            core = self.core.get(name)
            if core is None:
                raise ProgramFileError(
                    f"the program uses the primitive {name}, which this tenferro does not have; upgrade "
                    "tenferro-runtime and tenferro-tensor",
                    primitive=name,
                )
            return core
        if extension is not None:
            self._require_bringer(family, extension)
        found: Primitive | None = member(family)
        if found is None:
            self._load(family, extension)
            found = member(family)
        if found is None:
            raise self._missing(family, extension)
        if (found.name, found.extension) != (name, extension):
            raise ProgramFileError(
                f"the program uses {name} of {family} ({_words(extension)}), but here that family id belongs to "
                f"{found.name} of module {found._rule.__module__} ({_words(found.extension)}); "
                f"{self._install(family, extension)} in a process without the other",
                family=family,
            )
        return found

    def _require_bringer(self, family: str, extension: str) -> None:
        """Check the distribution: a file must not run another distribution's primitive of the same name."""
        wanted, there = self.bringers.get(extension), brought(extension)
        if wanted and wanted[0] and there is not None and there[0] != wanted[0]:
            raise ProgramFileError(
                f"the program uses {family} of the extension {extension!r} of {' '.join(wanted)}, but here that "
                f"extension is of {' '.join(there) if there[0] else 'an unnamed distribution'}; "
                f"pip install {wanted[0]}, and uninstall the other",
                family=family,
                extension=extension,
            )

    def _load(self, family: str, extension: str | None) -> None:
        distribution = family.split(".", 1)[0]
        try:
            if extension is not None:
                REGISTRY.load_extension(extension)
            elif distribution in HOUSE:
                with importing():
                    import_module(HOUSE[distribution])
        except (ImportError, RegistryError) as cause:
            raise self._missing(
                family, extension, f" ({cause})" if extension in REGISTRY.extensions() else ""
            ) from cause

    def _install(self, family: str, extension: str | None) -> str:
        """A clause that names the distribution to install: that in the file, else that of the family id."""
        name, version = self.bringers.get(extension or "") or [family.split(".", 1)[0], ""]
        return f"pip install {name}{f' (the program was saved with {version})' if version else ''}"

    def _missing(self, family: str, extension: str | None, why: str = "") -> ProgramFileError:
        distribution = family.split(".", 1)[0]
        parts = _FAMILY.fullmatch(family)
        others = [f for f in members() if parts and f.rpartition(".v")[0] == parts[1]]
        if others and parts:
            newer = int(parts[2]) > int(others[0].rpartition(".v")[2])
            return ProgramFileError(
                f"the program uses {family}, but {others[0]} is installed; "
                f"{'upgrade' if newer else 'install an older'} {distribution}"
                f"{'' if newer else ', or save the program again with this one'}",
                family=family,
            )
        return ProgramFileError(
            f"the program uses {family}, which no installed distribution provides{why}; "
            f"{self._install(family, extension)}",
            family=family,
        )


def _words(extension: str | None) -> str:
    return "no extension" if extension is None else f"extension {extension!r}"
