"""Truncated singular value decompositions.

The decomposition is the whole one with zero cotangents for what is left out: the term that couples kept and discarded
vectors is there (cf. arXiv 2311.11894).
"""

from typing import Any

from tenferro_linalg._operands import basis, matrices
from tenferro_linalg._svd import SVDResult, svd_
from tenferro_linalg.truncation._ranks import first, kept
from tenferro_tensor_core import Dim


def svd_trunc(
    x: Any, k: Any = None, /, *, rtol: float | Any | None = None, atol: float | Any | None = None
) -> SVDResult:
    """The largest singular triplets of matrices (..., m, n).

    The gradient contains the coupling of kept and discarded vectors. A cut through a multiplet of equal values has
    no gradient; the error says which `k` keeps it whole.

    Args:
        x: matrices (..., m, n).
        k: how many triplets are kept, at most min(m, n): an integer, a size, or a computed 0-d integer array.
        rtol: without `k`, keep as many triplets as have values above `rtol` times the largest; of a stack, as many as
            the matrix that has most.
        atol: without `k`, keep only values above `atol`.

    Returns:
        U (..., m, k), S (..., k), Vh (..., k, n).

    Raises:
        ArgumentError: `k` is negative or larger than min(m, n), neither `k` nor a tolerance is given, or both are.
        NumericalError: an entry is not finite, or none of three LAPACK drivers converges.
        GaugeError, DegenerateError: (gradient) as for `svd`, and where the cut splits equal values.

    >>> u, s, vh = svd_trunc([[3.0, 0.0], [0.0, 4.0]], 1)
    >>> s
    Tensor([4.])
    >>> svd_trunc([[3.0, 0.0], [0.0, 4.0]], rtol=0.9).S
    Tensor([4.])
    """
    x, k = kept("svd_trunc", matrices("svd_trunc", x), k, rtol, atol, "svd")
    u, s, vh = svd_(x, full=False, basis=basis(x), cut=k if isinstance(k, (int, Dim)) else None)
    return SVDResult(first(u, k, -1), first(s, k, -1), first(vh, k, -2))
