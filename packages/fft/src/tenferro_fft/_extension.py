"""Registrations of the entry point ``tenferro.extensions: fft``."""

from tenferro_fft import _primitives, _stablehlo
from tenferro_runtime.extension import Registry


def register(registry: Registry) -> None:
    """Kernels, rules and lowerings."""
    _primitives.register(registry)
    _stablehlo.register(registry)
