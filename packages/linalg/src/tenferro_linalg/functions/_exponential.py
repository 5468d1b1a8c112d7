"""The exponential by scaling and squaring with Padé approximants, on chains of any order.

For values, degrees and limits are those of Higham (SIAM J. Matrix Anal. Appl. 26, 2005), with norms of powers instead
of powers of the norm where these are much smaller (Al-Mohy and Higham, same journal 31, 2009); for derivatives, those
of Al-Mohy and Higham (same journal 30, 2009), which bound the backward error of the first derivative.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial
from typing import Any, Final

import numpy as np

from tenferro_linalg.functions._chains import Chain

VALUES: Final = {
    "f": ((3, 0.4258730016922831), (5, 1.880152677804762), (7, 3.925724783138660)),
    "d": (
        (3, 1.495585217958292e-2),
        (5, 2.539398330063230e-1),
        (7, 9.504178996162932e-1),
        (9, 2.097847961257068),
        (13, 4.25),
    ),
}
"""Degrees, each with the norm up to which it is exact to rounding, for single and double precision."""

DERIVATIVES: Final = {
    "f": ((3, 0.3), (5, 1.5), (7, 3.3)),
    "d": ((3, 1.08e-2), (5, 2.00e-1), (7, 7.83e-1), (9, 1.78), (13, 4.0)),
}
"""The same for derivatives."""


@lru_cache(maxsize=8)
def coefficients(m: int) -> tuple[float, ...]:
    """Coefficients of the Padé approximant of degree m, the last one 1."""
    return tuple(float(factorial(2 * m - k) // (factorial(k) * factorial(m - k))) for k in range(m + 1))


def exponential(la: Any, chain: Chain) -> Chain:
    """The exponential of stacks (b, n, n)."""
    xp, x = la.xp, chain.diagonal
    precision = "f" if x.dtype.char in "fF" else "d"
    table = (DERIVATIVES if chain.order else VALUES)[precision]
    norms = _norms(la, x)
    largest = float(norms.max())
    for m, limit in table[:-1]:
        if largest <= limit:
            return _quotient(la, chain, m)
    m, limit = table[-1]
    squarings = _squarings(norms, limit)
    if int(squarings.max()):
        squarings = _fewer(la, x, squarings, m, limit)
    most = int(squarings.max())
    if not most:
        return _quotient(la, chain, m)
    scale = np.ldexp(np.ones(len(squarings)), -squarings).astype(x.real.dtype)[:, None, None]
    return _squared(la, _quotient(la, chain * xp.asarray(scale), m), squarings, most)


def _norms(la: Any, x: Any) -> Any:
    """1-norms, in main memory."""
    return la.local(la.xp.abs(x).sum(axis=-2).max(axis=-1)).astype(np.float64)


def _squarings(norms: Any, limit: float) -> Any:
    return np.ceil(np.log2(np.maximum(norms / limit, 1.0))).astype(np.int64)


def _fewer(la: Any, x: Any, squarings: Any, m: int, limit: float) -> Any:
    """Squarings from norms of the powers of the matrices, where these grow more slowly than powers of the norm."""
    scaled = x * la.xp.asarray(np.ldexp(np.ones(len(squarings)), -squarings).astype(x.real.dtype)[:, None, None])
    second = scaled @ scaled
    fourth = second @ second
    growth = np.maximum(_norms(la, fourth) ** 0.25, _norms(la, second @ fourth) ** (1 / 6))
    fewer = np.minimum(squarings, np.maximum(squarings + np.ceil(np.log2(np.maximum(growth, 1e-300) / limit)), 0))
    fewer = fewer.astype(np.int64)
    for k in np.flatnonzero(fewer < squarings):
        fewer[k] = min(squarings[k], fewer[k] + _more(la, x[k], int(fewer[k]), m))
    return fewer


def _more(la: Any, x: Any, squarings: int, m: int) -> int:
    """Squarings to add so that the first term of the backward error is below rounding."""
    xp = la.xp
    moduli = xp.abs(x) * float(np.ldexp(1.0, -squarings))
    norm = float(moduli.sum(axis=0).max())
    row = xp.ones(x.shape[-1], moduli.dtype)
    for _ in range(2 * m + 1):
        row = row @ moduli
    top = float(row.max())
    if not norm or not top:
        return 0
    c = float(factorial(m)) ** 2 / (float(factorial(2 * m)) * float(factorial(2 * m + 1)))
    unit = float(np.finfo(x.dtype).eps) / 2
    return max(int(np.ceil(np.log2(max(c * top / norm / unit, 1e-300)) / (2 * m))), 0)


def _quotient(la: Any, x: Chain, m: int) -> Chain:
    """The Padé approximant of degree m: ``(V - U)^-1 (V + U)`` with the odd terms U and the even terms V."""
    b = coefficients(m)
    identity = la.xp.eye(x.diagonal.shape[-1], dtype=x.diagonal.dtype)
    x2 = x @ x
    if m <= 9:
        odd, even, power = x2 * b[3], x2 * b[2], x2
        for k in range(4, m + 1, 2):
            power = power @ x2
            odd, even = odd + power * b[k + 1], even + power * b[k]
    else:
        x4 = x2 @ x2
        x6 = x4 @ x2
        odd = x6 @ (x6 * b[13] + x4 * b[11] + x2 * b[9]) + (x6 * b[7] + x4 * b[5] + x2 * b[3])
        even = x6 @ (x6 * b[12] + x4 * b[10] + x2 * b[8]) + (x6 * b[6] + x4 * b[4] + x2 * b[2])
    odd, even = x @ odd.plus(identity * b[1]), even.plus(identity * b[0])
    down = even - odd
    lu, pivots = la.lu_factor(down.diagonal)
    return down.solved(even + odd, lambda right: la.lu_solve(down.diagonal, lu, pivots, right, False))


def _squared(la: Any, x: Chain, squarings: Any, most: int) -> Chain:
    """Square every matrix of the stack as often as it was halved."""
    for done in range(most):
        active = np.flatnonzero(squarings > done)
        if len(active) == len(squarings):
            x = x @ x
            continue
        index = la.xp.asarray(active)
        part = x.map(lambda block, index=index: block[index])  # type: ignore[misc]
        part = part @ part
        x.diagonal[index] = part.diagonal
        for place, block in part.above.items():
            if place not in x.above:
                x.above[place] = la.xp.zeros_like(x.diagonal)
            x.above[place][index] = block
    return x
