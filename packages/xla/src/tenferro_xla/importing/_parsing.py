"""Modules in any of the forms that they come in, as operations of MLIR."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_runtime.extension import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import importing


def parsed(source: Any) -> Any:
    """The module of a text, of bytes (portable or not), or of an object that prints as a module.

    Raises:
        ArgumentError: it is no module.
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
            f"the module cannot be read as StableHLO: {'; '.join(lines[:2])}; pass the text or the bytes of a module, "
            "as jax.jit(f).lower(*args).as_text() gives it, or what jax.export.export returns"
        ) from cause


class MlirModules(NamedTuple):
    """What jaxlib brings to read, change and write modules with.

    Attributes:
        ir: operations, types and attributes.
        passmanager: passes over modules.
        stablehlo: the dialect, and its portable form.
    """

    ir: Any
    passmanager: Any
    stablehlo: Any

    def context(self) -> Any:
        """A new context that knows all dialects that JAX writes."""
        import jax

        # The context of a module that JAX has written is such a one; there is no other public way to it.
        return jax.jit(lambda: 1).lower().compiler_ir("stablehlo").context


def mlir() -> MlirModules:
    """The modules, imported where they are wanted.

    Raises:
        BackendUnavailableError: jaxlib is missing.
    """
    with importing():
        try:
            from jax.extend.mlir import ir, passmanager
            from jax.extend.mlir.dialects import chlo, func, stablehlo  # noqa: F401 - classes of operations register
        except ImportError as cause:
            raise BackendUnavailableError(
                "reading and writing StableHLO needs jaxlib, which is not installed; pip install tenferro-xla",
                platform="cpu",
            ) from cause
    return MlirModules(ir, passmanager, stablehlo)
