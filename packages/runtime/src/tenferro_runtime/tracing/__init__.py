"""Recording: values that represent variables, and the builder that records operations on them."""

from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._interpret import interpret
from tenferro_runtime.tracing._staging import LISTENERS, stage, stage_above
from tenferro_runtime.tracing._traced import TracedTensor, is_traced, recording

__all__ = ["Builder", "LISTENERS", "TracedTensor", "interpret", "is_traced", "recording", "stage", "stage_above"]
