"""Expansions: operations of families as programs of other operations, and the pass that substitutes them."""

from tenferro_runtime.ir._widen import widened
from tenferro_runtime.tracing.expanding._apply import apply_expansion, has_expansion
from tenferro_runtime.tracing.expanding._expand import expand, with_conditions
from tenferro_runtime.tracing.expanding._trace import expansion_of, specs_of, stays

__all__ = [
    "apply_expansion",
    "expand",
    "expansion_of",
    "has_expansion",
    "specs_of",
    "stays",
    "widened",
    "with_conditions",
]


def __dir__() -> list[str]:
    return __all__.copy()
