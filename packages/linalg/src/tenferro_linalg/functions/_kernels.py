"""Kernels of terms of analytic functions: stacks with one leading axis, converted to a common dtype."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from tenferro_linalg.functions._call import MatrixCall
from tenferro_linalg.functions._chains import Chain
from tenferro_linalg.functions._exponential import exponential
from tenferro_linalg.functions._roots import logarithm, square_root
from tenferro_linalg.functions._sign import sign
from tenferro_runtime.extension import NumericalError, library
from tenferro_tensor.device_runtimes import current_checks

FUNCTIONS: dict[str, Callable[[MatrixCall, Chain], Chain]] = {
    "exp": lambda call, chain: exponential(call.la, chain),
    "log": logarithm,
    "sqrt": square_root,
    "sign": sign,
}

ROUTINES = {("exp", 0): "exp", ("exp", 1): "exp_term"}
"""Routines for small matrices, by function and order."""

BLOCKS_MAX_COUNT, BLOCKS_MAX_SIZE = 6, 64
"""Most and largest block matrices (in rows) of a term whose exponentials by SciPy are cheaper than chains of blocks."""


def kernel(la: Any, what: str, dtype: Any, function: str, order: int) -> Callable[..., Any]:
    """Kernel of the term of one function; `what` names it in errors."""
    of_chain = FUNCTIONS[function]
    expm = library("scipy.linalg").expm if function == "exp" and la.xp is np else None
    routine = la.routine(ROUTINES[function, order]) if (function, order) in ROUTINES else None

    def run(x: Any, *factors: Any) -> Any:
        if routine is not None and (found := routine(x, *factors, 0)) is not None:
            return found
        if expm is not None and x.ndim == 2 and not factors and x.size:
            return _single(expm, la, what, x)
        x = la.finite(what, x)
        if (checks := current_checks()) is not None:
            checks.settle()  # before the host decides by the values
        n = x.shape[-1]
        if not x.size:
            return la.xp.zeros(x.shape, dtype)
        stacks = [e.astype(dtype, copy=False).reshape(-1, n, n) for e in (x, *factors)]
        with np.errstate(all="ignore"):
            blocks = len(stacks[0]) <= BLOCKS_MAX_COUNT and (order + 1) * n <= BLOCKS_MAX_SIZE
            if expm is not None and (blocks or not order):
                out = _block_exponential(expm, *stacks)
            else:
                call = MatrixCall(la, what, x.shape[:-2], np.dtype(dtype))
                out = of_chain(call, Chain.bidiagonal(stacks[0], stacks[1:])).corner
        return _without_overflow(la, what, out.reshape(x.shape))

    return run


def _single(expm: Callable[[Any], Any], la: Any, what: str, x: Any) -> Any:
    """One exponential; all entries are tested only if their sum is not finite."""
    with np.errstate(all="ignore"):
        if not isfinite(abs(np.add.reduce(x, axis=None))):
            la.finite(what, x)
        out = expm(x)
        total = abs(np.add.reduce(out, axis=None))
    return out if isfinite(total) else _without_overflow(la, what, out)


def _block_exponential(expm: Callable[[Any], Any], x: Any, *factors: Any) -> Any:
    """The corner of the exponential of the block matrix, which is linear in its factors, scaled to the size of x."""
    if not factors:
        return expm(x)
    count, n, order = len(x), x.shape[-1], len(factors)
    whole = np.zeros((count, (order + 1) * n, (order + 1) * n), x.dtype)
    size, scale = _largest(x), np.ones((count, 1, 1), x.real.dtype)
    for k in range(order + 1):
        whole[:, k * n : k * n + n, k * n : k * n + n] = x
    for k, e in enumerate(factors):
        ratio = _largest(e) / size
        whole[:, k * n : k * n + n, k * n + n : k * n + 2 * n] = e / ratio
        scale = scale * ratio
    return expm(whole)[:, :n, order * n :] * scale


def _largest(x: Any) -> Any:
    """Largest moduli of stacks of matrices; 1 for zero matrices."""
    size = np.abs(x).max(axis=(-2, -1), keepdims=True)
    return np.where(size > 0, size, size.dtype.type(1))


def _without_overflow(la: Any, what: str, out: Any) -> Any:
    good = la.xp.isfinite(out)
    if not bool(good.all()):
        index = tuple(np.argwhere(~la.local(good))[0].tolist())[:-2]
        where = f"matrix {index} of the stack" if index else "the matrix"
        raise NumericalError(
            f"{what}: the result for {where} overflows; subtract a multiple of the identity, or rescale the matrix",
            index=index,
        )
    return out
