"""NumPy functions that differ from those of the standard in defaults or meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog, contractible
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import asarray, eye
from tenferro_tensor.functions.linear_algebra import matmul, tensordot
from tenferro_tensor.functions.manipulation import permute_dims, ravel
from tenferro_tensor.functions.scans import cumulative_prod, cumulative_sum
from tenferro_tensor.functions.sorting import sort
from tenferro_tensor.operands import axes_of, converted, size_of, whole
from tenferro_tensor.views import view
from tenferro_tensor_core import ArgumentError, ShapeError, ask, complex128

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "array",
    "cumprod",
    "cumsum",
    "dot",
    "identity",
    "inner",
    "matvec",
    "sort_complex",
    "transpose",
    "vdot",
    "vecmat",
]


def __dir__() -> list[str]:
    return __all__.copy()


def array(obj: Any, /, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, device: Any = None) -> Array:
    """Convert data to an array in its own memory, as `asarray` with ``copy=True``.

    Args:
        obj: a number, nested sequences of numbers or arrays, a NumPy array, a buffer or a DLPack producer.
        dtype: dtype of the result; by default that of the data.
        copy: False raises where a copy is needed, None copies only there.
        ndmin: smallest number of axes; missing ones are prepended with extent 1.
        device: device to move the data to.

    Returns:
        Array with the shape of the data.

    Raises:
        DTypeError: the data are not numbers, or they are complex and `dtype` is not.
        ArgumentError: sequences are ragged, or a copy is needed and `copy` is False.

    >>> tr.array([1, 2], ndmin=2)
    Tensor([[1, 2]])
    """
    x = asarray(obj, dtype=dtype, device=device, copy=copy)
    missing = whole("array", "ndmin", ndmin) - x.spec.ndim
    return catalog.reshape(x, shape=(*(1,) * missing, *x.spec.shape)) if missing > 0 else x


def cumprod(x: Any, /, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Cumulative product along an axis.

    Args:
        x: array of any shape and dtype.
        axis: axis to accumulate along; by default the flattened array.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.

    Returns:
        Array of the shape of `x`, or a vector.

    Raises:
        AxisError: the axis is out of range.

    See also:
        `cumulative_prod`, of the Array API.

    >>> tr.cumprod(tr.asarray([[1, 2], [3, 4]]))
    Tensor([ 1,  2,  6, 24])
    """
    return cumulative_prod(ravel(x) if axis is None else x, axis, dtype=dtype)


