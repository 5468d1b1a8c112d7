"""Outputs in the memory of inputs, loops over dead temporaries: where the law allows it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from native_kernels import FUNCTIONS, has_form
from tenferro_runtime.lowering import lower
from tenferro_runtime.passes import optimise
from tenferro_tensor import catalog, get_backend
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import LoopFunction, verify

pytestmark = pytest.mark.optimised

N = 6
CASES: dict[str, tuple[Callable[..., Any], bool]] = {
    "element by element": (lambda x, y: tr.tanh(x * y + 1.0), True),
    "two results": (lambda x, y: (x * y, x - y), True),
    "read before": (lambda x, y: tr.broadcast_to(tr.sum(x), (N, N)) + y, True),
    "transposed": (lambda x, y: x.mT + y, False),
    "reversed": (lambda x, y: tr.flip(x, axis=1) + y, False),
    "copied first": (lambda x, y: tr.concat([x[1:], x[:1]]) + y, True),
    "the element itself and another one": (lambda x, y: x + tr.flip(x, axis=0), False),
    "a product": (lambda x, y: x @ y, False),
    "a loop for each element": (lambda x, y: tr.fori_loop(0, 3, lambda i, z: tr.sin(z) + x, y), True),
    "one row": (lambda x, y: x.at[2].set(y[0]), True),
}


def function_of(f: Callable[..., Any], *donated: int) -> LoopFunction:
    x = tr.ones((N, N))
    return verify(lower(optimise(tr.trace(f, x, x)), donated))


@pytest.mark.parametrize("case", CASES)
def test_an_output_takes_the_memory_of_an_input_where_it_may(case: str) -> None:
    f, fits = CASES[case]
    plain = function_of(f)
    over = function_of(f, 0)
    assert (plain.inputs[0] in over.outputs) == fits
    x, y = np.random.default_rng(0).standard_normal((2, N, N))
    expected = interpret(plain, [x, y])
    for got, want in zip(interpret(over, [x, y]), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    if not has_form(catalog.exp, "float64"):
        return
    native, given = get_backend("cpu").whole(over), x.copy()
    assert native is not None
    found = native.run((), given, y)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    assert any(got is given for got in found) == fits


def test_both_inputs_are_given() -> None:
    over = function_of(lambda x, y: (x + y, x - y), 0, 1)
    assert over.outputs == over.inputs
    x, y = np.random.default_rng(1).standard_normal((2, N, N))
    np.testing.assert_array_equal(interpret(over, [x, y]), [x + y, x - y])


@FUNCTIONS
def test_memory_that_cannot_be_written_is_refused() -> None:
    native = get_backend("cpu").whole(function_of(CASES["element by element"][0], 0), bare=True)
    assert native is not None
    x = np.ones((N, N))
    x.flags.writeable = False
    with pytest.raises(ValueError, match="operand 0 is written over"):
        native.run((), x, np.ones((N, N)))


REUSED: dict[str, tuple[Callable[..., Any], int]] = {
    "an output over a temporary": (lambda x, y: tr.tanh(x @ y + 1.0), 0),
    "a row of temporaries": (lambda x, y: tr.tanh((tr.tanh(x @ y + 1.0) @ y) * 2.0) @ x, 1),
    "read again": (lambda x, y: tr.tanh((p := x @ y) + 1.0) @ p, 2),
    "read across": (lambda x, y: tr.tanh((x @ y) + tr.flip(x @ y, axis=0)) @ x, 2),
}
"""Functions, and how many temporaries are left."""


@pytest.mark.parametrize("case", REUSED)
def test_loops_write_over_temporaries_that_nobody_else_reads(case: str) -> None:
    f, count = REUSED[case]
    function = function_of(f)
    assert len(function.temporaries) == count
    x, y = np.random.default_rng(2).standard_normal((2, N, N))
    np.testing.assert_allclose(interpret(function, [x, y])[0], np.asarray(f(tr.asarray(x), tr.asarray(y))), rtol=1e-12)
