"""Modules in any of the forms that they come in, as operations of MLIR."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.extension import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import importing


def parsed(source: Any) -> Any:
    """The module of a text, of bytes (portable or not), or of an object that prints as a module.

    Raises:
        ArgumentError: it is no module.
        BackendUnavailableError: jaxlib is missing.
    """
    context, ir, stablehlo = _library()
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


def _library() -> tuple[Any, Any, Any]:
    """A context of MLIR with all dialects that JAX writes, and the modules to read with."""
    with importing():
        try:
            import jax
            from jaxlib.mlir import ir
            from jaxlib.mlir.dialects import chlo, func, stablehlo  # noqa: F401 - classes of operations register
        except ImportError as cause:
            raise BackendUnavailableError(
                "reading StableHLO needs jaxlib, which is not installed; pip install tenferro-xla", platform="cpu"
            ) from cause
    # The context of a module that JAX has written knows all of them; there is no other public way to one.
    return jax.jit(lambda: 1).lower().compiler_ir("stablehlo").context, ir, stablehlo
