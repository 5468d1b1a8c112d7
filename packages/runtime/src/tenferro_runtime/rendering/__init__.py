"""Programs as straight-line Python over kernels, which faster kernels replace while the program runs."""

from tenferro_runtime.rendering._render import render
from tenferro_runtime.rendering._step import Step
from tenferro_runtime.rendering._steps import aliases, raw_steps

__all__ = ["Step", "aliases", "raw_steps", "render"]


def __dir__() -> list[str]:
    return __all__.copy()
