"""Truncated QR decomposition with pivots: the cheapest low-rank approximation.

With the first k columns in the pivoted order as X and the others as Y, ``X = Q R_X`` and ``R_Y = Q* Y``: Q depends on X
alone, and derivatives are those of a QR decomposition of full rank.
"""

from typing import Any

from tenferro_linalg._algebra import adjoint, block, mm, swap
from tenferro_linalg._operands import matrices
from tenferro_linalg._qr import qr
from tenferro_linalg.factors._lu import taken
from tenferro_linalg.factors._reflections import PivotedQRResult, column_order_
from tenferro_linalg.truncation._ranks import first, kept
from tenferro_tensor.catalog import concatenate, stop_gradient
from tenferro_tensor_core.tracebacks import boundary


@boundary
def qr_trunc(
    x: Any, /, k: Any = None, *, rtol: float | Any | None = None, atol: float | Any | None = None
) -> PivotedQRResult:
    """Low-rank approximation ``A[:, P] ~ Q @ R`` by QR with column pivoting, stopped after k columns.

    The error is usually a small multiple of the optimal one, and at most ``sqrt(n - k) 2^k`` times as large (Gu and
    Eisenstat 1996). Derivatives are taken at a fixed order of the columns.

    Args:
        x: matrices (..., m, n).
        k: number of columns to keep, at most min(m, n): an integer, a symbolic size, or a computed 0-d integer array.
        rtol: without `k`, keep the columns whose ``|R[i, i]|`` exceeds `rtol` times the largest; for a stack, the
            largest number over its matrices.
        atol: without `k`, keep only those above `atol`.

    Returns:
        Q (..., m, k), R (..., k, n) and P (..., n), int64.

    Raises:
        ArgumentError: `k` is out of range, neither `k` nor a tolerance is given, or both are.
        NumericalError: an entry is not finite.
        RankError: (derivative) the first k columns depend on each other.

    >>> qr_trunc([[1.0, 3.0], [0.0, 4.0]], 1).P
    Tensor([1, 0])
    """
    x, k = kept("qr_trunc", matrices("qr_trunc", x), k, rtol, atol, "qr")
    order = column_order_(stop_gradient(x))
    pivoted = swap(taken(swap(x), order))
    left = first(pivoted, k, -1)
    count, n = left.spec.shape[-1], x.spec.shape[-1]
    q, r = qr(left)
    return PivotedQRResult(q, concatenate(r, mm(adjoint(q), block(pivoted, column=(count, n))), axis=r.ndim - 1), order)
