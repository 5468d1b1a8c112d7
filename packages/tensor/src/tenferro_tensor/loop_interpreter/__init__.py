"""The executable semantics of `LoopIR`: Python runs functions number by number, with BLAS and LAPACK of the backend."""

from tenferro_tensor.loop_interpreter._fortran import fortran_address
from tenferro_tensor.loop_interpreter._interpret import interpret

__all__ = ["fortran_address", "interpret"]


def __dir__() -> list[str]:
    return __all__.copy()
