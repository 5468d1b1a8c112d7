"""Programs inside JAX functions, and JAX functions inside programs; this module imports JAX.

Users import `as_jax` and `from_jax` from `tenferro_ad.adapters.jax`, which also installs the derivatives of programs.
"""

from tenferro_xla.inside_jax._as_jax import as_jax
from tenferro_xla.inside_jax._from_jax import from_jax
from tenferro_xla.inside_jax._primitive import Derivatives, differentiate_with

__all__ = ["Derivatives", "as_jax", "differentiate_with", "from_jax"]


def __dir__() -> list[str]:
    return __all__.copy()
