"""Discrete distributions. Integers have no derivatives: none passes to the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_runtime.random import _rejection
from tenferro_runtime.random._basic import bits, open_uniform, uniform
from tenferro_runtime.random._continuous import gamma
from tenferro_runtime.random._drawing import beside, checked, floating, fused, given_as, parameters
from tenferro_runtime.random._keys import fold_in, two
from tenferro_tensor import catalog
from tenferro_tensor.functions import (
    asarray,
    cumulative_sum,
    floor,
    log,
    log1p,
    moveaxis,
    searchsorted,
    softmax,
    stack,
    where,
)
from tenferro_tensor.operands import axis_of, shape_of
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, float64, int64, is_integer, uint64
from tenferro_tensor_core import dtype as known_dtype
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_tensor import Array


@boundary
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Array:
    """Uniform integers in [minval, maxval).

    Each comes from the upper half of a product of 128 bits: no integer is more probable than another by more than one
    part in ``2**64 / (maxval - minval)``.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        minval: lower bound, included.
        maxval: upper bound, excluded; at most ``2**63`` above `minval`.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    Raises:
        ArgumentError: the bounds are known, and there is nothing between them.

    >>> tr.random.randint(tr.random.key(0), (4,), 0, 10)
    Tensor([4, 2, 9, 5])
    """
    return between(bits(checked("randint", key), shape, uint64), minval, maxval, dtype)


def between(words: Any, minval: Any, maxval: Any, dtype: Any) -> Array:
    """Integers from `minval` to below `maxval` of 64-bit words."""
    dtype = _integer("randint", dtype)
    if isinstance(minval, int) and isinstance(maxval, int) and minval >= maxval:
        raise ArgumentError(f"there are no integers from {minval} to below {maxval}", minval=minval, maxval=maxval)
    low, high = (catalog.convert(beside(words, v), dtype=int64) for v in (minval, maxval))
    if low.spec.shape or high.spec.shape:
        _, (low, high) = parameters("randint", words.spec.shape, int64, low, high, key=words)
    return given_as(_between(words, low, high), dtype)


@fused
def _between(words: Any, low: Any, high: Any) -> Any:
    """``low + (words * (high - low)) >> 64``."""
    span = catalog.convert(high - low, dtype=uint64)
    lower, upper = words & 0xFFFFFFFF, words >> 32
    small, large = span & 0xFFFFFFFF, span >> 32
    middle = upper * small + ((lower * small) >> 32)
    carried = (middle & 0xFFFFFFFF) + lower * large
    return low + catalog.convert(upper * large + (middle >> 32) + (carried >> 32), dtype=int64)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of Poisson distributions.

    Args:
        key: a key.
        lam: means, at least 0.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.poisson(tr.random.key(0), 4.0, (3,)).shape
    (3,)
    """
    return _integers("poisson", _rejection.poisson_numbers, key, shape, dtype, lam)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of successes in `n` trials with probability `p` each.

    Args:
        key: a key.
        n: numbers of trials.
        p: probabilities of a success.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.binomial(tr.random.key(0), 10, 0.5, (3,)).shape
    (3,)
    """
    return _integers("binomial", _rejection.binomial_numbers, key, shape, dtype, n, p)


def hypergeometric(key: Any, ngood: Any, nbad: Any, nsample: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of good items among `nsample` items drawn without replacement from `ngood` and `nbad`.

    Args:
        key: a key.
        ngood: numbers of good items.
        nbad: numbers of bad items.
        nsample: numbers of items drawn.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.hypergeometric(tr.random.key(0), 5, 5, 4, (3,)).shape
    (3,)
    """
    return _integers("hypergeometric", _rejection.hypergeometric_numbers, key, shape, dtype, ngood, nbad, nsample)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of trials up to and including the first success.

    Args:
        key: a key.
        p: probabilities of a success.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.geometric(tr.random.key(0), 0.5, (3,)).shape
    (3,)
    """
    shape, (p,) = parameters("geometric", shape, float64, p, key=key)
    p = catalog.stop_gradient(p)
    trials = floor(log(open_uniform(key, shape, float64)) / log1p(-p)) + 1.0
    return catalog.convert(where(p >= 1.0, 1.0, trials), dtype=_integer("geometric", dtype))


def negative_binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of failures before `n` successes: Poisson numbers with gamma-distributed means.

    Args:
        key: a key.
        n: numbers of successes, positive.
        p: probabilities of a success.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.negative_binomial(tr.random.key(0), 3, 0.5, (3,)).shape
    (3,)
    """
    shape, (n, p) = parameters("negative_binomial", shape, float64, n, p, key=key)
    first, second = two(key, "negative_binomial")
    mean = gamma(first, catalog.stop_gradient(n), shape) * ((1.0 - p) / p)
    return poisson(second, mean, shape, dtype)


