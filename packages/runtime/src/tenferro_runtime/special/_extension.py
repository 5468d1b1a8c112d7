"""The entry point ``tenferro.extensions: special``: kernels and rules of every page."""

from tenferro_runtime.extension import Registry
from tenferro_runtime.special import _gamma

PAGES = (_gamma,)


def register(registry: Registry) -> None:
    """Register the family; called once, when one of its primitives first needs something."""
    for page in PAGES:
        page.register(registry)
