"""Failures are typed, name the matrix at fault and say what to do next; LAPACK gets more than one chance."""

import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import numbers
from tenferro_linalg import _host
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, AxisError, NumericalError, ShapeError

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "qr", "cholesky", "inv", "pinv", "solve"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_input_that_is_not_finite_is_named(name, bad):
    x = numbers(1, (2, 3, 3))
    x[1, 2, 0] = bad
    call = (lambda: la.solve(x, np.ones(3))) if name == "solve" else (lambda: getattr(la, name)(x))
    seen = "nan" if np.isnan(bad) else "inf"
    with pytest.raises(NumericalError, match=rf"{name}: the operand contains {seen} at index \(1, 2, 0\)") as caught:
        call()
    assert caught.value.payload["index"] == (1, 2, 0)


def test_singular_matrices_are_named():
    with pytest.raises(NumericalError, match="solve: the matrix is singular: pivot 1 .* exactly zero; use pinv"):
        la.solve(SINGULAR, np.ones(2))
    stack = np.stack([np.eye(2), SINGULAR])
    with pytest.raises(NumericalError, match=r"solve: matrix \(1,\) of the stack is singular") as caught:
        la.solve(stack, np.ones((2, 1)))
    assert caught.value.payload == {"index": (1,), "pivot": 1}
    with pytest.raises(NumericalError, match=r"inv: matrix \(1,\) of the stack is singular"):
        la.inv(stack)
    with pytest.raises(NumericalError, match=r"inv: the matrix is singular"):
        la.matrix_power(SINGULAR, -1)
    with pytest.raises(NumericalError, match=r"solve_triangular: matrix \(1,\) of the stack is singular: pivot 0"):
        la.solve_triangular(np.stack([np.eye(2), [[0.0, 1.0], [0.0, 1.0]]]), np.ones((2, 1)))


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize("stack", [False, True])
def test_singular_matrices_are_named_when_recorded(n, stack):
    from tenferro_ad import variable

    a = np.eye(n)
    a[:2, :2] = SINGULAR
    where = r"matrix \(1,\) of the stack" if stack else "the matrix"
    with pytest.raises(NumericalError, match=f"solve: {where} is singular: pivot 1"):
        la.solve(variable(tensor(np.stack([np.eye(n), a]) if stack else a)), np.ones((n, 1)))


def test_matrices_that_are_not_positive_definite_are_named():
    bad = np.diag([1.0, 2.0, -1.0])
    with pytest.raises(
        NumericalError, match="cholesky: the matrix is not positive definite: its leading minor of order 3"
    ):
        la.cholesky(bad)
    with pytest.raises(NumericalError, match=r"matrix \(0, 1\) of the stack") as caught:
        la.cholesky(np.stack([[np.eye(3), bad]]))
    assert caught.value.payload == {"index": (0, 1), "minor": 3}


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: la.svd(np.ones(3)), ShapeError, r"svd takes matrices in the last two axes, got shape \(3,\)"),
        (lambda: la.eigh(np.ones((2, 3))), ShapeError, r"eigh takes square matrices, got shape \(2, 3\)"),
        (lambda: la.solve(np.eye(2), np.ones(3)), ShapeError, "do not match the rows of the right-hand side"),
        (lambda: la.solve(np.eye(2), 1.0), ShapeError, "the right-hand side is 0-d"),
        (lambda: la.qr(np.eye(2), mode="raw"), ArgumentError, "mode='raw' is not one of 'reduced', 'complete'"),
        (lambda: la.svd_trunc(np.eye(2), 3), ArgumentError, r"k=3 is not between 0 and min\(m, n\) = 2"),
        (lambda: la.pinv(np.eye(2), rtol=-1), ArgumentError, "rtol=-1 is not a finite non-negative number"),
        (lambda: la.matrix_norm(np.eye(2), ord=3), ArgumentError, "ord=3 is not one of"),
        (lambda: la.vector_norm(np.eye(2), ord="fro"), ArgumentError, "ord='fro' is not a real number"),  # type: ignore[arg-type]
        (lambda: la.vector_norm(np.eye(2), axis=2), AxisError, "axis=2 does not name different axes"),
        (lambda: la.vector_norm(np.eye(2), axis=(0, -2)), AxisError, "does not name different axes"),
        (lambda: la.solve_triangular(np.eye(2), np.ones(2), trans="X"), ArgumentError, "trans='X' is not one of"),
        (lambda: la.matrix_power(np.eye(2), 0.5), ArgumentError, "takes an integer power, got 0.5"),  # type: ignore[arg-type]
        (lambda: la.cross(np.ones(2), np.ones(2)), ShapeError, "vectors of 3 entries along axis -1"),
        (lambda: la.cross(np.ones(3), np.ones(3), axis=1), AxisError, "axis=1 is out of range"),
    ],
)
def test_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


class Reluctant:
    """A decomposition of numpy.linalg that fails for stacks and the first few single matrices."""

    def __init__(self, real, failures):
        self.real, self.failures, self.calls = real, failures, 0

    def __call__(self, a, **options):
        self.calls += 1
        if a.ndim > 2 or self.calls <= self.failures:
            raise np.linalg.LinAlgError("did not converge")
        return self.real(a, **options)


@pytest.mark.parametrize("failures", [1, 2, 3, 100])
@pytest.mark.parametrize("shape", [(3, 9), (2, 3, 9)])
def test_svd_tries_again_rescaled_and_with_another_driver(monkeypatch, failures, shape):
    x = numbers(2, shape)
    expected = np.linalg.svd(x, compute_uv=False)
    reluctant = Reluctant(np.linalg.svd, failures)
    monkeypatch.setattr(np.linalg, "svd", reluctant)
    u, s, vh = (p._concrete() for p in la.svd(tensor(x), full_matrices=False))
    assert reluctant.calls > 1
    np.testing.assert_allclose(s, expected, rtol=1e-13)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, atol=1e-13)


@pytest.mark.parametrize("name", ["svdvals", "eigh", "eigvalsh"])
def test_the_others_try_again_too(monkeypatch, name):
    x = numbers(3, (9, 9))
    x = x + x.T
    expected = {"svdvals": lambda: np.linalg.svd(x, compute_uv=False)}.get(name, lambda: np.linalg.eigvalsh(x))()
    for function in ("svd", "eigh", "eigvalsh"):
        monkeypatch.setattr(np.linalg, function, Reluctant(None, 100))
    got = getattr(la, name)(tensor(x))
    np.testing.assert_allclose((got[0] if name == "eigh" else got)._concrete(), expected, rtol=1e-12)


def test_a_decomposition_that_never_converges_is_a_typed_error(monkeypatch):
    def fail(*args, **options):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "svd", fail)
    monkeypatch.setattr(_host, "_gesvd", fail)
    with pytest.raises(NumericalError, match=r"svd: matrix \(0,\) of the stack did not converge in any of 3 attempts"):
        la.svd(np.ones((2, 3, 3)))
