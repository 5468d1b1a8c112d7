"""The product with an absorbing zero: the plain product, but for exact zeros beside infinities and NaN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_tensor import catalog, tensor

SPECIAL = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e308, 5e-324]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_exact_zeros_absorb_and_nothing_else_does(dtype):
    with np.errstate(all="ignore"):
        x, y = (np.array(a, dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
        plain = x * y
    absorbed = (x == 0) & ~np.isfinite(y)
    got = catalog.absorbing_mul(tensor(x), tensor(y)).numpy()
    assert got.dtype == x.dtype
    assert (got[absorbed] == 0).all()
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(got[~absorbed], plain[~absorbed])


@given(
    st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=4),
    st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=4),
)
def test_shapes_broadcast_and_numbers_take_part(xs, ys):
    x, y = np.array(xs)[:, None], np.array(ys)
    whole = catalog.absorbing_mul(tensor(x), tensor(y)).numpy()
    for i, a in enumerate(xs):
        row = catalog.absorbing_mul(a, tensor(y)).numpy()
        np.testing.assert_array_equal(row, whole[i])
        for j, b in enumerate(ys):
            np.testing.assert_array_equal(catalog.absorbing_mul(tensor(np.float64(a)), b).numpy(), whole[i, j])


def test_a_sum_that_overflows_is_no_reason_for_another_result():
    x = np.full(4, 1e308)
    np.testing.assert_array_equal(catalog.absorbing_mul(tensor(x), 1.5).numpy(), x * 1.5)


def test_integers_multiply():
    assert catalog.absorbing_mul(tensor([0, 2]), 3).tolist() == [0, 6]
