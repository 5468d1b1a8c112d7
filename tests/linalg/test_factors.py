"""Factorisations and least squares: values of NumPy and SciPy, derivatives by differences, typed refusals."""

import numpy as np
import pytest
import scipy.linalg as sl

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import (
    DTYPES,
    adjoint,
    assert_derivatives,
    assert_gradient,
    gradient,
    inner,
    numbers,
    unitary,
    with_values,
)
from tenferro_ad import grad
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import Spec, tensor
from tenferro_tensor import functions as fn
from tenferro_tensor_core import NumericalError, ShapeError, TenferroError

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 0), (2, 0, 0)]
KINDS = ["float64", "complex128"]
REGULAR = [(4, 4), (5, 3), (3, 5), (2, 4, 3)]


def close(x, y, dtype):
    tol = 2e-4 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-9
    np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)


def spd(x):
    return x @ x.conj().swapaxes(-1, -2) + np.eye(x.shape[-1], dtype=x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_has_the_values_of_scipy(shape, dtype):
    x = numbers(1, shape, dtype)
    p, lower, upper = la.lu(x)
    close(p @ lower @ upper, x, dtype)
    if 0 not in shape:
        for found, wanted in zip((p, lower, upper), sl.lu(x)):
            close(found, wanted, dtype)
    rows, upper = la.lu(x, permute_l=True)
    close(rows @ upper, x, dtype)
    if len(shape) == 2 and 0 not in shape:
        for found, wanted in zip(la.lu(x, p_indices=True), sl.lu(x, p_indices=True)):
            close(found, wanted, dtype)
        for found, wanted in zip(la.lu_factor(x), sl.lu_factor(x)):
            close(found, wanted, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve_takes_transposes_vectors_and_stacks(dtype, trans):
    a, b = numbers(2, (2, 3, 3), dtype), numbers(3, (3, 2), dtype)
    turned = (a, a.swapaxes(-1, -2), a.conj().swapaxes(-1, -2))[trans]
    factors = la.lu_factor(a)
    close(la.lu_solve(factors, b, trans), np.linalg.solve(turned, b), dtype)
    close(la.lu_solve(factors, b[:, 0], trans), np.linalg.solve(turned, b[:, :1])[..., 0], dtype)
    one = la.lu_factor(a[0])
    close(la.lu_solve(one, np.stack([b, 2 * b]), trans), np.linalg.solve(turned[0], np.stack([b, 2 * b])), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_ldl_has_the_values_of_scipy(dtype, lower):
    x = numbers(4, (5, 5), dtype)
    h = x + x.conj().T
    found = la.ldl(np.stack([h, 2 * h]), lower)
    for part, wanted in zip(found, sl.ldl(h, lower)):
        close(part[0], wanted, dtype)
    symmetric = x + x.T
    rows, d, _ = la.ldl(symmetric, lower, hermitian=False)
    close(rows @ d @ rows.mT, symmetric, dtype)
    assert la.ldl(np.zeros((2, 0, 0), dtype)).d.shape == (2, 0, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("rank", [2, 3])
def test_lstsq_has_the_values_of_numpy(shape, dtype, rank):
    s = np.zeros(min(shape))
    s[:rank] = np.arange(1, rank + 1)
    x, b = with_values(shape, s, dtype, seed=3), numbers(5, (shape[0], 2), dtype)
    found, wanted = la.lstsq(x, b, rcond=1e-4), np.linalg.lstsq(x, b, rcond=1e-4)
    close(found.x, wanted[0], dtype)
    assert int(found.rank) == wanted[2] == rank
    close(found.s, wanted[3], dtype)
    close(found.residuals, (np.abs(b - x @ wanted[0]) ** 2).sum(axis=0), dtype)
    stack = la.lstsq(np.stack([x, 2 * x]), b[:, 0], rcond=np.float32(1e-4))
    close(stack.x[1], wanted[0][:, 0] / 2, dtype)
    assert (stack.residuals.shape, stack.rank.shape) == ((2, 1), (2,))


def inverse(x):
    return la.pinv(x, rtol=1e-3)


def solution(x, b):
    return la.lstsq(x, b, rcond=1e-3).x


PROGRAMS = tr.compile(inverse), tr.compile(solution)
"""Shared by the cases: the first one of a shape and a dtype runs step by step, and then as machine code."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(14, 9), (9, 14), (12, 12)])
@pytest.mark.parametrize("smallest", [0.5, 3e-3, 1.5e-3, 0.7e-3, 0.0])
def test_inverses_of_larger_matrices_do_not_depend_on_how_full_rank_is_proved(shape, dtype, smallest):
    s = np.linspace(1, 2, min(shape))
    s[-1] = 2 * smallest
    x, b = with_values(shape, s, dtype, seed=4), numbers(6, (shape[0], 2), dtype)
    stack = np.stack([x, 3 * x])
    wanted, scale = np.linalg.pinv(x, rcond=1e-3), smallest or 1

    for _ in range(3):
        for f, g in ((inverse, solution), PROGRAMS):
            close(f(x) * scale, wanted * scale, dtype)
            close(f(stack)[1] * scale, wanted / 3 * scale, dtype)
            close(g(x, b) * scale, wanted @ b * scale, dtype)
        wait()
    assert int(la.lstsq(x, b, rcond=1e-3).rank) == min(shape) - (smallest < 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(12, 10), (10, 12)])
def test_programs_that_solve_least_squares_have_derivatives(shape, dtype):
    x, b = with_values(shape, np.linspace(1, 2, 10), dtype, seed=4), numbers(6, (shape[0], 2), dtype)

    def loss(x, b):
        y = la.lstsq(x, b).x
        return tr.sum(tr.real(y * tr.conj(y)))

    program = tr.compile(loss)
    program(x, b)
    for found, wanted in zip(grad(program, (0, 1))(x, b), grad(loss, (0, 1))(x, b), strict=True):
        close(found, wanted, dtype)
    singular = with_values(shape, np.array([1.0] * 9 + [0.0]), dtype, seed=4)
    with pytest.raises(la.RankError):
        grad(program)(singular, b)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 0)])
def test_lstsq_of_empty_matrices_is_zero(shape):
    found = la.lstsq(np.ones(shape), np.ones((shape[-2], 2)))
    assert found.x.shape == (*shape[:-2], shape[-1], 2)
    assert not found.x.numpy().any()
    assert not found.rank.numpy().any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_polar_and_pivoted_qr_have_the_values_of_scipy(shape, dtype):
    x = numbers(6, shape, dtype)
    for side in ("right", "left"):
        for found, wanted in zip(la.polar(x, side), sl.polar(x, side)):
            close(found, wanted, dtype)
    for found, wanted in zip(la.rank_revealing_qr(x), sl.qr(x, mode="economic", pivoting=True)):
        close(found, wanted, dtype)
    if shape[0] >= shape[1]:
        packed, tau = sl.qr(x, mode="raw")[0]
        close(la.householder_product(packed, tau), sl.qr(x, mode="economic")[0], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_subspaces_have_the_projectors_of_scipy(dtype):
    for shape, values in (((5, 3), (2, 1, 0)), ((3, 5), (2, 1, 1)), ((3, 3), (1, 1, 0)), ((3, 3), (0, 0, 0))):
        x = with_values(shape, values, dtype, seed=2)
        for ours, theirs in ((la.orth, sl.orth), (la.null_space, sl.null_space)):
            q, wanted = ours(x, 1e-4).numpy(), theirs(x, 1e-4)
            assert q.shape == wanted.shape
            close(q @ q.conj().T, wanted @ wanted.conj().T, dtype)
    a, b = numbers(7, (6, 2), dtype), numbers(8, (6, 3), dtype)
    b[:, 0] = a[:, 0] + np.asarray(1e-3, dtype) * numbers(9, (6,), dtype)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    close(la.subspace_angles(a, b), sl.subspace_angles(a.astype(wide), b.astype(wide)), dtype)
    close(la.subspace_angles(b, a), la.subspace_angles(a, b), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_factors_solve(dtype):
    a, b = spd(numbers(1, (2, 3, 3), dtype)), numbers(2, (3, 2), dtype)
    for lower in (True, False):
        close(la.cho_solve(la.cho_factor(a, lower), b), np.linalg.solve(a, b), dtype)
        factor = la.cholesky(a, upper=not lower)
        close(la.cholesky_solve(factor, b, upper=not lower), np.linalg.solve(a, b), dtype)
        close(la.cholesky_inverse(factor, upper=not lower), np.linalg.inv(a), dtype)


def test_a_factor_is_the_lower_or_the_upper_triangle():
    a = spd(numbers(1, (3, 3)))
    for lower in (True, False):
        wanted = sl.cho_factor(a, lower)[0]
        np.testing.assert_allclose(la.cho_factor(a, lower).c, np.tril(wanted) if lower else np.triu(wanted))


def losses(shape, dtype):
    """Real functions of a matrix of full rank."""
    m, n = shape[-2:]
    k, batch = min(m, n), shape[:-2]
    b, c = numbers(11, (*batch, m, k), dtype), numbers(12, (*batch, k, n), dtype)
    d, right = numbers(13, (*batch, n, 2), dtype), numbers(14, (m, 2), dtype)

    def least_squares(x):
        found = la.lstsq(x, right)
        return inner(found.x, d) + fn.sum(found.residuals) + fn.sum(found.s**2)

    return {
        "lu": lambda x: inner(la.lu(x)[1] ** 2, b) + inner(la.lu(x)[2], c),
        "lu_factor": lambda x: inner(la.lu_factor(x).lu ** 2, numbers(15, shape, dtype)),
        "lstsq": least_squares,
        "polar": lambda x: inner(la.polar(x).u, numbers(15, shape, dtype)) + inner(la.polar(x).p @ d, d),
        "pivoted": lambda x: inner(fn.sin(la.rank_revealing_qr(x * 3.0 ** -np.arange(n)).R ** 2), c),
    }


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", REGULAR)
@pytest.mark.parametrize("name", losses((3, 3), "float64"))
def test_derivatives(name, shape, dtype):
    assert_derivatives(losses(shape, dtype)[name], numbers(16, shape, dtype), numbers(17, shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_by_right_sides_and_of_square_matrices(dtype):
    x, v = numbers(16, (2, 3, 3), dtype), numbers(17, (2, 3, 3), dtype)
    b, c, w = numbers(18, (3, 2), dtype), numbers(19, (2, 3, 2), dtype), numbers(20, (3, 2), dtype)
    for trans in (0, 1, 2):
        assert_derivatives(lambda y, t=trans: inner(la.lu_solve(la.lu_factor(y), b, t), c), x, v)
    assert_derivatives(lambda y: inner(la.lstsq(x, y).x ** 2, c), b, w)
    for lower in (True, False):
        for hermitian in (True, False):

            def both(y, lower=lower, hermitian=hermitian):
                rows, d, _ = la.ldl(y, lower, hermitian)
                return inner(rows, x) + inner(d, v)

            assert_derivatives(both, x, v)
    assert_derivatives(lambda y: inner(la.householder_product(y, fn.sin(y[..., 0, :2])), v), x, v)
    assert_derivatives(lambda y: inner(la.cho_solve(la.cho_factor(y @ adjoint(y) + np.eye(3)), b), c), x, v)


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_subspaces(dtype):
    def projector(q):
        return q @ adjoint(q)

    x, v, c = numbers(21, (5, 3), dtype), numbers(22, (5, 3), dtype), numbers(23, (5, 5), dtype)
    assert_derivatives(lambda y: inner(projector(la.orth(y)), c), x, v)
    assert_derivatives(lambda y: inner(projector(la.null_space(adjoint(y))), c), x, v)
    other, weights = numbers(24, (5, 2), dtype), np.asarray([1.0, 2.0])
    assert_derivatives(lambda y: fn.sum(fn.sin(la.subspace_angles(other, y)) * weights), x, v)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (5, 4), (4, 5)])
def test_subspaces_below_full_rank_have_the_derivative_at_constant_rank(shape, dtype):
    left, right = numbers(27, (shape[0], 2), dtype), numbers(28, (2, shape[1]), dtype)
    c, d = numbers(23, shape[:1] * 2, dtype), numbers(24, shape[1:] * 2, dtype)

    def f(y):
        q, z = la.orth(y @ right, 1e-6), la.null_space(y @ right * y[:1, :1], 1e-6)
        return inner(q @ adjoint(q), c) + inner(z @ adjoint(z), d)

    assert_derivatives(f, left, numbers(25, left.shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("values", [(2, 2, 1), (1, 1, 1), (3, 1 + 1e-10, 1)])
def test_equal_singular_values_do_not_hinder_polar_factors(values, dtype):
    x, w = with_values((4, 3), values, dtype, seed=3), numbers(25, (4, 3), dtype)
    assert_derivatives(lambda y: inner(la.polar(y).u, w), x, numbers(26, (4, 3), dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (4, 4)])
def test_lstsq_below_full_rank_has_the_derivative_at_constant_rank(shape, dtype):
    left, right = numbers(27, (shape[0], 2), dtype), numbers(28, (2, shape[1]), dtype)
    b, w = numbers(29, (shape[0], 2), dtype), numbers(30, (shape[1], 2), dtype)
    assert_derivatives(lambda y: inner(la.lstsq(y @ right, b, rcond=1e-8).x, w), left, numbers(31, left.shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_a_last_pivot_that_vanishes_is_no_obstacle(dtype):
    x = np.asarray([[1.0, 2.0], [2.0, 4.0]], dtype)
    b, c = numbers(32, (2, 2), dtype), numbers(33, (2, 2), dtype)
    assert_gradient(lambda y: inner(la.lu(y)[1], b) + inner(la.lu(y)[2], c), x, numbers(34, (2, 2), dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_what_has_no_derivative_is_refused(dtype):
    w = numbers(35, (3, 3), dtype)
    deficient = with_values((3, 3), (2, 1, 0), dtype, seed=5)
    cases = [
        (lambda x: inner(la.polar(x).u, w), deficient, "polar: matrix .1,. of the stack does not have full rank"),
        (lambda x: inner(la.lstsq(x, w).x, w), deficient, "lstsq: .* of matrix .1,. of the stack counts as zero"),
        (lambda x: inner(la.lu(x)[1], w), np.ones((3, 3), dtype), "lu: pivot 1 of matrix .1,. of the stack is exactly"),
        (lambda x: inner(la.ldl(x).lu, w), np.ones((3, 3), dtype), "ldl: pivot 1 of matrix .1,. of the stack"),
    ]
    for f, bad, text in cases:
        x = np.stack([unitary(3, 3, dtype) * 2 + np.eye(3), bad])
        with pytest.raises(la.RankError, match=text):
            grad(f)(tensor(x))
    with pytest.raises(la.RankError, match="S.2. .* lies within a factor of 10 of the cut"):
        grad(lambda x: inner(la.lstsq(x, w, rcond=1e-3).x, w))(tensor(with_values((3, 3), (1, 1, 2e-3), dtype, 5)))
    with pytest.raises(la.RankError, match="subspace_angles: column 1 depends"):
        la.subspace_angles(np.ones((3, 2), dtype), w[:, :1])
    for f in (la.orth, la.null_space):
        with pytest.raises(la.RankError, match=rf"{f.__name__}: .* pass rcond= for the derivative at constant rank"):
            gradient(lambda x, f=f: inner(f(x), w[:, : f(x).shape[1]]), deficient)
        half, rows = with_values((4, 4), (2, 1, 0, 0), dtype, 1), numbers(36, (4, 2), dtype)
        with pytest.raises(la.GaugeError, match=rf"{f.__name__}: the loss depends on the choice of columns"):
            gradient(lambda x, f=f, rows=rows: inner(f(x, 1e-3), rows), half)


def test_bad_operands_are_named():
    bad = np.ones((2, 3, 3))
    bad[1, 0, 2] = np.nan
    for f in (la.lu, la.ldl, la.polar, la.rank_revealing_qr):
        with pytest.raises(NumericalError, match=rf"{f.__name__}: the operand contains nan at index \(1, "):
            f(bad)
    with pytest.raises(NumericalError, match=r"matrix \(1,\) of the stack is singular"):
        la.lu_solve(la.lu_factor(np.stack([np.eye(2), np.ones((2, 2))])), np.ones(2))
    with pytest.raises(ShapeError, match="right sides of other length"):
        la.lstsq(np.ones((3, 2)), np.ones(2))
    with pytest.raises(TenferroError, match="ranks from 1 to 2"):
        la.orth(np.stack([np.eye(2), np.ones((2, 2))]))


def test_open_sizes():
    n, m = tr.dim("n"), tr.dim("m")
    spec = Spec((n, m), np.dtype("float64"))

    def f(x):
        q = la.orth(x, 0.2)
        return tr.sum(la.polar(x).p), q @ q.mT, la.lstsq(x, x[:, 0]).rank

    program = tr.trace(f, spec, examples={"n": 5, "m": 3})
    for x in (numbers(1, (4, 3)), with_values((6, 3), (2, 1, 0), seed=1)):
        for found, wanted in zip(program.run(x), f(tensor(x)), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)
