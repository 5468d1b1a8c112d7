"""The position of a quantile among sorted elements: the methods of Hyndman and Fan, and NumPy's further methods.

R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996) 361-365.
"""

from typing import Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.operands import converted
from tenferro_tensor_core import ArgumentError, float64, int64

_CONTINUOUS: Final = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""The parameters alpha and beta of the interpolating methods; `linear` has (1, 1)."""

METHODS: Final = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", *_CONTINUOUS, "linear", "lower", "higher",
    "midpoint", "nearest",
)  # fmt: skip


def neighbours(method: str, n: Any, q: Any) -> tuple[Any, Any, Any]:
    """Indices of the elements below and above a quantile, and the weight of the one above.

    Args:
        method: its name.
        n: numbers of elements in float64, as numbers or values that broadcast with `q`.
        q: probabilities in float64.

    Returns:
        Two integer values and a weight; for a single element, both are equal and the weight is ``None``.
    """
    if method in ("lower", "higher", "nearest"):
        rounded = {"lower": catalog.floor, "higher": catalog.ceil, "nearest": catalog.round}[method]
        return _single(rounded(catalog.mul(n - 1.0, q)), n)
    if method in ("inverted_cdf", "closest_observation"):
        half = 0.5 if method == "closest_observation" else 0.0
        at = catalog.mul(n, q) - (1.0 + half)
        below = catalog.floor(at)
        exact = catalog.eq(at, below)
        if half:  # of two equally near elements, choose the one whose number, counted from 1, is even
            exact = catalog.bitwise_and(exact, catalog.eq(catalog.remainder(below, 2.0), 1.0))
        return _single(catalog.select(exact, below, below + 1.0), n)
    if method == "averaged_inverted_cdf":
        at = catalog.mul(n, q) - 1.0
    elif method in ("linear", "midpoint"):
        at = catalog.mul(n - 1.0, q)
    elif method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = catalog.mul(n, q) + (alpha + q * (1.0 - alpha - beta)) - 1.0
    else:
        raise ArgumentError(f"quantile knows the methods {', '.join(METHODS)}, got {method!r}", method=method)
    below = catalog.floor(at)
    weight = catalog.sub(at, catalog.stop_gradient(below))
    if method == "averaged_inverted_cdf":
        weight = catalog.select(catalog.eq(weight, 0.0), 0.5, 1.0)
    elif method == "midpoint":
        weight = catalog.select(catalog.eq(weight, 0.0), 0.0, 0.5)
    first, last = _single(below, n)[0], _single(below + 1.0, n)[0]
    return first, last, weight


def _single(at: Any, n: Any) -> tuple[Any, Any, Any]:
    index = converted(
        catalog.clamp(at, 0.0, max(n - 1.0, 0.0) if n.__class__ is float else catalog.maximum(n - 1.0, 0.0)), int64
    )
    return index, index, None


def as_float(n: Any) -> Any:
    """The number of elements in float64."""
    return float(n) if n.__class__ is int else converted(n, float64)
