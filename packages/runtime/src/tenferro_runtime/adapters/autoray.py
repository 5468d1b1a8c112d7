"""autoray's conventions where they differ from the standard: a reduced SVD by default.

autoray finds all other functions in the package of an array's class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Final

_autoray: Final = import_module("autoray")

PACKAGES = ("tenferro_runtime", "tenferro_tensor", "tenferro_ad")
"""The packages that define classes of values: traced, concrete, differentiated."""


def _thin(svd: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(svd)
    def thin(x: Any, full_matrices: bool = False) -> Any:
        return svd(x, full_matrices=full_matrices)

    return thin


for package in PACKAGES:
    try:
        _autoray.register_function(package, "linalg.svd", wrapper=_thin)
    except TypeError:  # before autoray 0.8.12
        _autoray.autoray.register_custom_wrapper(package, "linalg.svd", _thin)
