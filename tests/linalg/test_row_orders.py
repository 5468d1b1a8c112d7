"""Rows of each matrix in another order, and back: values, derivatives, programs, lanes."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from linalg_checks import assert_derivatives, inner, numbers
from tenferro_linalg.factors._lu import rows_taken_
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import tensor

ORDERS = np.array([[2, 0, 3, 1], [1, 3, 2, 0], [0, 1, 2, 3]])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("stack", [False, True])
def test_rows(stack: bool, back: bool, dtype: str) -> None:
    x = numbers(0, (3, 4, 2), dtype)
    want = np.empty_like(x)
    for k, order in enumerate(ORDERS):
        places = np.argsort(order) if back else order
        want[k] = x[k][places]
    order, every = tensor(ORDERS), tensor(x)
    if not stack:
        x, want, order, every = x[1], want[1], tensor(ORDERS[1]), tensor(x[1])

    def f(x: Any, order: Any = order) -> Any:
        return rows_taken_(x, order, back=back)

    np.testing.assert_array_equal(f(every)._concrete(), want)
    compiled = tr.compile(f)
    for _ in range(2):  # step by step, and as one native function
        np.testing.assert_array_equal(compiled(every, order)._concrete(), want)
        wait()
    if stack:
        np.testing.assert_array_equal(tr.vmap(f)(every, order)._concrete(), want)
    b = numbers(1, x.shape, dtype)
    assert_derivatives(lambda x: inner(f(x), b), x, numbers(2, x.shape, dtype))
