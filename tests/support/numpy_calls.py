"""Calls of functions that NumPy has as well: the first word of a title is the name of the function."""

from __future__ import annotations

from typing import Final

from numpy_call import Call
from numpy_choosing_calls import choosing, editing, sets
from numpy_moving_calls import joining, places
from numpy_signal_calls import polynomials, signals

CALLS: Final = {**joining(), **places(), **signals(), **polynomials(), **choosing(), **editing(), **sets()}


def of_arrays() -> dict[str, Call]:
    """The first call of each function of arrays."""
    found: dict[str, Call] = {}
    for title, each in CALLS.items():
        name = title.partition(" ")[0]
        if name not in NO_ARRAYS:
            found.setdefault(name, each)
    return found


def of_data() -> list[str]:
    """Functions whose results have sizes that depend on data."""
    return [name for name, each in of_arrays().items() if not each.traced]


NO_ARRAYS: Final = frozenset(
    "bartlett blackman diag_indices hamming hanning indices kaiser mask_indices tri tril_indices triu_indices".split()
)
"""Functions that take shapes and numbers only."""
