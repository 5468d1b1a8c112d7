"""Recurrences of core primitives that are cheaper than those of their derivative rules.

A recurrence is a generator function of the operands' `Coefficients` (a Python number is its own coefficient 0) and the
metadata; it yields the coefficients of the output in order, ``None`` for zero. In formulas ``x_k`` is
``x^(k)(0) / k!``. Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tenferro_ad.power_series.rules import circular, exponential, product, root
from tenferro_tensor import Primitive

TABLES: Final = (product, exponential, root, circular)
"""The modules with a table ``RULES``."""

RULES: Final[dict[Primitive, Callable[..., Iterator[Any]]]] = {p: r for table in TABLES for p, r in table.RULES.items()}
