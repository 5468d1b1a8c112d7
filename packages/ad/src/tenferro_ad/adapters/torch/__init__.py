"""tenferro inside PyTorch: `as_torch`. Needs PyTorch 2.4 or newer."""

from tenferro_ad.adapters.torch._as_torch import as_torch

__all__ = ["as_torch"]
