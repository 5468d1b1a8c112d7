"""Values: every function against numpy.linalg in four dtypes, for every shape class, on strided and empty input."""

import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import DTYPES, numbers
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError

SHAPES = [(4, 4), (5, 3), (3, 5), (1, 1), (2, 3, 4, 4), (2, 5, 3)]
SQUARE = [(4, 4), (1, 1), (2, 3, 3, 3)]
EMPTY = [(0, 3), (3, 0), (0, 0), (0, 3, 2), (2, 0, 3)]


def close(got, expected, dtype):
    got = got._concrete()
    assert got.dtype == np.asarray(expected).dtype
    assert got.shape == np.shape(expected)
    tol = 100 * np.finfo(np.dtype(dtype)).eps
    np.testing.assert_allclose(got, expected, rtol=tol, atol=tol * max(1.0, np.abs(expected).max(initial=0)))


def layouts(x):
    """The same numbers in row-major, column-major, and reversed and strided memory."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return [x, np.asfortranarray(x), x[..., ::-1].copy()[..., ::-1], wide[..., ::2]]


def product(u, s, vh):
    return (u * s[..., None, :]) @ vh


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd_reconstructs_and_has_numpys_values(shape, dtype):
    x = numbers(1, shape, dtype)
    k = min(shape[-2:])
    for a in layouts(x):
        u, s, vh = la.svd(tensor(a), full_matrices=False)
        close(s, np.linalg.svd(x, compute_uv=False), dtype)
        close(la.svdvals(tensor(a)), np.linalg.svd(x, compute_uv=False), dtype)
        np.testing.assert_allclose(product(*(p._concrete() for p in (u, s, vh))), x, atol=1e-5)
        assert u.shape == (*shape[:-1], k)
    full = [p._concrete() for p in la.svd(tensor(x), full_matrices=True)]
    assert full[0].shape == (*shape[:-1], shape[-2]) and full[2].shape == (*shape[:-2], shape[-1], shape[-1])
    gram = full[0] @ full[0].conj().swapaxes(-1, -2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(shape[-2]), gram.shape), atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_is_numpys(shape, dtype, mode):
    x = numbers(2, shape, dtype)
    for a in layouts(x):
        q, r = la.qr(tensor(a), mode=mode)
        expected = np.linalg.qr(x, mode=mode)
        close(q, expected[0], dtype)
        close(r, expected[1], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_square_functions_are_numpys(shape, dtype):
    x = numbers(3, shape, dtype) + 2 * np.eye(shape[-1], dtype=dtype)
    h = x @ x.conj().swapaxes(-1, -2)
    b = numbers(4, (*shape[:-1], 2), dtype)
    for a, p in zip(layouts(x), layouts(h)):
        close(la.eigvalsh(tensor(p)), np.linalg.eigvalsh(h), dtype)
        w, v = (part._concrete() for part in la.eigh(tensor(p)))
        np.testing.assert_allclose((v * w[..., None, :]) @ v.conj().swapaxes(-1, -2), h, atol=2e-4)
        close(la.cholesky(tensor(p)), np.linalg.cholesky(h), dtype)
        close(la.cholesky(tensor(p), upper=True), np.linalg.cholesky(h).conj().swapaxes(-1, -2), dtype)
        close(la.det(tensor(a)), np.linalg.det(x), dtype)
        for got, expected in zip(la.slogdet(tensor(a)), np.linalg.slogdet(x)):
            close(got, expected, dtype)
        close(la.inv(tensor(a)), np.linalg.inv(x), dtype)
        close(la.solve(tensor(a), tensor(b)), np.linalg.solve(x, b), dtype)
    close(la.matrix_power(tensor(x), 3), np.linalg.matrix_power(x, 3), dtype)
    close(la.matrix_power(tensor(x), 0), np.linalg.matrix_power(x, 0), dtype)
    close(la.matrix_power(tensor(x), -2), np.linalg.matrix_power(x, -2), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("stack", [(), (2,)])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular_solves_and_reads_one_triangle(dtype, n, stack, lower, trans, unit):
    a = numbers(5, (*stack, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)
    t = np.tril(a) if lower else np.triu(a)
    if unit:
        t = t - t * np.eye(n) + np.eye(n)
    op = {"N": t, "T": t.swapaxes(-1, -2), "C": t.conj().swapaxes(-1, -2)}[trans]
    b = numbers(6, (*stack, n, 2), dtype)
    a[..., *np.triu_indices(n, 1)] = np.nan if lower else a[..., *np.triu_indices(n, 1)]
    got = la.solve_triangular(tensor(a), tensor(b), lower=lower, trans=trans, unit_diagonal=unit)
    np.testing.assert_allclose(op.astype(dtype) @ got._concrete(), b, atol=2e-4)


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("stack", [(), (2, 3)])
def test_factored_solution_of_recorded_values_is_the_plain_one(n, stack):
    from tenferro_ad import variable

    a, b = numbers(7, (*stack, n, n), "complex128"), numbers(8, (*stack, n, 2), "complex128")
    close(la.solve(variable(tensor(a)), tensor(b)).detach(), np.linalg.solve(a, b), "complex64")


def test_solve_takes_vectors_and_broadcasts_stacks():
    a, b = numbers(9, (2, 3, 4, 4)), numbers(10, 4)
    expected = np.stack([np.linalg.solve(m, b) for m in a.reshape(6, 4, 4)]).reshape(2, 3, 4)
    close(la.solve(tensor(a), tensor(b)), expected, "float64")
    b = numbers(11, (3, 4, 5))
    close(la.solve(tensor(a), tensor(b)), np.linalg.solve(a, np.broadcast_to(b, (2, 3, 4, 5))), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_pinv_rank_and_norms_are_numpys(shape, dtype):
    x = numbers(12, shape, dtype)
    t = tensor(x)
    close(la.pinv(t), np.linalg.pinv(x), dtype)
    cuts = np.linspace(0.05, 0.6, int(np.prod(shape[:-2]))).reshape(shape[:-2]).astype(x.real.dtype)
    close(la.pinv(t, rtol=tensor(cuts)), np.linalg.pinv(x, rcond=cuts), dtype)
    np.testing.assert_array_equal(la.matrix_rank(t)._concrete(), np.linalg.matrix_rank(x))
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keepdims in (False, True):
            expected = np.linalg.norm(x, ord=order, axis=(-2, -1), keepdims=keepdims)
            close(la.matrix_norm(t, ord=order, keepdims=keepdims), expected, dtype)
    for order in (0, 1, 2, 3, 0.5, -1, -2.5, np.inf, -np.inf):
        for axis in (0, -1, (0, -1), None):
            for keepdims in (False, True):
                data, over = (x.reshape(-1), 0) if axis is None else (x, axis)
                if isinstance(over, tuple):
                    data, over = np.moveaxis(x, over, (0, 1)).reshape(-1, *x.shape[1:-1]), 0
                expected = np.linalg.norm(data, ord=order, axis=over)
                got = la.vector_norm(t, ord=order, axis=axis, keepdims=keepdims)
                axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
                kept = [1 if i in {a % x.ndim for a in axes} else d for i, d in enumerate(x.shape)]
                close(got, (np.asarray(expected).reshape(kept) if keepdims else expected).astype(got.dtype), dtype)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_neither_overflow_nor_vanish(scale):
    for order in (2, 3, 0.5, -2):
        expected = scale * np.linalg.norm(np.array([3.0, 4.0]), ord=order)
        assert float(la.vector_norm(tensor([3.0 * scale, 4.0 * scale]), ord=order)) == pytest.approx(expected)


def test_norms_of_special_vectors():
    assert float(la.vector_norm(tensor([0.0, 0.0]))) == 0.0
    assert float(la.vector_norm(tensor([1.0, np.inf]))) == np.inf
    assert np.isnan(float(la.vector_norm(tensor([1.0, np.nan]))))
    assert float(la.vector_norm(tensor([0.0, 1.0]), ord=-1)) == 0.0
    assert float(la.vector_norm(tensor(np.zeros(0)))) == 0.0


@pytest.mark.parametrize("shape", EMPTY)
def test_zero_extents_give_empty_results(shape):
    x = np.zeros(shape)
    for got, expected in zip(la.svd(tensor(x), full_matrices=False), np.linalg.svd(x, full_matrices=False)):
        assert got.shape == expected.shape
    for mode in ("reduced", "complete"):
        for got, expected in zip(la.qr(tensor(x), mode=mode), np.linalg.qr(x, mode=mode)):
            assert got.shape == expected.shape
    assert la.svdvals(tensor(x)).shape == np.linalg.svd(x, compute_uv=False).shape
    assert la.pinv(tensor(x)).shape == (*shape[:-2], shape[-1], shape[-2])
    assert not la.matrix_rank(tensor(x))._concrete().any()
    assert not la.matrix_norm(tensor(x))._concrete().any()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_square_functions_take_zero_extents(shape):
    x = tensor(np.zeros(shape))
    n = shape[-1]
    assert la.eigh(x).eigenvectors.shape == la.cholesky(x).shape == la.inv(x).shape == shape
    assert la.eigvalsh(x).shape == shape[:-1]
    np.testing.assert_array_equal(la.det(x)._concrete(), np.ones(shape[:-2]))
    np.testing.assert_array_equal(la.slogdet(x).logabsdet._concrete(), np.zeros(shape[:-2]))
    b = tensor(np.zeros((*shape[:-1], 2)))
    assert la.solve(x, b).shape == la.solve_triangular(x, b).shape == (*shape[:-2], n, 2)


def test_integers_become_float64_and_mixed_dtypes_are_promoted():
    x = [[2, 1], [1, 3]]
    assert la.svdvals(x).dtype == la.det(x).dtype == la.inv(x).dtype == np.float64
    assert la.solve(np.array(x, "float32"), np.array([1j, 2], "complex64")).dtype == np.complex64
    assert la.solve(np.array(x, "float32"), np.array([1.0, 2])).dtype == np.float64


def test_eigh_and_cholesky_take_the_hermitian_part():
    x = numbers(13, (4, 4), "complex128") + 4 * np.eye(4)
    h = (x + x.conj().T) / 2
    close(la.eigvalsh(tensor(x)), np.linalg.eigvalsh(h), "complex128")
    close(la.cholesky(tensor(x)), np.linalg.cholesky(h), "complex128")


def test_truncation_keeps_the_largest_triplets():
    x = numbers(14, (2, 5, 4))
    u, s, vh = (p._concrete() for p in la.svd_trunc(tensor(x), 2))
    ue, se, vhe = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(product(u, s, vh), product(ue[..., :2], se[..., :2], vhe[..., :2, :]), atol=1e-12)
    assert la.svd_trunc(tensor(x), 0).U.shape == (2, 5, 0)


def test_compositions_are_numpys():
    a, b = numbers(15, (4, 3)), numbers(16, (2, 4, 3))
    close(la.cross(tensor(a), tensor(b)), np.cross(a, b), "float64")
    at, bt = a.T.copy(), b.swapaxes(-1, -2).copy()
    close(la.cross(tensor(at), tensor(bt), axis=-2), np.cross(at, bt, axis=-2), "float64")
    rank1 = np.outer(numbers(17, 4), numbers(18, 5))
    assert int(la.matrix_rank(tensor(rank1))) == 1
    assert int(la.matrix_rank(tensor(np.diag([1.0, 1e-3, 1e-6])), rtol=1e-4)) == 2
    close(la.diagonal(tensor(rank1), offset=1), np.diagonal(rank1, 1), "float64")
    close(la.trace(tensor(a[:3])), np.trace(a[:3]), "float64")
    close(la.outer(tensor(a[0]), tensor(a[1])), np.outer(a[0], a[1]), "float64")
    close(la.vecdot(tensor(a), tensor(a)), (a * a).sum(-1), "float64")
    close(la.tensordot(tensor(a), tensor(b), axes=([1], [2])), np.tensordot(a, b, ([1], [2])), "float64")
    close(la.matmul(tensor(a), la.matrix_transpose(tensor(b))), a @ b.swapaxes(-1, -2), "float64")


def test_results_are_named():
    x = tensor(np.diag([2.0, 1.0]))
    assert la.svd(x, full_matrices=False)._fields == ("U", "S", "Vh")
    assert la.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert la.qr(x)._fields == ("Q", "R")
    assert la.slogdet(x)._fields == ("sign", "logabsdet")


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_scales_stay_finite(scale):
    x = numbers(19, (4, 4))
    np.testing.assert_allclose(
        la.svdvals(tensor(x * scale))._concrete(), scale * np.linalg.svd(x, compute_uv=False), rtol=1e-13
    )
    h = x + x.T
    np.testing.assert_allclose(la.eigvalsh(tensor(h * scale))._concrete(), scale * np.linalg.eigvalsh(h), rtol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 0), (-1, 1)])
def test_norm_has_numpys_arguments(axis):
    x = numbers(3, (2, 3, 4), np.float64)
    orders: list = [None, 1, -1, 2, np.inf] + (["fro", "nuc", -2] if isinstance(axis, tuple) else [0, 3])
    for order in orders if axis is not None else [None]:
        for keepdims in (False, True):
            expected = np.linalg.norm(x, order, axis, keepdims)
            close(la.norm(tensor(x), order, axis, keepdims), expected, np.float64)
    close(la.norm(tensor(x[0]), 1), np.linalg.norm(x[0], 1), np.float64)
    close(la.norm(tensor(x[0, 0]), 3), np.linalg.norm(x[0, 0], 3), np.float64)


def test_norm_refuses_what_numpy_refuses():
    with pytest.raises(ShapeError, match="name the axes"):
        la.norm(tensor(np.ones((2, 2, 2))), 2)
    with pytest.raises(ArgumentError, match="is a matrix norm, but one axis is given"):
        la.norm(tensor(np.ones((2, 2))), "fro", 0)
    with pytest.raises(AxisError, match=r"must be one axis \(vectors\) or two"):
        la.norm(tensor(np.ones((2, 2, 2))), None, (0, 1, 2))
