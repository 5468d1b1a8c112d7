"""Continuous distributions: inverses of distribution functions, and combinations of others.

Each takes a key, the parameters, a shape, by default that to which the parameters broadcast, and a dtype. Derivatives
by the parameters pass: results are differentiable functions of parameters and of numbers that do not depend on them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenferro_runtime.random._basic import exponential, normal, open_uniform, uniform
from tenferro_runtime.random._drawing import beginning, checked, floating, given_as, parameters
from tenferro_runtime.random._keys import two
from tenferro_tensor import catalog
from tenferro_tensor.functions import clip, exp, log, log1p, maximum, minimum, sqrt, tan, where
from tenferro_tensor.random_streams import random_loggamma
from tenferro_tensor_core import finfo, float64

if TYPE_CHECKING:
    from tenferro_tensor import Array


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard Gumbel distribution, ``-log(e)`` for exponential numbers ``e``.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.gumbel(tr.random.key(0), (2,))
    Tensor([0.61235911, 1.41172219])
    """
    e = exponential(key, shape, floating("gumbel", dtype))
    return -log(maximum(e, float(finfo(e.spec.dtype).eps) / 2))  # an exponential number may be zero


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the Laplace distribution of scale 1.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.laplace(tr.random.key(0), (2,))
    Tensor([-0.17803369, -0.83796278])
    """
    u = 2.0 * uniform(key, shape, floating("laplace", dtype)) - 1.0
    return catalog.sign(u) * -log1p(-_below_one(catalog.abs(u)))


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard logistic distribution.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.logistic(tr.random.key(0), (2,))
    Tensor([0.32911032, 1.28738678])
    """
    u = _below_one(open_uniform(key, shape, floating("logistic", dtype)))
    return log(u) - log1p(-u)


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard Cauchy distribution.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.cauchy(tr.random.key(0), (2,))
    Tensor([-0.26192951, -1.23784602])
    """
    return tan(math.pi * (uniform(key, shape, floating("cauchy", dtype)) - 0.5))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of Pareto distributions on [1, inf) with exponent `b`.

    Args:
        key: a key.
        b: exponents, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.pareto(tr.random.key(0), 2.0, (2,))
    Tensor([1.31132133, 1.12959775])
    """
    dtype = floating("pareto", dtype)
    shape, (b,) = parameters("pareto", shape, dtype, b, key=key)
    return exp(exponential(key, shape, dtype) / b)


