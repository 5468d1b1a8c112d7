"""Sparse matrices against SciPy: values, derivatives by entries, batches, programs, solvers, and errors."""

import numpy as np
import pytest
import scipy.sparse as sp

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad
from tenferro_runtime.extension import ArgumentError, NumericalError, ShapeError

RNG = np.random.default_rng(7)


def random(m, n, dtype="float64"):
    found = sp.random_array((m, n), density=0.4, rng=RNG)
    if np.issubdtype(dtype, np.complexfloating):
        found = found + 1j * sp.random_array((m, n), density=0.4, rng=RNG)
    return sp.csr_array(found.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_and_sums(dtype):
    """With vectors and matrices, from both sides, transposed; sums, and what keeps the places."""
    m = random(7, 5, dtype)
    a, x, y = tr.linalg.sparse_array(m), RNG.normal(size=(5, 3)).astype(dtype), RNG.normal(size=(2, 7)).astype(dtype)
    tolerance = {"rtol": 100 * np.finfo(dtype).eps, "atol": 10 * np.finfo(dtype).eps}
    for found, expected in (
        (a @ x, m @ x), (a @ x[:, 0], m @ x[:, 0]), (y @ a, y @ m), (tr.asarray(y[0]) @ a, y[0] @ m),
        (a.T @ y.T, m.T @ y.T), (a.mH @ y[0], m.conj().T @ y[0]), (a.todense(), m.todense()), (a.sum(), m.sum()),
        (a.sum(0), m.sum(0)), (a.sum(1), m.sum(1)), (a.diagonal(), m.diagonal()),
        ((2 * a - a.T.T).todense(), m.todense()), ((a / 2 + a).todense(), 1.5 * m.todense()),
        ((a * (x @ x[:, :3].T + 1)[:1]).todense(), m.todense() * (x @ x[:, :3].T + 1)[:1]),
    ):  # fmt: skip
        assert found.dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, **tolerance)
    other = random(7, 5, dtype)
    np.testing.assert_allclose((a + tr.linalg.sparse_array(other)).todense(), (m + other).todense(), **tolerance)
    assert (a.to_scipy() != m).nnz == 0 and a.nnz == m.nnz


def test_places():
    """Entries in any order, at equal places, in compressed rows; rows without entries and matrices without any."""
    a = tr.linalg.coo_array(([1.0, 2.0, 3.0, 4.0], ([2, 0, 2, 0], [1, 1, 1, 0])), (3, 2))
    assert np.array_equal(a.todense(), [[4, 2], [0, 0], [0, 4]])
    b = tr.linalg.csr_array(([4.0, 2.0, 4.0], [0, 1, 1], [0, 2, 2, 3]), (3, 2))
    assert b.structure == a.structure and hash(b.structure) == hash(a.structure)
    none = tr.linalg.coo_array((np.zeros(0), (np.zeros(0, int), np.zeros(0, int))), (3, 2))
    assert np.array_equal(none @ np.ones(2), np.zeros(3)) and np.array_equal(none.T @ np.ones(3), np.zeros(2))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives(dtype):
    """By entries and by the other factor, to second order; the gradient of a sparse argument has its places."""
    a, x = tr.linalg.sparse_array(random(5, 4, dtype)), tr.asarray(RNG.normal(size=4).astype(dtype))
    check_grads(lambda d, x: tr.sum(tr.abs(a.with_data(d) @ x) ** 4), (a.data, x), order=2)
    slope = grad(lambda a: tr.sum(tr.abs(a @ x) ** 2))(a)
    dense = grad(lambda a: tr.sum(tr.abs(a @ x) ** 2))(a.todense())
    assert slope.structure == a.structure and np.allclose(slope.data, dense.numpy()[a.coords])
    rows, columns = a.coords

    def doubled(d):
        twice = tr.linalg.coo_array((tr.concat([d, d * d]), (np.r_[rows, rows], np.r_[columns, columns])), a.shape)
        return tr.sum(tr.abs(twice.todense()) ** 2)

    check_grads(doubled, (a.data,), order=1)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_direct_solution(dtype):
    """By SuperLU, with the derivative of the equation; vectors and matrices."""
    m = sp.csr_array(random(6, 6, dtype) + 3 * sp.eye_array(6))
    a, b = tr.linalg.sparse_array(m), tr.asarray(RNG.normal(size=(6, 2)).astype(dtype))
    np.testing.assert_allclose(m @ tr.linalg.spsolve(m, b).numpy(), b, atol=1e-12)
    check_grads(lambda d, b: tr.sum(tr.abs(tr.linalg.spsolve(a.with_data(d), b[:, 0])) ** 3), (a.data, b), order=2)


