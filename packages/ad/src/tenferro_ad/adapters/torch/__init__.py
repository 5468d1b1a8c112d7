"""tenferro inside PyTorch, and PyTorch inside tenferro: `as_torch` and `from_torch`. Needs PyTorch 2.4 or newer."""

from tenferro_ad.adapters.torch._as_torch import as_torch
from tenferro_ad.adapters.torch._from_torch import from_torch

__all__ = ["as_torch", "from_torch"]
