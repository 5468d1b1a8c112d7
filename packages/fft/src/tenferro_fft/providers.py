"""Fourier transforms for third-party backends."""

from collections.abc import Callable
from typing import Any

from tenferro_fft._primitives import PROVIDERS
from tenferro_runtime.extension import ProviderRegistration

__all__ = ["register"]


def __dir__() -> list[str]:
    return __all__.copy()


def register(backend: str, make: Callable[[], Any]) -> ProviderRegistration:
    """Register the provider of a backend: functions on its raw arrays with the interface of ``scipy.fft``.

    It has ``fft, ifft, fftn, ifftn, rfft`` and ``irfft``, which take ``axis`` or ``axes``, ``n`` and ``norm``; other
    transforms use these. Missing functions fall back to the CPU if `tenferro_runtime.host_fallback` allows it.

    Args:
        backend: backend name.
        make: returns the provider, which may be a module; called when a kernel first needs it.

    Returns:
        The registration, a context manager that removes the provider on exit.

    Raises:
        RegistryError: the backend already has a provider.

    >>> import scipy.fft
    >>> with register("abacus", lambda: scipy.fft):
    ...     pass  # signals on abacus:0 are transformed by SciPy
    """
    return PROVIDERS.register(backend, make)
