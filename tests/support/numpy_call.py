"""A call of a function that NumPy has as well, written once for both namespaces.

A call is a function of a namespace and arrays. Operands are shapes, or functions that make an array of a dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from array_oracles import array

Operand = tuple[int, ...] | Callable[[str], np.ndarray[Any, Any]]

NUMBERS: Final = ("float64", "int64", "complex128", "float32")
INEXACT: Final = ("float64", "complex128", "float32")
REALS: Final = ("float64", "int64", "float32")
FLOATS: Final = ("float64", "float32")
DOUBLE: Final = ("float64", "complex128")
EVERY: Final = (*NUMBERS, "bool")


class Call(NamedTuple):
    """A call, and which tests it takes part in.

    Attributes:
        f: a function of a namespace and arrays.
        operands: the arrays.
        dtypes: of the operands that are given by shapes.
        smooth: derivatives can be checked by differences, at these operands.
        traced: it can be compiled and batched.
    """

    f: Callable[..., Any]
    operands: tuple[Operand, ...]
    dtypes: tuple[str, ...]
    smooth: bool
    traced: bool

    def arrays(self, dtype: str) -> list[np.ndarray[Any, Any]]:
        """The operands in a dtype."""
        return [o(dtype) if callable(o) else array(o, dtype, seed) for seed, o in enumerate(self.operands)]


def call(
    f: Callable[..., Any],
    *operands: Operand,
    dtypes: tuple[str, ...] = NUMBERS,
    smooth: bool = True,
    traced: bool = True,
) -> Call:
    """A call that takes part in every test that is not excluded."""
    return Call(f, operands, dtypes, smooth and traced, traced)


def fixed(*values: Any) -> Callable[[str], np.ndarray[Any, Any]]:
    """An operand that does not depend on the dtype."""
    return lambda dtype: np.asarray(values)


def spread(*shape: int, low: float = 0.5, high: float = 4.0, seed: int = 0) -> Callable[[str], np.ndarray[Any, Any]]:
    """Positive distinct numbers in no order, away from kinks; whole ones for integers."""

    def make(dtype: str) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng(seed)
        count = int(np.prod(shape))
        if np.dtype(dtype).kind in "iu":
            return rng.permutation(count).astype(dtype).reshape(shape)
        real = rng.permutation(np.linspace(low, high, count))
        imag = 0.3j * rng.permutation(np.linspace(low, high, count)) if np.dtype(dtype).kind == "c" else 0.0
        return (real + imag).astype(dtype).reshape(shape)

    return make
