"""Names by which another process finds a primitive."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

from tenferro_runtime.files._errors import ProgramFileError
from tenferro_tensor import REGISTRY, Primitive
from tenferro_tensor._primitive import primitives
from tenferro_tensor_core import RegistryError

CORE: Final = ("tenferro_tensor.", "tenferro_runtime.")
"""Modules whose primitives are known by their bare name."""

HOUSE: Final = {"tenferro-ad": "tenferro_ad"}
"""Distributions that bring primitives without an entry point, and their modules: a file names no module to import."""

_FAMILY: Final = re.compile(r"(.+)\.v([1-9][0-9]*)", re.ASCII)


def identify(p: Primitive) -> list[Any]:
    """The name of a primitive in a file, ``[name, family, extension]``.

    Raises:
        ProgramFileError: no other process could find it.
    """
    if p.family is None and not p._rule.__module__.startswith(CORE):
        raise ProgramFileError(
            f"the primitive {p.name} of {p._rule.__module__} has no family id, so that no other process can find it; "
            "give it one, primitive(family='<distribution>.<op>.v1', extension=...) or custom_rule(family=)",
            primitive=p.name,
        )
    return [p.name, p.family, p.extension]


class Vocabulary:
    """Finds primitives by their names in a file, loading the extensions that bring them."""

    def __init__(self) -> None:
        self._index()

    def _index(self) -> None:
        self.core: dict[str, Primitive] = {}
        self.families: dict[str, Primitive] = {}
        for p in primitives():
            if p.family is not None:
                self.families[p.family] = p
            elif p._rule.__module__.startswith(CORE):
                self.core[p.name] = p

    def find(self, name: str, family: str | None, extension: str | None) -> Primitive:
        """The primitive.

        Raises:
            ProgramFileError: it is not installed, or in another version; names the distribution.
        """
        if family is None:
            found = self.core.get(name)
            if found is None:
                raise ProgramFileError(
                    f"the program uses the primitive {name}, which this tenferro does not have; upgrade "
                    "tenferro-runtime and tenferro-tensor",
                    primitive=name,
                )
            return found
        found = self.families.get(family)
        if found is None:
            self._load(family, extension)
            found = self.families.get(family)
        if found is None:
            raise self._missing(family)
        return found

    def _load(self, family: str, extension: str | None) -> None:
        distribution = family.split(".", 1)[0]
        try:
            if extension is not None:
                REGISTRY.load_extension(extension)
            elif distribution in HOUSE:
                import_module(HOUSE[distribution])
        except (ImportError, RegistryError) as cause:
            raise self._missing(family) from cause
        self._index()

    def _missing(self, family: str) -> ProgramFileError:
        distribution = family.split(".", 1)[0]
        parts = _FAMILY.fullmatch(family)
        others = [f for f in self.families if parts and f.rpartition(".v")[0] == parts[1]]
        if others and parts:
            newer = int(parts[2]) > int(others[0].rpartition(".v")[2])
            return ProgramFileError(
                f"the program uses {family}, but {others[0]} is installed; "
                f"{'upgrade' if newer else 'install an older'} {distribution}"
                f"{'' if newer else ', or save the program again with this one'}",
                family=family,
            )
        return ProgramFileError(
            f"the program uses {family}, which nothing installed here brings; pip install {distribution}",
            family=family,
        )
