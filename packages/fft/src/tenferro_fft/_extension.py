"""Registrations of the entry point ``tenferro.extensions: fft``."""

from functools import partial
from typing import Any

from tenferro_fft import _primitives, _sparsity, _stablehlo, _trigonometric
from tenferro_runtime.extension import Registry
from tenferro_tensor_core.forks import importing


def register(registry: Registry) -> None:
    """Register kernels, rules and lowerings."""
    _primitives.register(registry)
    _trigonometric.register(registry)
    _stablehlo.register(registry)
    _sparsity.register(registry)
    for primitive, name in (
        (_primitives.c2c, "complex_to_complex"),
        (_primitives.r2c, "real_to_half"),
        (_primitives.c2r, "half_to_real"),
    ):
        registry.loops(primitive, partial(_by_rule, name))


def _by_rule(name: str, step: Any) -> Any:
    with importing():
        from tenferro_fft import loops
    return getattr(loops, name)(step)
