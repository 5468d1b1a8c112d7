"""The entry point ``tenferro.extensions: special``: kernels and rules of all modules."""

from tenferro_runtime.extension import Registry
from tenferro_runtime.special import (
    _airy,
    _bessel,
    _bessel_integer,
    _bessel_spherical,
    _beta,
    _carlson,
    _densities,
    _digamma,
    _elementary,
    _elliptic,
    _error_functions,
    _exponential_integrals,
    _gamma,
    _hypergeometric,
    _incomplete_beta,
    _incomplete_gamma,
    _information,
    _lambert,
    _legendre,
    _logistic,
    _normal,
    _owens,
    _polynomials,
    _removable,
    _struve,
    _student,
    _zeta,
)

PAGES = (
    _airy,
    _bessel,
    _bessel_integer,
    _bessel_spherical,
    _beta,
    _carlson,
    _densities,
    _digamma,
    _elementary,
    _elliptic,
    _error_functions,
    _exponential_integrals,
    _gamma,
    _hypergeometric,
    _incomplete_beta,
    _incomplete_gamma,
    _information,
    _lambert,
    _legendre,
    _logistic,
    _normal,
    _owens,
    _polynomials,
    _removable,
    _struve,
    _student,
    _zeta,
)


def register(registry: Registry) -> None:
    """Register the family; called once, when one of its primitives first needs something."""
    for page in PAGES:
        page.register(registry)
