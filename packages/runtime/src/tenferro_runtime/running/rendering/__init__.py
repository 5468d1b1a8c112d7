"""Programs as straight-line Python over kernels, which faster kernels replace while the program runs."""

from tenferro_runtime.running.rendering._render import render
from tenferro_runtime.running.rendering._step import Step
from tenferro_runtime.running.rendering._steps import aliases, raw_steps, step_kernel

__all__ = ["Step", "aliases", "raw_steps", "render", "step_kernel"]


def __dir__() -> list[str]:
    return __all__.copy()
