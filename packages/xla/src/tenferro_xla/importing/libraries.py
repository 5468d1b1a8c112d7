"""Custom calls: LAPACK functions that JAX calls on CPUs, and annotations without meaning on one device."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_runtime.extension import catalog, real_of, tensor
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, out_spec, results_of, unknown
from tenferro_xla.importing._values import Value, arrays
from tenferro_xla.importing.elementwise import ELEMENTWISE
from tenferro_xla.importing.families import cholesky, solve_triangular
from tenferro_xla.importing.sorting import SORTING

_ANNOTATIONS: Final = frozenset(
    ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint")
)

_LAPACK: Final = re.compile(r"lapack_([sdcz])(\w+)_ffi$")


def _custom_call(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    target = op.attributes["call_target_name"].value
    if target in _ANNOTATIONS:
        return xs
    short = target.removeprefix("mhlo.").removeprefix("chlo.")
    handler = ELEMENTWISE.get(f"chlo.{short}") if short != target else None
    handler = SORTING["chlo.top_k"] if target == "mhlo.topk" else handler
    if handler is not None:
        return results_of(handler(reader, op, xs, scope))
    match = _LAPACK.match(target)
    function = _FUNCTIONS.get(match.group(2)) if match is not None else None
    if function is None:
        known = ", ".join(f"lapack_?{name}_ffi" for name in _FUNCTIONS)
        raise unknown(op, f"it calls the library function {target}; the supported functions are {known}")
    return results_of(function(op, *arrays(xs)))


def _option(op: Any, name: str) -> str:
    """Return an option of a call, a letter of LAPACK."""
    return chr(int(op.attributes["mhlo.backend_config"][name].value))


def _no_failure(op: Any, which: int) -> Any:
    """Return the status of a successful call; tenferro raises errors instead."""
    spec = out_spec(op, which)
    return catalog.broadcast_in_dim(tensor(np.zeros((), spec.dtype)), shape=spec.shape, dims=())


def _potrf(op: Any, x: Any) -> Any:
    return cholesky(x, _option(op, "uplo") == "L"), _no_failure(op, 1)


def _getrf(op: Any, x: Any) -> Any:
    lu, pivots = tr.linalg.lu_factor(x)
    return lu, catalog.add(catalog.convert(pivots, dtype=out_spec(op, 1).dtype), 1), _no_failure(op, 2)


def _trsm(op: Any, a: Any, b: Any) -> Any:
    return solve_triangular(
        a,
        b,
        left=_option(op, "side") == "L",
        lower=_option(op, "uplo") == "L",
        unit=_option(op, "diag") == "U",
        trans=_option(op, "trans_x"),
    )


def _eigh(op: Any, x: Any) -> Any:
    found = tr.linalg.eigh(x, UPLO=_option(op, "uplo"))
    return found.eigenvectors, found.eigenvalues, _no_failure(op, 2)


def _gesdd(op: Any, x: Any) -> Any:
    mode = _option(op, "mode")
    if mode == "N":
        values = tr.linalg.svdvals(x)
        empty = [
            catalog.broadcast_in_dim(tensor(np.zeros((), x.spec.dtype)), shape=out_spec(op, i).shape, dims=())
            for i in (2, 3)
        ]
        return x, values, *empty, _no_failure(op, 4)
    u, s, vh = tr.linalg.svd(x, full_matrices=mode == "A")
    return x, catalog.convert(s, dtype=real_of(x.spec.dtype)), u, vh, _no_failure(op, 4)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "potrf": _potrf, "getrf": _getrf, "trsm": _trsm, "syevd": _eigh, "heevd": _eigh, "gesdd": _gesdd,
}  # fmt: skip

LIBRARIES: Final[dict[str, Handler]] = {"stablehlo.custom_call": _custom_call}
"""Calls of functions outside the module."""
