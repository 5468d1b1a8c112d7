"""Values of sparse Jacobians and Hessians, the number of products they take, and what is kept between calls."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tenferro_runtime as tr
from runtime_rooms import COUNTERS
from simulated.installed import simulated
from tenferro_ad import grad, hessian, jacfwd, jacrev, sparse_hessian, sparse_jacobian, variable
from tenferro_ad.sparse import Compression, _plan
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, GradientError, UnsupportedError

RNG = np.random.default_rng(7)
X = RNG.uniform(0.5, 1.5, 40)
U = RNG.uniform(0.5, 1.5, (17, 19))


def rosenbrock(x: Any) -> Any:
    return tr.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def energy(u: Any) -> Any:
    """Nonlinear energy of a grid: neighbors interact."""
    return tr.sum((u[1:] - u[:-1]) ** 4) + tr.sum((u[:, 1:] - u[:, :-1]) ** 4) + tr.sum(tr.cos(u))


def arrow(x: Any) -> Any:
    """A dense row, a dense column and a diagonal."""
    return tr.concat([tr.sum(x * x)[None], x[1:] * x[0]])


def dense(found: Any, expected: Any) -> None:
    assert isinstance(found, scipy.sparse.csr_array)
    np.testing.assert_allclose(found.toarray(), expected.numpy().reshape(found.shape), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("f", "x", "compression"),
    [
        (lambda x: x[1:] * x[:-1], X, Compression(2, 0, 78)),
        (lambda x: tr.roll(x, 1) * tr.roll(x, -1) * x, X, Compression(4, 0, 120)),
        (tr.sum, X, Compression(0, 1, 40)),
        (lambda x: tr.stack([x, x * x]), X, Compression(1, 0, 80)),
        (arrow, X, Compression(2, 1, 118)),
        (lambda x: tr.sum(x) * x[:2], X, Compression(0, 2, 80)),
        (lambda x: x[:0], X, Compression(0, 0, 0)),
        (lambda u: u[1:, :] * u[:-1, :], U, Compression(2, 0, 608)),
    ],
    ids=["difference", "ring", "sum", "two rows", "arrow", "two dense rows", "nothing", "grid"],
)
def test_jacobian(f: Any, x: Any, compression: Compression) -> None:
    jacobian = sparse_jacobian(f)
    dense(jacobian(x), jacfwd(f)(x))
    assert jacobian.compression(x) == compression


@pytest.mark.parametrize(
    ("f", "x", "products"),
    [
        (rosenbrock, X, 3),
        (energy, U, 5),
        (lambda x: tr.sum(x * x * x), X, 1),
        (tr.sum, X, 0),
        (lambda x: tr.sum(x[1:] * x[0]), X, 2),
        (lambda x: tr.sum(x) ** 2, X[:6], 6),
        (lambda u: tr.sum((u[1:, 1:] * u[:-1, :-1] * u[1:, :-1]) ** 2), U, None),
    ],
    ids=["rosenbrock", "energy of a grid", "separable", "linear", "star", "dense", "triangles"],
)
def test_hessian(f: Any, x: Any, products: int | None) -> None:
    second = sparse_hessian(f)
    dense(second(x), hessian(f)(x))
    if products is not None:
        assert second.compression(x)[:2] == (products, 0)


@pytest.mark.parametrize("mode", ["columns", "rows", "both", "auto"])
def test_modes_give_one_matrix(mode: str) -> None:
    dense(sparse_jacobian(arrow, mode=mode)(X), jacfwd(arrow)(X))


@pytest.mark.parametrize("convention", ["tenferro", "jax"])
@pytest.mark.parametrize("mode", ["columns", "rows", "both", "auto"])
@pytest.mark.parametrize(
    ("f", "x", "holomorphic"),
    [
        (lambda z: tr.abs(z[1:] * z[:-1]) ** 2, X[:6] + 1j * X[6:12], False),
        (lambda x: tr.exp(1j * x[1:]) * x[:-1], X[:6], False),
        (lambda z: tr.exp(z[1:]) * z[:-1], X[:6] + 1j * X[6:12], True),
    ],
    ids=["complex to real", "real to complex", "holomorphic"],
)
def test_complex_numbers(f: Any, x: Any, holomorphic: bool, mode: str, convention: str) -> None:
    found = sparse_jacobian(f, mode=mode, holomorphic=holomorphic, convention=convention)(x)
    dense(found, jacfwd(f, holomorphic=holomorphic, convention=convention)(x))
    dense(found, jacrev(f, holomorphic=holomorphic, convention=convention)(x))


def test_containers() -> None:
    def f(p: Any, y: Any, flag: str) -> Any:
        assert flag == "on"
        return {"a": p["w"][1:] * y[:-1], "b": (tr.sum(p["v"] ** 2), tr.exp(1j * y))}

    args = {"w": X, "v": U}, X, "on"
    found = sparse_jacobian(f, (0, 1))(*args)
    expected = jacfwd(lambda p, y: f(p, y, "on"), (0, 1))(*args[:2])
    for get in (lambda t: t["a"], lambda t: t["b"][0], lambda t: t["b"][1]):
        for n in (lambda t: t[0]["w"], lambda t: t[0]["v"], lambda t: t[1]):
            dense(n(get(found)), n(get(expected)))
    assert found["a"][1].dtype == np.float64 and found["b"][1][1].dtype == np.complex128


def test_hessian_of_several_arguments() -> None:
    def f(p: Any, y: Any) -> Any:
        return tr.sum(p["w"] ** 2 * y) + tr.sum(p["v"][1:] * p["v"][:-1])

    args = {"w": X, "v": U}, X
    found, expected = sparse_hessian(f, (0, 1))(*args), hessian(f, (0, 1))(*args)
    dense(found[0]["w"][1], expected[0]["w"][1])
    dense(found[0]["v"][0]["v"], expected[0]["v"][0]["v"])
    assert found[1][1].nnz == 0 and found[0]["w"][0]["v"].nnz == 0


def test_aux() -> None:
    found, aux = sparse_jacobian(lambda x: (arrow(x), {"sum": tr.sum(x), "name": "a"}), has_aux=True)(X)
    dense(found, jacfwd(arrow)(X))
    assert aux["name"] == "a" and np.isclose(aux["sum"].item(), X.sum())
    found, aux = sparse_hessian(lambda x: (rosenbrock(x), tr.sum(x)), has_aux=True)(X)
    dense(found, hessian(rosenbrock)(X))
    assert np.isclose(aux.item(), X.sum())


def test_other_arguments_and_numbers_are_not_constants() -> None:
    jacobian = sparse_jacobian(lambda x, k, *, shift: x * k + shift * x)
    for k in (2.0, 3.0):
        dense(jacobian(X, k, shift=k * X), jacfwd(lambda x, n, y: x * n + y * x)(X, k, k * X))
    assert jacobian(np.ones(2, np.float32), np.float32(2), shift=np.float32(1)).dtype == np.float32


def test_pattern_and_colors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call of the same sizes traces nothing, reads no pattern and colors nothing."""
    jacobian, second = sparse_jacobian(arrow), sparse_hessian(rosenbrock)
    jacobian(X), second(X)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("computed again")

    for name in ("color_columns", "color_symmetric"):
        monkeypatch.setattr(_plan, name, fail)
    monkeypatch.setattr("tenferro_ad.sparse._derivatives.relations_of", fail)
    traces = COUNTERS.traces
    dense(jacobian(2 * X), jacfwd(arrow)(2 * X))
    assert jacobian(X).nnz == 118 and second(2 * X).nnz == 118
    assert COUNTERS.traces == traces
    with pytest.raises(AssertionError, match="computed again"):
        jacobian(X[:-1])


