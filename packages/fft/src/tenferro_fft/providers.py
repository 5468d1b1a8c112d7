"""Fourier transforms on a device of your own."""

from collections.abc import Callable
from typing import Any

from tenferro_fft._primitives import PROVIDERS
from tenferro_runtime.extension import ProviderRegistration

__all__ = ["register"]


def register(backend: str, make: Callable[[], Any]) -> ProviderRegistration:
    """Bring the provider of a backend: functions on its raw arrays with the interface of ``scipy.fft``.

    It has ``fft, ifft, fftn, ifftn, rfft`` and ``irfft``, which take ``axis`` or ``axes``, ``n`` and ``norm``; other
    transforms are made of these. What it lacks falls back to the CPU where `tenferro_runtime.host_fallback` allows it.

    Args:
        backend: backend name.
        make: makes the provider when a kernel first needs it; a module will do.

    Raises:
        RegistryError: the backend has a provider.

    >>> import scipy.fft
    >>> with register("abacus", lambda: scipy.fft):
    ...     pass  # signals on abacus:0 are transformed by SciPy
    """
    return PROVIDERS.register(backend, make)
