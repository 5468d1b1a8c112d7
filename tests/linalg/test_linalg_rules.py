"""Derivatives where everything is regular: against central differences, in both modes, to second order."""

import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import adjoint, assert_derivatives, gradient, inner, numbers, pushed, real
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor

KINDS = ["float64", "complex128"]
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4)]


def columns(s):
    return fn.expand_dims(s, axis=-2)


def dimensions(shape):
    return shape[-2], shape[-1], min(shape[-2:])


def svd_losses(shape, dtype):
    """Losses that do not depend on phases, of every output and of all together."""
    m, n, k = dimensions(shape)
    b, c, d = numbers(1, shape, dtype), numbers(2, (m, m), dtype), numbers(3, (n, n), dtype)

    def function(x):
        u, s, vh = la.svd(x, full_matrices=False)
        return inner(la.matmul(u * columns(fn.sin(s)), vh), b)

    def truncated(x):
        u, s, vh = la.svd_trunc(x, 2)
        return inner(la.matmul(u * columns(s), vh), b) + inner(la.matmul(u, adjoint(u)), c)

    def left(x):
        u = la.svd(x, full_matrices=False).U[..., :, :2]
        return inner(la.matmul(u, adjoint(u)), c)

    def right(x):
        v = la.svd(x, full_matrices=False).Vh[..., :1, :]
        return inner(la.matmul(adjoint(v), v), d)

    def completed(x):
        u, s, vh = la.svd(x, full_matrices=True)
        u2, v2 = u[..., :, k:], vh[..., k:, :]
        return inner(la.matmul(u2, adjoint(u2)), c) + inner(la.matmul(adjoint(v2), v2), d) + fn.sum(s**3)

    def moduli(x):
        u, s, _ = la.svd(x, full_matrices=False)
        return fn.sum(real(u * fn.conj(u)) * np.abs(numbers(4, u.shape))) + fn.sum(fn.exp(-s))

    return {
        "function": function,
        "truncated": truncated,
        "left": left,
        "right": right,
        "completed": completed,
        "moduli": moduli,
        "values": lambda x: fn.sum(la.svdvals(x) ** 3),
        "spectral": lambda x: fn.sum(la.matrix_norm(x, ord=2)),
        "nuclear": lambda x: fn.sum(la.matrix_norm(x, ord="nuc")),
    }


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", svd_losses((3, 3), "float64"))
def test_svd(name, shape, dtype):
    x, v = numbers(5, shape, dtype), numbers(6, shape, dtype)
    assert_derivatives(svd_losses(shape, dtype)[name], x, v)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
