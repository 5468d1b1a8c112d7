"""Exponential and circular functions of matrices: values, derivatives of any order, bad input."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, assert_derivatives, inner, numbers
from tenferro_ad import grad, jacfwd, jvp
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import NumericalError, ShapeError

JORDAN = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])
ROTATION = np.array([[0.0, 2.0], [-2.0, 0.0]])
NAMES = ("expm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")


def host(x: Any) -> Any:
    return x._concrete()


def each(f: Any, x: Any) -> Any:
    """A function of SciPy on every matrix of a stack, in double precision."""
    wide = x.astype(np.result_type(x.dtype, "float64"))
    return np.array([f(m) for m in wide.reshape(-1, *x.shape[-2:])]).reshape(x.shape)


@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3, 3), (1, 1), (3, 16, 16)])
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(1, shape).astype(dtype) if dtype == "int64" else numbers(1, shape, dtype)
    x = x / np.asarray(shape[-1] ** 0.5, x.dtype) if dtype != "int64" else x
    found, expected = getattr(la, name)(tensor(x)), each(getattr(scipy.linalg, name), x)
    assert found.dtype == (np.dtype("float64") if dtype == "int64" else x.dtype) and found.shape == shape
    slack = (1e-4 if x.dtype.char in "fF" else 1e-11) * np.abs(expected).max()
    np.testing.assert_allclose(host(found), expected, atol=slack)


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_all_sizes_in_one_stack(dtype: str) -> None:
    x = numbers(2, (9, 4, 4), dtype) * np.logspace(-6, 1.3, 9).astype(dtype).reshape(9, 1, 1)
    e = numbers(3, (4, 4), dtype)
    wide = x.astype("complex128")
    found, derivative = la.expm_frechet(tensor(x), tensor(e))
    for k in range(9):
        expected, along = scipy.linalg.expm_frechet(wide[k], e.astype("complex128"))
        for a, b in ((found, expected), (derivative, along)):
            np.testing.assert_allclose(host(a)[k], b, atol=(5e-4 if x.dtype.char in "fF" else 1e-12) * np.abs(b).max())


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_zero_extents(name: str, shape: tuple[int, ...]) -> None:
    f = getattr(la, name)
    assert f(tensor(np.zeros(shape))).shape == shape
    assert grad(lambda x: tr.sum(f(x)))(tensor(np.zeros(shape))).shape == shape


@pytest.mark.parametrize("big", [1e3, 1e8, 1e150])
def test_powers_that_vanish_need_no_squarings(big: float) -> None:
    """Norms of powers count: halving by the norm alone loses as many digits as there are squarings."""
    x = np.array([[1.0, big], [0.0, -1.0]])
    expected = np.array([[np.e, big * np.sinh(1.0)], [0.0, 1 / np.e]])
    for stack in (x, np.stack([x, x.T])):
        found = host(la.expm(tensor(stack)))
        np.testing.assert_allclose(found if found.ndim == 2 else found[0], expected, rtol=1e-13)


MATRICES = {
    "real": numbers(4, (3, 3)),
    "complex": numbers(5, (3, 3), "complex128"),
    "stack": 3 * numbers(6, (2, 2, 2)),
    "jordan": JORDAN,
    "zero": np.zeros((3, 3)),
    "identity": np.eye(3) * (1 + 0.5j),
    "rotation": ROTATION,
}


@pytest.mark.parametrize("case", MATRICES)
def test_derivatives_of_the_exponential(case: str) -> None:
    x = MATRICES[case]
    v, b = numbers(7, x.shape, x.dtype), numbers(8, x.shape, x.dtype)
    assert_derivatives(lambda y: inner(la.expm(y), b), x, v)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", NAMES[1:])
def test_derivatives_of_the_others(name: str, dtype: str) -> None:
    x = JORDAN.astype(dtype) + (0.2j if dtype == "complex128" else 0)
    v, b = numbers(7, x.shape, dtype), numbers(8, x.shape, dtype)
    assert_derivatives(lambda y: inner(getattr(la, name)(y), b), x, v)


def test_derivatives_of_third_order() -> None:
    """Along the matrix itself they are known, and at zero they are the powers of the direction."""
    x, zero = tensor(numbers(9, (3, 3))), tensor(np.zeros((3, 3)))

    def along(x: Any, e: Any) -> Any:
        f = lambda t: la.expm(x + t * e)
        return jacfwd(jacfwd(jacfwd(f)))(tensor(0.0))

    cube = lambda m: host(m) @ host(m) @ host(m)
    np.testing.assert_allclose(host(along(x, x)), cube(x) @ scipy.linalg.expm(host(x)), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(host(along(zero, x)), cube(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision(dtype: str) -> None:
    x, b = numbers(10, (4, 4), dtype), numbers(11, (4, 4), dtype)
    f = lambda y: inner(la.expm(y), b)
    wide = host(grad(lambda y: inner(la.expm(y), b.astype("complex128")))(tensor(x.astype("complex128"))))
    g = grad(f)(tensor(x))
    assert g.dtype == dtype
    np.testing.assert_allclose(host(g), wide if dtype == "complex64" else wide.real, rtol=1e-3, atol=1e-4)


def test_a_complex_direction_of_a_real_matrix() -> None:
    x, e = numbers(12, (3, 3)), numbers(13, (3, 3), "complex128")
    found = la.expm_frechet(tensor(x), tensor(e)).derivative
    np.testing.assert_allclose(host(found), scipy.linalg.expm_frechet(x.astype(e.dtype), e)[1], rtol=1e-12, atol=1e-12)
    directions = tensor(numbers(14, (4, 1, 3, 3)))
    assert la.expm_frechet(tensor(numbers(15, (2, 3, 3))), directions).derivative.shape == (4, 2, 3, 3)


def test_programs_lanes_and_open_sizes() -> None:
    x, v = tensor(numbers(16, (4, 3, 3))), tensor(numbers(17, (4, 3, 3)))
    f = lambda y: tr.sum(tr.sin(la.expm(y)))
    value, pushed = jvp(f, (x,), (v,))
    g = host(grad(f)(x))
    np.testing.assert_allclose(host(tr.compile(f)(x)), host(value), rtol=1e-14)
    np.testing.assert_allclose(host(tr.compile(grad(f))(x)), g, rtol=1e-13)
    np.testing.assert_allclose(host(grad(tr.compile(f))(x)), g, rtol=1e-13)
    np.testing.assert_allclose(host(tr.vmap(grad(f))(x)), g, rtol=1e-13)
    np.testing.assert_allclose((g * host(v)).sum(), host(pushed), rtol=1e-12)
    n = tr.dim("n")
    program = tr.trace(lambda x: [grad(f)(x)], Spec((n, n), np.dtype("float64")))
    for size in (2, 5):
        y = tensor(numbers(18, (size, size)))
        np.testing.assert_allclose(host(program.run(y)[0]), host(grad(f)(y)), rtol=1e-12)


def test_bad_input() -> None:
    with pytest.raises(ShapeError, match=r"expm takes square matrices, got shape \(2, 3\)"):
        la.expm(tensor(np.zeros((2, 3))))
    x = np.zeros((3, 2, 2))
    x[1, 0, 1] = np.nan
    with pytest.raises(NumericalError, match=r"expm: the operand contains nan at index \(1, 0, 1\)"):
        la.expm(tensor(x))
    x[1] = np.diag([1e3, 1.0])
    with pytest.raises(NumericalError, match=r"expm: the result for matrix \(1,\) of the stack overflows") as caught:
        la.expm(tensor(x))
    assert caught.value.payload["index"] == (1,)
    with pytest.raises(NumericalError, match="the result for the matrix overflows"):
        grad(lambda y: tr.sum(la.expm(y)))(tensor(x[1]))
