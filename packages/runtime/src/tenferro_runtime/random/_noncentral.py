"""Noncentral distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenferro_runtime.random._basic import normal
from tenferro_runtime.random._continuous import chisquare
from tenferro_runtime.random._discrete import poisson
from tenferro_runtime.random._drawing import floating, given_as, parameters
from tenferro_runtime.random._keys import two
from tenferro_tensor import catalog
from tenferro_tensor.functions import sqrt, where
from tenferro_tensor_core import float64

if TYPE_CHECKING:
    from tenferro_tensor import Array


def noncentral_chisquare(key: Any, df: Any, nonc: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of noncentral chi-square distributions.

    Args:
        key: a key.
        df: degrees of freedom, positive.
        nonc: noncentrality, at least 0; differentiable where `df` is above 1.
        shape: shape of the result; by default the broadcast shape of the parameters.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of the shape `shape`.

    >>> tr.random.noncentral_chisquare(tr.random.key(0), 3.0, 1.0, (2,)).shape
    (2,)
    """
    dtype = floating("noncentral_chisquare", dtype)
    shape, (df, nonc) = parameters("noncentral_chisquare", shape, float64, df, nonc, key=key)
    first, second = two(key)
    wide = df > 1.0
    # Above one degree of freedom, one normal number has the mean; otherwise the degrees of freedom are random.
    more = catalog.convert(poisson(second, where(wide, 0.0, 0.5 * catalog.stop_gradient(nonc)), shape), dtype=float64)
    x = chisquare(first, where(wide, df - 1.0, df + 2.0 * more), shape)
    shifted = (normal(second, shape) + sqrt(nonc)) ** 2
    return given_as(where(wide, x + shifted, x), dtype)
