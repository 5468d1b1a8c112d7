"""Student's distribution, with derivatives by the degrees of freedom."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import ArgumentError, Registry, Slopes, Spec, primitive
from tenferro_runtime.special._increments import polygamma
from tenferro_runtime.special._quadrature import DECAY, in_blocks, legendre
from tenferro_runtime.special._scipy import family, host_special, register_host, register_scipy
from tenferro_tensor import Array, catalog

__all__ = ["stdtr", "stdtrit"]

NODES: Final = 40
PANELS: Final = (0.0, 0.08, 0.4, 1.0)
"""Parts of the tail, in its logarithm: powers of it live in the first ones where it is long."""


@primitive(elementwise=True, domain="floating", family=family("stdtr"), extension="special")
def stdtr_(df: Spec, t: Spec, *, order: int) -> Spec:
    """A derivative of Student's distribution function by the degrees of freedom."""
    if order < 0:
        raise ArgumentError(f"stdtr has derivatives of order at least 0, got {order}", order=order)
    return df


@primitive(elementwise=True, domain="floating", family=family("stdtrit"), extension="special")
def stdtrit_(df: Spec, p: Spec) -> Spec:
    """Quantile of Student's distribution."""
    return df


def stdtr(df: Any, t: Any, /) -> Array:
    """Distribution function of Student's distribution with `df` degrees of freedom.

    >>> tr.special.stdtr(tr.asarray([1.0, 5.0]), 1.0)
    Tensor([0.75      , 0.81839127])
    """
    return stdtr_(df, t, order=0)  # type: ignore[no-any-return]


def stdtrit(df: Any, p: Any, /) -> Array:
    """Quantile of Student's distribution: the t for which ``stdtr(df, t)`` is `p`.

    >>> tr.special.stdtrit(tr.asarray([1.0, 5.0]), 0.75)
    Tensor([1.        , 0.72668684])
    """
    return stdtrit_(df, p)  # type: ignore[no-any-return]


def _log_derivatives(df: Any, square: Any, order: int, log: Any, psi: Callable[[int, Any], Any]) -> list[Any]:
    """Derivatives by `df` of the logarithm of the density, of order 1 on; `log` is ``log(1 + square / df)``."""
    total = df + square
    terms, derivatives = [log], []
    for m in range(1, order + 1):
        factorial = float(math.factorial(m - 1))
        sign = (-1.0) ** m
        terms.append(sign * factorial * (1.0 / df**m - 1.0 / total**m))
        scale = sign * 0.5 * factorial / df**m + 0.5**m * (psi(m - 1, 0.5 * (df + 1.0)) - psi(m - 1, 0.5 * df))
        derivatives.append(scale - 0.5 * (df + 1.0) * terms[m] - 0.5 * m * terms[m - 1])
    return derivatives


def _bell(logs: list[Any]) -> Any:
    values: list[Any] = [1.0]
    for n in range(len(logs)):
        values.append(sum(math.comb(n, k) * logs[k] * values[n - k] for k in range(n + 1)))
    return values[-1]


def _density(df: Any, t: Any, order: int = 0) -> Any:
    """The derivative by `df` of the density, in core operations."""
    square = t * t
    log = catalog.log1p(square / df)
    half = 0.5 * df
    scale = catalog.lgamma(half + 0.5) - catalog.lgamma(half) - 0.5 * catalog.log(math.pi * df)
    density = catalog.exp(scale - (half + 0.5) * log)
    if not order:
        return density
    logs = _log_derivatives(df, square, order, log, lambda n, a: catalog.polygamma(a, order=n))
    return density * _bell(logs)


def _derivative(df: Any, t: Any, order: int) -> Any:
    special = host_special()
    if order == 0:
        return special.stdtr(df, t)
    return in_blocks(lambda df, t: _of_block(special, df, t, order), (df, t))


def _of_block(special: Any, df: Any, t: Any, order: int) -> Any:
    """Integrals from the middle, where the derivative vanishes, or over the tail."""
    out = np.where(df > 0, 0.0, np.nan)
    places = np.flatnonzero((df > 0) & np.isfinite(df) & np.isfinite(t) & (t != 0))
    if not places.size:
        return out
    df, t = df[places, None], t[places, None]
    size = np.abs(t)

    def integrand(t: Any) -> Any:
        square = t * t
        log = np.log1p(square / df)
        logs = _log_derivatives(df, square, order, log, lambda n, a: polygamma(special, n, a))
        scale = special.gammaln(0.5 * df + 0.5) - special.gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
        return np.exp(scale - 0.5 * (df + 1) * log) * _bell(logs)

    s, w = legendre(NODES)
    inner = np.minimum(size, 2 * np.sqrt(np.minimum(df, 1.0)))
    middle = size <= inner
    found = np.where(middle[:, 0], (integrand(inner * s) @ w) * inner[:, 0], 0.0)
    if not middle.all():
        far = np.where(middle, 1.0, size)
        length = np.maximum(DECAY / df, 4.0) + 1.0
        tail = 0.0
        for start, end in pairwise(PANELS):
            v = length * (start + (end - start) * s)
            at = far * np.exp(v)
            tail = tail + ((integrand(at) * at) @ w) * (length * (end - start))[:, 0]
        found = np.where(middle[:, 0], found, -tail)
    out[places] = np.sign(t[:, 0]) * found
    return out


def register(registry: Registry) -> None:
    """Kernels and rules of this page."""
    rule = Slopes(
        singular=True,
        df=lambda df, t, order: stdtr_(df, t, order=order + 1),
        t=lambda df, t, order: _density(df, t, order),
    )
    register_host(registry, stdtr_, rule, _derivative)
    inverse = Slopes(
        singular=True,
        df=lambda df, out: -stdtr_(df, out, order=1) / _density(df, out),
        p=lambda df, out: 1.0 / _density(df, out),
    )
    register_scipy(registry, stdtrit_, inverse)
