"""Kernels of terms of analytic functions: stacks of one leading axis, brought to a common dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_linalg.functions._call import MatrixCall
from tenferro_linalg.functions._chains import Chain
from tenferro_linalg.functions._exponential import exponential
from tenferro_linalg.functions._roots import logarithm, square_root
from tenferro_linalg.functions._sign import sign
from tenferro_runtime.extension import NumericalError, library

FUNCTIONS: dict[str, Callable[[MatrixCall, Chain], Chain]] = {
    "exp": lambda call, chain: exponential(call.la, chain),
    "log": logarithm,
    "sqrt": square_root,
    "sign": sign,
}

SINGLE_MIN_SIZE = 12
"""Size from which stacks are computed one matrix at a time, by SciPy where it has the function."""


def kernel(la: Any, what: str, dtype: Any, function: str, order: int) -> Callable[..., Any]:
    """The kernel of the term of one function; `what` names it in errors."""
    of_chain = FUNCTIONS[function]
    expm = library("scipy.linalg").expm if function == "exp" and not order and la.xp is np else None

    def run(x: Any, *factors: Any) -> Any:
        la.finite(what, x)
        n = x.shape[-1]
        if not x.size:
            return la.xp.zeros(x.shape, dtype)
        if expm is not None and (x.ndim == 2 or n >= SINGLE_MIN_SIZE):
            with np.errstate(all="ignore"):
                out = expm(x)
            return _without_overflow(la, what, out)
        stacks = [e.astype(dtype, copy=False).reshape(-1, n, n) for e in (x, *factors)]
        with np.errstate(all="ignore"):
            call = MatrixCall(la, what, x.shape[:-2], np.dtype(dtype))
            out = of_chain(call, Chain.bidiagonal(stacks[0], stacks[1:])).corner.reshape(x.shape)
        return _without_overflow(la, what, out)

    return run


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
