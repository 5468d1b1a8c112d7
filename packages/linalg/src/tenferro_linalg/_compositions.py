"""Cross products, integer powers and ranks, composed of other functions."""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import identity_like_
from tenferro_linalg._operands import integer, matrices, show, value
from tenferro_linalg._solve import inv
from tenferro_linalg._svd import svdvals
from tenferro_runtime.extension import ArgumentError, AxisError, ShapeError
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor.catalog import concatenate, convert, gt, reduce_max, reduce_sum, reshape, slice_
from tenferro_tensor.functions import matmul, moveaxis
from tenferro_tensor.operands import number
from tenferro_tensor_core import ask, dim_max, finfo, int64
from tenferro_tensor_core.tracebacks import boundary


@boundary
def cross(x1: Any, x2: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = -1) -> Array:
    """Cross product of 3-vectors along an axis; the other axes broadcast.

    Args:
        x1: array with extent 3 along an axis, by default the last.
        x2: array with extent 3 along an axis, by default the last.
        axisa: the axis of the vectors of `x1`.
        axisb: the axis of the vectors of `x2`.
        axisc: the axis of the vectors of the result.
        axis: the axis of all three, counted along the broadcast shape; another one than -1 and ``None``, NumPy's
            default, precedes the three.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    Raises:
        AxisError: `axis` is out of range.
        ShapeError: the extent along the axis is not 3.

    >>> cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    Tensor([0., 0., 1.])
    """
    x1, x2 = value(x1), value(x2)
    axis = -1 if axis is None else axis
    if axis == -1 and not axisa == axisb == axisc == -1:
        given = {"axisa": axisa, "axisb": axisb, "axisc": axisc}
        first, second, out = [integer("cross", name, at) for name, at in given.items()]
        return moveaxis(cross(moveaxis(x1, first, -1), moveaxis(x2, second, -1)), -1, out)
    shape = broadcast_shapes(x1.spec.shape, x2.spec.shape)
    axis = integer("cross", "axis", axis)
    if not -min(x1.ndim, x2.ndim) <= axis < len(shape):
        raise AxisError(
            f"cross: axis={axis} is out of range for operands of shapes {show(x1.spec.shape)} and "
            f"{show(x2.spec.shape)}; it counts along the broadcast shape",
            axis=axis,
        )
    back = axis if axis < 0 else axis - len(shape)
    for x in (x1, x2):
        if not ask(x.spec.shape[back], "==", 3):
            raise ShapeError(
                f"cross takes vectors of 3 entries along axis {axis}, got shapes {show(x1.spec.shape)} and "
                f"{show(x2.spec.shape)}; append a zero to vectors of length 2",
                shapes=(x1.spec.shape, x2.spec.shape),
            )
    a, b = ([_entry(x, back, i) for i in range(3)] for x in (x1, x2))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return concatenate(*parts, axis=len(shape) + back)


def _entry(x: Any, axis: int, i: int) -> Any:
    start, limit = [0] * x.ndim, list(x.spec.shape)
    start[axis], limit[axis] = i, i + 1
    return slice_(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)


@boundary
def matrix_power(x: Any, /, n: int) -> Array:
    """Integer power of square matrices, by repeated squaring; for negative `n`, of the inverse.

    Args:
        x: matrices (..., m, m).
        n: the exponent.

    Returns:
        Matrices (..., m, m) of the dtype of `x`.

    Raises:
        ArgumentError: `n` is not an integer.
        NumericalError: `n` is negative and a matrix is singular.

    See also: `fractional_matrix_power`.

    >>> matrix_power([[1.0, 1.0], [0.0, 1.0]], 5)
    Tensor([[1., 5.],
            [0., 1.]])
    """
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
        raise ArgumentError(f"matrix_power takes an integer power, got {n!r}; other powers need a spectral function")
    x = matrices("matrix_power", x, square=True)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return identity_like_(x)
    out: Any = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return out


@boundary
def matrix_rank(x: Any, /, *, rtol: float | Any | None = None) -> Array:
    """Rank of matrices: the number of singular values above `rtol` times the largest.

    Args:
        x: matrices (..., m, n).
        rtol: relative cutoff, a number or an array that broadcasts with the batch axes; by default max(m, n) times the
            machine epsilon.

    Returns:
        int64 numbers (...).

    Raises:
        NumericalError: an entry is not finite, or LAPACK does not converge.

    >>> matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    Tensor(1)
    """
    x = matrices("matrix_rank", x)
    s = svdvals(x)
    if ask(s.spec.shape[-1], "==", 0):
        return reduce_sum(convert(s, dtype=int64), axes=(s.ndim - 1,))
    if rtol is None:
        rtol = number(dim_max(*x.spec.shape[-2:]), x.spec.place) * finfo(s.dtype).eps
    largest = reduce_max(s, axes=(s.ndim - 1,))
    cut = reshape(largest * rtol, shape=(*largest.spec.shape, 1))
    return reduce_sum(convert(gt(s, cut), dtype=int64), axes=(s.ndim - 1,))
