"""`dot_general` against the sum of products that defines it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_check import check, kernel_of, sample, spec_of
from structural_oracles import ORACLES
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DTYPES

NONE: Any = ((), ())


def checked(x: Any, y: Any, contract: Any, batch: Any = NONE) -> None:
    check(c.dot_general, ORACLES[c.dot_general], x, y, contract=contract, batch=batch)


@pytest.mark.parametrize("dtype", [dt.name for dt in DTYPES])
def test_every_dtype(dtype: str) -> None:
    """Products and sums of integers wrap, of booleans they are and, or."""
    rng = np.random.default_rng(0)
    a, b = sample(rng, dtype, (2, 3, 4), -9, 9), sample(rng, dtype, (4, 2, 3), -9, 9)
    checked(a[0], b[:, 0], ((1,), (0,)) if a[0].shape[1] == b.shape[0] else NONE)
    checked(a, b, ((1, 2), (2, 0)))
    checked(a, b, ((1,), (2,)), ((0, 2), (1, 0)))
    checked(a, b, NONE, ((0,), (1,)))
    checked(a[0, 0], b[:, 0, 0], ((0,), (0,)))
    checked(a[0], b[0, 0], ((0,), (0,)))
    checked(a[0, 0, 0], b[0, 0, 0], NONE)


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("right", [0, 1])
def test_matrix_products_need_no_copies(left: int, right: int) -> None:
    rng = np.random.default_rng(1)
    x, y = sample(rng, "float64", (3, 4) if left else (4, 3)), sample(rng, "float64", (5, 4) if right else (4, 5))
    checked(x, y, ((left,), (right,)))
    checked(x, y[:, 0] if not right else y[0], ((left,), (0,)))
    checked(x[0] if left else x[:, 0], y, ((0,), (right,)))


def test_zero_extents() -> None:
    """A sum of no products is zero."""
    rng = np.random.default_rng(2)
    empty = sample(rng, "float64", (3, 0))
    checked(empty, empty, ((1,), (1,)))
    checked(empty, empty, ((0,), (0,)))
    checked(empty, empty, NONE, ((0, 1), (0, 1)))
    checked(empty, empty, ((1,), (1,)), ((0,), (0,)))
    checked(empty[0], empty[0], ((0,), (0,)))


@given(seed=st.integers(0, 2**32 - 1))
def test_any_axes(seed: int) -> None:
    """Batch, contracted and free axes in any order on either side."""
    rng = np.random.default_rng(seed)
    nb, nk, nx, ny = (int(v) for v in rng.integers(0, 3, 4))
    shared = rng.integers(1, 4, nb + nk).tolist()
    x_shape, y_shape = shared + rng.integers(0, 4, nx).tolist(), shared + rng.integers(0, 4, ny).tolist()
    px, py = rng.permutation(len(x_shape)), rng.permutation(len(y_shape))
    x = sample(rng, "float64", tuple(x_shape[p] for p in px))
    y = sample(rng, "float64", tuple(y_shape[p] for p in py))
    at_x, at_y = (np.argsort(p).tolist() for p in (px, py))
    batch = tuple(at_x[:nb]), tuple(at_y[:nb])
    contract = tuple(at_x[nb : nb + nk]), tuple(at_y[nb : nb + nk])
    checked(x, y, contract, batch)


def test_larger_operands_agree_with_einsum() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(7, 40, 3, 30)), rng.normal(size=(30, 7, 20, 40))
    kernel, _ = kernel_of(
        c.dot_general, (spec_of(x), spec_of(y)), {"contract": ((1, 3), (3, 0)), "batch": ((0,), (1,))}
    )
    np.testing.assert_allclose(kernel(x, y), np.einsum("bkml,lbnk->bmn", x, y), rtol=1e-10)
