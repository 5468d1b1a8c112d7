"""`Generator`: the methods of NumPy's generator, over the stream of a key."""

from __future__ import annotations

import math
import operator
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_runtime.random import _basic, _continuous, _discrete, _multivariate, _noncentral, _rejection
from tenferro_runtime.random._drawing import checked, drawn, floating, given_as, parameters, position
from tenferro_runtime.random._keys import key as make_key
from tenferro_runtime.random._keys import split
from tenferro_runtime.tracing.effects import ambient
from tenferro_tensor import catalog
from tenferro_tensor.functions import asarray, exp, where
from tenferro_tensor.identity import aliased
from tenferro_tensor.operands import shape_of
from tenferro_tensor.random_streams import (
    random_bits,
    random_exponential,
    random_loggamma,
    random_normal,
    random_uniform,
)
from tenferro_tensor_core import ArgumentError, TracingError, float64, uint64

if TYPE_CHECKING:
    from tenferro_tensor import Array


def default_rng(seed: Any = None, /) -> Generator:
    """A generator of random numbers with the methods of NumPy's.

    Args:
        seed: an integer or a key, whose stream the generator draws from its beginning; a sequence of integers or a
            `numpy.random.SeedSequence`, whose first word of state is the key; ``None`` for entropy of the operating
            system; a `Generator`, returned as it is.

    Returns:
        A `Generator`.

    Raises:
        ArgumentError: the seed is none of these.

    >>> rng = tr.random.default_rng(0)
    >>> bool(tr.all(rng.random(3) == tr.random.uniform(tr.random.key(0), (3,))))
    True
    """
    if isinstance(seed, Generator):
        return seed
    if seed is None:
        return Generator(make_key(secrets.randbits(64)))
    if hasattr(seed, "spec"):
        return Generator(seed if seed.spec.dtype == uint64 else make_key(seed))
    if not hasattr(seed, "__index__"):
        try:
            sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        except (TypeError, ValueError) as cause:
            raise ArgumentError(
                f"default_rng takes an integer, a key or a sequence of integers, got {seed!r}"
            ) from cause
        seed = sequence.generate_state(1, np.uint64)[0]
    return Generator(make_key(seed))


