"""Differences between NumPy's functions and the namespace's: in names, arguments, or meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog, functions
from tenferro_tensor._array import Array
from tenferro_tensor_core import ArgumentError

NAMES: Final = {"gammaln": "lgamma", "psi": "digamma"}
"""Our names of SciPy's ufuncs, where they differ."""

PARAMETERS: Final = {"correction": "ddof", "k": "offset"}
"""NumPy's names of our parameters, where they differ."""

MISLEADING: Final = frozenset({"compress", "load", "save", "trace", "map", "scan", "convert"})
"""Names with another meaning in the namespace."""

REDUCTIONS: Final = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
"""Our functions for ``ufunc.reduce``."""

ACCUMULATIONS: Final = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
"""Our functions for ``ufunc.accumulate``."""

RUNNING: Final = {"minimum": catalog.cummin, "maximum": catalog.cummax, "logaddexp": catalog.cumlogsumexp}
"""Our primitives for it."""

AT: Final = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "minimum": "min", "maximum": "max",
}  # fmt: skip
"""Our methods of ``x.at[key]`` for ``ufunc.at``."""

WRITING: Final = frozenset({np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask})
"""Functions that change their first argument, which NumPy could not."""

COERCING: Final = frozenset({np.atleast_1d, np.atleast_2d, np.atleast_3d})
"""Functions by which libraries convert arguments to NumPy arrays; they do so for concrete tensors."""

METADATA: Final[dict[Any, Callable[..., Any]]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.iscomplexobj: lambda x: x.spec.cplx,
    np.isrealobj: lambda x: not x.spec.cplx,
    np.may_share_memory: lambda a, b, max_work=None: _share(np.may_share_memory, a, b),
    np.shares_memory: lambda a, b, max_work=None: _share(np.shares_memory, a, b),
}
"""Functions that need no elements."""


def _share(function: Any, a: Any, b: Any) -> bool:
    return bool(function(*[getattr(x, "_data", x) for x in (a, b)]))


def masked(name: str, x: Any, options: dict[str, Any], named: dict[str, Any]) -> tuple[Any, Any]:
    """Handle the arguments ``where`` and ``initial`` of a reduction: the operand, and a function of the result."""
    where, initial = options.pop("where", None), options.pop("initial", None)
    function = {"amax": "max", "amin": "min"}.get(name, name)
    combine = {
        "sum": functions.add,
        "prod": functions.multiply,
        "max": functions.maximum,
        "min": functions.minimum,
    }.get(function)
    after = None if initial is None else lambda result: combine(result, initial)  # type: ignore[misc]
    if where is None:
        return x, after
    neutral = {"sum": 0, "prod": 1, "all": True, "any": False, "mean": 0}.get(function, initial)
    if neutral is None or function in ("var", "std"):
        raise ArgumentError(
            f"np.{name} with where= on tensors needs initial=, or is not supported; select the elements first: x[mask]"
        )
    where = functions.asarray(where)
    if function == "mean":
        how = {"axis": named.get("axis"), "keepdims": named.get("keepdims", False)}
        ones = functions.ones_like(x)
        ratio = functions.sum(ones, **how) / functions.sum(functions.where(where, ones, 0), **how)
        return functions.where(where, x, 0), lambda mean: mean * ratio
    return functions.where(where, x, neutral), after


# -- functions with another meaning or other arguments --------------------------------------------------------------


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return functions.clip(a, min if a_min is None else a_min, max if a_max is None else a_max)


def _squeeze(a: Any, axis: Any = None) -> Any:
    if axis is None:
        axis = tuple(i for i, d in enumerate(a.shape) if d == 1)
    return functions.squeeze(a, axis)


def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    a = functions.asarray(a)
    return functions.take(functions.ravel(a) if axis is None else a, indices, axis=axis or 0)


def _outer(a: Any, b: Any) -> Any:
    return functions.outer(functions.ravel(functions.asarray(a)), functions.ravel(functions.asarray(b)))


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return functions.sum(functions.diagonal(a, offset=offset, axis1=axis1, axis2=axis2), -1)


def _copy(a: Any) -> Any:
    return functions.asarray(a, copy=True)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    linalg = _linalg()
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def _linalg() -> Any:
    return Array.namespace.linalg


DIFFERENT: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("", "clip"): _clip,
    ("", "squeeze"): _squeeze,
    ("", "take"): _take,
    ("", "outer"): _outer,
    ("", "trace"): _trace,
    ("", "copy"): _copy,
    ("linalg", "svd"): _svd,
}
"""Functions that take NumPy's arguments, by subpackage of NumPy and name."""
