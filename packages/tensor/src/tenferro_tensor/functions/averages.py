"""Weighted means, covariances, and the range of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from tenferro_tensor import catalog
from tenferro_tensor.functions._floating import floating, in_float32
from tenferro_tensor.functions._listed import listed, listed_beside
from tenferro_tensor.functions.joining import concat
from tenferro_tensor.functions.linear_algebra import diagonal, matmul
from tenferro_tensor.functions.manipulation import broadcast_to, expand_dims, matrix_transpose, squeeze
from tenferro_tensor.functions.reductions import max as _max
from tenferro_tensor.functions.reductions import min as _min
from tenferro_tensor.functions.reductions import sum as _sum
from tenferro_tensor.functions.statistics import converted_like, mean
from tenferro_tensor.operands import alike, axes_of, converted, count
from tenferro_tensor_core import DTypeError, ShapeError, ask, bool_, float32

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["average", "corrcoef", "cov", "ptp"]


def __dir__() -> list[str]:
    return __all__.copy()


@overload
def average(
    x: Any, /, axis: Any = ..., weights: Any = ..., returned: Literal[False] = ..., *, keepdims: bool = ...
) -> Array: ...
@overload
def average(
    x: Any, /, axis: Any = ..., weights: Any = ..., *, returned: Literal[True], keepdims: bool = ...
) -> tuple[Array, Array]: ...
@overload
def average(
    x: Any, /, axis: Any, weights: Any, returned: Literal[True], *, keepdims: bool = ...
) -> tuple[Array, Array]: ...
def average(
    x: Any, /, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """Weighted mean over axes: ``sum(x * weights) / sum(weights)``; without weights, `mean`.

    Weights whose sum is 0 yield NaN or infinity.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        weights: array of the shape of `x`, or of the extents of the axes in the order of `axis`.
        returned: also return the sum of the weights.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype; with `returned`, a tuple of it and the sum of the
        weights, in the same shape.

    Raises:
        ShapeError: the shape of the weights fits neither the array nor the axes.
        AxisError: an axis is out of range or repeated.

    >>> tr.average(tr.asarray([1.0, 2.0, 4.0]), weights=tr.asarray([1, 0, 3]))
    Tensor(3.25)
    """
    x = listed(x)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        if not returned:
            return out
        n = count(x, axes_of("average", axis, x.spec.ndim))
        return out, broadcast_to(converted(listed(n), out.spec.dtype), out.spec.shape)
    x = floating(x)
    weights = listed_beside(weights, x)
    weights = beside("average", x, weights, axis)
    x, weights = alike(x, weights)
    if x.spec.narrow:
        found = average(converted(x, float32), axis, converted(weights, float32), True, keepdims=keepdims)
        out, scale = (converted(v, x.spec.dtype) for v in found)
        return (out, scale) if returned else out
    scale = _sum(weights, axis, keepdims=keepdims)
    out = catalog.div(_sum(catalog.mul(x, weights), axis, keepdims=keepdims), scale)
    return (out, broadcast_to(scale, out.spec.shape)) if returned else out


def beside(name: str, x: Any, weights: Any, axis: Any) -> Any:
    """Reshape weights to the axes of `x`, so that they broadcast with it."""
    shape, given = x.spec.shape, weights.spec.shape
    if len(given) == len(shape) and all(map(_same, given, shape)):
        return weights
    axes = axes_of(name, axis, len(shape))
    if axis is None or len(given) != len(axes) or not all(_same(d, shape[a]) for d, a in zip(given, axes, strict=True)):
        wanted = "" if axis is None else f", or one weight for each index of axis {axis}"
        raise ShapeError(f"{name} needs weights of the shape of the array, {x.spec!r}{wanted}, got {weights.spec!r}")
    weights = catalog.transpose(weights, permutation=tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return catalog.broadcast_in_dim(weights, shape=shape, dims=tuple(sorted(axes)))


def _same(a: Any, b: Any) -> bool:
    return ask(a, "==", b)


def cov(
    m: Any,
    /,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Array:
    """Covariance matrix of variables with several observations each.

    Args:
        m: array of shape (variables, observations), or a vector: one variable.
        y: more variables in the same form.
        rowvar: whether rows are the variables; otherwise columns are.
        bias: divide by the number of observations n instead of n - 1.
        ddof: divide by n - ddof, regardless of `bias`.
        fweights: integer vector: how often each observation counts.
        aweights: vector of relative weights of the observations.

    Returns:
        Array of shape (variables, variables), without axes for a single variable.

    Raises:
        ShapeError: an argument has too many axes, or the numbers of observations differ.
        DTypeError: `fweights` are not integers.

    See also:
        `corrcoef`, normalised.

    >>> tr.cov(tr.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = _variables("cov", m, rowvar)
    if y is not None:
        x = concat(alike(x, _variables("cov", y, rowvar)), axis=0)
    if x.spec.narrow:
        return in_float32(cov, x, bias=bias, ddof=ddof, fweights=fweights, aweights=aweights)
    correction: Any = (0 if bias else 1) if ddof is None else ddof
    frequencies = None if fweights is None else _weights("fweights", fweights, x)
    relative = None if aweights is None else _weights("aweights", aweights, x)
    if frequencies is not None and frequencies.spec.dtype.kind not in "iub":
        raise DTypeError(f"cov takes integers as fweights, got {frequencies.spec!r}; use aweights for real weights")
    weights = relative if frequencies is None else frequencies
    if frequencies is not None and relative is not None:
        weights = catalog.mul(*alike(frequencies, relative))
    if weights is None:
        x = catalog.sub(x, mean(x, 1, keepdims=True))
        n = converted_like(count(x, (1,)), x)
        scaled = x
    else:
        weights = floating(weights)
        total = _sum(weights)
        x = catalog.sub(x, average(x, 1, broadcast_to(weights, x.spec.shape), keepdims=True))
        scaled = catalog.mul(*alike(x, weights))
        n = total
        if relative is not None:
            correction = catalog.mul(catalog.div(_sum(catalog.mul(*alike(weights, relative))), total), correction)
    x, scaled = alike(x, scaled)
    turned = matrix_transpose(scaled)
    product = matmul(x, catalog.conj(turned) if turned.spec.cplx else turned)
    return _squeezed(catalog.div(product, n - correction))


def _squeezed(x: Any) -> Any:
    """The matrix without axes of extent 1."""
    axes = tuple([a for a, d in enumerate(x.spec.shape) if _same(d, 1)])
    return squeeze(x, axes) if axes else x


def _variables(name: str, m: Any, rowvar: bool) -> Any:
    m = floating(m)
    if m.spec.ndim > 2:
        raise ShapeError(f"{name} takes a matrix of variables and observations, got {m.spec!r}; reshape it")
    if m.spec.ndim < 2:
        return catalog.reshape(m, shape=(1, m.spec.size))
    return m if rowvar or ask(m.spec.shape[0], "==", 1) else matrix_transpose(m)


def _weights(name: str, weights: Any, x: Any) -> Any:
    weights = listed_beside(weights, x)
    if weights.spec.ndim != 1 or not _same(weights.spec.shape[0], x.spec.shape[1]):
        raise ShapeError(f"cov needs one of {name} for each of the observations of {x.spec!r}, got {weights.spec!r}")
    return weights


def corrcoef(x: Any, /, y: Any = None, rowvar: bool = True) -> Array:
    """Correlation coefficients: `cov` divided by the standard deviations, limited to [-1, 1].

    Args:
        x: array of shape (variables, observations), or a vector: one variable.
        y: more variables in the same form.
        rowvar: whether rows are the variables; otherwise columns are.

    Returns:
        Array of shape (variables, variables), without axes for a single variable.

    Raises:
        ShapeError: an argument has too many axes, or the numbers of observations differ.

    >>> tr.corrcoef(tr.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x, y = floating(x), None if y is None else floating(y)
    if x.spec.narrow and (y is None or y.spec.dtype == x.spec.dtype):
        return in_float32(corrcoef, x, y, rowvar)
    c = cov(x, y, rowvar)
    if not c.spec.ndim:
        return catalog.div(c, c)
    spread = catalog.sqrt(catalog.real(diagonal(c)) if c.spec.cplx else diagonal(c))
    c = catalog.div(catalog.div(c, expand_dims(spread, axis=1)), spread)
    if not c.spec.cplx:
        return catalog.clamp(c, -1.0, 1.0)
    return catalog.complex(*[catalog.clamp(part, -1.0, 1.0) for part in (catalog.real(c), catalog.imag(c))])


def ptp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Range of values over axes: largest minus smallest element.

    Args:
        x: real array of any shape.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the dtype of `x`.

    Raises:
        ShapeError: there are no elements to choose from.
        DTypeError: `x` is boolean or complex.
        AxisError: an axis is out of range or repeated.

    >>> tr.ptp(tr.asarray([[1, 5], [7, 2]]), axis=1)
    Tensor([4, 5])
    """
    x = listed(x)
    if x.spec.dtype is bool_:
        raise DTypeError("ptp subtracts elements, which booleans do not allow; convert them with astype first")
    return catalog.sub(_max(x, axis, keepdims=keepdims), _min(x, axis, keepdims=keepdims))
