"""Implicit differentiation: roots, solutions of linear equations, fixed points.

The derivative follows from the equation at the solution, so the solver is never differentiated. Two primitives hold
the equation and its solvers as programs: tangents and cotangents of `custom_root` solve a linear equation, and those
of `custom_linear_solve` solve the same equation for other right-hand sides.
"""

from typing import TYPE_CHECKING

from tenferro_ad.implicit import _adjoint_rule, _linear_rules, _root_rules  # noqa: F401 - imported to register rules
from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_ad.implicit._custom_linear_solve import custom_linear_solve
    from tenferro_ad.implicit._custom_root import custom_root
    from tenferro_ad.implicit._fixed_point import FixedPointStatus, fixed_point
else:
    __getattr__ = deferred(
        __name__,
        {
            "_custom_linear_solve": "custom_linear_solve",
            "_custom_root": "custom_root",
            "_fixed_point": "FixedPointStatus fixed_point",
        },
    )

__all__ = ["FixedPointStatus", "custom_linear_solve", "custom_root", "fixed_point"]


def __dir__() -> list[str]:
    return __all__.copy()
