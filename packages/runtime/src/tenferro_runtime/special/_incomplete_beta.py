"""The incomplete beta function, its inverse, and related distributions."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.extension import Primitive
from tenferro_runtime.special._beta import betaln
from tenferro_runtime.special._beta_shapes import shapes_derivative
from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._densities import beta_density_derivative
from tenferro_runtime.special._operands import both, counted, probable, real_floating, within
from tenferro_tensor import Array, catalog

__all__ = ["bdtr", "bdtrc", "betainc", "betaincc", "betainccinv", "betaincinv", "fdtr", "fdtrc", "nbdtr", "nbdtrc"]


def betainc(a: Any, b: Any, x: Any, /) -> Array:
    """Regularized incomplete beta function: ``t**(a - 1) (1 - t)**(b - 1) / beta(a, b)`` integrated from 0 to `x`.

    Derivatives by the shapes `a` and `b` are integrals over the same density, computed by quadrature.

    Definition: DLMF 8.17.

    Args:
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        x: real array from 0 to 1.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.betainc(tr.asarray([1.0, 2.0]), 2.0, 0.5)
    Tensor([0.75, 0.5 ])
    """
    return betainc_(a, b, x)  # type: ignore[no-any-return]


def betaincc(a: Any, b: Any, x: Any, /) -> Array:
    """``1 - betainc(a, b, x)``, accurate in the tail.

    Args:
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        x: real array from 0 to 1.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.betaincc(tr.asarray([1.0, 2.0]), 2.0, 0.5)
    Tensor([0.25, 0.5 ])
    """
    return betaincc_(a, b, x)  # type: ignore[no-any-return]


def betaincinv(a: Any, b: Any, y: Any, /) -> Array:
    """Inverse of `betainc`: the x for which ``betainc(a, b, x)`` is `y`.

    Args:
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        y: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.betaincinv(tr.asarray([1.0, 2.0]), 2.0, 0.75)
    Tensor([0.5       , 0.67364818])
    """
    return betaincinv_(a, b, y)  # type: ignore[no-any-return]


def betainccinv(a: Any, b: Any, y: Any, /) -> Array:
    """Inverse of `betaincc`: the x for which ``betaincc(a, b, x)`` is `y`.

    Args:
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        y: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.betainccinv(tr.asarray([1.0, 2.0]), 2.0, 0.25)
    Tensor([0.5       , 0.67364818])
    """
    return betainccinv_(a, b, y)  # type: ignore[no-any-return]


def bdtr(k: Any, n: Any, p: Any, /) -> Array:
    """Binomial distribution function: the probability of at most `k` successes in `n` trials.

    Args:
        k: number of successes, rounded down.
        n: number of trials, rounded down.
        p: probability of a success, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.bdtr(tr.asarray([0, 1, 2]), 2, 0.5)
    Tensor([0.25, 0.75, 1.  ])
    """
    k, n, p, inside = _binomial("bdtr", k, n, p)
    found = catalog.select(catalog.lt(k, n), betaincc(*_shapes(k, n), p), 1.0)
    return within(catalog.bitwise_and(inside, catalog.ge(k, 0)), found)  # type: ignore[no-any-return]


def bdtrc(k: Any, n: Any, p: Any, /) -> Array:
    """Binomial survival function: the probability of more than `k` successes in `n` trials.

    Args:
        k: number of successes, rounded down.
        n: number of trials, rounded down.
        p: probability of a success, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.bdtrc(tr.asarray([0, 1, 2]), 2, 0.5)
    Tensor([0.75, 0.25, 0.  ])
    """
    k, n, p, inside = _binomial("bdtrc", k, n, p)
    found = catalog.select(catalog.lt(k, n), betainc(*_shapes(k, n), p), 0.0)
    return within(inside, catalog.select(catalog.lt(k, 0), 1.0, found))  # type: ignore[no-any-return]


def _binomial(name: str, k: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any]:
    """The whole numbers `k` and `n`, the probability, and where the distribution is defined if `k` is not negative."""
    k, n, p = catalog.floor(real_floating(name, k)), counted(name, n), real_floating(name, p)
    return k, n, p, both(probable(p), catalog.ge(n, k), catalog.is_finite(n))


def _shapes(k: Any, n: Any) -> tuple[Any, Any]:
    inside = both(catalog.ge(k, 0), catalog.lt(k, n), catalog.is_finite(n))
    return catalog.select(inside, k + 1.0, 1.0), catalog.select(inside, n - k, 1.0)


def nbdtr(k: Any, n: Any, p: Any, /) -> Array:
    """Negative binomial distribution function: the probability of at most `k` failures before success number `n`.

    Args:
        k: number of failures, rounded down.
        n: number of successes, rounded down.
        p: probability of a success, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.nbdtr(tr.asarray([0, 1]), 2, 0.5)
    Tensor([0.25, 0.5 ])
    """
    k, n, inside = negative_binomial("nbdtr", k, n)
    return within(inside, betainc(n, k + 1.0, p))  # type: ignore[no-any-return]


def nbdtrc(k: Any, n: Any, p: Any, /) -> Array:
    """Negative binomial survival function: the probability of more than `k` failures before success number `n`.

    Args:
        k: number of failures, rounded down.
        n: number of successes, rounded down.
        p: probability of a success, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.nbdtrc(tr.asarray([0, 1]), 2, 0.5)
    Tensor([0.75, 0.5 ])
    """
    k, n, inside = negative_binomial("nbdtrc", k, n)
    return within(inside, betaincc(n, k + 1.0, p))  # type: ignore[no-any-return]


def negative_binomial(name: str, k: Any, n: Any) -> tuple[Any, Any, Any]:
    """The whole numbers `k` and `n`, and where the distribution is defined."""
    k, n = counted(name, k), counted(name, n)
    return k, n, both(catalog.ge(k, 0), catalog.gt(n, 0), catalog.is_finite(k), catalog.is_finite(n))


def fdtr(dfn: Any, dfd: Any, x: Any, /) -> Array:
    """Distribution function of the F distribution.

    Args:
        dfn: numerator degrees of freedom.
        dfd: denominator degrees of freedom.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.fdtr(2.0, tr.asarray([2.0, 4.0]), 1.0)
    Tensor([0.5       , 0.55555556])
    """
    dfn, dfd, x = (real_floating("fdtr", v) for v in (dfn, dfd, x))
    end = catalog.is_inf(x)
    part = dfn * catalog.select(end, 1.0, x)
    share = catalog.select(end, 1.0, part / (dfd + part))
    return within(_ratio_is_defined(dfn, dfd, x), betainc(dfn * 0.5, dfd * 0.5, share))  # type: ignore[no-any-return]


def fdtrc(dfn: Any, dfd: Any, x: Any, /) -> Array:
    """Survival function of the F distribution, ``1 - fdtr(dfn, dfd, x)``, accurate in the tail.

    Args:
        dfn: numerator degrees of freedom.
        dfd: denominator degrees of freedom.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.fdtrc(2.0, tr.asarray([2.0, 4.0]), 1.0)
    Tensor([0.5       , 0.44444444])
    """
    dfn, dfd, x = (real_floating("fdtrc", v) for v in (dfn, dfd, x))
    return within(_ratio_is_defined(dfn, dfd, x), betainc(dfd * 0.5, dfn * 0.5, dfd / (dfd + dfn * x)))  # type: ignore[no-any-return]


def _ratio_is_defined(dfn: Any, dfd: Any, x: Any) -> Any:
    finite = both(catalog.is_finite(dfn), catalog.is_finite(dfd))
    return both(finite, catalog.gt(dfn, 0), catalog.gt(dfd, 0), catalog.ge(x, 0))


def _density(a: Any, b: Any, x: Any, first: int = 0, second: int = 0) -> Any:
    return beta_density_derivative(a, b, x, (first, second), betaln)


def _inverse(name: str, doc: str, sign: float) -> Primitive:
    def by_first(a: Any, b: Any, out: Any) -> Any:
        return -betainc_shapes_(a, b, out, first=1, second=0) / _density(a, b, out)

    def by_second(a: Any, b: Any, out: Any) -> Any:
        return -betainc_shapes_(a, b, out, first=0, second=1) / _density(a, b, out)

    by_value = lambda a, b, out: sign / _density(a, b, out)
    return from_scipy(name, "a b y", doc, a=by_first, b=by_second, y=by_value)


betainc_shapes_ = from_host(
    "betainc_shapes",
    "a b x",
    "A derivative of the regularized incomplete beta function by its shapes, of total order at least 1.",
    shapes_derivative,
    {"a": "first", "b": "second"},
    jax="betainc",
    x=_density,
)
betainc_ = from_scipy(
    "betainc",
    "a b x",
    "Regularized incomplete beta function.",
    jax="betainc",
    a=lambda a, b, x: betainc_shapes_(a, b, x, first=1, second=0),
    b=lambda a, b, x: betainc_shapes_(a, b, x, first=0, second=1),
    x=lambda a, b, x: _density(a, b, x),
)
betaincc_ = from_scipy(
    "betaincc",
    "a b x",
    "Complement of the regularized incomplete beta function.",
    expansion=lambda a, b, x: betainc(b, a, 1.0 - x),
    a=lambda a, b, x: -betainc_shapes_(a, b, x, first=1, second=0),
    b=lambda a, b, x: -betainc_shapes_(a, b, x, first=0, second=1),
    x=lambda a, b, x: -_density(a, b, x),
)
betaincinv_ = _inverse("betaincinv", "Inverse of the regularized incomplete beta function.", 1.0)
betainccinv_ = _inverse("betainccinv", "Inverse of the complement of the regularized incomplete beta function.", -1.0)