@pytest.mark.parametrize("name", ["function", "projector", "values", "phases"])
def test_eigh(name, shape, dtype):
    """The directions are not Hermitian: only the Hermitian part of the operand may count."""
    b = numbers(7, shape, dtype)

    def function(x):
        w, v = la.eigh(x)
        return inner(la.matmul(v * columns(fn.sin(w)), adjoint(v)), b)

    def projector(x):
        v = la.eigh(x).eigenvectors[..., :, 1:2]
        return inner(la.matmul(v, adjoint(v)), b)

    def phases(x):
        w, v = la.eigh(x)
        return fn.sum(real(v * fn.conj(v)) ** 2 * columns(w))

    losses = {"function": function, "projector": projector, "values": lambda x: fn.sum(la.eigvalsh(x) ** 3)}
    assert_derivatives({**losses, "phases": phases}[name], numbers(8, shape, dtype), numbers(9, shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("part", ["both", "Q", "R"])
def test_qr(shape, dtype, mode, part):
    m, n, k = dimensions(shape)
    bq, br, c = numbers(10, (m, k), dtype), numbers(11, (k, n), dtype), numbers(12, (m, m), dtype)

    def loss(x):
        q, r = la.qr(x, mode=mode)
        of_q = inner(q[..., :, :k], bq)
        if mode == "complete":
            of_q = of_q + inner(la.matmul(q[..., :, k:], adjoint(q[..., :, k:])), c)
        of_r = inner(fn.sin(r[..., :k, :]), br)
        return {"both": of_q + of_r, "Q": of_q, "R": of_r}[part]

    assert_derivatives(loss, numbers(13, shape, dtype), numbers(14, shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
@pytest.mark.parametrize(
    "name",
    [
        "cholesky",
        "upper",
        "inv",
        "det",
        "logdet",
        "phase",
        "solve a",
        "solve b",
        "power",
        "triangular a",
        "triangular b",
    ],
)
def test_square_functions(name, shape, dtype):
    b, fixed = numbers(15, shape, dtype), numbers(16, shape, dtype)
    right = tensor(numbers(17, (*shape[:-1], 2), dtype))
    gram = lambda x: la.matmul(x, adjoint(x))
    kept = tensor(fixed)
    losses = {
        "cholesky": lambda x: inner(la.cholesky(gram(x)), b),
        "upper": lambda x: inner(la.cholesky(gram(x), upper=True), b),
        "inv": lambda x: inner(la.inv(x), b),
        "det": lambda x: fn.sum(fn.sin(real(la.det(x)))),
        "logdet": lambda x: fn.sum(la.slogdet(x).logabsdet ** 2),
        "phase": lambda x: inner(la.slogdet(x).sign ** 2, numbers(18, shape[:-2], dtype)) + fn.sum(real(x) ** 2),
        "solve a": lambda x: fn.sum(fn.sin(real(la.solve(x, right)))),
        "solve b": lambda x: fn.sum(fn.sin(real(la.solve(tensor(fixed), x)))),
        "power": lambda x: inner(la.matrix_power(x, -3), b),
        "triangular a": lambda x: fn.sum(fn.sin(real(la.solve_triangular(x, right, lower=True, trans="T")))),
        "triangular b": lambda x: fn.sum(fn.sin(real(la.solve_triangular(kept, x, trans="C", unit_diagonal=True)))),
    }  # fmt: skip
    x = numbers(19, shape, dtype) + 2 * np.eye(shape[-1])
    assert_derivatives(losses[name], x, numbers(20, shape, dtype), rtol=1e-6)


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_triangular_solves_of_every_kind(n, lower, trans):
    a = numbers(21, (n, n), "complex128") / n + 2 * np.eye(n)
    right = tensor(numbers(22, (n, 2), "complex128"))
    loss = lambda x: fn.sum(fn.sin(real(la.solve_triangular(x, right, lower=lower, trans=trans))))
    assert_derivatives(loss, a, numbers(23, (n, n), "complex128"), rtol=1e-6)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pinv_at_full_rank(shape, dtype):
    b = numbers(24, (*shape[:-2], shape[-1], shape[-2]), dtype)
    assert_derivatives(lambda x: inner(la.pinv(x), b), numbers(25, shape, dtype), numbers(26, shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("order", [2, 3, 1.5, 0.5, -1, 1, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, -1, (0, 2)])
def test_vector_norms(order, axis, dtype):
    x = numbers(27, (2, 3, 4), dtype)
    x = x + np.sign(x.real) * 0.5
    loss = lambda y: fn.sum(la.vector_norm(y, ord=order, axis=axis) ** 2)
    assert_derivatives(loss, x, numbers(28, (2, 3, 4), dtype) / 10, rtol=1e-6)


@pytest.mark.parametrize("order", ["fro", 1, -1, np.inf, -np.inf, -2])
def test_other_matrix_norms(order):
    loss = lambda y: fn.sum(la.matrix_norm(y, ord=order) ** 2)
    assert_derivatives(loss, numbers(29, (2, 3, 4)), numbers(30, (2, 3, 4)) / 10, rtol=1e-6)


@pytest.mark.parametrize("order", [2, 3, 1.5, 1, np.inf])
def test_norms_have_subgradient_zero_at_zero(order):
    if order == np.inf:
        assert np.isfinite(gradient(lambda x: la.vector_norm(x, ord=order), np.zeros(3))).all()
        return
    np.testing.assert_array_equal(gradient(lambda x: la.vector_norm(x, ord=order), np.zeros(3)), np.zeros(3))
    assert pushed(lambda x: la.vector_norm(x, ord=order), np.zeros(3), np.ones(3)) == 0


def test_norm_with_a_zero_entry_is_differentiable():
    g = gradient(lambda x: la.vector_norm(x, ord=3), np.array([0.0, 2.0, -1.0]))
    np.testing.assert_allclose(g, np.array([0.0, 4.0, -1.0]) / 9 ** (2 / 3))


@pytest.mark.parametrize("name", ["svd", "eigh", "qr", "cholesky", "solve", "inv", "det", "pinv"])
def test_stacks_have_the_gradients_of_their_matrices(name):
    x = numbers(31, (2, 3, 4, 4), "complex128") + 3 * np.eye(4)
    b, right = numbers(32, (4, 4), "complex128"), tensor(numbers(33, (4, 2)))

    def of_svd(x):
        u, s, vh = la.svd(x, full_matrices=False)
        return inner(la.matmul(u * columns(s**2), vh), b)

    def of_eigh(x):
        w, v = la.eigh(x)
        return inner(la.matmul(v * columns(w**2), adjoint(v)), b)

    losses = {
        "svd": of_svd,
        "eigh": of_eigh,
        "qr": lambda x: inner(la.qr(x).Q, b),
        "cholesky": lambda x: inner(la.cholesky(la.matmul(x, adjoint(x))), b),
        "solve": lambda x: fn.sum(real(la.solve(x, right)) ** 2),
        "inv": lambda x: inner(la.inv(x), b),
        "det": lambda x: fn.sum(real(la.det(x))),
        "pinv": lambda x: inner(la.pinv(x), b),
    }
    f = losses[name]
    loop = np.stack([gradient(f, m) for m in x.reshape(6, 4, 4)]).reshape(x.shape)
    np.testing.assert_allclose(gradient(f, x), loop, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_gradients_keep_their_dtype(dtype):
    x = numbers(34, (4, 3), dtype)
    for f in (
        lambda y: la.vector_norm(
            la.matmul(la.svd(y, full_matrices=False).U, la.svd(y, full_matrices=False).Vh)[..., :2]
        ),
        lambda y: la.vector_norm(la.qr(y).R[..., :2]),
        lambda y: fn.sum(la.svdvals(y) ** 2),
        lambda y: la.vector_norm(la.pinv(y)),
    ):
        g = gradient(f, x)
        assert g.dtype == np.dtype(dtype)
        np.testing.assert_allclose(g, gradient(f, x.astype(np.result_type(dtype, "float64"))), rtol=2e-3, atol=2e-4)


def test_zero_extents_have_empty_gradients():
    for f in (lambda y: fn.sum(la.svdvals(y)), lambda y: fn.sum(la.qr(y).R), lambda y: fn.sum(la.pinv(y))):
        for shape in ((0, 3), (3, 0), (2, 0, 3)):
            assert gradient(f, np.zeros(shape)).shape == shape
    for f in (lambda y: fn.sum(la.inv(y)), lambda y: fn.sum(la.eigvalsh(y)), lambda y: fn.sum(la.det(y))):
        assert gradient(f, np.zeros((2, 0, 0))).shape == (2, 0, 0)
