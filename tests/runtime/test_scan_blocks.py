"""`scan(unroll=...)`: all steps written out, or so many in each round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.control_flow.primitives import scan as primitive
from tenferro_runtime.extension import check_program
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")


def loss(x, xs, unroll, reverse=False):
    (c, count), rows = tr.scan(
        lambda c, v: ((c[0] * 0.9 + tr.sin(v) @ v, c[1] + 1), {"c": c[0], "v": v * 2}),
        (x, 0), xs, unroll=unroll, reverse=reverse,
    )  # fmt: skip
    return tr.sum(c) + count + tr.sum(rows["c"] * tr.arange(rows["c"].shape[0])) + tr.sum(rows["v"] ** 2)


def loops(program):
    return [eq.op.params for eq in program.equations if eq.op.primitive is primitive]


@given(n=st.integers(0, 13), unroll=st.sampled_from([False, True, 1, 2, 3, 5, 20]), reverse=st.booleans())
def test_blocks_are_the_loop(n, unroll, reverse):
    x, xs = tensor(0.3), tensor(np.random.default_rng(n).normal(size=(n, 2)))
    want = loss(x, xs, False, reverse)
    traced = tr.trace(lambda x, xs: loss(x, xs, unroll, reverse), x, xs)
    np.testing.assert_allclose(check_program(traced).run(x, xs)[0].numpy(), want.numpy(), rtol=1e-12)
    if unroll is True:
        expected = []
    elif unroll in (False, 1):
        expected = [n]
    else:
        expected = [] if n <= unroll else [n // unroll] + [n % unroll] * (n % unroll > 0)
    assert sorted(p["length"] for p in loops(traced)) == sorted(expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_open_lengths_and_gradients(reverse):
    def gradient(xs):
        return grad(lambda xs: loss(tensor(0.3), xs, 4, reverse))(xs)

    compiled = tr.compile(gradient)
    for n in (9, 8, 3, 17, 4):
        xs = tensor(np.random.default_rng(n).normal(size=(n, 2)))
        np.testing.assert_allclose(compiled(xs).numpy(), gradient(xs).numpy(), rtol=1e-10)
    program = tr.trace(lambda xs: loss(tensor(0.3), xs, 4, reverse), Spec((tr.dim("n"), 2), F8), examples={"n": 9})
    assert sorted(str(p["length"]) for p in loops(program)) == ["-4*(n//4) + n", "n//4"]


def test_a_loop_over_captured_values_is_recorded_in_blocks():
    program = tr.trace(lambda w: tr.scan(lambda c, _: (c * w, None), 1.0, None, 9, unroll=4)[0], tensor(2.0))
    assert [p["length"] for p in loops(program)] == [2, 1]
    assert float(program.run(tensor(2.0))[0]) == 512.0


@pytest.mark.parametrize("unroll", [0, -1, 2.0, "all", None])
def test_what_unroll_may_be(unroll):
    with pytest.raises(
        ArgumentError, match=r"all steps \(unroll=True\) or a positive number of them in each iteration"
    ):
        tr.scan(lambda c, v: (c + v, None), 0.0, tensor(np.ones(3)), unroll=unroll)


def test_a_traced_number_that_starts_an_unrolled_loop_becomes_an_array() -> None:
    f = tr.compile(lambda x: tr.scan(lambda c, y: (c * 0.5 + y, None), x, tr.asarray([1.0, 2.0]), unroll=True)[0])
    assert f(0.8).item() == (0.8 * 0.5 + 1.0) * 0.5 + 2.0 and f(1).item() == 2.75