def test_batches_and_programs():
    """Lanes of entries, of the other factor, and of both; a program for each structure."""
    a, xs = tr.linalg.sparse_array(random(5, 4) + sp.eye_array(5, 4)), RNG.normal(size=(3, 4))
    data = np.stack([a.data.numpy(), 2 * a.data.numpy(), -a.data.numpy()])
    dense = np.stack([a.with_data(d).todense().numpy() for d in data])
    assert np.allclose(tr.vmap(lambda x: a @ x)(xs), xs @ dense[0].T)
    assert np.allclose(tr.vmap(lambda d: a.with_data(d) @ xs[0])(data), dense @ xs[0])
    assert np.allclose(tr.vmap(lambda d, x: a.with_data(d) @ x)(data, xs), np.einsum("bij,bj->bi", dense, xs))
    for x in (xs, RNG.normal(size=(3, 4, 2)), RNG.normal(size=(0, 4, 2))):  # by entries: products at their positions
        slope = grad(lambda d, x: tr.sum(tr.sin(a.with_data(d) @ x)))
        for lanes, d in ((0, data[: len(x)]), (None, data[0])):
            found = tr.vmap(slope, (lanes, 0))(d, x).numpy()
            each = [slope(tr.asarray(d if lanes is None else d[i]), x[i]).numpy() for i in range(len(x))]
            assert np.allclose(found, np.reshape(each, found.shape)) and found.shape == (len(x), a.nnz)
    f = tr.compile(lambda a, x: tr.sum(tr.sin(a @ x)))
    assert np.isclose(f(a, xs[0]).item(), np.sin(dense[0] @ xs[0]).sum())
    assert np.isclose(f(a.T, np.ones(5)).item(), np.sin(dense[0].T @ np.ones(5)).sum())
    assert np.allclose(grad(f)(a, xs[0]).data, grad(lambda a, x: tr.sum(tr.sin(a @ x)))(a, xs[0]).data)


def test_solvers_take_them():
    """`cg` and `eigsh` on a sparse matrix of this library and of SciPy, with derivatives by its entries."""
    n = 40
    m = sp.diags_array([-np.ones(n - 1), np.linspace(2, 3, n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    a, b = tr.linalg.sparse_array(m), RNG.normal(size=n)
    np.testing.assert_allclose(m @ tr.linalg.cg(m, b, rtol=1e-12).x.numpy(), b, atol=1e-10)
    expected = grad(lambda a: tr.sum(tr.linalg.spsolve(a, b) ** 2))(a)
    found = grad(lambda a: tr.sum(tr.linalg.cg(a, b, rtol=1e-13).x ** 2))(a)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-8, atol=1e-9)
    w = tr.linalg.eigsh(m, 2, which="SA").eigenvalues
    np.testing.assert_allclose(w, np.linalg.eigvalsh(m.todense())[:2], atol=1e-11)


def test_errors():
    """Singular matrices, entries that are not finite, places outside, extents that do not fit."""
    a = tr.linalg.sparse_array(sp.csr_array(np.array([[1.0, 1.0], [1.0, 1.0]])))
    with pytest.raises(NumericalError, match="spsolve: the matrix is singular"):
        tr.linalg.spsolve(a, np.ones(2))
    with pytest.raises(NumericalError, match="not finite"):
        tr.linalg.spsolve(a, np.array([np.nan, 1.0]))
    with pytest.raises(ShapeError, match="has no column 2"):
        tr.linalg.coo_array(([1.0], ([0], [2])), (2, 2))
    with pytest.raises(ShapeError, match="cannot be multiplied"):
        a @ np.ones(3)
    with pytest.raises(ShapeError, match="2 places for"):
        tr.linalg.coo_array(([1.0], ([0, 1], [0, 1])), (2, 2))
    with pytest.raises(ArgumentError, match="integer vectors of equal length"):
        tr.linalg.coo_array(([1.0], ([0.5], [0])), (2, 2))
    with pytest.raises(ShapeError, match="takes a square matrix"):
        tr.linalg.spsolve(tr.linalg.coo_array(([1.0], ([0], [0])), (2, 3)), np.ones(2))
    with pytest.raises(ArgumentError, match="takes a sparse matrix of SciPy"):
        tr.linalg.sparse_array(np.eye(2))