def cumsum(x: Any, /, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Cumulative sum along an axis.

    Args:
        x: array of any shape and dtype.
        axis: axis to accumulate along; by default the flattened array.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.

    Returns:
        Array of the shape of `x`, or a vector.

    Raises:
        AxisError: the axis is out of range.

    See also:
        `cumulative_sum`, of the Array API.

    >>> tr.cumsum(tr.asarray([[1, 2], [3, 4]]))
    Tensor([ 1,  3,  6, 10])
    """
    return cumulative_sum(ravel(x) if axis is None else x, axis, dtype=dtype)


def dot(x1: Any, x2: Any, /) -> Array:
    """Sum of products over the last axis of `x1` and the second-to-last (or only) axis of `x2`.

    With a number, it is the product. For stacks of matrices it differs from `matmul`, which pairs the stacks.

    Args:
        x1: array of shape (..., k), or a number.
        x2: array of shape (..., k, n), a vector of k elements, or a number.

    Returns:
        Array with the other axes of `x1`, then those of `x2`, in the promoted dtype.

    Raises:
        ShapeError: the extents of both axes differ.

    See also:
        `matmul`, `inner` and `vdot`.

    >>> tr.dot(tr.asarray([[1, 2], [3, 4]]), tr.asarray([1, 1]))
    Tensor([3, 7])
    """
    try:
        x, y = listed(x1), listed(x2)
    except ArgumentError:
        if not contractible.has_contractible(x1, x2):
            raise
        x, y = contractible.operands(x1, x2)
        return contractible.tensordot("dot", x, y, (x.ndim - 1,), (max(y.ndim - 2, 0),))
    if not x.spec.ndim or not y.spec.ndim:
        return catalog.mul(x, y)
    return _contracted("dot", x, y, max(y.spec.ndim - 2, 0))


def inner(x1: Any, x2: Any, /) -> Array:
    """Sum of products over the last axes; with a number, the product.

    Args:
        x1, x2: arrays of shape (..., k), or numbers.

    Returns:
        Array with the other axes of `x1`, then those of `x2`, in the promoted dtype.

    Raises:
        ShapeError: the extents of the last axes differ.

    >>> tr.inner(tr.asarray([[1, 2], [3, 4]]), tr.asarray([1, 1]))
    Tensor([3, 7])
    """
    x, y = listed(x1), listed(x2)
    if not x.spec.ndim or not y.spec.ndim:
        return catalog.mul(x, y)
    return _contracted("inner", x, y, y.spec.ndim - 1)


def vdot(x1: Any, x2: Any, /) -> Array:
    """Inner product of flattened arrays, ``sum(conj(x1) * x2)``.

    Args:
        x1, x2: arrays with equal numbers of elements.

    Returns:
        Array without axes, in the promoted dtype.

    Raises:
        ShapeError: the numbers of elements differ.

    See also:
        `vecdot`, along an axis.

    >>> tr.vdot(tr.asarray([1j, 2]), tr.asarray([1j, 1]))
    Tensor(3.+0.j)
    """
    x, y = ravel(x1), ravel(x2)
    return _contracted("vdot", catalog.conj(x) if x.spec.cplx else x, y, 0)


def _contracted(name: str, x: Any, y: Any, axis: int) -> Any:
    if not ask(x.spec.shape[-1], "==", y.spec.shape[axis]):
        raise ShapeError(
            f"{name} cannot multiply {x.spec!r} by {y.spec!r}: the last axis of the first has extent "
            f"{x.spec.shape[-1]}, axis {axis} of the second has extent {y.spec.shape[axis]}",
            shapes=(x.spec.shape, y.spec.shape),
        )
    if axis == max(y.spec.ndim - 2, 0) and y.spec.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((x.spec.ndim - 1,), (axis,)))


def identity(n: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Identity matrix.

    Args:
        n: number of rows.
        dtype: dtype of the result; float64 by default.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of shape (n, n).

    See also:
        `eye`, with other diagonals.

    >>> tr.identity(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return eye(size_of("identity", "n", n), dtype=dtype, device=device)


def sort_complex(x: Any, /) -> Array:
    """Sort along the last axis as complex numbers: by real part, then by imaginary part.

    Args:
        x: array with at least one axis.

    Returns:
        Complex array of the shape of `x`.

    >>> tr.sort_complex(tr.asarray([3, 1j, 1]))
    Tensor([0.+1.j, 1.+0.j, 3.+0.j])
    """
    x = listed(x)
    return sort(x if x.spec.cplx else converted(x, complex128))


def _put_transposed(base: Any, part: Any, axes: Sequence[int] | None = None) -> Any:
    order = None if axes is None else axes_of("transpose", tuple(axes), base.spec.ndim)
    return transpose(part, order and [order.index(a) for a in range(len(order))])


@view(lambda x, /, axes=None: x.transpose(axes) if axes.__class__ in (tuple, type(None)) else None, _put_transposed)
def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes; by default reverse them, which transposes a matrix.

    Args:
        x: array of any shape and dtype.
        axes: each axis once, in the new order.

    Returns:
        Array of the dtype of `x`.

    Raises:
        ArgumentError: an axis is missing.
        AxisError: an axis is out of range or repeated.

    See also:
        `permute_dims`, of the Array API; `matrix_transpose`, for stacks.

    >>> tr.transpose(tr.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = listed(x)
    return permute_dims(x, range(x.spec.ndim)[::-1] if axes is None else axes)


def matvec(x1: Any, x2: Any, /) -> Array:
    """Matrix-vector products; leading axes broadcast.

    Args:
        x1: array of shape (..., m, n).
        x2: array of shape (..., n).

    Returns:
        Array of shape (..., m) in the promoted dtype.

    Raises:
        ShapeError: the contracted extents differ, or leading axes do not broadcast.

    >>> tr.matvec(tr.asarray([[1, 2], [3, 4]]), tr.asarray([[1, 1], [0, 1]]))
    Tensor([[3, 7],
            [2, 4]])
    """
    x, y = listed(x1), listed(x2)
    out = matmul(x, catalog.reshape(y, shape=(*y.spec.shape, 1)))
    return catalog.reshape(out, shape=out.spec.shape[:-1])


def vecmat(x1: Any, x2: Any, /) -> Array:
    """Vector-matrix products with conjugated vectors; leading axes broadcast.

    Args:
        x1: array of shape (..., m).
        x2: array of shape (..., m, n).

    Returns:
        Array of shape (..., n) in the promoted dtype.

    Raises:
        ShapeError: the contracted extents differ, or leading axes do not broadcast.

    >>> tr.vecmat(tr.asarray([1, 1]), tr.asarray([[1, 2], [3, 4]]))
    Tensor([4, 6])
    """
    x, y = listed(x1), listed(x2)
    x = catalog.conj(x) if x.spec.cplx else x
    out = matmul(catalog.reshape(x, shape=(*x.spec.shape[:-1], 1, x.spec.shape[-1])), y)
    return catalog.reshape(out, shape=(*out.spec.shape[:-2], out.spec.shape[-1]))
