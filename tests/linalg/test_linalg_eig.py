"""Eigenvalues and eigenvectors of general matrices: values, derivatives, and where these do not exist."""

from typing import Any

import numpy as np
import pytest

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, adjoint, assert_derivatives, gradient, inner, numbers, pushed
from tenferro_ad import grad, variable
from tenferro_linalg import DefectiveError, DegenerateError, GaugeError
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor
from tenferro_tensor_core import NumericalError, ShapeError

KINDS = ["float64", "complex128"]
JORDAN = np.array([[2.0, 1.0], [0.0, 2.0]])


def columns(s: Any) -> Any:
    return fn.expand_dims(s, axis=-2)


@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 2, 2)])
def test_values(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(1, shape).astype(dtype) if dtype == "int64" else numbers(1, shape, dtype)
    w, v = la.eig(tensor(x))
    single = x.dtype.char in "fF"
    assert w.dtype == v.dtype == np.dtype("complex64" if single else "complex128")
    assert w.shape == shape[:-1] and v.shape == shape
    w, v, slack = w._concrete(), v._concrete(), 3e-5 if single else 1e-12
    np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=slack)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), np.ones(shape[:-1]), atol=slack)
    np.testing.assert_allclose(la.eigvals(tensor(x))._concrete(), np.linalg.eigvals(x), atol=slack)
    assert la.eig(tensor(x))._fields == ("eigenvalues", "eigenvectors")


def losses(shape: tuple[int, ...]) -> dict[str, Any]:
    """Losses that do not depend on phases."""
    b = numbers(2, shape, "complex128")

    def function(x: Any) -> Any:
        w, v = la.eig(x)
        return inner(la.matmul(v * columns(fn.sin(w)), la.inv(v)), b)

    def projector(x: Any) -> Any:
        v = la.eig(x).eigenvectors[..., :, :1]
        return inner(la.matmul(v, adjoint(v)), b)

    def moduli(x: Any) -> Any:
        w, v = la.eig(x)
        return fn.sum(fn.abs(v) ** 2 * columns(fn.real(fn.cos(w))))

    def overlaps(x: Any) -> Any:
        v = la.eig(x).eigenvectors
        return fn.sum(fn.abs(la.matmul(adjoint(v), v)) ** 2 * np.abs(b))

    values = lambda x: fn.sum(fn.real(la.eigvals(x) ** 3) + fn.abs(la.eigvals(x) - 0.3) ** 1.5)
    return {"function": function, "projector": projector, "moduli": moduli, "overlaps": overlaps, "values": values}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (1, 1)])
@pytest.mark.parametrize("name", losses((1, 1)))
def test_derivatives(name: str, shape: tuple[int, ...], dtype: str) -> None:
    assert_derivatives(losses(shape)[name], numbers(3, shape, dtype), numbers(4, shape, dtype), rtol=1e-6)


def test_a_function_of_the_matrix_has_the_derivative_of_its_series() -> None:
    """The derivative of the exponential is a block of the exponential of a matrix of twice the size."""
    import scipy.linalg

    x, dx = numbers(5, (4, 4)), numbers(6, (4, 4))

    def exponential(x: Any) -> Any:
        w, v = la.eig(x)
        return fn.real(la.matmul(v * columns(fn.exp(w)), la.inv(v)))

    larger = scipy.linalg.expm(np.block([[x, dx], [np.zeros((4, 4)), x]]))
    np.testing.assert_allclose(pushed(exponential, x, dx), larger[:4, 4:], atol=1e-10)


@pytest.mark.parametrize("dtype", KINDS)
def test_in_programs_recordings_and_batches(dtype: str) -> None:
    x = numbers(7, (3, 4, 4), dtype)
    loss = losses((4, 4))["function"]
    alone = np.stack([gradient(loss, a) for a in x])
    np.testing.assert_allclose(tr.vmap(grad(loss))(tensor(x))._concrete(), alone, atol=1e-11)
    compiled = tr.compile(grad(loss))
    for a, want in zip(x, alone, strict=True):
        np.testing.assert_allclose(compiled(tensor(a))._concrete(), want, atol=1e-11)
        recorded = variable(a)
        loss(recorded).backward()
        np.testing.assert_allclose(recorded.grad._concrete(), want, atol=1e-11)
    stack = tr.vmap(lambda a: la.eig(a).eigenvalues)(tensor(x))._concrete()
    np.testing.assert_array_equal(stack, la.eig(tensor(x)).eigenvalues._concrete())


def test_gradients_of_empty_stacks_are_empty() -> None:
    for shape in ((0, 0), (0, 2, 2)):
        assert gradient(lambda x: fn.sum(fn.real(la.eigvals(x))), np.zeros(shape)).shape == shape


