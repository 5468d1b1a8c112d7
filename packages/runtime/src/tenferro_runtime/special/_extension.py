"""The entry point ``tenferro.extensions: special``: kernels and rules of all modules."""

from importlib import import_module

from tenferro_runtime.extension import Registry
from tenferro_runtime.special import NAMES
from tenferro_runtime.special._declared import DECLARED


def register(registry: Registry) -> None:
    """Register the family; called once, when one of its primitives first needs something."""
    for module in ("_densities", *NAMES):
        import_module(f"tenferro_runtime.special.{module}")
    for registration in DECLARED:
        registration(registry)
