"""Linear algebra on your own device: a provider, the object on which all kernels of the family are written.

`register` installs the provider of a backend by name. `LinalgProvider` serves every array library with NumPy's
interface; a subclass overrides what the device does better.
"""

from collections.abc import Callable
from typing import Any

from tenferro_linalg._array_provider import LinalgProvider
from tenferro_linalg._providers import PROVIDERS
from tenferro_runtime.extension import ProviderRegistration

__all__ = ["LinalgProvider", "register"]


def __dir__() -> list[str]:
    return __all__.copy()


def register(backend: str, make: Callable[[], Any]) -> ProviderRegistration:
    """Register the provider of a backend: decompositions and solvers on its raw arrays.

    The methods of a provider take stacks of matrices, with the arguments of those of `LinalgProvider`, and raise
    `NumericalError` in the same cases. A method that is missing or raises `UnsupportedError` falls back to the CPU if
    `tenferro_runtime.host_fallback` allows it.

    Args:
        backend: backend name.
        make: makes the provider when a kernel first needs it; usually returns a `LinalgProvider`.

    Returns:
        The registration, a context manager that removes the provider on exit.

    Raises:
        RegistryError: the backend already has a provider.

    >>> import numpy, scipy.linalg
    >>> provider = LinalgProvider({"numpy": numpy, "scipy.linalg": scipy.linalg}.__getitem__)
    >>> with register("abacus", lambda: provider):
    ...     pass  # matrices on abacus:0 are decomposed by `provider`
    """
    return PROVIDERS.register(backend, make)
