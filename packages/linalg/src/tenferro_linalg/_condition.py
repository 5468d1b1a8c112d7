"""Condition numbers."""

from typing import Any

from tenferro_linalg._algebra import diagonal, identity_like_, part
from tenferro_linalg._norms import matrix_norm
from tenferro_linalg._operands import matrices, show
from tenferro_linalg._solve import inv_
from tenferro_linalg._svd import svdvals
from tenferro_linalg.factors._lu import lu_
from tenferro_runtime.extension import ShapeError
from tenferro_tensor import Array
from tenferro_tensor.catalog import broadcast_in_dim, eq, reduce_any, reshape, select, slice_, stop_gradient
from tenferro_tensor_core import ask
from tenferro_tensor_core.tracebacks import boundary


@boundary
def cond(x: Any, /, p: float | str | None = None) -> Array:
    """Condition numbers ``norm(A, p) * norm(inv(A), p)`` of matrices.

    Args:
        x: matrices (..., m, n); square unless `p` is ``None``, 2 or -2.
        p: the norm: ``None`` or 2 for the ratio of the largest to the smallest singular value, -2 for its inverse, or
            ``"fro"``, ``"nuc"``, 1, -1, inf, -inf.

    Returns:
        Real numbers (...); inf for singular matrices, with derivative 0.

    Raises:
        ArgumentError: `p` is none of these.
        DegenerateError: (derivative) equal singular values create a kink.
        NumericalError: an entry is not finite.
        ShapeError: a matrix is empty, or not square where it must be.

    >>> cond([[2.0, 0.0], [0.0, 8.0]])
    Tensor(4.)
    """
    ratio = p in (None, 2, -2)
    x = matrices("cond", x, square=not ratio)
    if any(ask(d, "==", 0) for d in x.spec.shape[-2:]):
        raise ShapeError(f"cond: empty matrices of shape {show(x.spec.shape)} have no condition number", shape=x.shape)
    if ratio:
        s = svdvals(x)
        k = s.spec.shape[-1]
        largest, smallest = _at(s, 0), _at(s, k - 1)
        if p == -2:
            return smallest / _unless(eq(largest, 0.0), largest, 1.0)
        zero = eq(smallest, 0.0)
        return select(zero, float("inf"), largest / _unless(zero, smallest, 1.0))
    singular = _singular(x)
    wide = broadcast_in_dim(singular, shape=x.spec.shape, dims=tuple(range(singular.ndim)))
    safe = select(wide, identity_like_(x), x)
    product = matrix_norm(x, ord=p) * matrix_norm(inv_(safe, what="cond"), ord=p)
    return select(singular, float("inf"), product)


def _at(s: Any, i: Any) -> Any:
    batch = s.spec.shape[:-1]
    zero = (0,) * len(batch)
    return reshape(slice_(s, start=(*zero, i), limit=(*batch, i + 1), stride=(1,) * s.ndim), shape=batch)


def _unless(bad: Any, x: Any, other: float) -> Any:
    return select(bad, other, x)


def _singular(x: Any) -> Any:
    """Which matrices have a pivot that is exactly zero."""
    pivots = diagonal(part(lu_(stop_gradient(x))[0], "upper"))
    return reduce_any(eq(pivots, 0.0), axes=(pivots.ndim - 1,))
