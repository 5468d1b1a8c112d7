"""Values of Python scalars as keys of rendered code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

CODES: Final = 8
"""Number of values of Python scalars for which one rule is rendered anew."""


def literal_key(scalars: Iterable[Any]) -> tuple[Any, ...]:
    """A key that tells 0.0 from -0.0 and finds NaN again; classes of the scalars are not told apart.

    >>> literal_key([2.0, 0.0, -0.0, float("nan")])
    (2.0, '0.0', '-0.0', 'nan')
    """
    return tuple([v if v and v == v else str(v) for v in scalars])
