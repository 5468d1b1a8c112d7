"""Random vectors, matrices and permutations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenferro_runtime._namespace import export
from tenferro_runtime.random._basic import bits, exponential, normal
from tenferro_runtime.random._continuous import gumbel
from tenferro_runtime.random._discrete import chosen, randint
from tenferro_runtime.random._drawing import accelerator, checked, floating, given_as
from tenferro_runtime.random._keys import two
from tenferro_tensor import broadcast_shapes, catalog
from tenferro_tensor.functions import (
    arange,
    argsort,
    asarray,
    log,
    matmul,
    sqrt,
    take,
    take_along_axis,
    vecdot,
)
from tenferro_tensor.operands import axis_of, empty_extent, shape_of
from tenferro_tensor_core import ArgumentError, ShapeError, ask, uint64
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_tensor import Array


@boundary
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Array:
    """Normal vectors with given means and covariance matrices; differentiable with respect to both.

    Args:
        key: a key.
        mean: means (..., n).
        cov: covariance matrices (..., n, n), positive definite for ``"cholesky"``, otherwise positive semidefinite.
        shape: shape of the result without the last axis; by default the broadcast batch shape.
        dtype: real floating-point dtype, float64 by default.
        method: factorization of the covariance: ``"cholesky"``, ``"eigh"`` or ``"svd"``.

    Returns:
        Vectors (*shape, n).

    Raises:
        MissingFamilyError: tenferro-linalg is not installed.
        NumericalError: a matrix is not positive definite.

    >>> import numpy as np
    >>> tr.random.multivariate_normal(tr.random.key(0), np.zeros(2), np.eye(2), (3,)).shape
    (3, 2)
    """
    dtype = floating("multivariate_normal", dtype)
    mean, cov = (given_as(asarray(v), dtype) for v in (mean, cov))
    if not mean.spec.ndim or cov.spec.ndim < 2 or not ask(mean.spec.shape[-1], "==", cov.spec.shape[-1]):
        raise ShapeError(
            f"multivariate_normal takes means (..., n) and covariances (..., n, n), got {mean.spec!r} and {cov.spec!r}"
        )
    linalg, n = export("linalg"), mean.spec.shape[-1]
    if method == "cholesky":
        root = linalg.cholesky(cov)
    elif method == "eigh":
        w, v = linalg.eigh(cov)
        root = v * sqrt(w)[..., None, :]
    elif method == "svd":
        u, s, _ = linalg.svd(cov)
        root = u * sqrt(s)[..., None, :]
    else:
        raise ArgumentError(f"multivariate_normal: method={method!r} is not one of 'cholesky', 'eigh', 'svd'")
    if shape is None:
        lead = broadcast_shapes(mean.spec.shape[:-1], cov.spec.shape[:-2])
    else:
        lead = shape_of(shape)
    z = normal(key, (*lead, n), dtype)
    return mean + matmul(root, z[..., None])[..., 0]


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None) -> Array:
    """Orthogonal or unitary matrices, distributed by Haar measure.

    The factor Q of normal matrices, with signs of columns such that R has a positive diagonal
    (F. Mezzadri, How to generate random matrices from the classical compact groups, 2007).

    Args:
        key: a key.
        n: number of rows and columns.
        shape: batch shape.
        dtype: floating-point dtype, float64 by default; unitary matrices for a complex dtype.

    Returns:
        Matrices (*shape, n, n).

    Raises:
        MissingFamilyError: tenferro-linalg is not installed.

    >>> q = tr.random.orthogonal(tr.random.key(0), 3)
    >>> bool(tr.max(tr.abs(q @ q.mT - tr.eye(3))) < 1e-14)
    True
    """
    q, r = export("linalg").qr(normal(key, (*shape_of(shape), n, n), dtype))
    diagonal = export("linalg").diagonal(r)
    return q * catalog.sign(diagonal)[..., None, :]


def unit_sphere(key: Any, n: int, shape: Any = (), dtype: Any = None) -> Array:
    """Vectors of length 1 in `n` dimensions, uniform over all directions.

    Args:
        key: a key.
        n: dimension of the space.
        shape: batch shape.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Vectors (*shape, n).

    >>> tr.random.unit_sphere(tr.random.key(0), 3, (5,)).shape
    (5, 3)
    """
    x = normal(key, (*shape_of(shape), n), dtype)
    return x / sqrt(catalog.real(vecdot(x, x)))[..., None]


def ball(key: Any, n: int, shape: Any = (), dtype: Any = None) -> Array:
    """Vectors uniform in the unit ball of `n` dimensions.

    They are the first `n` coordinates of points on a sphere in ``n + 2`` dimensions, drawn with an exponential number.

    Args:
        key: a key.
        n: dimension of the space.
        shape: batch shape.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Vectors (*shape, n).

    >>> tr.random.ball(tr.random.key(0), 3, (5,)).shape
    (5, 3)
    """
    dtype = floating("ball", dtype)
    first, second = two(key, "ball")
    x = normal(first, (*shape_of(shape), n), dtype)
    e = exponential(second, shape_of(shape), dtype)
    return x / sqrt(vecdot(x, x) + 2.0 * e)[..., None]


@boundary
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """The elements along an axis in random order, or a permutation of the integers below a number.

    Args:
        key: a key.
        x: an array, or the integer n for ``arange(n)``.
        axis: the axis to permute.
        independent: permute each line along the axis by itself.

    Returns:
        Array of the shape and dtype of `x`.

    >>> sorted(tr.random.permutation(tr.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    x = asarray(x) if not isinstance(x, int) else arange(x, device=accelerator(key))
    if not x.spec.ndim:
        x = arange(x, device=accelerator(key))
    axis, key = axis_of("permutation", axis, x.spec.ndim), checked("permutation", key)
    if independent:
        return take_along_axis(x, argsort(bits(key, x.spec.shape, uint64), axis=axis), axis=axis)
    return take(x, argsort(bits(key, (x.spec.shape[axis],), uint64)), axis=axis)


@boundary
def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Array:
    """Elements along an axis, or integers below a number, drawn with or without replacement.

    Args:
        key: a key.
        a: an array, or the integer n for ``arange(n)``.
        shape: shape of the draw, which replaces the axis.
        replace: whether an element may be drawn again.
        p: probabilities of the elements, uniform by default; without replacement, elements are drawn one after the
            other with them (Gumbel top-k).
        axis: the axis to draw along.

    Returns:
        Array of the dtype of `a`, with `shape` in place of the axis.

    Raises:
        ArgumentError: the draw without replacement exceeds the number of elements, or there are none.
        ShapeError: `p` does not have one probability for each element.

    >>> tr.random.choice(tr.random.key(0), 5, (3,), replace=False).shape
    (3,)
    """
    x = asarray(a) if not isinstance(a, int) else arange(a, device=accelerator(key))
    if not x.spec.ndim:
        x = arange(x, device=accelerator(key))
    axis, shape = axis_of("choice", axis, x.spec.ndim), shape_of(shape)
    n, wanted = x.spec.shape[axis], math.prod(shape)
    if p is not None:
        p = asarray(p)
        if p.spec.ndim != 1 or not ask(p.spec.shape[0], "==", n):
            raise ShapeError(f"choice takes one probability for each of {n} elements, got {p.spec!r}")
    if empty_extent(n) and not empty_extent(wanted):
        raise ArgumentError("choice: there is nothing to draw from")
    if replace:
        at = randint(key, shape, 0, n) if p is None else chosen(key, p, shape)
    elif ask(wanted, ">", n):
        raise ArgumentError(f"choice: {wanted} elements cannot be drawn from {n} without replacement", drawn=wanted)
    elif p is None:
        at = argsort(bits(key, (n,), uint64))[:wanted].reshape(shape)
    else:
        at = argsort(-(gumbel(key, (n,)) + log(p)))[:wanted].reshape(shape)
    out = take(x, at.reshape((wanted,)), axis=axis)
    whole = (*x.spec.shape[:axis], *shape, *x.spec.shape[axis + 1 :])
    return catalog.reshape(out, shape=whole)
