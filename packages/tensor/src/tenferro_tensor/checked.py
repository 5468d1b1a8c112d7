"""The checked mode: ``TENFERRO_CHECKED=1`` makes compiled programs show what they must not do, and slower."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

__all__ = ["CHECKED_VARIABLE", "POISON", "is_checked", "poison"]


def __dir__() -> list[str]:
    return __all__.copy()


CHECKED_VARIABLE: Final = "TENFERRO_CHECKED"
"""Environment variable that turns the checks on, for programs that are prepared afterwards."""

POISON: Final = 0x5EAD
"""Fills memory without defined elements whose dtype has no NaN: this number modulo the range of the dtype, or true."""


def is_checked() -> bool:
    """Whether programs that are prepared now check themselves.

    Returns:
        The answer.
    """
    return os.environ.get(CHECKED_VARIABLE, "") == "1"


def poison(dtype: np.dtype[Any]) -> np.generic:
    """The number that fills memory without defined elements, conspicuous in any result: NaN if there is one.

    Args:
        dtype: dtype of the elements.

    Returns:
        A scalar of that dtype.
    """
    return dtype.type(np.nan) if dtype.kind in "fc" else np.array(POISON).astype(dtype)[()]  # type: ignore[return-value]
