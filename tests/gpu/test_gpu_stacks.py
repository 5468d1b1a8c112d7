"""Stacks of matrices on a simulated CuPy: one call for a stack, and one wait for all checks of a program."""

import warnings
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from fake_cupy import FakeCupy
from host_kernels import COMPILER, HostCompiler
from tenferro_ad import grad
from tenferro_gpu import _machine_code, download, upload
from tenferro_linalg import _providers
from tenferro_runtime.lowering import lower
from tenferro_tensor import get_backend
from tenferro_tensor.device_runtimes import _checks
from tenferro_tensor_core import NumericalError

DTYPES = ("float32", "float64", "complex64", "complex128")


def stack(dtype, *shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.startswith("c") else 0)
    return x.astype(dtype)


def close(found, wanted, dtype):
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    assert str(found.device) == "cuda:0" and found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(np.asarray(download(found)), wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture
def calls(with_cupy, monkeypatch):
    """The simulated CuPy, and the routines that were called."""
    cupy, found = with_cupy(), []

    def count(owner, name):
        run = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **kwargs: found.append(name) or run(*args, **kwargs))

    for letter in "sdcz":
        count(cupy.cuda.cublas, f"{letter}getrfBatched")
        count(cupy.cuda.cublas, f"{letter}getrsBatched")
    provider = _providers.device("cuda")
    extra, names = provider._extra, ("lu_factor", "solve_triangular")
    counted = {name: getattr(extra, name) for name in names}
    for name in names:
        monkeypatch.setattr(
            extra, name, lambda *a, name=name, **k: found.append(name) or counted[name](*a, **k), raising=False
        )
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (0,), (2, 0)])
def test_factors_and_solutions_of_stacks(calls, dtype, batch):
    x, b = stack(dtype, *batch, 6, 6), stack(dtype, *batch, 6, 2)
    p, l, u = tr.linalg.lu(upload(x))
    close(p @ l @ u, x, dtype)
    close(tr.linalg.solve(upload(x), upload(b)), np.linalg.solve(x, b), dtype)
    lower = np.tril(x) + 4 * np.eye(6, dtype=dtype)
    for trans, matrix in (("N", lower), ("C", lower.conj().swapaxes(-1, -2))):
        found = tr.linalg.solve_triangular(upload(lower), upload(b), lower=True, trans=trans)
        close(found, np.linalg.solve(matrix, b), dtype)
    assert len(calls) <= 6  # not one for each matrix
    if np.prod(batch, dtype=int) and batch:
        assert "lu_factor" not in calls and any("getrfBatched" in name for name in calls)


@pytest.mark.parametrize("dtype", ("float64", "complex128"))
def test_gradients_of_solutions_reuse_factors(calls, dtype):
    x, b = stack(dtype, 4, 5, 5), stack(dtype, 4, 5, 2)
    f = lambda x, b: tr.sum(tr.abs(tr.linalg.solve(x, b)) ** 2)
    close(grad(f)(upload(x), upload(b)), np.asarray(grad(f)(tr.asarray(x), tr.asarray(b))), dtype)


def test_matrices_that_are_not_square_or_large_are_factored_one_by_one(calls):
    x = stack("float64", 3, 4, 6)
    p, l, u = tr.linalg.lu(upload(x))
    close(p @ l @ u, x, "float64")
    assert calls == ["lu_factor"] * 3
    large = _providers.device("cuda")._stacks
    assert large.serves(np.empty((3, 100, 100))) and not large.serves(np.empty((1, 300, 300)))


