"""Names that other distributions provide, for type checkers; `_namespace.FORWARDED` and `FAMILIES` find them later.

The one module that names higher layers, and only under TYPE_CHECKING. Where such a distribution is not installed, its
names are unknown to the type checker, without an error.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tenferro_ad
    import tenferro_fft as fft
    import tenferro_linalg as linalg
    from tenferro_ad import *  # noqa: F403 - all of its names
    from tenferro_einsum import einsum
    from tenferro_linalg import cross

    __all__ = ["cross", "einsum", "fft", "linalg"]
    __all__ += tenferro_ad.__all__
