"""Recording: values that represent variables, and the builder that records operations on them."""

from tenferro_runtime.ir._interpret import interpret, recording
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staged import Staged, staged
from tenferro_runtime.tracing._staging import LISTENERS, stage, stage_above
from tenferro_runtime.tracing._traced import TracedTensor, copied_into_stage, is_traced, require_own_stage

__all__ = [
    "Builder",
    "LISTENERS",
    "Staged",
    "TracedTensor",
    "copied_into_stage",
    "interpret",
    "is_traced",
    "recording",
    "require_own_stage",
    "stage",
    "stage_above",
    "staged",
]


def __dir__() -> list[str]:
    return __all__.copy()
