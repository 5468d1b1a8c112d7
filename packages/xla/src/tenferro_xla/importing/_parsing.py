"""Parses modules in all supported forms to MLIR operations."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_runtime.extension import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import importing


def parsed(source: Any) -> Any:
    """Parse a text, bytes (portable or not), or an object that prints as a module.

    Raises:
        ArgumentError: `source` is not a module.
        BackendUnavailableError: jaxlib is missing.
    """
    library = mlir()
    context, ir, stablehlo = library.context(), library.ir, library.stablehlo
    if isinstance(source, (bytes, bytearray, memoryview)):
        content: Any = bytes(source)
    else:
        content = source if isinstance(source, str) else str(source)
    try:
        with context:
            if isinstance(content, bytes) and content.startswith(b"ML\xefR") and b"StableHLO_v" in content[:64]:
                return stablehlo.deserialize_portable_artifact(context, content)
            return ir.Module.parse(content, context)
    except (ValueError, ir.MLIRError) as cause:
        lines = str(cause).splitlines()
        raise ArgumentError(
            f"the module cannot be read as StableHLO: {'; '.join(lines[:2])}; pass the text or bytes of a module, for "
            "example jax.jit(f).lower(*args).as_text(), or the result of jax.export.export"
        ) from cause


class MlirModules(NamedTuple):
    """The modules of jaxlib for reading, transforming and writing MLIR.

    Attributes:
        ir: operations, types and attributes.
        passmanager: passes over modules.
        stablehlo: the dialect and its portable form.
    """

    ir: Any
    passmanager: Any
    stablehlo: Any

    def context(self) -> Any:
        """Return a new context with all dialects that JAX writes."""
        import jax

        # Only modules written by JAX give public access to such a context.
        return jax.jit(lambda: 1).lower().compiler_ir("stablehlo").context


def mlir() -> MlirModules:
    """Import the modules on demand.

    Raises:
        BackendUnavailableError: jaxlib is missing.
    """
    with importing():
        try:
            from jax.extend.mlir import ir, passmanager
            from jax.extend.mlir.dialects import chlo, func, stablehlo  # noqa: F401 - classes of operations register
        except ImportError as cause:
            raise BackendUnavailableError(
                "reading and writing StableHLO requires jaxlib, which is not installed; pip install tenferro-xla",
                platform="cpu",
            ) from cause
    return MlirModules(ir, passmanager, stablehlo)
