"""Recurrences of the core primitives that have a shorter one than their derivative rule gives.

A recurrence is a generator: of the operands' `Coefficients` (a Python number stands for itself as coefficient 0) and
the metadata, it makes the coefficients of the output, one after the other; ``None`` is zero. In formulas ``x_k`` is
``x^(k)(0) / k!``. The sources of all of them: Griewank and Walther, Evaluating Derivatives (2008), chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tenferro_ad.power_series.rules import circular, exponential, product, root
from tenferro_tensor import Primitive

TABLES: Final = (product, exponential, root, circular)
"""The modules with a table ``RULES``."""

RULES: Final[dict[Primitive, Callable[..., Iterator[Any]]]] = {p: r for table in TABLES for p, r in table.RULES.items()}
