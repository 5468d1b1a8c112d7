"""Linear algebra by XLA: values and derivatives of the CPU backend, and its errors where a step fails."""

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from linalg_checks import total_of
from tenferro_ad import grad, hessian, jvp
from tenferro_linalg import DegenerateError, GaugeError
from tenferro_runtime.extension import NumericalError
from tenferro_xla import XlaExecutor, lower_to_stablehlo

XLA = XlaExecutor()
RNG = np.random.default_rng(12)


def draw(shape, dtype):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def agree(f, *arrays, tolerance=1e-9):
    values = [tr.asarray(a) for a in arrays]
    program = tr.trace(f, *values)
    for got, want in zip(XLA.run(program, *values), program.run(*values), strict=True):
        assert got.spec is want.spec
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=tolerance, atol=tolerance)


def adjoint(x):
    return tr.conj(tr.matrix_transpose(x))


def projector(x):
    return x @ adjoint(x)


SQUARE = {
    "factors": lambda a: (
        tl.cholesky(projector(a) + tr.eye(3)),
        tl.solve(a, a[..., :2]),
        tl.inv(a),
        tl.det(a),
        *tl.slogdet(a),
        tl.solve_triangular(a, a, lower=True, trans="C"),
    ),
    "spectra": lambda a: (
        tl.eigvalsh(a),
        tr.abs(tl.eigh(a).eigenvectors),
        tl.eigvals(a),
        tr.abs(tl.eig(a).eigenvectors),
        tl.spectral_function(a, tr.sin),
        *tl.qr(a),
    ),
}
TALL = {
    "triplets": lambda x: (
        tl.svdvals(x),
        *map(tr.abs, tl.svd(x, full_matrices=False)),
        projector(tl.svd(x).U[..., 2:]),
        tl.pinv(x),
        tl.vector_norm(x, ord=3),
        tl.matrix_norm(x, ord="nuc"),
    ),
    "frames": lambda x: (
        *tl.qr(x),
        *tl.qr(tr.matrix_transpose(x)),
        projector(tl.qr(x, mode="complete").Q[..., 2:]),
        *tl.svd_trunc(x, 1)[1:2],
    ),
}
GROUPS = {**{name: (f, (3, 3)) for name, f in SQUARE.items()}, **{name: (f, (4, 2)) for name, f in TALL.items()}}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_values_and_derivatives(dtype, name):
    f, shape = GROUPS[name]
    x, dx = draw((2, *shape), dtype), draw((2, *shape), dtype)
    total = total_of(f)
    if dtype == "float64":
        agree(lambda x: (*f(x), grad(total)(x)), x)
    else:
        agree(lambda x, dx: (*f(x), jvp(total, (x,), (dx,))[1]), x, dx)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_stacks_and_matrices_without_elements(shape):
    f = lambda x: (*SQUARE["factors"](x), tl.svdvals(x), *tl.qr(x), *tl.svd(x), *tl.eigh(x), tl.pinv(x), tl.eigvals(x))
    x = tr.zeros(shape)
    if 0 not in shape[1:]:
        agree(f, x)
    else:
        agree(lambda x: (tl.inv(x), tl.det(x), tl.svdvals(x), *tl.qr(x), *tl.eigh(x), tl.pinv(x), tl.cholesky(x)), x)


def test_single_precision():
    agree(lambda x: (tl.svdvals(x), tl.solve(x, x), tl.eigvals(x)), draw((2, 3, 3), "complex64"), tolerance=1e-3)


def test_bases_of_equal_values_follow_a_perturbation():
    q = np.linalg.qr(draw((4, 4), "float64"))[0]
    h, a = q @ np.diag([1.0, 1.0, 2.0, 3.0]) @ q.T, q @ np.diag([3.0, 3.0, 1.0, 0.0])
    f = lambda h, a, d: (jvp(lambda x: tl.eigh(x)[0], (h,), (d,)), jvp(lambda x: tl.svd(x)[1], (a,), (d,)))
    agree(f, h, a, draw((4, 4), "float64"))
    exact = lambda x: tr.sum(tl.spectral_function(x, tr.exp) * tr.reshape(tr.arange(16.0), (4, 4)))
    agree(hessian(exact), h, tolerance=1e-7)
    agree(hessian(tl.det), np.ones((3, 3)))


def test_exponentials_and_factors():
    x = draw((2, 3, 3), "float64")
    f = lambda x: (tl.expm(x), *tl.lu(x), tl.polar(x)[0], tl.subspace_angles(x[..., :1], x[..., 1:]))
    total = total_of(lambda x: (tl.expm(x), tl.lu(x)[1], tl.polar(x)[0]))
    agree(lambda x: (*f(x), grad(total)(x)), x, tolerance=1e-7)


SINGULAR = np.stack([np.eye(3), np.ones((3, 3))])
FAILURES = {
    "singular": (tl.inv, SINGULAR, NumericalError, r"inv: matrix \(1,\) of the stack is singular"),
    "indefinite": (tl.cholesky, -np.eye(2), NumericalError, "leading minor of order 1"),
    "not finite": (tl.svdvals, np.full((2, 2), np.nan), NumericalError, "contains nan"),
    "gauge": (grad(lambda x: tr.sum(tl.eigh(x)[1][:, 0] * tr.arange(3.0))), np.eye(3), GaugeError, "depends on the"),
    "kink": (grad(lambda x: tl.eigvalsh(x)[0]), np.eye(3), DegenerateError, r"w\[0\] = 1 and w\[1\] = 1"),
    "in a loop": (lambda x: tr.fori_loop(0, 3, lambda i, x: tl.inv(x) * 0.0, x), np.eye(3), NumericalError, "singular"),
    "in a branch": (
        lambda x: tr.cond(tr.sum(x) > 0, tl.inv, lambda x: x + 0.0, x),
        np.ones((3, 3)),
        NumericalError,
        "singular",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_the_errors_of_the_cpu_backend(name):
    f, x, kind, text = FAILURES[name]
    program = tr.trace(f, tr.asarray(x))
    assert lower_to_stablehlo(program).checked
    with pytest.raises(kind, match=text):
        XLA.run(program, x)


def test_what_is_not_run_does_not_fail():
    f = lambda x: tr.cond(tr.sum(x) < 0, tl.inv, lambda x: x + 0.0, x)
    agree(f, np.ones((3, 3)))
    agree(lambda x: tr.fori_loop(0, 3, lambda i, x: tl.inv(x) @ x @ x, x), np.eye(3) * 1.5)
    assert not lower_to_stablehlo(tr.trace(lambda x: tl.det(x) + 1.0, np.eye(2))).checked


def test_a_function_is_lowered_once_for_all_its_uses():
    text = lower_to_stablehlo(tr.trace(lambda x: tl.inv(tl.inv(x)), np.eye(2))).text
    assert text.count("lapack_dgetrf") == 1
    assert text.count("func.call") >= 2


def test_other_platforms_call_their_own_libraries():
    module = lower_to_stablehlo(tr.trace(tl.eigvalsh, np.eye(2)), "cuda")
    assert "lapack" not in module.text
    assert "cusolver" in module.text
