"""QR with column pivoting, and products of Householder reflections."""

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, block, identity_like_, mm, part, rows, swap
from tenferro_linalg._operands import common, inexact, matrices, require_inexact, show
from tenferro_linalg._qr import qr
from tenferro_linalg._solve import solve_triangular_
from tenferro_linalg.factors._lu import taken
from tenferro_runtime.extension import Inactive, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import stop_gradient
from tenferro_tensor_core import int64, require_equal
from tenferro_tensor_core.tracebacks import boundary


class PivotedQRResult(NamedTuple):
    """QR decomposition with column pivoting.

    Attributes:
        Q: orthonormal columns.
        R: upper triangular factor.
        P: the order of the columns.
    """

    Q: Array
    R: Array
    P: Array


@boundary
def rank_revealing_qr(x: Any, /, *, mode: str = "reduced") -> PivotedQRResult:
    """QR decomposition ``A[:, P] = Q @ R`` with column pivoting, which reveals the rank.

    Each step takes the column with the largest remainder (Businger and Golub 1965), so the absolute values on the
    diagonal of R decrease. Derivatives are taken at a fixed order of the columns, as for `qr`.

    Args:
        x: matrices (..., m, n).
        mode: ``"reduced"`` or ``"complete"``, as for `qr`.

    Returns:
        Q (..., m, k), R (..., k, n) and P (..., n), int64, with k = min(m, n), or k = m in the complete form.

    Raises:
        ArgumentError: `mode` is neither of the two.
        NumericalError: an entry is not finite.
        RankError: (gradient) the loss uses a factor beyond the rank.
        GaugeError: (gradient) the loss depends on the choice of the extra columns of Q.

    >>> rank_revealing_qr([[1.0, 3.0], [0.0, 4.0]]).P
    Tensor([1, 0])
    """
    x = matrices("rank_revealing_qr", x)
    order = column_order_(stop_gradient(x))
    q, r = qr(swap(taken(swap(x), order)), mode=mode)
    return PivotedQRResult(q, r, order)


@boundary
def householder_product(x: Any, tau: Any, /) -> Array:
    """The first n columns of the product ``H_1 H_2 ...`` of reflections ``H_i = 1 - tau_i v_i v_i*``.

    Args:
        x: matrices (..., m, n), m >= n; v_i is column i below the diagonal, with 1 on the diagonal and 0 above.
        tau: factors (..., k), k <= n.

    Returns:
        Matrices (..., m, n); for the output of LAPACK's geqrf, Q of the QR decomposition.

    Raises:
        ShapeError: the extents do not match.

    >>> householder_product([[1.0], [1.0]], [1.0])
    Tensor([[ 0.],
            [-1.]])
    """
    x, tau = common(matrices("householder_product", x), inexact(tau))
    k = tau.spec.shape[-1] if tau.ndim else 0
    if tau.ndim != x.ndim - 1:
        raise ShapeError(
            f"householder_product takes one vector of factors for each matrix, got shapes {show(x.spec.shape)} and "
            f"{show(tau.spec.shape)}",
            shapes=(x.spec.shape, tau.spec.shape),
        )
    for d, e in zip(x.spec.shape[:-2], tau.spec.shape[:-1]):
        require_equal(d, e, "householder_product: the batch axes of matrices and factors differ")
    low = part(block(x, column=(0, k)), "strict_lower")
    v = low + identity_like_(low)
    # H_1 ... H_k = 1 - V T V* with T = (1 + D S)^-1 D, where D = diag(tau) and S = strict upper(V* V).
    gram = mm(adjoint(v), v)
    s = gram - part(gram, "lower")
    unit = identity_like_(x)
    right = rows(tau, mm(adjoint(v), unit)) * mm(adjoint(v), unit)
    return unit - mm(v, solve_triangular_(rows(tau, s) * s, right, lower=False, unit=True, adjoint=False))


@primitive(family="tenferro-linalg.column_order.v1", extension="linalg")
def column_order_(x: Spec) -> Spec:
    """The order of the columns in which each has the largest distance from the span of its predecessors."""
    require_inexact("rank_revealing_qr", x)
    return x.with_(shape=(*x.shape[:-2], x.shape[-1]), dtype=int64)


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(
        registry,
        column_order_,
        lambda la, ins, outs: lambda x: la.column_order(la.finite("rank_revealing_qr", x)),
    )
    registry.rule(column_order_, Inactive())
