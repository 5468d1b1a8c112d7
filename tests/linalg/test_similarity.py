"""Schur and Hessenberg forms: values, derivatives of any order, where these do not exist."""

from typing import Any

import numpy as np
import pytest

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, adjoint, assert_derivatives, gradient, inner, numbers, pushed
from tenferro_ad import grad, jvp, variable
from tenferro_linalg import DegenerateError, GaugeError
from tenferro_tensor import Spec, tensor
from tenferro_tensor import functions as fn
from tenferro_tensor_core import ArgumentError, NumericalError, ShapeError

KINDS = ("float64", "complex128")


def host(x: Any) -> Any:
    return x._concrete()


def real_spectrum(seed: int, shape: tuple[int, ...]) -> Any:
    """Real matrices with real distinct eigenvalues, not normal."""
    x = numbers(seed, shape)
    return np.linalg.inv(x) @ (np.diag(np.arange(1.0, shape[-1] + 1)) @ x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3, 3), (1, 1), (2, 2), (40, 40), (0, 0), (2, 0, 0), (0, 2, 2)])
def test_values(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(1, shape, dtype)
    slack = 1e-3 if x.dtype.char in "fF" else 1e-12
    identity = np.broadcast_to(np.eye(shape[-1]), shape)
    for output in ("real", "complex"):
        t, z = la.schur(tensor(x), output=output)
        expected = np.dtype(dtype) if output == "real" else np.result_type(dtype, "complex64")
        assert t.dtype == z.dtype == expected and t.shape == z.shape == shape
        t, z = host(t), host(z)
        np.testing.assert_allclose(z @ t @ z.conj().swapaxes(-1, -2), x, atol=slack * max(1, shape[-1]))
        np.testing.assert_allclose(z @ z.conj().swapaxes(-1, -2), identity, atol=slack)
        assert not np.tril(t, -1 if output == "complex" or expected.kind == "c" else -2).any()
    t, z = map(host, la.rsf2csf(*la.schur(tensor(x))))
    assert not np.tril(t, -1).any()
    np.testing.assert_allclose(z @ t @ z.conj().swapaxes(-1, -2), x, atol=slack * max(1, shape[-1]))
    h, q = map(host, la.hessenberg(tensor(x)))
    assert h.dtype == q.dtype == dtype and not np.tril(h, -2).any()
    np.testing.assert_allclose(q @ h @ q.conj().swapaxes(-1, -2), x, atol=slack * max(1, shape[-1]))
    np.testing.assert_allclose(q @ q.conj().swapaxes(-1, -2), identity, atol=slack)


def losses(name: str, shape: tuple[int, ...], dtype: str) -> Any:
    """Losses that do not depend on phases."""
    b = numbers(2, shape, dtype)

    def parts(x: Any) -> Any:
        t, z = la.schur(x)
        return fn.sum(fn.abs(t) ** 2 * np.abs(b)) + fn.sum(fn.abs(z) ** 2 * numbers(3, shape))

    def projector(x: Any) -> Any:
        z = la.schur(x).Z[..., :, :1]
        return inner(la.matmul(z, adjoint(z)), b)

    def function(x: Any) -> Any:
        t, z = la.schur(x)
        return inner(la.matmul(la.matmul(z, fn.sin(1.0) * la.matmul(t, t)), adjoint(z)), b)

    def hessenberg(x: Any) -> Any:
        h, q = la.hessenberg(x)
        return inner(h, b) + inner(fn.multiply(q, q), b)

    return {"parts": parts, "projector": projector, "function": function, "hessenberg": hessenberg}[name]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (2, 2)])