class Generator:
    """Random numbers in sequence: each call draws the next numbers of a key's stream.

    The methods and their parameters are those of `numpy.random.Generator`. Several calls of `random`,
    `standard_normal`, `standard_exponential`, `integers` or `standard_gamma` draw the same numbers as one large call.
    Inside a compiled function, a loop or a branch, make the generator from a key that is an argument; one from outside
    would repeat the same numbers in every run.

    Args:
        key: a key.

    Methods take:
        size: shape of the result, without the last axis for vectors; by default the broadcast shape of the parameters.
        dtype: dtype of the result: float64, or int64 for `integers`, by default.
        loc, mean, mu, lam: location or mean; for `multivariate_normal` vectors (..., n).
        scale, sigma: scale, or standard deviation (of the logarithm for `lognormal`), positive.
        shape, a, b, alpha, kappa: shape parameters or exponents, positive; concentrations (..., k) for `dirichlet`.
        df, dfnum, dfden, nonc: degrees of freedom and noncentrality.
        low, high, endpoint: lower bound, upper bound, and whether the upper bound is included.
        left, mode, right: lower bound, position of the peak, upper bound.
        n, p, pvals: number of trials or successes, and probabilities.
        ngood, nbad, nsample, colors: numbers of items of each kind, and number of items drawn.
        cov, method: covariance matrices (..., n, n) and their factorization, as in `multivariate_normal`.
        x, a: the array or list to permute or to choose from; an integer n stands for ``arange(n)``.
        axis, replace, shuffle: the axis, whether an element may be drawn again, and an option that is ignored, because
            the order is always random.
        length: number of bytes.
        n_children: number of generators.

    Methods return:
        An array of the shape `size`, of float64 or int64 unless `dtype` is given.

    Raises:
        TracingError: a generator from outside draws in a program.

    >>> rng = tr.random.default_rng(7)
    >>> rng.normal(10.0, 0.1, (2, 3)).shape
    (2, 3)
    """

    __slots__ = ("_home", "_key", "_position")

    def __init__(self, key: Any) -> None:
        key = checked("Generator", key)
        if key.spec.shape:
            raise ArgumentError(f"a Generator has one key, got {key.spec!r}; use split keys one by one")
        self._key, self._position, self._home = aliased(key), 0, ambient()

    def __repr__(self) -> str:
        return f"Generator(key={self._key!r}, position={self._position})"

    def spawn(self, n_children: int) -> list[Generator]:
        """A list of generators with independent streams."""
        keys = split(self._next(), n_children)
        return [Generator(keys[k]) for k in range(n_children)]

    def key(self) -> Array:
        """A new key, made of the next word of the stream, for functions that take one."""
        return aliased(self._next())

    def _require_home(self) -> None:
        if ambient() is not self._home:
            raise TracingError(
                "a Generator from outside would draw the same numbers in every run of the program that is being "
                "recorded; pass a key and make the generator inside, default_rng(key), or use functions of keys"
            )

    def _advance(self, count: int) -> Any:
        """Advance the stream by `count` numbers and return the position of the first."""
        self._require_home()
        start = position(self._key, self._position)
        self._position = (self._position + count) % (1 << 64)
        return start

    def _next(self) -> Any:
        return random_bits(self._key, self._advance(1), shape=(), dtype=uint64)

    def _draw(self, primitive: Any, what: str, size: Any, dtype: Any) -> Any:
        size = () if size is None else size
        extents: Any = (size,) if size.__class__ is int else size if size.__class__ is tuple else shape_of(size)
        count = math.prod(extents)
        return drawn(primitive, what, self._key, size, dtype, self._advance(count))

    # -- continuous ------------------------------------------------------------------------------------------------

    def random(self, size: Any = None, dtype: Any = None) -> Array:
        """Uniform numbers in [0, 1)."""
        return self._draw(random_uniform, "random", size, floating("random", dtype))

    def standard_normal(self, size: Any = None, dtype: Any = None) -> Array:
        """Normal numbers with mean 0 and variance 1."""
        return self._draw(random_normal, "standard_normal", size, floating("standard_normal", dtype))

    def standard_exponential(self, size: Any = None, dtype: Any = None) -> Array:
        """Exponential numbers of scale 1."""
        dtype = floating("standard_exponential", dtype)
        return self._draw(random_exponential, "standard_exponential", size, dtype)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = None) -> Array:
        """Gamma numbers with shape parameter `shape` and scale 1."""
        extents, (a,) = parameters("standard_gamma", size, float64, shape)
        start = self._advance(math.prod(tuple[Any, ...](extents)))
        return given_as(exp(random_loggamma(self._key, start, a)), floating("standard_gamma", dtype))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Array:
        """Uniform numbers in [low, high)."""
        if low.__class__ is high.__class__ is float:
            return low + (high - low) * self.random(size)
        shape, (low, high) = parameters("uniform", size, float64, low, high)
        return low + (high - low) * self.random(shape)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Normal numbers with mean `loc` and standard deviation `scale`."""
        if loc.__class__ is scale.__class__ is float:
            return loc + scale * self.standard_normal(size)
        shape, (loc, scale) = parameters("normal", size, float64, loc, scale)
        return loc + scale * self.standard_normal(shape)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Exponential numbers of scale `scale`."""
        if scale.__class__ is float:
            return scale * self.standard_exponential(size)
        shape, (scale,) = parameters("exponential", size, float64, scale)
        return scale * self.standard_exponential(shape)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Array:
        """Gamma numbers with shape parameter `shape`."""
        extents, (a, scale) = parameters("gamma", size, float64, shape, scale)
        return scale * self.standard_gamma(a, extents)

    def beta(self, a: Any, b: Any, size: Any = None) -> Array:
        """Beta numbers with shape parameters `a` and `b`."""
        return _continuous.beta(self._next(), a, b, size)

    def chisquare(self, df: Any, size: Any = None) -> Array:
        """Chi-square numbers with `df` degrees of freedom."""
        return _continuous.chisquare(self._next(), df, size)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Array:
        """Noncentral chi-square numbers."""
        return _noncentral.noncentral_chisquare(self._next(), df, nonc, size)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Array:
        """F-distributed numbers."""
        return _continuous.f(self._next(), dfnum, dfden, size)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Array:
        """Noncentral F-distributed numbers."""
        shape, (n, d, nonc) = parameters("noncentral_f", size, float64, dfnum, dfden, nonc)
        above = _noncentral.noncentral_chisquare(self._next(), n, nonc, shape) / n
        return above / (_continuous.chisquare(self._next(), d, shape) / d)

    def standard_t(self, df: Any, size: Any = None) -> Array:
        """Student's t numbers with `df` degrees of freedom."""
        return _continuous.t(self._next(), df, size)

    def standard_cauchy(self, size: Any = None) -> Array:
        """Standard Cauchy numbers."""
        return _continuous.cauchy(self._next(), _shape(size))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Gumbel numbers."""
        shape, (loc, scale) = parameters("gumbel", size, float64, loc, scale)
        return loc + scale * _continuous.gumbel(self._next(), shape)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Laplace numbers."""
        shape, (loc, scale) = parameters("laplace", size, float64, loc, scale)
        return loc + scale * _continuous.laplace(self._next(), shape)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Logistic numbers."""
        shape, (loc, scale) = parameters("logistic", size, float64, loc, scale)
        return loc + scale * _continuous.logistic(self._next(), shape)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Exponentials of normal numbers."""
        return exp(self.normal(mean, sigma, size))

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Numbers of the Lomax distribution: Pareto numbers minus 1."""
        return _continuous.pareto(self._next(), a, size) - 1.0

    def power(self, a: Any, size: Any = None) -> Array:
        """Numbers in [0, 1] with density proportional to ``x ** (a - 1)``."""
        shape, (a,) = parameters("power", size, float64, a)
        return exp(-_basic.exponential(self._next(), shape) / a)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Rayleigh numbers."""
        return _continuous.rayleigh(self._next(), scale, size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Numbers with a triangular density from `left` to `right` that peaks at `mode`."""
        return _continuous.triangular(self._next(), left, mode, right, size)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Array:
        """Angles in [-pi, pi] of von Mises distributions; not differentiable with respect to `kappa`."""
        shape, (mu, kappa) = parameters("vonmises", size, float64, mu, kappa)
        angle = mu + _rejection.von_mises_numbers(self._next(), shape, catalog.stop_gradient(kappa))
        angle = where(angle > math.pi, angle - 2.0 * math.pi, angle)
        return where(angle < -math.pi, angle + 2.0 * math.pi, angle)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Array:
        """Wald (inverse Gaussian) numbers."""
        return _continuous.wald(self._next(), mean, size, scale=scale)

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Weibull numbers with shape parameter `a` and scale 1."""
        return _continuous.weibull(self._next(), 1.0, a, size)

    # -- discrete --------------------------------------------------------------------------------------------------

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False
    ) -> Array:
        """Integers in [low, high), or in [low, high] with `endpoint`; in [0, low) without `high`."""
        low, high = (0, low) if high is None else (low, high)
        high = high + 1 if endpoint else high
        if size is None:
            size, _ = parameters("integers", None, float64, low, high)
        return _discrete.between(self._draw(random_bits, "integers", size, uint64), low, high, dtype)

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        words = self._draw(random_bits, "bytes", -(-length // 8), uint64)
        return words.numpy().astype("<u8").tobytes()[:length]

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Numbers of successes in `n` trials."""
        return _discrete.binomial(self._next(), n, p, size)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Numbers of failures before `n` successes."""
        return _discrete.negative_binomial(self._next(), n, p, size)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Numbers of trials up to the first success."""
        return _discrete.geometric(self._next(), p, size)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Array:
        """Numbers of good items among `nsample` items drawn without replacement."""
        return _discrete.hypergeometric(self._next(), ngood, nbad, nsample, size)

    def logseries(self, p: Any, size: Any = None) -> Array:
        """Numbers of logarithmic series distributions."""
        return _discrete.logseries(self._next(), p, size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Poisson numbers."""
        return _discrete.poisson(self._next(), lam, size)

    def zipf(self, a: Any, size: Any = None) -> Array:
        """Numbers of Zipf distributions."""
        return _discrete.zipf(self._next(), a, size)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """Counts of each outcome in `n` trials."""
        return _discrete.multinomial(self._next(), n, pvals, size)

    def multivariate_hypergeometric(self, colors: Any, nsample: Any, size: Any = None) -> Array:
        """Counts of each kind among `nsample` items drawn without replacement."""
        return _discrete.multivariate_hypergeometric(self._next(), colors, nsample, _shape(size))

    # -- vectors and orders ----------------------------------------------------------------------------------------

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, method: str = "svd") -> Array:
        """Normal vectors with given means and covariance matrices."""
        return _multivariate.multivariate_normal(self._next(), mean, cov, size, method=method)

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Points of the simplex, of Dirichlet distributions."""
        return _continuous.dirichlet(self._next(), alpha, size)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Array:
        """Elements along an axis, or integers below a number; the order is always random."""
        return _multivariate.choice(self._next(), a, _shape(size), replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """The elements along an axis in random order, or the integers below a number."""
        return _multivariate.permutation(self._next(), x, axis)

    def permuted(self, x: Any, axis: int | None = None) -> Array:
        """All elements in random order, or each line along an axis permuted by itself."""
        x = asarray(x)
        if axis is None:
            return _multivariate.permutation(self._next(), x.reshape((-1,))).reshape(x.shape)
        return _multivariate.permutation(self._next(), x, axis, independent=True)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Permute the elements of an array or a list along an axis, in place."""
        if isinstance(x, Sequence) or (hasattr(x, "__setitem__") and not hasattr(x, "__array_namespace__")):
            x[:] = [x[k] for k in _multivariate.permutation(self._next(), len(x)).tolist()]
        elif hasattr(x, "spec"):
            x[...] = _multivariate.permutation(self._next(), x, axis)
        else:
            order = _multivariate.permutation(self._next(), operator.index(x.shape[axis])).numpy()
            x[...] = np.take(x, order, axis)


def _shape(size: Any) -> Any:
    return () if size is None else size
