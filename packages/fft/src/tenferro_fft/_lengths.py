"""Lengths with fast transforms: products of small primes."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from functools import cache
from typing import Any, Final

from tenferro_tensor_core import ArgumentError, TenferroError, as_size
from tenferro_tensor_core.tracebacks import boundary

REAL_PRIMES: Final = (2, 3, 5)
COMPLEX_PRIMES: Final = (2, 3, 5, 7, 11)
"""Primes with dedicated passes in SciPy's transforms."""


@boundary
def next_fast_len(target: int, /, *, real: bool = False) -> int:
    """The smallest number of points, at least `target`, whose transform is fast: a product of small primes.

    Args:
        target: a positive number of points.
        real: for real transforms, which are fast for products of 2, 3 and 5; complex ones are also fast for 7 and 11.

    Returns:
        The number of points.

    Raises:
        ArgumentError: `target` is not a positive integer.

    See also:
        prev_fast_len: the largest one, at most `target`.

    >>> next_fast_len(1021), next_fast_len(1021, real=True)
    (1024, 1024)
    """
    n = _positive("next_fast_len", target)
    found = _smooth(n.bit_length(), real)
    return found[bisect_left(found, n)]


@boundary
def prev_fast_len(target: int, /, *, real: bool = False) -> int:
    """The largest number of points, at most `target`, whose transform is fast: a product of small primes.

    Args:
        target: a positive number of points.
        real: for real transforms, as in `next_fast_len`.

    Returns:
        The number of points.

    Raises:
        ArgumentError: `target` is not a positive integer.

    >>> prev_fast_len(1021), prev_fast_len(1021, real=True)
    (1008, 1000)
    """
    n = _positive("prev_fast_len", target)
    found = _smooth(n.bit_length(), real)
    return found[bisect_right(found, n) - 1]


def _positive(what: str, target: Any) -> int:
    try:
        n = operator.index(as_size(target))
    except TypeError as cause:
        if isinstance(cause, TenferroError):
            raise
        n = 0
    if not 0 < n < 1 << 62:
        raise ArgumentError(f"{what} takes a positive number of points below 2**62, got {target!r}", target=target)
    return n


@cache
def _smooth(bits: int, real: bool) -> list[int]:
    """The products of the primes up to ``2**bits``, from half the smallest number of that many bits."""
    low, high = (1 << bits - 1) // 2, 1 << bits
    found = [1]
    for prime in (REAL_PRIMES if real else COMPLEX_PRIMES)[1:]:
        more = found
        while more:
            more = [m * prime for m in more if m * prime <= high]
            found = found + more
    out = []
    for odd in found:
        while odd < low:
            odd *= 2
        while odd <= high:
            out.append(odd)
            odd *= 2
    return sorted(out)
