"""Densities of the gamma and beta distributions, and their derivatives with respect to the shape parameters.

At the ends of the support, where derivatives of the formulas are 0 times infinity, primitives give the limits of all
derivatives from inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._declared import composed
from tenferro_runtime.special._digamma import psi_increment
from tenferro_runtime.special._increments import LARGE, stirling_error
from tenferro_runtime.special._recurrences import bell_polynomials
from tenferro_tensor import catalog

_HALF_LOG: Final = 0.5 * math.log(2 * math.pi)


def _log_ratio(change: Any, ratio: Any) -> Any:
    """``log(ratio)``, where `change` is ``ratio - 1``."""
    near = catalog.lt(catalog.abs(change), 0.5)
    there = catalog.log1p(catalog.select(near, change, 0.0))
    return catalog.select(near, there, catalog.log(catalog.select(near, 1.0, ratio)))


def _power_log(power: Any, x: Any) -> Any:
    """``power * log(x)``, 0 for power 0."""
    return catalog.absorbing_mul(power, catalog.log(x))


def gamma_density(a: Any, x: Any) -> Any:
    """``x ** (a - 1) * exp(-x) / gamma(a)``."""
    return gamma_density_derivative(a, x, 0)


def _gamma_density(a: Any, x: Any) -> Any:
    end = catalog.is_inf(x)
    x = catalog.select(end, 1.0, x)
    large = catalog.gt(a, LARGE)
    few = catalog.select(large, 1.0, a)
    plain = _power_log(few - 1.0, catalog.select(large, 1.0, x)) - x - catalog.lgamma(few)
    many = catalog.select(large, a, LARGE)
    change = (x - many) / many
    # The large terms of Stirling's formula cancel those of the density.
    saddle = many * (_log_ratio(change, x / many) - change) - stirling_error(many)
    saddle = saddle + 0.5 * catalog.log(many) - _HALF_LOG - catalog.log(catalog.select(large, x, 1.0))
    return catalog.select(end, 0.0, catalog.exp(catalog.select(large, saddle, plain)))


def gamma_density_derivative(a: Any, x: Any, order: int) -> Any:
    """The derivative of `gamma_density` by a."""
    at_0 = catalog.eq(x, 0.0)
    limit = gamma_density_at_0_(a, x, by_shape=order, by_x=0)
    return catalog.select(at_0, limit, _gamma_derivative(a, catalog.select(at_0, 1.0, x), order))


def _gamma_derivative(a: Any, x: Any, order: int) -> Any:
    density = _gamma_density(a, x)
    if not order:
        return density
    cumulants = {(1, 0): catalog.log(catalog.select(catalog.is_inf(x), 1.0, x)) - catalog.digamma(a)}
    cumulants |= {(k, 0): -catalog.polygamma(a, order=k - 1) for k in range(2, order + 1)}
    return catalog.absorbing_mul(density, bell_polynomials(cumulants, (order, 0))[order, 0])


def _beta_density(a: Any, b: Any, x: Any, log_beta: Any) -> Any:
    """``x ** (a - 1) * (1 - x) ** (b - 1) / B(a, b)``, given the function that returns ``log(B(a, b))``."""
    large = catalog.bitwise_and(catalog.gt(a, LARGE), catalog.gt(b, LARGE))
    p, q = catalog.select(large, 1.0, a), catalog.select(large, 1.0, b)
    inner = catalog.select(large, 0.5, x)
    plain = _power_log(p - 1.0, inner) + catalog.absorbing_mul(q - 1.0, catalog.log1p(-inner)) - log_beta(p, q)
    p, q = catalog.select(large, a, LARGE), catalog.select(large, b, LARGE)
    n, y = p + q, 1.0 - x
    gap = x * q - y * p
    saddle = p * _log_ratio(gap / p, n * x / p) + q * _log_ratio(-gap / q, n * y / q)
    saddle = saddle + stirling_error(n) - stirling_error(p) - stirling_error(q)
    saddle = saddle + 0.5 * catalog.log(p * q / n) - _HALF_LOG
    saddle = saddle - catalog.log(catalog.select(large, x, 0.5)) - catalog.log1p(-catalog.select(large, x, 0.5))
    return catalog.exp(catalog.select(large, saddle, plain))


def beta_density_derivative(a: Any, b: Any, x: Any, orders: tuple[int, int], log_beta: Any) -> Any:
    """The derivative of `beta_density` by a and b."""
    first, second = orders
    at_0, at_1 = catalog.eq(x, 0.0), catalog.eq(x, 1.0)
    found = _beta_derivative(a, b, catalog.select(catalog.bitwise_or(at_0, at_1), 0.5, x), orders, log_beta)
    found = catalog.select(at_0, beta_density_at_0_(a, b, x, first=first, second=second, by_x=0), found)
    mirrored = beta_density_at_0_(b, a, 1.0 - x, first=second, second=first, by_x=0)
    return catalog.select(at_1, mirrored, found)


def _beta_derivative(a: Any, b: Any, x: Any, orders: tuple[int, int], log_beta: Any) -> Any:
    density = _beta_density(a, b, x, log_beta)
    if orders == (0, 0):
        return density
    logs = {(1, 0): catalog.log(x) + psi_increment(a, b), (0, 1): catalog.log1p(-x) + psi_increment(b, a)}
    for i in range(orders[0] + 1):
        for j in range(orders[1] + 1):
            if i + j > 1:
                order = i + j - 1
                logs[i, j] = (
                    psi_increment(a, b, order)
                    if j == 0
                    else psi_increment(b, a, order)
                    if i == 0
                    else catalog.polygamma(a + b, order=order)
                )
    return catalog.absorbing_mul(density, bell_polynomials(logs, orders)[orders])


def _power_limit(a: Any, by_shape: int, by_x: int, constants: Sequence[Any], sign: Any = 1.0) -> Any:
    """The limit at 0 of a derivative of ``x ** (a - 1) / gamma(a)`` times a power series in x.

    Args:
        a: the shape.
        by_shape: order of the derivative by the shape.
        by_x: order of the derivative by x.
        constants: the constant term of the derivative by x for the shapes ``by_x + 1, by_x, ..., 1``, where its terms
            of negative power vanish. Derivatives by the shape have such terms, and logarithms, there too.
        sign: of the series at 0.
    """
    order = a - float(by_x)
    # 1 / gamma(order) is the factor of the lowest power of x; at a zero, only its slope by the shape counts.
    odd = catalog.remainder(catalog.ceil(order) + (1.0 + by_shape), 2.0)
    found = catalog.select(catalog.gt(order, 1.0), 0.0, (sign * math.inf) * (1.0 - 2.0 * odd))
    if not by_shape:
        for k, constant in enumerate(constants):
            found = catalog.select(catalog.eq(order, 1.0 - k), constant, found)
    return catalog.select(catalog.gt(a, 0.0), found, math.nan)


def _gamma_limit(a: Any, x: Any, *, by_shape: int, by_x: int) -> Any:
    constants = [float((-1) ** k * math.comb(by_x, k)) for k in range(by_x + 1)]
    return _power_limit(a, by_shape, by_x, constants)


def _beta_limit(a: Any, b: Any, x: Any, *, first: int, second: int, by_x: int) -> Any:
    """The series is ``(1 - x) ** (b - 1) * gamma(a + b) / gamma(b)``."""
    constants = []
    for k in range(by_x + 1):
        shape = by_x + 1 - k
        roots = [*range(1, k + 1), *range(0, -shape, -1)]
        scale = (-1) ** k * math.factorial(by_x) / (math.factorial(k) * math.factorial(shape - 1))
        value: Any = 0.0
        for coefficient in reversed((scale * np.polynomial.Polynomial.fromroots(roots)).deriv(second).coef):
            value = value * b + float(coefficient)
        constants.append(value)
    # The series grows with b, and is a Bernstein function of b for a below 1; the signs of its other derivatives by b
    # depend on the shapes.
    sign = 1.0 if second < 2 else catalog.select(catalog.lt(a, 1.0), -((-1.0) ** second), math.nan)
    return _power_limit(a, first, by_x, constants, sign)


gamma_density_at_0_ = composed(
    "gamma_density_at_0",
    "a x",
    "The limit at ``x = 0`` of a derivative of the density of the gamma distribution.",
    _gamma_limit,
    {"a": "by_shape", "x": "by_x"},
)
beta_density_at_0_ = composed(
    "beta_density_at_0",
    "a b x",
    "The limit at ``x = 0`` of a derivative of the density of the beta distribution.",
    _beta_limit,
    {"a": "first", "b": "second", "x": "by_x"},
)