@pytest.mark.parametrize("name", ["parts", "projector", "function", "hessenberg"])
def test_derivatives(name: str, shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(4, shape, dtype) if dtype == "complex128" else real_spectrum(4, shape)
    assert_derivatives(losses(name, shape, dtype), x, 0.3 * numbers(5, shape, dtype), rtol=3e-6)


def test_third_order() -> None:
    """The third derivative along a line, forward over forward over reverse, is that of differences of the second."""
    x, v = real_spectrum(6, (3, 3)), 0.3 * numbers(7, (3, 3))
    for name in ("parts", "hessenberg"):
        f = losses(name, (3, 3), "float64")
        along = lambda t, f=f: f(tensor(x) + t * tensor(v))
        third = grad(grad(grad(along)))(tensor(0.0))
        second = lambda t, along=along: float(host(grad(grad(along))(tensor(t))))
        expected = (8 * (second(1e-4) - second(-1e-4)) - (second(2e-4) - second(-2e-4))) / 12e-4
        np.testing.assert_allclose(host(third), expected, rtol=1e-5)


def test_equal_eigenvalues() -> None:
    """The transforms take the limit of derivatives beside the point; a bare backward pass is refused."""
    function = losses("function", (3, 3), "float64")
    b = numbers(2, (3, 3))
    for x in (2.0 * np.eye(3), np.diag([1.0, 1.0, 2.0]), np.array([[2.0, 1.0, 0], [0, 2.0, 0], [0, 0, 1.0]])):
        expected = np.sin(1.0) * (x.T @ b + b @ x.T)
        np.testing.assert_allclose(gradient(lambda y: function(y.astype("complex128")), x), expected, atol=1e-6)
    x = variable(tensor(2.0 * np.eye(3) + 0j))
    message = r"eigenvalues T\[0, 0\] = 2\+0j and T\[1, 1\] = 2\+0j \(gap 0.0e\+00\) are equal"
    with pytest.raises(DegenerateError, match=message) as caught:
        function(x).backward()
    assert caught.value.payload["pair"] == (0, 1) and caught.value.payload["output"] == "Z"


def test_what_is_not_determined() -> None:
    x = numbers(8, (3, 3), "complex128")
    with pytest.raises(GaugeError, match=r"schur: the loss depends on the phase of column \d of Z"):
        gradient(lambda y: fn.sum(fn.real(la.schur(y).Z) ** 2), x)
    with pytest.raises(GaugeError, match="of matrix"):
        gradient(lambda y: fn.sum(fn.real(la.schur(y).T) ** 3), np.stack([x, x]))
    turn = np.stack([np.eye(2) * [1, 2], np.array([[1.0, 2.0], [-2.0, 1.0]])])
    with pytest.raises(DegenerateError, match=r"the real form of matrix \(1,\) of the stack has complex eigenvalues"):
        pushed(lambda y: fn.sum(la.schur(y).T), turn, turn)
    with pytest.raises(DegenerateError, match=r"hessenberg: H\[1, 0\] = 0 is zero") as caught:
        gradient(lambda y: fn.sum(la.hessenberg(y).H), np.diag([1.0, 2.0, 3.0]))
    assert caught.value.payload["pair"] == (1, 0)


def test_programs_lanes_and_open_sizes() -> None:
    x, v = tensor(real_spectrum(9, (2, 3, 3))), tensor(numbers(10, (2, 3, 3)))

    def f(y: Any) -> Any:
        (t, z), (h, q) = la.schur(y), la.hessenberg(y)
        return fn.sum(fn.abs(t) ** 2 * z**2 + h * q**2)

    g = host(grad(f)(x))
    for other in (tr.vmap(grad(f)), tr.compile(grad(f)), grad(tr.compile(f))):
        np.testing.assert_allclose(host(other(x)), g, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((g * host(v)).sum(), host(jvp(f, (x,), (v,))[1]), rtol=1e-9)
    n = tr.dim("n")
    program = tr.trace(lambda x: [grad(f)(x)], Spec((n, n), np.dtype("float64")))
    for size in (2, 4):
        y = tensor(real_spectrum(11, (size, size)))
        np.testing.assert_allclose(host(program.run(y)[0]), host(grad(f)(y)), rtol=1e-9, atol=1e-9)
    for shape in [(0, 0), (0, 2, 2)]:
        assert grad(f)(tensor(np.zeros(shape))).shape == shape


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="schur: output='upper' is not one of 'real', 'complex'"):
        la.schur(tensor(np.eye(2)), output="upper")
    for f, name in ((la.schur, "schur"), (la.hessenberg, "hessenberg")):
        with pytest.raises(ShapeError, match=f"{name} takes square matrices"):
            f(tensor(np.zeros((2, 3))))
        with pytest.raises(NumericalError, match=rf"{name}: the operand contains nan at index \(1, 0, 0\)"):
            f(tensor(np.stack([np.eye(2), np.eye(2) * [np.nan, 1]])))
