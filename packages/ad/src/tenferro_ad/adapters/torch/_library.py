"""PyTorch, if it is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from tenferro_tensor_core import BackendUnavailableError
from tenferro_tensor_core.forks import importing


def _imported() -> Any:
    try:
        with importing():
            return import_module("torch")
    except ImportError as cause:
        raise BackendUnavailableError(
            "tenferro_ad.adapters.torch needs PyTorch, which cannot be imported; install it, as in pip install torch"
        ) from cause


torch: Final[Any] = _imported()
"""The package, untyped because it may not be installed."""
