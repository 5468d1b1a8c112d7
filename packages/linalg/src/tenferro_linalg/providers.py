"""Linear algebra on a device of your own: a provider, over which all kernels of the family are written.

`register` brings the provider of a backend, by name. `LinalgProvider` is one for every array library with NumPy's
interface; a subclass overrides what the device does better.
"""

from collections.abc import Callable
from typing import Any

from tenferro_linalg._array_provider import LinalgProvider
from tenferro_linalg._providers import PROVIDERS
from tenferro_runtime.extension import ProviderRegistration

__all__ = ["LinalgProvider", "register"]


def register(backend: str, make: Callable[[], Any]) -> ProviderRegistration:
    """Bring the provider of a backend: decompositions and solvers on its raw arrays.

    Stacks of matrices come as they are computed with: methods take what those of `LinalgProvider` take, and raise
    `NumericalError` where these do. What raises `UnsupportedError`, or has no method, falls back to the CPU where
    `tenferro_runtime.host_fallback` allows it.

    Args:
        backend: backend name.
        make: makes the provider when a kernel first needs it; usually a `LinalgProvider`.

    Raises:
        RegistryError: the backend has a provider.

    >>> import numpy, scipy.linalg
    >>> provider = LinalgProvider({"numpy": numpy, "scipy.linalg": scipy.linalg}.__getitem__)
    >>> with register("abacus", lambda: provider):
    ...     pass  # matrices on abacus:0 are decomposed by `provider`
    """
    return PROVIDERS.register(backend, make)