def logseries(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of logarithmic series distributions.

    A. Kemp, "Efficient Generation of Logarithmically Distributed Pseudo-Random Variables", 1981.

    Args:
        key: a key.
        p: parameters in (0, 1).
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.logseries(tr.random.key(0), 0.5, (3,)).shape
    (3,)
    """
    shape, (p,) = parameters("logseries", shape, float64, p, key=key)
    u, v = (open_uniform(k, shape, float64) for k in two(key, "logseries"))
    q = -catalog.expm1(u * log1p(-catalog.stop_gradient(p)))
    return catalog.convert(floor(log(v) / log(q)) + 1.0, dtype=_integer("logseries", dtype))


def zipf(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of Zipf distributions, with probabilities proportional to ``k ** -a``.

    Args:
        key: a key.
        a: exponents, above 1.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.zipf(tr.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return _integers("zipf", _rejection.zipf_numbers, key, shape, dtype, a)


def multinomial(key: Any, n: Any, pvals: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Counts of each outcome in `n` trials, drawn as conditional binomial numbers.

    Args:
        key: a key.
        n: numbers of trials.
        pvals: probabilities (..., k), with sum 1 along the last axis.
        shape: shape of the result without the last axis; by default the broadcast shape of the parameters.
        dtype: integer dtype, int64 by default.

    Returns:
        Integers of shape (*shape, k), whose sums along the last axis are `n`.

    >>> int(tr.sum(tr.random.multinomial(tr.random.key(0), 20, tr.asarray([0.2, 0.3, 0.5]))))
    20
    """
    pvals = catalog.stop_gradient(_real("multinomial", pvals))
    outcomes = pvals.spec.shape[-1]
    _require_number("multinomial", outcomes)
    lead = pvals.spec.shape[:-1] if shape is None else shape_of(shape)
    _, (rest,) = parameters(
        "multinomial", lead if shape is not None or not asarray(n).spec.shape else None, float64, n, key=key
    )
    counts, remaining = [], 1.0 + 0.0 * pvals[..., 0]
    for k in range(outcomes - 1):
        p = pvals[..., k] / where(remaining > 0.0, remaining, 1.0)
        count = catalog.convert(binomial(fold_in(key, k), rest, where(p < 1.0, p, 1.0), lead), dtype=float64)
        counts.append(count)
        rest, remaining = rest - count, remaining - pvals[..., k]
    counts.append(rest)
    return catalog.convert(stack(counts, axis=-1), dtype=_integer("multinomial", dtype))


def multivariate_hypergeometric(key: Any, colors: Any, nsample: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Counts of each kind among `nsample` items drawn without replacement.

    Args:
        key: a key.
        colors: numbers of items of each kind (k,).
        nsample: number of items drawn.
        shape: shape of the result without the last axis.
        dtype: integer dtype, int64 by default.

    Returns:
        Integers of shape (*shape, k), whose sums along the last axis are `nsample`.

    >>> int(tr.sum(tr.random.multivariate_hypergeometric(tr.random.key(0), tr.asarray([3, 4, 5]), 6)))
    6
    """
    colors, counts = _real("multivariate_hypergeometric", colors), []
    shape, (rest,) = parameters("multivariate_hypergeometric", shape, float64, nsample, key=key)
    kinds = colors.spec.shape[-1]
    _require_number("multivariate_hypergeometric", kinds)
    others = catalog.reduce_sum(colors, axes=(0,))
    for k in range(kinds - 1):
        others = others - colors[k]
        count = catalog.convert(hypergeometric(fold_in(key, k), colors[k], others, rest, shape), dtype=float64)
        counts.append(count)
        rest = rest - count
    counts.append(rest)
    dtype = _integer("multivariate_hypergeometric", dtype)
    return catalog.convert(stack(counts, axis=-1), dtype=dtype)


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Array:
    """Indices along an axis, drawn with probabilities ``softmax(logits)``.

    Args:
        key: a key.
        logits: logarithms of probabilities, up to an additive constant per distribution.
        axis: axis of the outcomes.
        shape: shape of the result, which must end with the shape of `logits` without `axis`; by default that shape.

    Returns:
        Indices along `axis`, int64.

    >>> tr.random.categorical(tr.random.key(0), tr.asarray([0.0, -tr.inf]), shape=(3,))
    Tensor([0, 0, 0])
    """
    logits = _real("categorical", logits)
    lines = moveaxis(logits, axis_of("categorical", axis, logits.ndim), -1)
    return chosen(key, softmax(lines, axis=-1), shape)


def chosen(key: Any, p: Any, shape: Any) -> Any:
    """Positions along the last axis of probabilities, whose sums need not be one, by one uniform number each."""
    lead = p.spec.shape[:-1]
    wanted = lead if shape is None else shape_of(shape)
    if wanted[len(wanted) - len(lead) :] != lead:
        raise ShapeError(f"shape {wanted} does not end with the axes {lead} of the probabilities", shape=wanted)
    below = cumulative_sum(catalog.stop_gradient(p), axis=-1)
    u = uniform(key, wanted) * below[..., -1]
    if p.ndim == 1:
        return searchsorted(below, u, side="right")
    return catalog.reduce_sum(catalog.convert(u[..., None] >= below, dtype=int64), axes=(len(wanted),))


def _integers(what: str, sample: Callable[..., Any], key: Any, shape: Any, dtype: Any, *given: Any) -> Array:
    dtype, key = _integer(what, dtype), checked(what, key)
    shape, found = parameters(what, shape, float64, *given, key=key)
    out = sample(key, shape, *[catalog.stop_gradient(p) for p in found])
    return catalog.convert(out, dtype=dtype)


def _integer(what: str, dtype: Any) -> np.dtype[Any]:
    found = int64 if dtype is None else known_dtype(dtype)
    if not is_integer(found):
        raise DTypeError(f"{what} draws integers, not {found}", dtype=str(found))
    return found


def _real(what: str, x: Any) -> Any:
    x = asarray(x)
    if not x.spec.ndim:
        raise ShapeError(f"{what} takes an axis of outcomes, got a number", shape=())
    return x if x.spec.dtype.kind == "f" else catalog.convert(x, dtype=floating(what, None))


def _require_number(what: str, n: Any) -> None:
    if not isinstance(n, int):
        raise ShapeError(f"{what} needs to know how many outcomes there are, not {n}", extent=n)
