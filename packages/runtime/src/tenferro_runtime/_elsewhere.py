"""Names that other distributions provide, for type checkers; `_namespace.FORWARDED` and `FAMILIES` find them later.

The one module that names higher layers, and only under TYPE_CHECKING. Where such a distribution is not installed, its
names are unknown to the type checker, without an error.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tenferro_fft as fft
    import tenferro_linalg as linalg
    from tenferro_ad import (
        EagerTensor,
        FixedPointStatus,
        Sparsity,
        check_compiler,
        check_grads,
        check_primitive,
        checkpoint,
        checkpoint_name,
        checkpoint_policies,
        custom_linear_solve,
        custom_root,
        custom_rule,
        fixed_point,
        grad,
        hessian,
        hvp,
        jacfwd,
        jacrev,
        jvp,
        laplacian,
        linear_transpose,
        linearize,
        no_grad,
        record_sources,
        sparse_hessian,
        sparse_jacobian,
        sparsity,
        taylor,
        taylor_kind,
        value_and_grad,
        variable,
        vjp,
    )
    from tenferro_einsum import einsum
    from tenferro_linalg import cross

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
        "cross",
        "custom_linear_solve",
        "custom_root",
        "custom_rule",
        "einsum",
        "fft",
        "fixed_point",
        "grad",
        "hessian",
        "hvp",
        "jacfwd",
        "jacrev",
        "jvp",
        "laplacian",
        "linalg",
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
