"""Common divisors and multiples of integers, by Euclid's algorithm."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_runtime.control_flow import while_loop
from tenferro_tensor import Array, functions
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor_core import DTypeError

__all__ = ["gcd", "lcm"]


def __dir__() -> list[str]:
    return __all__.copy()


def _form(function: Any) -> Callable[..., Any]:
    """A direct form, for arrays of integers and Python's integers."""

    def form(x1: Any, x2: Any, /) -> Any:
        for x in (x1, x2):
            if x.__class__ is not int and x.dtype.kind not in "iu":
                return None
        return np.asarray(function(x1, x2))

    return form


@direct(_form(np.gcd), ANY_SIZE)
def gcd(x1: Any, x2: Any, /) -> Array:
    """Greatest common divisor of the magnitudes, element by element; ``gcd(0, x2)`` is the magnitude of `x2`.

    Args:
        x1: integer array.
        x2: integer array.

    Returns:
        Integers of the broadcast shape and the promoted dtype.

    Raises:
        DTypeError: an operand is not an integer.

    >>> tr.gcd(tr.asarray([12, -8, 0]), 20)
    Tensor([ 4,  4, 20])
    """
    return _divisor(*_integers("gcd", x1, x2))


@direct(_form(np.lcm), ANY_SIZE)
def lcm(x1: Any, x2: Any, /) -> Array:
    """Least common multiple of the magnitudes, element by element; 0 where an operand is 0.

    Args:
        x1: integer array.
        x2: integer array.

    Returns:
        Integers of the broadcast shape and the promoted dtype.

    Raises:
        DTypeError: an operand is not an integer.

    >>> tr.lcm(tr.asarray([4, -6, 0]), 10)
    Tensor([20, 30,  0])
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _divisor(x, y)
    return functions.abs(functions.floor_divide(x, functions.where(divisor == 0, 1, divisor)) * y)


def _divisor(x: Any, y: Any) -> Any:
    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = state
        done = b == 0
        rest = functions.where(done, 0, functions.remainder(a, functions.where(done, 1, b)))
        return functions.where(done, a, b), rest

    a, _ = while_loop(lambda state: functions.any(state[1] != 0), step, (functions.abs(x), functions.abs(y)))
    return a


def _integers(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    dtype = functions.result_type(*[x if isinstance(x, int) else functions.asarray(x) for x in (x1, x2)])
    if dtype.kind not in "iu":
        raise DTypeError(f"{name} takes integers, got operands that meet in {dtype.name}; convert them with cast")
    x, y = functions.broadcast_arrays(*[functions.asarray(x, dtype=dtype) for x in (x1, x2)])
    return x, y
