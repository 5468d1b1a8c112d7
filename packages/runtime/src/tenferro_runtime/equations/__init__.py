"""Equations as operations that hold the equation and its solvers as programs; derivatives differentiate no solver.

`linear_solve` and `root` hold an equation and its solvers, and `adjoint` is the adjoint of a linear function.
`closed` makes the programs. Their derivative rules belong to ``tenferro_ad``, as those of loops do.
"""

from tenferro_runtime.equations import _batching as _batching
from tenferro_runtime.equations._adjoint import adjoint
from tenferro_runtime.equations._closing import Closed, closed
from tenferro_runtime.equations._primitives import linear_solve, parted, root

__all__ = ["Closed", "adjoint", "closed", "linear_solve", "parted", "root"]


def __dir__() -> list[str]:
    return __all__.copy()
