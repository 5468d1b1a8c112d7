"""Effects: steps with side effects, which run immediately or are recorded."""

from tenferro_runtime.tracing.effects._callback import call_back
from tenferro_runtime.tracing.effects._recording import Attempt, ambient, apply_here

__all__ = ["Attempt", "ambient", "apply_here", "call_back"]


def __dir__() -> list[str]:
    return __all__.copy()
