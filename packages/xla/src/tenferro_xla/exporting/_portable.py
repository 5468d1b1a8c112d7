"""Portable artifacts: StableHLO's versioned operations in MLIR bytecode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tenferro_runtime.extension import ArgumentError, UnsupportedError
from tenferro_xla.importing._parsing import mlir

PASSES: Final = "builtin.module(func.func(chlo-legalize-to-stablehlo),strip-debuginfo)"
"""Passes before serialization: they decompose operations of the dialect ``chlo``, which has no versions."""

_FOREIGN: Final = ("sdy.", "mhlo.frontend_attributes")
"""Prefixes of attributes for XLA's partitioner, which are removed."""


def target_version(asked: str | None) -> str:
    """Return the StableHLO version to write: by default one that readers of the last twelve weeks support.

    Raises:
        ArgumentError: `asked` is not a version, or is too old or too new for the installed StableHLO.
    """
    library = mlir()
    if asked is None:
        weeks = library.stablehlo.StablehloCompatibilityRequirement.WEEK_12
        return str(library.stablehlo.get_version_from_compatibility_requirement(weeks))
    oldest, newest = library.stablehlo.get_minimum_version(), library.stablehlo.get_current_version()
    try:
        number = _number(asked)
    except ValueError:
        number = ()
    if len(number) != 3 or not _number(oldest) <= number <= _number(newest):
        raise ArgumentError(
            f"the installed StableHLO writes versions {oldest} to {newest}, got version={asked!r}; pass one of these, "
            "for example version='1.0.0'",
            version=asked,
        )
    return asked


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def portable(text: str, version: str) -> bytes:
    """Return the artifact of a module, with the same bytes in every process.

    Raises:
        UnsupportedError: an operation is newer than this version of StableHLO.
    """
    library = mlir()
    context = library.context()
    said: list[str] = []

    def keep(diagnostic: Any) -> bool:
        said.append(str(diagnostic.message))
        return True

    handler = context.attach_diagnostic_handler(keep)
    try:
        with context:
            module = library.ir.Module.parse(text, context)
            library.stablehlo.register_stablehlo_passes()
            library.passmanager.PassManager.parse(PASSES).run(module.operation)
            for op in _operations(module.operation):
                for name in [n if isinstance(n, str) else n.name for n in op.attributes]:
                    if name.startswith(_FOREIGN):
                        del op.attributes[name]
            return bytes(library.stablehlo.serialize_portable_artifact(module, version))
    except (ValueError, library.ir.MLIRError) as cause:
        why = said[0] if said else str(cause)
        raise UnsupportedError(
            f"the program cannot be written as StableHLO of version {version}: {why:.200}; use a newer version",
            version=version,
        ) from cause
    finally:
        handler.detach()


def _operations(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _operations(inner.operation)