def test_another_size_is_no_new_trace() -> None:
    jacobian = sparse_jacobian(arrow)
    jacobian(X)
    traces = COUNTERS.traces
    dense(jacobian(X[:-5]), jacfwd(arrow)(X[:-5]))
    assert jacobian(np.ones(1000)).nnz == 2998
    assert COUNTERS.traces - traces <= 1  # the dense one


def test_a_rebound_variable_is_noticed() -> None:
    scale: Any = 2.0
    jacobian = sparse_jacobian(lambda x: x[1:] * x[:-1] * scale)
    first = jacobian(X)
    scale = 3.0
    assert np.allclose(jacobian(X).data, 1.5 * first.data)
    scale = variable(2.0)
    with pytest.raises(UnsupportedError, match="closes over a differentiated or traced value"):
        jacobian(X)


def test_result_is_the_callers_own() -> None:
    jacobian = sparse_jacobian(arrow)
    first = jacobian(X)
    first.data[:] = 0
    first.indices[:] = 0
    first.indptr[:] = 0
    dense(jacobian(X), jacfwd(arrow)(X))


@pytest.mark.parametrize("memory_budget", [1, 10_000])
def test_many_colors_in_chunks(memory_budget: int) -> None:
    for mode in ("columns", "rows", "both"):
        dense(sparse_jacobian(arrow, mode=mode, memory_budget=memory_budget)(X), jacfwd(arrow)(X))
    dense(sparse_hessian(energy, memory_budget=memory_budget)(U), hessian(energy)(U))


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(GradientError, match="sparse_jacobian needs a function with real or complex floating-point"):
        sparse_jacobian(lambda x: x > 1)(X)
    with pytest.raises(GradientError, match="cannot differentiate with respect to int64"):
        sparse_jacobian(lambda x: x)(np.arange(3))
    with pytest.raises(GradientError, match="only a holomorphic function"):
        sparse_jacobian(lambda z: z * z)(X + 1j)
    with pytest.raises(GradientError, match="sparse_hessian needs real arguments"):
        sparse_hessian(lambda z: tr.sum(tr.abs(z) ** 2))(X + 1j)
    with pytest.raises(UnsupportedError, match="needs concrete arguments"):
        tr.compile(lambda x: sparse_jacobian(arrow)(x))(X)
    with pytest.raises(UnsupportedError, match="needs concrete arguments"):
        grad(lambda x: sparse_jacobian(arrow)(x))(X)
    with pytest.raises(UnsupportedError, match="data-dependent sizes"):
        sparse_jacobian(lambda x: tr.sum(tr.compress(x, x > 1)))(X)
    with pytest.raises(ArgumentError, match="mode='sideways' is unknown"):
        sparse_jacobian(arrow, mode="sideways")
    with pytest.raises(ArgumentError, match="was asked to differentiate argument 1"):
        sparse_jacobian(arrow, 1)(X)
    with pytest.raises(ArgumentError, match=r"has 10+ entries, which is too many"):
        sparse_jacobian(lambda x: tr.sum(x) * x)(np.ones(100_000))


