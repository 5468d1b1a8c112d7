"""The incomplete gamma functions, their inverses, and related distributions."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._densities import gamma_density, gamma_density_derivative
from tenferro_runtime.special._gamma_shape import shape_derivative
from tenferro_runtime.special._operands import real_floating, within
from tenferro_tensor import Array, catalog

__all__ = [
    "chdtr",
    "chdtrc",
    "chdtri",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gdtr",
    "gdtrc",
    "pdtr",
    "pdtrc",
]


def gammainc(a: Any, x: Any, /) -> Array:
    """Regularized lower incomplete gamma function: ``t**(a - 1) exp(-t) / gamma(a)`` integrated from 0 to `x`.

    Derivatives by the shape `a` are integrals over the same density, computed by quadrature.

    Definition: DLMF 8.2.

    Args:
        a: shape parameter, positive.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.gammainc(tr.asarray([0.5, 1.0]), 1.0)
    Tensor([0.84270079, 0.63212056])
    """
    return gammainc_(a, x)  # type: ignore[no-any-return]


def gammaincc(a: Any, x: Any, /) -> Array:
    """Regularized upper incomplete gamma function, ``1 - gammainc(a, x)``, accurate in the tail.

    Definition: DLMF 8.2.

    Args:
        a: shape parameter, positive.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.gammaincc(tr.asarray([0.5, 1.0]), 1.0)
    Tensor([0.15729921, 0.36787944])
    """
    return gammaincc_(a, x)  # type: ignore[no-any-return]


def gammaincinv(a: Any, p: Any, /) -> Array:
    """Inverse of `gammainc`: the x for which ``gammainc(a, x)`` is `p`.

    Args:
        a: shape parameter, positive.
        p: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.gammaincinv(tr.asarray([0.5, 1.0]), 0.5)
    Tensor([0.22746821, 0.69314718])
    """
    return gammaincinv_(a, p)  # type: ignore[no-any-return]


def gammainccinv(a: Any, q: Any, /) -> Array:
    """Inverse of `gammaincc`: the x for which ``gammaincc(a, x)`` is `q`.

    Args:
        a: shape parameter, positive.
        q: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.gammainccinv(tr.asarray([0.5, 1.0]), 0.5)
    Tensor([0.22746821, 0.69314718])
    """
    return gammainccinv_(a, q)  # type: ignore[no-any-return]


def chdtr(v: Any, x: Any, /) -> Array:
    """Distribution function of the chi-square distribution.

    Args:
        v: degrees of freedom, a positive real array.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.chdtr(tr.asarray([1.0, 2.0]), 2.0)
    Tensor([0.84270079, 0.63212056])
    """
    return gammainc(real_floating("chdtr", v) * 0.5, real_floating("chdtr", x) * 0.5)


def chdtrc(v: Any, x: Any, /) -> Array:
    """Survival function of the chi-square distribution, ``1 - chdtr(v, x)``, accurate in the tail.

    Args:
        v: degrees of freedom, a positive real array.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.chdtrc(tr.asarray([1.0, 2.0]), 2.0)
    Tensor([0.15729921, 0.36787944])
    """
    return gammaincc(real_floating("chdtrc", v) * 0.5, real_floating("chdtrc", x) * 0.5)


def chdtri(v: Any, p: Any, /) -> Array:
    """Inverse of `chdtrc`: the x for which ``chdtrc(v, x)`` is `p`.

    Args:
        v: degrees of freedom, a positive real array.
        p: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.chdtri(tr.asarray([1.0, 2.0]), 0.5)
    Tensor([0.45493642, 1.38629436])
    """
    return 2.0 * gammainccinv(real_floating("chdtri", v) * 0.5, p)


def gdtr(a: Any, b: Any, x: Any, /) -> Array:
    """Distribution function of the gamma distribution.

    Args:
        a: rate, positive.
        b: shape parameter, positive.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.gdtr(2.0, tr.asarray([0.5, 1.0]), 0.5)
    Tensor([0.84270079, 0.63212056])
    """
    x = real_floating("gdtr", x)
    return within(catalog.ge(x, 0), gammainc(b, real_floating("gdtr", a) * x))  # type: ignore[no-any-return]


def gdtrc(a: Any, b: Any, x: Any, /) -> Array:
    """Survival function of the gamma distribution, ``1 - gdtr(a, b, x)``, accurate in the tail.

    Args:
        a: rate, positive.
        b: shape parameter, positive.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.gdtrc(2.0, tr.asarray([0.5, 1.0]), 0.5)
    Tensor([0.15729921, 0.36787944])
    """
    x = real_floating("gdtrc", x)
    return within(catalog.ge(x, 0), gammaincc(b, real_floating("gdtrc", a) * x))  # type: ignore[no-any-return]


def pdtr(k: Any, m: Any, /) -> Array:
    """Poisson distribution function: the probability of at most `k` events.

    Args:
        k: count, rounded down.
        m: mean, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.pdtr(tr.asarray([0, 1]), 1.0)
    Tensor([0.36787944, 0.73575888])
    """
    k = real_floating("pdtr", k)
    return within(catalog.ge(k, 0), gammaincc(catalog.floor(k) + 1.0, m))  # type: ignore[no-any-return]


def pdtrc(k: Any, m: Any, /) -> Array:
    """Poisson survival function: the probability of more than `k` events.

    Args:
        k: count, rounded down.
        m: mean, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.pdtrc(tr.asarray([0, 1]), 1.0)
    Tensor([0.63212056, 0.26424112])
    """
    k = real_floating("pdtrc", k)
    return within(catalog.ge(k, 0), gammainc(catalog.floor(k) + 1.0, m))  # type: ignore[no-any-return]


def _inverse_by_shape(a: Any, out: Any) -> Any:
    return -gammainc_shape_(a, out, order=1) / gamma_density(a, out)


gammainc_shape_ = from_host(
    "gammainc_shape",
    "a x",
    "A derivative of the regularized lower incomplete gamma function by its shape, of order at least 1.",
    shape_derivative,
    {"a": "order"},
    jax="gammainc",
    x=gamma_density_derivative,
)
gammainc_ = from_scipy(
    "gammainc",
    "a x",
    "Regularized lower incomplete gamma function.",
    jax="gammainc",
    a=lambda a, x: gammainc_shape_(a, x, order=1),
    x=gamma_density,
)
gammaincc_ = from_scipy(
    "gammaincc",
    "a x",
    "Regularized upper incomplete gamma function.",
    jax="gammaincc",
    a=lambda a, x: -gammainc_shape_(a, x, order=1),
    x=lambda a, x: -gamma_density(a, x),
)
gammaincinv_ = from_scipy(
    "gammaincinv",
    "a p",
    "Inverse of the regularized lower incomplete gamma function.",
    a=_inverse_by_shape,
    p=lambda a, out: 1.0 / gamma_density(a, out),
)
gammainccinv_ = from_scipy(
    "gammainccinv",
    "a q",
    "Inverse of the regularized upper incomplete gamma function.",
    a=_inverse_by_shape,
    q=lambda a, out: -1.0 / gamma_density(a, out),
)
