"""The sign of chains by Newton's iteration, ``X <- (X / c + c X^-1) / 2``, scaled by norms (Higham 2008, section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg.functions._call import MatrixCall
from tenferro_linalg.functions._chains import Chain
from tenferro_runtime.extension import NumericalError

MAX_STEPS = 60
"""Maximum number of steps, after which an eigenvalue counts as imaginary."""


def sign(call: MatrixCall, chain: Chain) -> Chain:
    """Signs of stacks (b, n, n)."""
    la, xp = call.la, call.la.xp
    identity = xp.eye(chain.diagonal.shape[-1], dtype=chain.diagonal.dtype)
    eps = float(np.finfo(chain.diagonal.dtype).eps)
    x = chain * _along(la, chain, 1 / _size(la, chain.diagonal))
    close = steps = 0
    while steps < MAX_STEPS:
        inverse = _inverse(call, x, identity)
        change = _size(la, x.diagonal - inverse.diagonal)
        scale = np.ones(len(change))
        far = change > 0.02 * _size(la, x.diagonal)
        ratio = _size(la, inverse.diagonal) / _size(la, x.diagonal)
        scale[far] = np.sqrt(ratio[far])
        x, steps = x * _along(la, x, scale / 2) + inverse * _along(la, x, 0.5 / scale), steps + 1
        # Blocks above the diagonal converge a few steps after it.
        close = close + 1 if not far.any() and (change <= eps**0.5 * _size(la, x.diagonal)).all() else 0
        if close > 1 + chain.order:
            return x
    k = int(np.flatnonzero(~(change <= eps**0.5 * _size(la, x.diagonal)))[0])
    raise imaginary(call, k)


def imaginary(call: MatrixCall, k: int) -> NumericalError:
    """The error for a matrix without a sign."""
    return NumericalError(
        f"{call.what}: {call.where(k)} has an eigenvalue on the imaginary axis, up to rounding, and no sign; "
        "shift it by a multiple of the identity",
        index=call.place(k),
    )


def _size(la: Any, x: Any) -> Any:
    return la.local(la.xp.abs(x).max(axis=(-2, -1))).astype(np.float64)


def _along(la: Any, x: Chain, numbers: Any) -> Any:
    """Broadcast one number for each matrix of a stack."""
    return la.xp.asarray(numbers.astype(x.diagonal.real.dtype)[:, None, None])


def _inverse(call: MatrixCall, x: Chain, identity: Any) -> Chain:
    try:
        y = call.la.inv(x.diagonal, call.what)
    except NumericalError as cause:
        raise imaginary(call, cause.payload["index"][0]) from cause
    return x.solved(Chain(call.la.xp.broadcast_to(identity, y.shape), {}, x.order), lambda right: y @ right)
