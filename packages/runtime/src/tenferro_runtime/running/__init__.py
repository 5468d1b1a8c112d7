"""Programs on values: rendered for concrete ones, replayed op by op for others."""

from tenferro_runtime.running._execute import call_kernel, run
from tenferro_runtime.running._expansion_kernels import make_kernel

__all__ = ["call_kernel", "make_kernel", "run"]


def __dir__() -> list[str]:
    return __all__.copy()