def test_on_an_accelerator() -> None:
    """The products run where the arguments are; the result is an array of SciPy, in main memory."""
    with simulated():
        x = tr.to_device(tr.asarray(X), "sim:0")
        for f in (arrow, lambda u: u[1:] * u[:-1]):
            dense(sparse_jacobian(f)(x), jacfwd(f)(X))
        dense(sparse_hessian(rosenbrock)(x), hessian(rosenbrock)(X))


def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(BackendUnavailableError, match="SciPy cannot be imported; install it"):
        sparse_jacobian(arrow)(X)


MILLION = """
import resource
import numpy as np
import tenferro_runtime as tr
from tenferro_ad import sparse_hessian, sparse_jacobian

def f(x):
    return tr.concat([x[:1], x[:-2] * x[1:-1] * tr.sin(x[2:]), x[-1:]])

def g(x):
    return tr.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

n = 1_000_000
x = np.linspace(0.1, 1, n)
jacobian, hessian = sparse_jacobian(f), sparse_hessian(g)
J, H = jacobian(x), hessian(x)
assert jacobian.compression(x) == (3, 0, 2999996), jacobian.compression(x)
assert hessian.compression(x) == (3, 0, 2999998), hessian.compression(x)
i = n // 2
assert np.isclose(J[i, i - 1], x[i] * np.sin(x[i + 1]))
assert np.isclose(J[i, i + 1], x[i - 1] * x[i] * np.cos(x[i + 1]))
assert np.isclose(H[i, i + 1], -400 * x[i])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_a_million_variables() -> None:
    """Three products each; the peak of memory is a few times that of the result, which has 36 MB."""
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1500  # 720, and what the compiler takes meanwhile where nothing is on disk yet