def test_phases_are_not_differentiated() -> None:
    x = numbers(8, (4, 4), "complex128")
    with pytest.raises(
        GaugeError, match=r"eig: the loss depends on the phase of vector \d of the eigenvectors for w\["
    ):
        gradient(lambda x: fn.sum(fn.real(la.eig(x).eigenvectors) ** 3), x)
    # The vectors of real eigenvalues of a real matrix are real: their sign is free, which no derivative sees.
    symmetric = numbers(9, (4, 4))
    symmetric = symmetric + symmetric.T
    loss = lambda x: fn.sum(fn.real(la.eig(x).eigenvectors) ** 3)
    assert_derivatives(loss, symmetric, numbers(10, (4, 4)), rtol=1e-5)


def backward(f: Any, x: Any) -> Any:
    """The gradient of a bare backward pass, which cannot run the function again."""
    recorded = variable(x)
    f(recorded).backward()
    return recorded.grad._concrete()


def test_equal_eigenvalues() -> None:
    x = np.diag([1.0, 1.0, 2.0]) + 0.0
    powers = lambda x: fn.sum(fn.real(la.eigvals(x)) ** 2)
    np.testing.assert_allclose(backward(powers, x), 2 * x.T, atol=1e-14)
    np.testing.assert_allclose(pushed(powers, x, np.diag([1.0, 2.0, 3.0])), 18.0)
    np.testing.assert_allclose(pushed(powers, x, np.ones((3, 3))), 8.0, rtol=1e-10)
    np.testing.assert_allclose(gradient(losses((3, 3))["moduli"], x), -np.diag(np.sin([1.0, 1.0, 2.0])), atol=1e-10)
    with pytest.raises(DegenerateError, match="do not determine the derivative there; grad, vjp and jvp evaluate"):
        backward(losses((3, 3))["moduli"], x)
    with pytest.raises(DegenerateError, match=r"are equal, and the derivatives of the loss by them are 1.*a kink"):
        gradient(lambda x: fn.real(la.eigvals(x))[0], x)
    with pytest.raises(GaugeError, match="depends on the choice of the eigenvectors for the equal eigenvalues"):
        gradient(lambda x: fn.abs(la.eig(x).eigenvectors[0, 0] + la.eig(x).eigenvectors[0, 1]), x)


TURN = numbers(11, (3, 3))
AWKWARD = {
    "multiple of the identity": 2 * np.eye(3), "equal pair": TURN @ np.diag([1.0, 1.0, 2.0]) @ np.linalg.inv(TURN),
    "zero": np.zeros((3, 3)), "block": np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]),
    "long block": np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", AWKWARD)
def test_functions_of_matrices_without_distinct_eigenvalues(name: str, dtype: str) -> None:
    import scipy.linalg

    b, dx, x = numbers(12, (3, 3)), numbers(13, (3, 3)), AWKWARD[name]

    def loss(x: Any) -> Any:
        w, v = la.eig(x)
        return inner(fn.real(la.matmul(v * columns(fn.exp(w)), la.inv(v))), b)

    def exact(x: Any) -> Any:
        return scipy.linalg.expm_frechet(x.T, b, compute_expm=False)

    np.testing.assert_allclose(gradient(loss, x.astype(dtype)), exact(x), atol=1e-9)
    np.testing.assert_allclose(pushed(loss, x.astype(dtype), dx.astype(dtype)), (exact(x) * dx).sum(), atol=1e-9)
    second = pushed(grad(loss), x.astype(dtype), dx.astype(dtype))
    np.testing.assert_allclose(second, (exact(x + 1e-4 * dx) - exact(x - 1e-4 * dx)) / 2e-4, atol=1e-5)


def test_defective_matrices() -> None:
    loss = lambda x: fn.sum(fn.real(la.eigvals(x) ** 2))
    for x in (JORDAN, np.stack([np.diag([1.0, 2.0]), JORDAN])):
        where = r" of matrix \(1,\) of the stack" if x.ndim > 2 else ""
        with pytest.raises(DefectiveError, match=rf"eig: the eigenvectors{where} are linearly dependent .*nearly"):
            backward(loss, x)
        np.testing.assert_allclose(gradient(loss, x), 2 * x.swapaxes(-1, -2), atol=1e-9)
    near = JORDAN + np.array([[0.0, 0.0], [1e-6, 0.0]])
    np.testing.assert_allclose(backward(loss, near), 2 * near.T, rtol=1e-8)
    with pytest.raises(DefectiveError, match="have no common limit"):
        gradient(lambda x: fn.max(fn.real(la.eigvals(x))), JORDAN)


def test_mistakes() -> None:
    with pytest.raises(ShapeError, match=r"eig takes square matrices, got shape \(2, 3\)"):
        la.eig(np.zeros((2, 3)))
    with pytest.raises(NumericalError, match=r"eigvals: the operand contains nan at index \(0, 1\)"):
        la.eigvals(np.array([[0.0, np.nan], [0.0, 0.0]]))
