"""autoray's conventions where they differ from the standard: a thin SVD, SciPy's functions, random numbers with state.

autoray finds all other functions in the package of an array's class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, Final

from tenferro_runtime import _namespace
from tenferro_tensor import functions

_autoray: Final = import_module("autoray")

PACKAGES: Final = ("tenferro_runtime", "tenferro_tensor", "tenferro_ad")
"""The packages that define classes of values: traced, concrete, differentiated."""


def _thin(svd: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(svd)
    def thin(x: Any, full_matrices: bool = False, **options: Any) -> Any:
        return svd(x, full_matrices=full_matrices, **options)

    return thin


@cache
def _shared_generator() -> Any:
    """The generator behind ``do("random.normal", ...)``, which NumPy's users expect to have state.

    Its stream starts at random and can be neither seeded nor recorded: pass a generator of ``random.default_rng`` or
    keys where a program must be repeatable.
    """
    return _default_rng()


def _default_rng(seed: Any = None, **_: Any) -> Any:
    return _namespace.export("random").default_rng(seed)


def _drawn(method: str) -> Callable[..., Any]:
    def draw(*args: Any, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        x = getattr(_shared_generator(), method)(*args, **options)
        x = x if dtype is None else functions.astype(x, dtype)
        return x if device is None else functions.to_device(x, device)

    return draw


def _solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **_: Any
) -> Any:
    trans = "NTC"[trans] if isinstance(trans, int) else trans
    return _linalg().solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _linalg() -> Any:
    return _namespace.export("linalg")


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "random.default_rng": _default_rng,
    "scipy.linalg.solve_triangular": _solve_triangular,
    **{f"random.{name}": _drawn(name) for name in ("choice", "integers", "normal", "permutation", "uniform")},
    "random.randn": lambda *shape, **options: _drawn("normal")(size=shape, **options),
    "random.random": _drawn("random"),
}
"""Functions under the names of NumPy and SciPy that the namespace has in another form."""

for package in PACKAGES:
    try:
        _autoray.register_function(package, "linalg.svd", wrapper=_thin)
    except TypeError:  # before autoray 0.8.12
        _autoray.autoray.register_custom_wrapper(package, "linalg.svd", _thin)
    for name, function in FUNCTIONS.items():
        _autoray.register_function(package, name, function)
    # autoray imports modules by path: it has to find those of the namespace in the package of the class.
    _autoray.autoray.register_module_alias(f"{package}.scipy", "tenferro_runtime")
