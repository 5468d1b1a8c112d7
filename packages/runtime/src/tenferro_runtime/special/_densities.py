"""Densities of the gamma and beta distributions, and their derivatives with respect to the shape parameters."""

from __future__ import annotations

import math
from typing import Any, Final

from tenferro_runtime.special._digamma import psi_increment
from tenferro_tensor import catalog

LARGE: Final = 16.0
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_HALF_LOG: Final = 0.5 * math.log(2 * math.pi)


def _stirling_error(a: Any) -> Any:
    power = 1.0 / (a * a)
    series: Any = _STIRLING[-1]
    for c in _STIRLING[-2::-1]:
        series = power * series + c
    return series / a


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
    end = catalog.is_inf(x)
    x = catalog.select(end, 1.0, x)
    large = catalog.gt(a, LARGE)
    few = catalog.select(large, 1.0, a)
    plain = _power_log(few - 1.0, catalog.select(large, 1.0, x)) - x - catalog.lgamma(few)
    many = catalog.select(large, a, LARGE)
    change = (x - many) / many
    # The large terms of Stirling's formula cancel those of the density.
    saddle = many * (_log_ratio(change, x / many) - change) - _stirling_error(many)
    saddle = saddle + 0.5 * catalog.log(many) - _HALF_LOG - catalog.log(catalog.select(large, x, 1.0))
    return catalog.select(end, 0.0, catalog.exp(catalog.select(large, saddle, plain)))


def gamma_density_derivative(a: Any, x: Any, order: int) -> Any:
    """The derivative of `gamma_density` by a."""
    density = gamma_density(a, x)
    if not order:
        return density
    cumulants: list[Any] = [None, catalog.log(catalog.select(catalog.is_inf(x), 1.0, x)) - catalog.digamma(a)]
    cumulants += [-catalog.polygamma(a, order=k - 1) for k in range(2, order + 1)]
    values: list[Any] = [1.0]
    for n in range(order):
        values.append(sum(math.comb(n, k) * cumulants[k + 1] * values[n - k] for k in range(n + 1)))
    return catalog.absorbing_mul(density, values[-1])


def beta_density(a: Any, b: Any, x: Any, log_beta: Any) -> Any:
    """``x ** (a - 1) * (1 - x) ** (b - 1) / B(a, b)``, given the function that returns ``log(B(a, b))``."""
    large = catalog.bitwise_and(catalog.gt(a, LARGE), catalog.gt(b, LARGE))
    p, q = catalog.select(large, 1.0, a), catalog.select(large, 1.0, b)
    inner = catalog.select(large, 0.5, x)
    plain = _power_log(p - 1.0, inner) + catalog.absorbing_mul(q - 1.0, catalog.log1p(-inner)) - log_beta(p, q)
    p, q = catalog.select(large, a, LARGE), catalog.select(large, b, LARGE)
    n, y = p + q, 1.0 - x
    gap = x * q - y * p
    saddle = p * _log_ratio(gap / p, n * x / p) + q * _log_ratio(-gap / q, n * y / q)
    saddle = saddle + _stirling_error(n) - _stirling_error(p) - _stirling_error(q)
    saddle = saddle + 0.5 * catalog.log(p * q / n) - _HALF_LOG
    saddle = saddle - catalog.log(catalog.select(large, x, 0.5)) - catalog.log1p(-catalog.select(large, x, 0.5))
    return catalog.exp(catalog.select(large, saddle, plain))


def beta_density_derivative(a: Any, b: Any, x: Any, orders: tuple[int, int], log_beta: Any) -> Any:
    """The derivative of `beta_density` by a and b."""
    density = beta_density(a, b, x, log_beta)
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
    values: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for m in range(orders[0] + 1):
        for n in range(orders[1] + 1):
            if m or n:
                by, m1, n1 = ((1, 0), m - 1, n) if m else ((0, 1), m, n - 1)
                values[m, n] = sum(
                    math.comb(m1, i) * math.comb(n1, j) * logs[i + by[0], j + by[1]] * values[m1 - i, n1 - j]
                    for i in range(m1 + 1)
                    for j in range(n1 + 1)
                )
    return catalog.absorbing_mul(density, values[orders])
