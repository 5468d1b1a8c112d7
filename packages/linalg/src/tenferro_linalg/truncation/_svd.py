"""Truncated singular value decompositions.

The decomposition is the full one with zero cotangents for the discarded triplets, which includes the term that couples
kept and discarded vectors (cf. arXiv 2311.11894).
"""

from typing import Any

from tenferro_linalg._operands import basis, matrices
from tenferro_linalg._svd import SVDResult, svd_
from tenferro_linalg.truncation._ranks import first, kept
from tenferro_tensor_core import Dim
from tenferro_tensor_core.tracebacks import boundary


@boundary
def svd_trunc(
    x: Any, /, k: Any = None, *, rtol: float | Any | None = None, atol: float | Any | None = None
) -> SVDResult:
    """The largest singular triplets of matrices.

    The gradient includes the coupling of kept and discarded vectors. A cut through a multiplet of equal values has no
    gradient; the error says which `k` keeps the multiplet whole.

    Args:
        x: matrices (..., m, n).
        k: number of triplets to keep, at most min(m, n): an integer, a symbolic size, or a computed 0-d integer array.
        rtol: without `k`, keep the triplets whose values exceed `rtol` times the largest; for a stack, the largest
            number over its matrices.
        atol: without `k`, keep only values above `atol`.

    Returns:
        U (..., m, k), S (..., k), real and descending, and Vh (..., k, n).

    Raises:
        ArgumentError: `k` is negative or larger than min(m, n), neither `k` nor a tolerance is given, or both are.
        NumericalError: an entry is not finite, or none of three LAPACK drivers converges.
        GaugeError, DegenerateError: (gradient) as for `svd`, and where the cut splits equal values.

    See also: `svd_random`, `svds`.

    >>> u, s, vh = svd_trunc([[3.0, 0.0], [0.0, 4.0]], 1)
    >>> s
    Tensor([4.])
    >>> svd_trunc([[3.0, 0.0], [0.0, 4.0]], rtol=0.9).S
    Tensor([4.])
    """
    x, k = kept("svd_trunc", matrices("svd_trunc", x), k, rtol, atol, "svd")
    u, s, vh = svd_(x, full=False, basis=basis(x), cut=k if isinstance(k, (int, Dim)) else None)
    return SVDResult(first(u, k, -1), first(s, k, -1), first(vh, k, -2))
