"""Automatic differentiation: eager tensors, transforms, and gradient checking."""

import tenferro_runtime.extension  # noqa: F401 - the code of programs, before anything imports a part of it

# isort: split
from typing import TYPE_CHECKING

from tenferro_ad import (  # noqa: F401 - imported to register recorders and rules
    _call,
    _elementwise,
    _expansion_rules,
    _inner_programs,
    _record,
    _transfers,
    checkpoint_policies,
    control_flow,
    implicit,
)
from tenferro_ad._checking import check_grads
from tenferro_ad._checkpoint import checkpoint
from tenferro_ad._custom import custom_rule
from tenferro_ad._eager import EagerTensor
from tenferro_ad._forward import jvp
from tenferro_ad._jacobian import hessian, hvp, jacfwd, jacrev
from tenferro_ad._linearize import linear_transpose, linearize
from tenferro_ad._modes import no_grad, record_sources
from tenferro_ad._reverse import grad, value_and_grad, vjp
from tenferro_ad._saving import checkpoint_name
from tenferro_ad._variable import variable
from tenferro_tensor.class_home import class_home
from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_ad.compiler_checks import check_compiler
    from tenferro_ad.implicit import FixedPointStatus, custom_linear_solve, custom_root, fixed_point
    from tenferro_ad.power_series import laplacian, taylor, taylor_kind
    from tenferro_ad.primitive_checks import check_primitive
    from tenferro_ad.sparse import Sparsity, sparse_hessian, sparse_jacobian, sparsity
else:
    __getattr__ = deferred(
        __name__,
        {
            "compiler_checks": "check_compiler",
            "implicit": "FixedPointStatus custom_linear_solve custom_root fixed_point",
            "power_series": "laplacian taylor taylor_kind",
            "primitive_checks": "check_primitive",
            "sparse": "Sparsity sparse_hessian sparse_jacobian sparsity",
        },
        class_home(__name__),
    )

__all__ = [
    "EagerTensor",
    "FixedPointStatus",
    "Sparsity",
    "check_compiler",
    "check_grads",
    "check_primitive",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "custom_linear_solve",
    "custom_root",
    "custom_rule",
    "fixed_point",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "laplacian",
    "linear_transpose",
    "linearize",
    "no_grad",
    "record_sources",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "taylor",
    "taylor_kind",
    "value_and_grad",
    "variable",
    "vjp",
]


def __dir__() -> list[str]:
    return __all__.copy()
