"""The gamma function and its relatives of one variable."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.extension import Registry, Slopes, Spec, primitive
from tenferro_runtime.special._scipy import family, register_scipy
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import digamma

__all__ = ["digamma", "gamma", "psi"]

psi = digamma


@primitive(elementwise=True, domain="floating", family=family("gamma"), extension="special")
def gamma_(x: Spec) -> Spec:
    """Gamma function."""
    return x


def gamma(x: Any, /) -> Array:
    """The gamma function; NaN at its poles below 0.

    >>> tr.special.gamma(tr.asarray([0.5, 5.0]))
    Tensor([ 1.77245385, 24.        ])
    """
    return gamma_(x)  # type: ignore[no-any-return]


def register(registry: Registry) -> None:
    """Kernels and rules of this page."""
    register_scipy(registry, gamma_, Slopes(singular=True, x=lambda x, out: out * catalog.digamma(x)))
