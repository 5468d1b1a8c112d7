"""Square roots, logarithms, powers and signs of matrices: values, derivatives of any order, where they do not exist."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, assert_derivatives, inner, numbers
from tenferro_ad import grad, jacfwd, jvp
from tenferro_linalg import DegenerateError
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import NumericalError, ShapeError

JORDAN = np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]])
NAMES = ("sqrtm", "logm", "signm", "cube root", "inverse root")
FUNCTIONS: dict[str, Any] = {
    "sqrtm": la.sqrtm,
    "logm": la.logm,
    "signm": la.signm,
    "cube root": lambda x: la.fractional_matrix_power(x, 1 / 3),
    "inverse root": lambda x: la.fractional_matrix_power(x, -1.5),
}


def host(x: Any) -> Any:
    return x._concrete()


def positive(seed: int, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """Matrices whose eigenvalues are not on the negative axis; not normal ones."""
    x = numbers(seed, shape, np.result_type(dtype, "float64").name) / shape[-1] ** 0.5
    return np.array([scipy.linalg.expm(m) for m in x.reshape(-1, *shape[-2:])]).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3, 3), (1, 1), (20, 20)])
def test_values(shape: tuple[int, ...], dtype: str) -> None:
    """By what they are inverses of, up to the conditions of these matrices."""
    x = positive(1, shape, dtype)
    slack = 1e-3 if x.dtype.char in "fF" else 2e-12
    root, log, power = host(la.sqrtm(tensor(x))), la.logm(tensor(x)), la.fractional_matrix_power(tensor(x), 0.3)
    assert root.dtype == log.dtype == power.dtype == x.dtype
    np.testing.assert_allclose(root @ root, x, atol=slack * np.abs(x).max())
    np.testing.assert_allclose(host(la.expm(log)), x, atol=slack * np.abs(x).max())
    np.testing.assert_allclose(host(la.logm(power)), 0.3 * host(log), atol=slack * np.abs(host(log)).max())
    odd = x - np.eye(shape[-1], dtype=x.dtype) * 0.9
    sign = host(la.signm(tensor(odd)))
    np.testing.assert_allclose(sign @ sign, np.broadcast_to(np.eye(shape[-1]), shape), atol=20 * slack)
    np.testing.assert_allclose(sign @ odd, odd @ sign, atol=20 * slack)


@pytest.mark.parametrize("name", ["sqrtm", "logm", "signm"])
@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_values_of_scipy_at_all_scales(name: str, scale: float) -> None:
    x = positive(2, (5, 5)) * scale
    if name == "signm":
        x = x - scale * np.eye(5)
        expected = scipy.linalg.signm(x / scale)
    else:
        f = getattr(scipy.linalg, name)
        expected = f(x / scale) * scale**0.5 if name == "sqrtm" else f(x / scale) + np.log(scale) * np.eye(5)
    found = host(FUNCTIONS[name](tensor(x)))
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())


MATRICES = {
    "real": positive(3, (3, 3)),
    "complex": positive(4, (3, 3), "complex128"),
    "stack": positive(5, (2, 2, 2)),
    "jordan": JORDAN,
    "identity": 2.0 * np.eye(3),
    "rotation": np.array([[0.3, 2.0], [-2.0, 0.3]]),
}


@pytest.mark.parametrize("case", MATRICES)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str, case: str) -> None:
    x = MATRICES[case]
    if name == "signm" and case != "identity":
        x = x - 1.1 * np.eye(x.shape[-1])
    v, b = 0.3 * numbers(7, x.shape, x.dtype), numbers(8, x.shape, x.dtype)
    assert_derivatives(lambda y: inner(FUNCTIONS[name](y), b), x, v, rtol=1e-6)


def test_derivatives_of_third_order() -> None:
    """At the identity they are those of scalars."""
    e = numbers(9, (3, 3))
    cube = e @ e @ e
    for name, factor in (("sqrtm", 3 / 8), ("logm", 2.0), ("cube root", 10 / 27), ("signm", 0.0)):
        f = lambda t, name=name: FUNCTIONS[name](tensor(np.eye(3)) + t * tensor(e))
        third = jacfwd(jacfwd(jacfwd(f)))(tensor(0.0))
        np.testing.assert_allclose(host(third), factor * cube, rtol=1e-10, atol=1e-10)


def test_powers_are_differentiable_by_the_exponent() -> None:
    x, b = tensor(positive(10, (3, 3))), numbers(11, (3, 3))
    assert_derivatives(lambda t: inner(la.fractional_matrix_power(x, t), b), np.array(0.4), np.array(1.0))
    many = la.fractional_matrix_power(x, tensor(np.array([0.0, 1.0, -1.0, 0.5])))
    expected = np.stack([np.eye(3), host(x), np.linalg.inv(host(x)), host(la.sqrtm(x))])
    np.testing.assert_allclose(host(many), expected, atol=1e-12)
    singular = tensor(np.diag([4.0, 0.0]))
    np.testing.assert_allclose(host(la.fractional_matrix_power(singular, 1.5)), np.diag([8.0, 0.0]), atol=1e-14)
    np.testing.assert_array_equal(host(la.fractional_matrix_power(singular, 2)), np.diag([16.0, 0.0]))


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_zero_extents(name: str, shape: tuple[int, ...]) -> None:
    f = FUNCTIONS[name]
    assert f(tensor(np.zeros(shape))).shape == shape
    assert grad(lambda x: tr.sum(f(x)))(tensor(np.zeros(shape))).shape == shape


def test_programs_lanes_and_open_sizes() -> None:
    x, v = tensor(positive(16, (3, 3, 3))), tensor(numbers(17, (3, 3, 3)))
    f = lambda y: tr.sum(tr.sin(la.sqrtm(y)) * la.logm(y) + la.signm(y))
    value, pushed = jvp(f, (x,), (v,))
    g = host(grad(f)(x))
    np.testing.assert_allclose(host(tr.compile(f)(x)), host(value), rtol=1e-12)
    for other in (tr.compile(grad(f)), grad(tr.compile(f)), tr.vmap(grad(f))):
        np.testing.assert_allclose(host(other(x)), g, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose((g * host(v)).sum(), host(pushed), rtol=1e-9)
    n = tr.dim("n")
    program = tr.trace(lambda x: [grad(f)(x)], Spec((n, n), np.dtype("float64")))
    for size in (2, 5):
        y = tensor(positive(18, (size, size)))
        np.testing.assert_allclose(host(program.run(y)[0]), host(grad(f)(y)), rtol=1e-11, atol=1e-12)


def test_the_branch_cut() -> None:
    """Complex matrices take the upper side; real ones are refused, with the eigenvalue."""
    x = np.stack([np.eye(2), np.array([[-4.0, 1.0], [0.0, 2.0]])])
    for f, name in ((la.sqrtm, "sqrtm"), (la.logm, "logm")):
        message = rf"{name}: matrix \(1,\) of the stack is real and has the eigenvalue -4 on the branch cut"
        with pytest.raises(NumericalError, match=message) as caught:
            f(tensor(x))
        assert caught.value.payload["index"] == (1,)
    for side in (0j, -1e-18j, 1e-18j):
        z = tensor(x[1] + side * np.eye(2))
        root, log = host(la.sqrtm(z)), host(la.logm(z))
        np.testing.assert_allclose(np.diagonal(root), [2j, 2**0.5], atol=1e-14)
        np.testing.assert_allclose(np.diagonal(log), [np.log(4) + np.pi * 1j, np.log(2)], atol=1e-14)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(host(la.logm(tensor(turn))), turn * np.pi / 2, atol=1e-14)


def test_the_eigenvalue_zero() -> None:
    zero, nilpotent = np.diag([4.0, 0.0, 0.0]), np.array([[0.0, 1.0], [0.0, 0.0]])
    q = np.linalg.qr(numbers(19, (3, 3)))[0]
    np.testing.assert_allclose(host(la.sqrtm(tensor(q @ zero @ q.T))), q @ zero @ q.T / 2, atol=1e-14)
    np.testing.assert_array_equal(host(la.sqrtm(tensor(np.zeros((2, 2))))), np.zeros((2, 2)))
    with pytest.raises(NumericalError, match="the eigenvalue zero in a Jordan block"):
        la.sqrtm(tensor(nilpotent))
    with pytest.raises(
        DegenerateError, match="sqrtm: the matrix has the eigenvalue zero, where the square root is not"
    ):
        grad(lambda x: tr.sum(la.sqrtm(x)))(tensor(zero))
    with pytest.raises(NumericalError, match=r"logm: matrix \(1,\) of the stack is singular"):
        la.logm(tensor(np.stack([np.eye(3), zero])))
    with pytest.raises(NumericalError, match="logm: the matrix is singular"):
        la.fractional_matrix_power(tensor(zero), 0.3)


def test_bad_input() -> None:
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    with pytest.raises(NumericalError, match=r"signm: matrix \(1,\) of the stack has an eigenvalue on the imaginary"):
        la.signm(tensor(np.stack([np.eye(2), turn])))
    with pytest.raises(NumericalError, match="signm: the matrix has an eigenvalue on the imaginary"):
        la.signm(tensor(np.zeros((2, 2))))
    for name in ("sqrtm", "logm", "signm"):
        with pytest.raises(ShapeError, match=f"{name} takes square matrices"):
            getattr(la, name)(tensor(np.zeros((2, 3))))
        with pytest.raises(NumericalError, match=rf"{name}: the operand contains inf at index \(0, 1\)"):
            getattr(la, name)(tensor(np.array([[1.0, np.inf], [0.0, 1.0]])))
