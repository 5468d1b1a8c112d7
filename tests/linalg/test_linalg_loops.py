"""Linear algebra in programs that run as one native function: LAPACK between loops gives what the kernels give."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_linalg as la
import tenferro_runtime as tr
from tenferro_linalg._solve import lu_factor_, lu_solve_
from tenferro_runtime.extension import NumericalError
from tenferro_runtime.lowering import lower
from tenferro_tensor import Spec, get_backend
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import verify
from whole_functions import Native

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda x, b: la.cholesky(x),
    "solve": la.solve,
    "inv": lambda x, b: la.inv(x),
    "det": lambda x, b: la.det(x),
    "slogdet": lambda x, b: la.slogdet(x),
    "lower": lambda x, b: la.solve_triangular(x, b, lower=True),
    "upper": lambda x, b: la.solve_triangular(x, b, lower=False, trans="C", unit_diagonal=True),
}


def loss(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def total(x: Any, b: Any) -> Any:
        out = f(x, b)
        return sum(tr.sum(tr.real(v * tr.conj(v))) for v in (out if isinstance(out, tuple) else (out,)))

    return total


def operands(shape: tuple[int, ...], dtype: str) -> tuple[Any, Any]:
    rng, n = np.random.default_rng(3), shape[-1]
    x, b = rng.standard_normal((*shape, n)), rng.standard_normal((*shape, 3))
    if dtype[0] == "c":
        x, b = x + 1j * rng.standard_normal(x.shape), b + 1j * rng.standard_normal(b.shape)
    x = x @ x.conj().swapaxes(-1, -2) / n + np.eye(n)
    return x.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 9), (20,)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, shape: tuple[int, ...], dtype: str) -> None:
    f = FUNCTIONS[name]
    arrays = operands(shape, dtype)
    values = tuple(map(tr.asarray, arrays))
    by = (0, 1) if name in ("solve", "lower", "upper") else 0
    tolerance = 1e-9 if dtype in ("float64", "complex128") else 2e-3
    for g in (f, ad.grad(loss(f), argnums=by)):
        program = tr.trace(g, *values)
        function = lower(program)
        verify(function)
        want = [np.asarray(v) for v in program.run(*values)]
        for got in (interpret(function, arrays, ()), Native(function)(*arrays)):
            for a, w in zip(got, want, strict=True):
                np.testing.assert_allclose(a, w, rtol=tolerance, atol=tolerance * np.abs(w).max(initial=1))


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 3, 8, 9, 20])
def test_kernels_and_native_functions_take_factors_of_each_other(n: int, dtype: str, adjoint: bool) -> None:
    """Two programs may share factors while only one of them runs as a native function."""
    x, b = operands((n,), dtype)
    x[:, 0] += 3 * np.arange(n)  # with exchanges of rows
    open_x, open_b = Spec((tr.dim("n"), tr.dim("n")), np.dtype(dtype)), Spec((tr.dim("n"), 3), np.dtype(dtype))
    factoring, exchanges = tr.trace(lu_factor_, open_x), Spec((tr.dim("n"),), np.dtype("int64"))
    solving = tr.trace(lambda *values: lu_solve_(*values, adjoint=adjoint), open_x, open_x, exchanges, open_b)
    factors, solution = (get_backend("cpu").whole(lower(p), bare=False) for p in (factoring, solving))
    assert factors is not None and solution is not None
    want = np.linalg.solve(x.conj().T if adjoint else x, b)
    for kept in (factoring.run(tr.asarray(x)), factors.run((n,), x)):
        raws = [x, *map(np.asarray, kept), b]
        for found in (solving.run(*map(tr.asarray, raws)), solution.run((n,), *raws)):
            np.testing.assert_allclose(np.asarray(found[0]), want, rtol=1e-9)


def svd_products(u: Any, s: Any, vh: Any) -> Any:
    return (u * s) @ (vh + s)


def eigh_products(w: Any, v: Any) -> Any:
    return (v * tr.sin(w)) @ v.T


def qr_products(q: Any, r: Any) -> Any:
    return q * r + q


BODIES: dict[str, Callable[[Any], Any]] = {
    "svd": lambda x: svd_products(*la.svd(x, full_matrices=False)),
    "eigh": lambda x: eigh_products(*la.eigh(x + x.T)),
    "qr": lambda x: qr_products(*la.qr(x)),
    "cholesky": lambda x: la.cholesky(x @ x.T + tr.eye(x.shape[0])),
    "solve": lambda x: la.solve(x + 9.0 * tr.eye(x.shape[0]), x.T),
}


@pytest.mark.parametrize("name", BODIES)
def test_gradients_of_loops_with_open_sizes(name: str) -> None:
    def total(xs: Any) -> Any:
        n, m, k = xs.shape[:3]

        def step(state: Any, x: Any) -> Any:
            state = BODIES[name](x + 0.1 * state)
            return state, tr.sum(state * state)

        return tr.sum(tr.scan(step, tr.zeros((m * k, m * k)), tr.reshape(xs, (n, m * k, m * k)))[1])

    n, m, k = map(tr.dim, "nmk")
    program = tr.trace(ad.value_and_grad(total), Spec((n, m, k, m, k), np.dtype("float64")))
    function = lower(program)
    verify(function)
    x = np.random.default_rng(5).standard_normal((3, 2, 2, 2, 2))
    want = [np.asarray(v) for v in program.run(tr.asarray(x))]
    sizes = {"n": 3, "m": 2, "k": 2}
    values = tuple([sizes[name] for name in function.sizes])
    for got in (interpret(function, [x], values), Native(function)(x, sizes=sizes)):
        for a, w in zip(got, want, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-9, atol=1e-9 * np.abs(w).max())


@pytest.mark.parametrize("x", [np.zeros((3, 3)), -np.eye(3), np.full((3, 3), np.nan)], ids=["zero", "negative", "nan"])
@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "lower"])
def test_reports_run_the_kernel_which_raises(name: str, x: Any) -> None:
    b = np.ones((3, 1))
    program = tr.trace(FUNCTIONS[name], tr.asarray(x), tr.asarray(b))
    function = lower(program)
    try:
        want = [np.asarray(v) for v in program.run(tr.asarray(x), tr.asarray(b))]
    except NumericalError as cause:
        with pytest.raises(NumericalError, match=re.escape(str(cause)[:40])):
            interpret(function, (x, b), ())
        called: list[int] = []
        status, _, _ = Native(function).run(x, b, call=lambda number, *_: called.append(number) or 7)
        assert status == 7 and len(called) == 1
    else:
        np.testing.assert_array_equal(interpret(function, (x, b), ())[0], want[0])
