"""Functions along an axis: gates, normalization, and one-hot vectors."""

from typing import Any

from tenferro_runtime.nn._operands import real_floating
from tenferro_runtime.nn._sigmoids import sigmoid
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import expand_dims, logsumexp, split
from tenferro_tensor.functions import mean as _mean
from tenferro_tensor.operands import axes_of, axis_of, converted, count, size_of, value
from tenferro_tensor_core import ArgumentError, float64, int64, real_of
from tenferro_tensor_core import dtype as known_dtype


def glu(x: Any, /, axis: int = -1) -> Array:
    """Gated linear unit: the first half along an axis times the `sigmoid` of the second half.

    Y. Dauphin, A. Fan, M. Auli, D. Grangier, "Language Modeling with Gated Convolutional Networks", 2016.

    Args:
        x: array of real or complex floating-point numbers.
        axis: the axis to halve.

    Returns:
        Array of the dtype of `x`, half as long along the axis.

    Raises:
        ShapeError: the extent is odd.

    >>> tr.nn.glu(tr.asarray([2.0, 4.0, 0.0, 0.0]))
    Tensor([1., 2.])
    """
    x = real_floating("glu", x)
    values, gate = split(x, 2, axis=axis)
    return catalog.mul(values, sigmoid(gate))


def standardize(x: Any, /, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5) -> Array:
    """``(x - mean) / sqrt(variance + epsilon)``, with the mean and variance of `x` along axes by default.

    Args:
        x: the array.
        axis: an axis, a tuple of axes, or ``None`` for all.
        mean: mean, broadcast against `x`; that of `x` by default.
        variance: variance, broadcast against `x`; that of `x` by default.
        epsilon: keeps the divisor away from 0.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.standardize(tr.asarray([1.0, 3.0]), epsilon=0.0)
    Tensor([-1.,  1.])
    """
    x = real_floating("standardize", x)
    centre = _mean(x, axis, keepdims=True) if mean is None else mean
    centred = catalog.sub(x, centre)
    spread = _mean(catalog.mul(centred, centred), axis, keepdims=True) if variance is None else variance
    return catalog.mul(centred, catalog.rsqrt(catalog.add(spread, epsilon)))


def logmeanexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """``log(mean(exp(x)))`` over axes, without overflow.

    Args:
        x: real array.
        axis: an axis, a tuple of axes, or ``None`` for all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype of `x`.

    >>> tr.nn.logmeanexp(tr.asarray([1000.0, 1000.0]))
    Tensor(1000.)
    """
    x = real_floating("logmeanexp", x)
    n = count(x, axes_of("logmeanexp", axis, x.spec.ndim))
    terms = converted(value(n), real_of(x.spec.dtype))
    return catalog.sub(logsumexp(x, axis, keepdims=keepdims), catalog.log(terms))


def one_hot(x: Any, num_classes: Any, /, *, dtype: Any = None, axis: int = -1) -> Array:
    """One vector per integer: 1 at that index and 0 elsewhere; all zeros for an integer out of range.

    Args:
        x: array of integers.
        num_classes: length of the vectors, an integer or a symbolic size.
        dtype: dtype of the result, float64 by default.
        axis: position of the axis of the vectors in the result.

    Returns:
        Array with one axis more than `x`.

    >>> tr.one_hot(tr.asarray([1, 0]), 3)
    Tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    x = value(x)
    if x.spec.dtype.kind not in "iu":
        raise ArgumentError(f"one_hot takes integers, got {x.spec!r}; convert with astype(int64)")
    n = size_of("one_hot", "num_classes", num_classes)
    axis = axis_of("one_hot", axis, x.spec.ndim + 1)
    shape = tuple([n if a == axis else 1 for a in range(x.spec.ndim + 1)])
    places = catalog.iota(shape=shape, dtype=int64, axis=axis, place=x.spec.place)
    hit = catalog.eq(expand_dims(converted(x, int64), axis=axis), places)
    return catalog.convert(hit, dtype=float64 if dtype is None else known_dtype(dtype))