def test_singular_matrices_of_stacks(calls):
    x = stack("float64", 4, 3, 3)
    x[2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p, l, u = tr.linalg.lu(upload(x))
        close(p @ l @ u, x, "float64")
        tr.linalg.lu(upload(np.zeros((2, 2))))
    for f in (lambda x: tr.linalg.solve(x, x), tr.linalg.inv):
        with pytest.raises(NumericalError, match=r"matrix \(2,\) of the stack is singular"):
            f(upload(np.where(np.arange(4)[:, None, None] == 2, 0.0, x)))


@pytest.mark.parametrize("column", [0, 1, 5, 39])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_matrices_that_are_not_positive_definite(calls, column, batch):
    """The routine leaves finite numbers."""
    x = np.broadcast_to(np.eye(40), (*batch, 40, 40)).copy()
    x[(*[1 for _ in batch], column, column)] = -0.5
    name = r"matrix \(1,\) of the stack" if batch else "the matrix"
    with pytest.raises(NumericalError, match=f"cholesky: {name} is not positive definite"):
        tr.linalg.cholesky(upload(x))


def waits():
    return sum(isinstance(entry, tuple) and entry[0] == "bool" for entry in FakeCupy.synchronized)


CHECKED: dict[str, Any] = {
    "svd": tr.linalg.svd, "svdvals": tr.linalg.svdvals, "eigh": tr.linalg.eigh, "eigvalsh": tr.linalg.eigvalsh,
    "eig": tr.linalg.eig, "cholesky": tr.linalg.cholesky, "inv": tr.linalg.inv, "lu": tr.linalg.lu,
    "qr": tr.linalg.qr, "pinv": tr.linalg.pinv, "lstsq": lambda x: tr.linalg.lstsq(x, x),
    "solve": lambda x: tr.linalg.solve(x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_a_call_waits_once_for_its_operands_and_its_results(with_cupy, name):
    with_cupy()
    x = stack("float64", 8, 8)
    x = x @ x.T + np.eye(8)
    CHECKED[name](upload(x))
    FakeCupy.synchronized.clear()
    found = CHECKED[name](upload(x))
    assert waits() == 1
    for got, want in zip(tr.tree_leaves(found), tr.tree_leaves(CHECKED[name](tr.asarray(x))), strict=True):
        np.testing.assert_allclose(np.abs(download(got)), np.abs(want), rtol=1e-9, atol=1e-9)
    x[2, 3] = np.nan
    with pytest.raises(NumericalError, match=r"contains nan or inf at index \(2, 3\)"):
        CHECKED[name](upload(x))


@pytest.fixture
def whole(with_cupy, monkeypatch):
    """Makes a program of a function, and runs it."""
    if COMPILER is None:
        pytest.skip("there is no g++ to compile rendered kernels with")
    with_cupy()
    monkeypatch.setattr(_machine_code, "compiler", lambda *given: HostCompiler())

    def run(f, x):
        program = tr.trace(f, tr.asarray(x, device="cuda:0"))
        native, there = get_backend("cuda").whole(lower(program, kind="cuda"), bare=True), upload(x).data
        FakeCupy.synchronized.clear()
        return native.run((), there).view(np.ndarray)

    return run


def several(x):
    spd = x @ tr.matrix_transpose(x) + tr.eye(x.shape[-1], device=x.device)
    w, v = tr.linalg.eigh(spd)
    u, s, _ = tr.linalg.svd(tr.linalg.cholesky(spd), full_matrices=False)
    return tr.sum(w) + tr.sum(s) * tr.sum(tr.abs(u)) + tr.sum(tr.linalg.solve(spd, v))


def test_a_program_waits_once_for_all_checks(whole):
    x = stack("float64", 3, 30, 30)
    found = whole(several, x)
    assert waits() == 1
    np.testing.assert_allclose(found, np.asarray(several(tr.asarray(x))))


def test_the_first_failure_of_a_program_is_raised_with_its_call(whole):
    x = stack("float64", 3, 30, 30)
    x[1] = 0.0
    f = lambda x: tr.linalg.svdvals(tr.linalg.inv(x)) + tr.linalg.eigvalsh(tr.linalg.inv(x) * 2.0)
    with pytest.raises(NumericalError, match=r"inv: matrix \(1,\) of the stack is singular") as raised:
        whole(f, x)
    assert [note for note in raised.value.__notes__ if note.startswith("in inv")]
    x = stack("float64", 3, 30, 30)
    x[2, 5, 7] = np.nan
    with pytest.raises(NumericalError, match=r"svdvals: the operand contains nan or inf at index \(2, 5, 7\)"):
        whole(lambda x: tr.linalg.svdvals(x) * 2.0, x)


def test_loops_test_their_checks_from_time_to_time_and_before_decisions(whole, monkeypatch):
    monkeypatch.setattr(_checks, "MAX_PENDING", 8)
    x = stack("float64", 30, 30)
    loop = lambda x: tr.fori_loop(0, 10, lambda i, c: tr.linalg.qr(c * 0.5 + x)[0], x)
    np.testing.assert_allclose(whole(loop, x), np.asarray(loop(tr.asarray(x))), atol=1e-10)
    assert 1 < waits() < 5
    endless = lambda x: tr.while_loop(lambda c: tr.isnan(tr.sum(c)), lambda c: tr.linalg.inv(c * 0.0), x * np.nan)
    with pytest.raises(NumericalError, match="inv: the operand contains nan"):
        whole(endless, x)
