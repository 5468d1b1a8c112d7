"""Analytic functions of general matrices: values, derivatives by the matrix and by parameters, bad functions."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, assert_derivatives, inner, numbers
from tenferro_ad import grad, jacfwd, jvp, value_and_grad
from tenferro_tensor import tensor
from tenferro_tensor_core import NumericalError, ShapeError

JORDAN = np.diag(np.full(5, 2.0)) + np.diag(np.ones(4), 1)
FUNCTIONS: dict[str, Any] = {"exp": tr.exp, "log": tr.log, "sqrt": tr.sqrt, "cos": tr.cos}
NAMED: dict[str, Any] = {"exp": la.expm, "log": la.logm, "sqrt": la.sqrtm, "cos": la.cosm}


def host(x: Any) -> Any:
    return x._concrete()


def right_half(seed: int, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    x = numbers(seed, shape, np.result_type(dtype, "float64").name) / shape[-1] ** 0.5
    return np.array([scipy.linalg.expm(m) for m in x.reshape(-1, *shape[-2:])]).reshape(shape).astype(dtype)


MATRICES = {
    "random": right_half(1, (6, 6)),
    "stack": right_half(2, (2, 3, 3)),
    "complex": right_half(3, (4, 4), "complex128"),
    "jordan": JORDAN,
    "two jordan blocks": np.diag([1.0, 1.0, 3.0, 3.0]) + np.diag([1.0, 1.0, 1.0], 1),
    "identity": 2.0 * np.eye(4),
    "close": np.diag([1.0, 1.0 + 1e-9, 1.01, 2.0]) + np.diag([1.0, 2.0, 3.0], 1),
    "rotation": np.array([[0.3, 2.0], [-2.0, 0.3]]),
    "scales": np.diag([1e-3, 1.0, 1.0]) + np.diag([1.0, 1.0], 1),
}


@pytest.mark.parametrize("case", MATRICES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_named_functions(name: str, case: str) -> None:
    x = MATRICES[case]
    v, b = numbers(4, x.shape, x.dtype), numbers(5, x.shape, x.dtype)
    f, g = (lambda y: la.funm(y, FUNCTIONS[name])), NAMED[name]
    expected = host(g(tensor(x)))
    np.testing.assert_allclose(host(f(tensor(x))), expected, atol=1e-9 * np.abs(expected).max())
    along = [host(jvp(h, (tensor(x),), (tensor(v),))[1]) for h in (f, g)]
    np.testing.assert_allclose(along[0], along[1], atol=1e-8 * np.abs(along[1]).max())
    back = [host(grad(lambda y, h=h: inner(h(y), b))(tensor(x))) for h in (f, g)]
    np.testing.assert_allclose(back[0], back[1], atol=1e-8 * np.abs(back[1]).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 2, 2), (0, 0), (2, 0, 0), (0, 2, 2)])
def test_dtypes_and_shapes(shape: tuple[int, ...], dtype: str) -> None:
    x = tensor(numbers(6, shape, dtype))
    found, expected = la.funm(x, tr.exp), la.expm(x)
    assert found.dtype == dtype and found.shape == shape
    np.testing.assert_allclose(host(found), host(expected), rtol=2e-4 if dtype in DTYPES[::2] else 1e-12, atol=1e-6)
    assert grad(lambda y: tr.sum(tr.abs(la.funm(y, tr.exp)) ** 2))(x).shape == shape


@pytest.mark.parametrize("case", ["random", "complex", "jordan", "close"])
def test_second_order(case: str) -> None:
    x = MATRICES[case][:3, :3]
    b = numbers(7, x.shape, x.dtype)
    f = lambda y: inner(la.funm(y, lambda z: tr.exp(tr.sin(z)) / (z + 3.0)), b)
    assert_derivatives(f, x, 0.3 * numbers(8, x.shape, x.dtype), rtol=1e-6)


def test_third_order() -> None:
    e = numbers(9, (3, 3))
    f = lambda t: la.funm(tensor(np.eye(3)) + t * tensor(e), tr.log)
    third = jacfwd(jacfwd(jacfwd(f)))(tensor(0.0))
    np.testing.assert_allclose(host(third), 2 * e @ e @ e, atol=1e-8)


def test_parameters() -> None:
    x, b = tensor(MATRICES["two jordan blocks"]), numbers(10, (4, 4))

    def loss(y: Any, a: Any) -> Any:
        return inner(la.funm(y, lambda z: tr.exp(a * z)), b)

    expected = value_and_grad(lambda y, a: inner(la.expm(a * y), b), (0, 1))(x, tensor(0.7))
    found = value_and_grad(loss, (0, 1))(x, tensor(0.7))
    np.testing.assert_allclose(host(found[0]), host(expected[0]), rtol=1e-11)
    for f, e in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(host(f), host(e), rtol=1e-9, atol=1e-9)
    assert_derivatives(lambda a: loss(x, a), np.array(0.7), np.array(1.0), rtol=1e-6)
    many = tr.vmap(lambda a: loss(x, a))(tensor(np.array([0.1, 0.7])))
    np.testing.assert_allclose(host(many)[1], host(expected[0]), rtol=1e-11)


def test_programs_and_lanes() -> None:
    x = tensor(MATRICES["stack"])
    f = lambda y: tr.sum(tr.sin(la.funm(y, lambda z: z / (1.0 + z * z / 50.0))))
    g = host(grad(f)(x))
    for other in (tr.compile(grad(f)), grad(tr.compile(f)), tr.vmap(grad(f))):
        np.testing.assert_allclose(host(other(x)), g, rtol=1e-10, atol=1e-12)


def test_bad_functions() -> None:
    with pytest.raises(NumericalError, match=r"not analytic around the eigenvalue 0\+0j of matrix \(1,\) of the stack"):
        la.funm(tensor(np.stack([np.eye(2), np.zeros((2, 2))])), lambda z: 1.0 / z)
    with pytest.raises(NumericalError, match=r"not analytic around the eigenvalue 2\+0j of the matrix"):
        la.funm(tensor(JORDAN), tr.abs)
    with pytest.raises(NumericalError, match="the function of the matrix, which is real, is complex"):
        la.funm(tensor(np.diag([1.0, -1.0])), tr.sqrt)
    with pytest.raises(ShapeError, match="funm: f maps numbers element by element"):
        la.funm(tensor(JORDAN), tr.sum)
    with pytest.raises(NumericalError, match=r"funm: the operand contains nan at index \(0, 0\)"):
        la.funm(tensor(np.full((2, 2), np.nan)), tr.exp)
