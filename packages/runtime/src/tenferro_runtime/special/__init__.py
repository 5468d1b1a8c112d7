"""Special functions, under the names of ``scipy.special`` and ``jax.scipy.special``.

All have derivatives of every order by every real parameter, unless their documentation says otherwise. Most values
are computed by SciPy, which the extra ``tenferro-runtime[special]`` brings.
"""

from typing import TYPE_CHECKING

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_runtime.special._gamma import digamma, gamma, psi

__all__ = [
    "digamma",
    "gamma",
    "psi",
]

if not TYPE_CHECKING:
    __getattr__ = deferred(
        __name__,
        {
            "_gamma": "digamma gamma psi",
        },
    )
