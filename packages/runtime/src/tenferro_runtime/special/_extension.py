"""The entry point ``tenferro.extensions: special``: kernels and rules of every page."""

from tenferro_runtime.extension import Registry
from tenferro_runtime.special import (
    _airy,
    _bessel,
    _bessel_integer,
    _bessel_spherical,
    _carlson,
    _elliptic,
    _gamma,
    _hypergeometric,
    _lambert,
    _legendre,
    _owens,
    _polynomials,
    _struve,
)

PAGES = (
    _airy,
    _bessel,
    _bessel_integer,
    _bessel_spherical,
    _carlson,
    _elliptic,
    _gamma,
    _hypergeometric,
    _lambert,
    _legendre,
    _owens,
    _polynomials,
    _struve,
)


def register(registry: Registry) -> None:
    """Register the family; called once, when one of its primitives first needs something."""
    for page in PAGES:
        page.register(registry)
