"""Functions that NumPy has beside those of the standard, with defaults or a meaning of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import asarray, eye
from tenferro_tensor.functions.linear_algebra import matmul, tensordot
from tenferro_tensor.functions.manipulation import permute_dims, ravel
from tenferro_tensor.functions.scans import cumulative_prod, cumulative_sum
from tenferro_tensor.functions.sorting import sort
from tenferro_tensor.operands import converted, size_of, whole
from tenferro_tensor_core import ShapeError, ask, complex128

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


def array(obj: Any, /, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, device: Any = None) -> Array:
    """A value of numbers, nested sequences or arrays in memory of its own, as `asarray` with ``copy=True``.

    Args:
        obj: the data.
        dtype: dtype of the result; by default that of the data.
        copy: ``False`` raises where a copy is needed, ``None`` copies only then.
        ndmin: least number of axes; missing ones are put in front, with extent 1.
        device: where it goes.

    >>> tr.array([1, 2], ndmin=2)
    Tensor([[1, 2]])
    """
    x = asarray(obj, dtype=dtype, device=device, copy=copy)
    missing = whole("array", "ndmin", ndmin) - x.spec.ndim
    return catalog.reshape(x, shape=(*(1,) * missing, *x.spec.shape)) if missing > 0 else x


def cumprod(x: Any, /, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Products of the elements up to each one along an axis; without axis, of all elements in row-major order.

    >>> tr.cumprod(tr.asarray([[1, 2], [3, 4]]))
    Tensor([ 1,  2,  6, 24])
    """
    return cumulative_prod(ravel(x) if axis is None else x, axis, dtype=dtype)


def cumsum(x: Any, /, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Sums of the elements up to each one along an axis; without axis, of all elements in row-major order.

    >>> tr.cumsum(tr.asarray([[1, 2], [3, 4]]))
    Tensor([ 1,  3,  6, 10])
    """
    return cumulative_sum(ravel(x) if axis is None else x, axis, dtype=dtype)


def dot(x1: Any, x2: Any, /) -> Array:
    """Sum of products over the last axis of `x1` and the last but one of `x2`, or its only one.

    With a number it is the product. The result has the other axes of `x1`, then those of `x2`: for stacks of matrices
    this is not `matmul`, which pairs the stacks.

    Raises:
        ShapeError: the extents of the two axes differ.

    >>> tr.dot(tr.asarray([[1, 2], [3, 4]]), tr.asarray([1, 1]))
    Tensor([3, 7])
    """
    x, y = listed(x1), listed(x2)
    if not x.spec.ndim or not y.spec.ndim:
        return catalog.mul(x, y)
    return _contracted("dot", x, y, max(y.spec.ndim - 2, 0))


def inner(x1: Any, x2: Any, /) -> Array:
    """Sum of products over the last axes of both operands; with a number, the product.

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
    """Sum of ``conj(x1) * x2`` over all elements, in row-major order.

    Raises:
        ShapeError: the numbers of elements differ.

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
    """The identity matrix with `n` rows.

    >>> tr.identity(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return eye(size_of("identity", "n", n), dtype=dtype, device=device)


def sort_complex(x: Any, /) -> Array:
    """The elements as complex numbers, sorted along the last axis by real part, then by imaginary part.

    >>> tr.sort_complex(tr.asarray([3, 1j, 1]))
    Tensor([0.+1.j, 1.+0.j, 3.+0.j])
    """
    x = listed(x)
    return sort(x if x.spec.cplx else converted(x, complex128))


@direct(lambda x, /, axes=None: x.transpose(axes) if axes.__class__ in (tuple, type(None)) else None, ANY_SIZE)
def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Array:
    """The axes in another order; by default in reverse, so that a matrix is transposed.

    >>> tr.transpose(tr.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = listed(x)
    return permute_dims(x, range(x.spec.ndim)[::-1] if axes is None else axes)


def matvec(x1: Any, x2: Any, /) -> Array:
    """Products of (stacks of) matrices and vectors, whose leading axes broadcast.

    >>> tr.matvec(tr.asarray([[1, 2], [3, 4]]), tr.asarray([[1, 1], [0, 1]]))
    Tensor([[3, 7],
            [2, 4]])
    """
    x, y = listed(x1), listed(x2)
    out = matmul(x, catalog.reshape(y, shape=(*y.spec.shape, 1)))
    return catalog.reshape(out, shape=out.spec.shape[:-1])


def vecmat(x1: Any, x2: Any, /) -> Array:
    """Products of (stacks of) conjugated vectors and matrices, whose leading axes broadcast.

    >>> tr.vecmat(tr.asarray([1, 1]), tr.asarray([[1, 2], [3, 4]]))
    Tensor([4, 6])
    """
    x, y = listed(x1), listed(x2)
    x = catalog.conj(x) if x.spec.cplx else x
    out = matmul(catalog.reshape(x, shape=(*x.spec.shape[:-1], 1, x.spec.shape[-1])), y)
    return catalog.reshape(out, shape=(*out.spec.shape[:-2], out.spec.shape[-1]))
