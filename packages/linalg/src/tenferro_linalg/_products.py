"""Products of several matrices in the cheapest order, and linear equations for tensors."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from tenferro_linalg._operands import inexact, integer, show, value
from tenferro_linalg._solve import inv, solve
from tenferro_runtime.extension import ArgumentError, AxisError, ShapeError
from tenferro_tensor import Array
from tenferro_tensor.catalog import reshape, transpose
from tenferro_tensor.functions import matmul
from tenferro_tensor_core import DimLike, example_of, require_equal
from tenferro_tensor_core.tracebacks import boundary

ASSUMED_SIZE = 32
"""Size assumed for a symbolic extent without an example; every order of products is correct for all sizes."""


@boundary
def multi_dot(arrays: Sequence[Any], /) -> Array:
    """Product of two or more matrices, in the order that needs the fewest operations.

    The order is found by dynamic programming over all parenthesisations (Cormen et al., Introduction to Algorithms).
    Symbolic sizes count with their example values.

    Args:
        arrays: matrices (..., m, n) with batch axes that broadcast; the first may be a vector (m,), taken as a row, and
            the last may be a vector, taken as a column.

    Returns:
        Matrix (..., m, n) of the promoted dtype, without the axes of vectors.

    Raises:
        ArgumentError: there are fewer than two arrays.
        ShapeError: neighbouring extents do not match, or an inner array is not a matrix.

    >>> multi_dot([[[1.0, 2.0]], [[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0]])
    Tensor([5.])
    """
    xs = [value(x) for x in arrays]
    if len(xs) < 2:
        raise ArgumentError(f"multi_dot takes two or more arrays, got {len(xs)}")
    for i, x in enumerate(xs):
        if x.ndim < 1 or (x.ndim < 2 and 0 < i < len(xs) - 1):
            raise ShapeError(
                f"multi_dot: array {i} has shape {show(x.spec.shape)}; only the first and the last may be vectors, "
                "the others must be matrices",
                shape=x.spec.shape,
            )
    row, column = xs[0].ndim == 1, xs[-1].ndim == 1
    if row:
        xs[0] = reshape(xs[0], shape=(1, *xs[0].spec.shape))
    if column:
        xs[-1] = reshape(xs[-1], shape=(*xs[-1].spec.shape, 1))
    for i, (x, y) in enumerate(pairwise(xs)):
        require_equal(
            x.spec.shape[-1],
            y.spec.shape[-2],
            f"multi_dot: arrays {i} and {i + 1} of shapes {show(x.spec.shape)} and {show(y.spec.shape)} do not match",
        )
    sizes = [_size(xs[0].spec.shape[-2]), *[_size(x.spec.shape[-1]) for x in xs]]
    splits = _brackets(sizes)

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = splits[i, j]
        return matmul(product(i, k), product(k + 1, j))

    out = product(0, len(xs) - 1)
    if row or column:
        shape: tuple[DimLike, ...] = out.spec.shape[:-2]
        shape += () if row else (out.spec.shape[-2],)
        shape += () if column else (out.spec.shape[-1],)
        out = reshape(out, shape=shape)
    return out


def _size(d: DimLike) -> int:
    known = d if isinstance(d, int) else example_of(d)
    return ASSUMED_SIZE if known is None else known


def _brackets(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of matrices i to j, for every pair; matrix i is ``sizes[i]`` by ``sizes[i + 1]``."""
    n = len(sizes) - 1
    cost = dict.fromkeys([(i, i) for i in range(n)], 0)
    splits = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            ]  # fmt: skip
            cost[i, j], splits[i, j] = min(options)
    return splits


@boundary
def tensorsolve(a: Any, /, b: Any, axes: Sequence[int] | None = None) -> Array:
    """Solve ``tensordot(A, X, X.ndim) == B`` for the tensor X.

    Args:
        a: tensor of shape ``b.shape + q``, where both parts have the same number of elements.
        b: tensor of any shape.
        axes: axes of `a` to move to its end first.

    Returns:
        Tensor of shape q and the promoted dtype.

    Raises:
        AxisError: `axes` are out of range.
        NumericalError: the map is singular.
        ShapeError: the map from X to B is not square.

    >>> import numpy as np
    >>> tensorsolve(np.reshape(2 * np.eye(6), (6, 2, 3)), np.ones(6)).shape
    (2, 3)
    """
    a, b = inexact(a), inexact(b)
    if axes is not None:
        moved = [integer("tensorsolve", "axes", i) for i in axes]
        if any(not -a.ndim <= i < a.ndim for i in moved):
            raise AxisError(f"tensorsolve: axes={axes!r} are out of range for shape {show(a.spec.shape)}", axis=axes)
        moved = [i % a.ndim for i in moved]
        a = transpose(a, permutation=(*[i for i in range(a.ndim) if i not in moved], *moved))
    out = a.spec.shape[b.ndim :]
    rows, columns = _product(b.spec.shape), _product(out)
    require_equal(
        _product(a.spec.shape),
        rows * rows,
        f"tensorsolve: a tensor of shape {show(a.spec.shape)} is not a square map to shape {show(b.spec.shape)}; "
        "axes= moves axes to the end",
    )
    return reshape(solve(reshape(a, shape=(rows, columns)), reshape(b, shape=(rows,))), shape=out)


@boundary
def tensorinv(a: Any, /, ind: int = 2) -> Array:
    """Inverse of the map ``tensordot(A, ., ind)``.

    Args:
        a: tensor whose first `ind` extents have the same product as the others.
        ind: number of axes of the image of the map, at least 1.

    Returns:
        Tensor of shape ``a.shape[ind:] + a.shape[:ind]`` and the dtype of `a`.

    Raises:
        ArgumentError: `ind` is not positive.
        NumericalError: the map is singular.
        ShapeError: the map is not square.

    >>> import numpy as np
    >>> tensorinv(np.reshape(2 * np.eye(4), (2, 2, 4)), ind=2).shape
    (4, 2, 2)
    """
    a, ind = inexact(a), integer("tensorinv", "ind", ind)
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind={ind} is not positive", ind=ind)
    first, rest = a.spec.shape[:ind], a.spec.shape[ind:]
    require_equal(
        _product(first),
        _product(rest),
        f"tensorinv: the first {ind} extents of shape {show(a.spec.shape)} have another product than the others",
    )
    return reshape(inv(reshape(a, shape=(_product(first), _product(rest)))), shape=(*rest, *first))


def _product(shape: tuple[DimLike, ...]) -> Any:
    return prod(shape, start=1)