def rayleigh(key: Any, scale: Any = 1.0, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of Rayleigh distributions: lengths of vectors of two normal numbers.

    Args:
        key: a key.
        scale: standard deviation of each component, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.rayleigh(tr.random.key(0), 1.0, (2,))
    Tensor([1.04122097, 0.6981736 ])
    """
    dtype = floating("rayleigh", dtype)
    shape, (scale,) = parameters("rayleigh", shape, dtype, scale, key=key)
    return scale * sqrt(2.0 * exponential(key, shape, dtype))


def weibull(key: Any, scale: Any, concentration: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of Weibull distributions, ``scale * e ** (1 / concentration)`` for exponential numbers ``e``.

    Args:
        key: a key.
        scale: scales, positive.
        concentration: shape parameters, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.weibull(tr.random.key(0), 1.0, 2.0, (2,))
    Tensor([0.73625441, 0.49368328])
    """
    dtype = floating("weibull", dtype)
    shape, (scale, concentration) = parameters("weibull", shape, dtype, scale, concentration, key=key)
    return scale * exponential(key, shape, dtype) ** (1.0 / concentration)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Array:
    """Exponentials of normal numbers with mean 0 and standard deviation `sigma`.

    Args:
        key: a key.
        sigma: standard deviation of the logarithm.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.lognormal(tr.random.key(0), 1.0, (2,))
    Tensor([0.81396156, 0.45622655])
    """
    dtype = floating("lognormal", dtype)
    shape, (sigma,) = parameters("lognormal", shape, dtype, sigma, key=key)
    return exp(sigma * normal(key, shape, dtype))


def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the Maxwell distribution: lengths of vectors of three standard normal numbers.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.maxwell(tr.random.key(0), (2,)).shape
    (2,)
    """
    return sqrt(chisquare(key, 3.0, shape, dtype))


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Standard normal numbers between bounds, by inversion of the distribution function.

    Args:
        key: a key.
        lower: lower bounds.
        upper: upper bounds.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> x = tr.random.truncated_normal(tr.random.key(0), 9.0, 10.0, (1000,))
    >>> bool(tr.all((x >= 9.0) & (x <= 10.0)))
    True
    """
    from tenferro_runtime.special import log_ndtr, ndtri_exp

    dtype = floating("truncated_normal", dtype)
    shape, (a, b) = parameters("truncated_normal", shape, dtype, lower, upper, key=key)
    # In the upper half the mirror image: there the distribution function is close to one.
    mirrored = a > 0.0
    low, high = where(mirrored, -b, a), where(mirrored, -a, b)
    from_low, from_high = log_ndtr(low), log_ndtr(high)
    u = uniform(key, shape, dtype)
    # log(P(low) + u (P(high) - P(low))), without leaving logarithms
    inside = from_high + log(exp(from_low - from_high) * (1.0 - u) + u)
    x = clip(ndtri_exp(inside), low, high)
    return where(mirrored, -x, x)


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Logarithms of gamma numbers, which stay finite where gamma numbers underflow, as for small `a`.

    Derivatives by `a` are implicit: with the distribution function fixed, ``dx / da = -(dF / da) / (dF / dx)``
    (M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, 2018).

    Args:
        key: a key.
        a: shape parameters, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.loggamma(tr.random.key(0), 1e-3).shape
    ()
    """
    dtype = floating("loggamma", dtype)
    shape, (a,) = parameters("loggamma", shape, float64, a, key=key)
    key = checked("loggamma", key)
    a = (
        a
        if not key.spec.shape
        else catalog.broadcast_in_dim(
            a, shape=(*key.spec.shape, *shape), dims=tuple(range(key.ndim, key.ndim + len(shape)))
        )
    )
    start = beginning(key)
    return given_as(random_loggamma(key, start, a), dtype)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of gamma distributions of scale 1.

    Args:
        key: a key.
        a: shape parameters, positive; differentiable, as in `loggamma`.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.gamma(tr.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    return exp(loggamma(key, a, shape, dtype))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of beta distributions: the share of one gamma number in the sum of two.

    Args:
        key: a key.
        a: first shape parameters, positive; differentiable, as in `loggamma`.
        b: second shape parameters, positive; differentiable, as in `loggamma`.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.beta(tr.random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    dtype = floating("beta", dtype)
    shape, (a, b) = parameters("beta", shape, float64, a, b, key=key)
    first, second = two(key)
    difference = loggamma(second, b, shape) - loggamma(first, a, shape)
    return given_as(1.0 / (1.0 + exp(difference)), dtype)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Points of the simplex, drawn from Dirichlet distributions.

    Args:
        key: a key.
        alpha: concentrations (..., k), positive; differentiable, as in `loggamma`.
        shape: shape of the result without the last axis; by default that of `alpha`.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*shape, k), at least 0; the sums along the last axis are 1.

    >>> round(float(tr.sum(tr.random.dirichlet(tr.random.key(0), tr.asarray([1.0, 2.0, 3.0])))), 12)
    1.0
    """
    from tenferro_tensor.functions import asarray, softmax

    dtype, alpha = floating("dirichlet", dtype), asarray(alpha)
    k = alpha.spec.shape[-1]
    whole = None if shape is None else (*_tuple(shape), k)
    return given_as(softmax(loggamma(key, alpha, whole), axis=-1), dtype)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of chi-square distributions.

    Args:
        key: a key.
        df: degrees of freedom, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.chisquare(tr.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    dtype = floating("chisquare", dtype)
    shape, (df,) = parameters("chisquare", shape, float64, df, key=key)
    return given_as(2.0 * gamma(key, 0.5 * df, shape), dtype)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of Student's t distributions.

    Args:
        key: a key.
        df: degrees of freedom, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.t(tr.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    dtype = floating("t", dtype)
    shape, (df,) = parameters("t", shape, float64, df, key=key)
    first, second = two(key)
    half = 0.5 * df
    return given_as(normal(first, shape) * sqrt(half) * exp(-0.5 * loggamma(second, half, shape)), dtype)


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of F distributions: ratios of chi-square numbers, each divided by its degrees of freedom.

    Args:
        key: a key.
        dfnum: numerator degrees of freedom, positive.
        dfden: denominator degrees of freedom, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.f(tr.random.key(0), 3.0, 4.0, (2,)).shape
    (2,)
    """
    dtype = floating("f", dtype)
    shape, (n, d) = parameters("f", shape, float64, dfnum, dfden, key=key)
    first, second = two(key)
    ratio = exp(loggamma(first, 0.5 * n, shape) - loggamma(second, 0.5 * d, shape))
    return given_as(ratio * (d / n), dtype)


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, scale: Any = 1.0) -> Array:
    """Numbers of Wald (inverse Gaussian) distributions.

    J. Michael, W. Schucany, R. Haas, "Generating Random Variates Using Transformations with Multiple Roots", 1976.

    Args:
        key: a key.
        mean: means, positive.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.
        scale: scales, positive.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.wald(tr.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    dtype = floating("wald", dtype)
    shape, (mean, scale) = parameters("wald", shape, dtype, mean, scale, key=key)
    first, second = two(key)
    y = mean * normal(first, shape, dtype) ** 2
    root = sqrt(y * (4.0 * scale + y))
    # The smaller root of a quadratic equation, without the difference of almost equal numbers.
    x = mean * (2.0 * scale / (2.0 * scale + y + root))
    return where(uniform(second, shape, dtype) * (mean + x) <= mean, x, mean * mean / x)


def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers whose density rises linearly from `left` to `mode` and falls linearly to `right`.

    Args:
        key: a key.
        left: lower bounds.
        mode: positions of the peak.
        right: upper bounds.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.triangular(tr.random.key(0), 0.0, 1.0, 2.0, (2,))
    Tensor([0.91483016, 0.65771644])
    """
    dtype = floating("triangular", dtype)
    shape, (a, c, b) = parameters("triangular", shape, dtype, left, mode, right, key=key)
    u = uniform(key, shape, dtype)
    rising = u * (b - a) < c - a
    below, above = where(rising, u, 1.0), where(rising, 1.0, 1.0 - u)
    return where(rising, a + sqrt(below * (b - a) * (c - a)), b - sqrt(above * (b - a) * (b - c)))


def _below_one(u: Any) -> Any:
    """Numbers up to one, which itself becomes the number before it."""
    return minimum(u, 1.0 - float(finfo(u.spec.dtype).eps) / 2)


def _tuple(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
