"""Operations, programs, derivatives and families give on the simulated accelerator what they give on the CPU."""

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenferro_runtime as tr
from simulated.faults import Faults
from simulated.installed import simulated
from tenferro_ad import EagerTensor, check_grads, grad, hvp, jvp, variable
from tenferro_einsum import einsum
from tenferro_runtime import fft, linalg
from tenferro_runtime.running import fusion
from tenferro_tensor_core import HostAdapterError, PlacementError, UnsupportedError

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5))
Z = X + 1j * Y
S = RNG.standard_normal((4, 4)) + 4 * np.eye(4)
B = X > 0

CASES: dict[str, Any] = {
    "arithmetic": (lambda x, y: (x + y) * 2 - x / (y * y + 1) % 3, X, Y),
    "analytic": (lambda x: tr.exp(tr.sin(x)) + tr.log1p(x * x) + tr.erf(x) + tr.lgamma(x * x + 1), X),
    "complex": (lambda z: tr.abs(z) + tr.real(z * tr.conj(z)) + tr.imag(tr.sqrt(z)), Z),
    "comparison": (lambda x, y, b: tr.where(x < y, x, tr.where(b, y, -x)), X, Y, B),
    "bits": (lambda b: (b & ~b) | (b ^ b), B),
    "promotion": (lambda x, b: tr.asarray(x) + b + 1, X.astype("float32"), B),
    "reductions": (lambda x: tr.sum(x, axis=0) + tr.max(x) + tr.mean(x, axis=0) * tr.prod(x) + tr.std(x), X),
    "searching": (lambda x: tr.argmax(x, axis=1) + tr.argsort(x, axis=1)[:, 0], X),
    "sorting": (lambda x: tr.sort(x, axis=1, descending=True), X),
    "scans": (lambda x: tr.cumulative_sum(x, axis=1), X),
    "structure": (lambda x, y: tr.concat([x[1:, ::-2], y[:3, 1:4].reshape(3, 3)], axis=1).mT, X, Y),
    "indexing": (lambda x: tr.take(x, tr.asarray([3, 0, 0], device=x.device), axis=0)[:, 1:3], X),
    "creation": (lambda x: tr.ones_like(x) + tr.arange(5, device=x.device) + tr.eye(4, 5, device=x.device), X),
    "products": (lambda x, y: x @ y.mT + tr.tensordot(x, y, axes=((1,), (1,))), X, Y),
    "einsum": (lambda x, y, s: einsum("ij,kj,kl->il", x, y, s), X, Y, S),
    "solve": (lambda s, x: linalg.solve(s, x) + linalg.inv(s) @ x, S, X),
    "decompositions": (lambda s: linalg.qr(s)[1] ** 2 + linalg.svd(s)[1] + linalg.eigh(s + s.mT)[0], S),
    "determinants": (lambda s: linalg.det(s) + linalg.slogdet(s)[1] + linalg.vector_norm(s), S),
    "cholesky": (lambda s: linalg.cholesky(s @ s.mT), S),
    "fft": (lambda x: tr.abs(fft.fft(x)) + fft.irfft(fft.rfft(x), n=5), X),
    "scalars": (lambda x: 2 ** (x[0, 0] * 3) + 1, X),
    "empty": (lambda x: tr.sum(x[:0], axis=0) + x[:0].reshape(0, 5).mT.sum(), X),
}
DIFFERENTIABLE = ["arithmetic", "analytic", "reductions", "structure", "products", "einsum", "solve", "determinants",
                  "cholesky", "scans", "indexing", "decompositions"]  # fmt: skip


def values(result):
    return np.asarray(result.to_device("cpu:0"))


@pytest.fixture(autouse=True)
def sim():
    with simulated(faults=Faults(seed=3, delayed=0.05, longest=5e-4)) as runtime:
        yield runtime


def on(device, arrays):
    return [tr.asarray(a, device=device) for a in arrays]


@pytest.mark.parametrize("name", CASES)
def test_operations_agree(sim, name):
    f, *arrays = CASES[name]
    want = values(f(*on("cpu:0", arrays)))
    issued = sim.issued["kernel"]
    out = f(*on("sim:2", arrays))
    assert str(out.device) == "sim:2" and sim.issued["kernel"] > issued
    assert not sim.device(1).memory()["peak"]
    np.testing.assert_allclose(values(out), want, rtol=1e-13, atol=1e-13)
    assert values(out).dtype == want.dtype


@pytest.mark.parametrize("name", CASES)
def test_compiled_programs_agree(name):
    f, *arrays = CASES[name]
    want = values(f(*on("cpu:0", arrays)))
    compiled = tr.compile(f)
    for _ in range(3):
        out = compiled(*on("sim:1", arrays))
        assert str(out.device) == "sim:1"
        np.testing.assert_allclose(values(out), want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_and_stay_where_the_values_are(name):
    f, *arrays = CASES[name]

    def loss(x):
        out = f(x, *rest)
        return tr.sum(out * out)

    rest = on("cpu:0", arrays[1:])
    want = values(grad(loss)(tr.asarray(arrays[0])))
    rest = on("sim:3", arrays[1:])
    x = tr.asarray(arrays[0], device="sim:3")
    for gradient in (grad(loss), tr.compile(grad(loss)), grad(tr.compile(loss))):
        got = gradient(x)
        assert str(got.device) == "sim:3"
        np.testing.assert_allclose(values(got), want, rtol=1e-10, atol=1e-11)
    leaf = variable(x)
    loss(leaf).backward()
    np.testing.assert_allclose(values(leaf.grad), want, rtol=1e-10, atol=1e-11)
    _, slope = jvp(loss, (x,), (x,))
    np.testing.assert_allclose(values(slope), np.sum(want * arrays[0]), rtol=1e-9)


def recurrence(x):
    carry, rows = tr.scan(lambda c, row: (c * row + 1, 2 * c), tr.ones_like(x[0]), x)
    return tr.sum(carry) + tr.sum(rows * rows)


def backwards(x):
    (_, n), rows = tr.scan(lambda c, row: ((c[0] + row, c[1] + 1), c[0]), (x[0], tr.sum(x) * 0), x, reverse=True)
    return tr.sum(rows[1]) * n


def nothing(x):
    carry, rows = tr.scan(lambda c, row: (c + row, c), x[0], x[:0])
    return tr.sum(carry) + tr.sum(rows)


CONTROL = {
    "scan": recurrence,
    "reversed": backwards,
    "no steps": nothing,
    "cond": lambda x: tr.cond(tr.sum(x) > 0, lambda x: tr.sum(x * x), lambda x: tr.sum(x), x),
    "switch": lambda x: tr.switch(tr.argmax(x[0]) % 2, [lambda x: tr.sum(x), lambda x: tr.sum(x * x)], x),
    "compress": lambda x: tr.sum(tr.compress(x.reshape(-1), x.reshape(-1) > 0.3) ** 2),
}


@pytest.mark.parametrize("name", CONTROL)
def test_branches_and_loops_agree(name):
    f = CONTROL[name]
    want, slope = values(f(tr.asarray(X))), values(grad(f)(tr.asarray(X)))
    for run, gradient in ((f, grad(f)), (tr.compile(f), tr.compile(grad(f))), (tr.compile(f), grad(tr.compile(f)))):
        for _ in range(2):
            x = tr.asarray(X, device="sim:1")
            assert str(run(x).device) == "sim:1"
            np.testing.assert_allclose(values(run(x)), want, rtol=1e-12)
            np.testing.assert_allclose(values(gradient(x)), slope, rtol=1e-12, atol=1e-13)


def test_a_loop_of_no_steps_moves_nothing():
    f = tr.compile(lambda x, y: tr.scan(lambda c, row: (c + row, c * 2), y, x))
    y = tr.asarray(X[0], device="sim:1")
    for n in (3, 0):
        x = tr.asarray(X[:n], device="sim:1")
        with tr.no_transfers():
            carry, rows = f(x, y)
        assert str(rows.device) == "sim:1"
        assert values(rows).shape == (n, 5)
        np.testing.assert_allclose(values(carry), X[0] + X[:n].sum(axis=0), rtol=1e-14)


def test_loops_ask_the_device_whether_they_go_on(sim):
    f = lambda x: tr.while_loop(lambda v: tr.sum(v) < 100, lambda v: v * 2 + 1, x)
    want = values(f(tr.asarray(X)))
    for run in (f, tr.compile(f)):
        np.testing.assert_array_equal(values(run(tr.asarray(X, device="sim:1"))), want)


def test_values_can_be_copied_pickled_read_and_looked_at():
    x = tr.asarray(X, device="sim:1")
    for y in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        tr.asarray(x.tolist(), device="sim:1"),
    ):
        assert str(y.device) == "sim:1" and y.data is not x.data
        np.testing.assert_array_equal(values(y), X)
    assert x[1, 2].item() == X[1, 2] == float(x[1, 2]) and bool(tr.all(x == x))
    assert [str(row.device) for row in x] == ["sim:1"] * 4
    np.testing.assert_array_equal(x.numpy(), X)
    assert repr(x) == repr(tr.asarray(X))
    with pytest.raises(HostAdapterError, match=r"has no DLPack form, .* download it with .to_device\('cpu:0'\)"):
        np.from_dlpack(x)


def test_programs_can_be_looked_at():
    x = tr.asarray(X, device="sim:1")
    f = tr.compile(lambda x: tr.log(tr.sum(x, axis=1) - 100) * 2)
    assert len(f.profile(x).steps) >= 2 and "log" in str(f.explain(x)) and "sim:1" in str(tr.trace(f, x))
    assert "log" in str(tr.find_nan(lambda x: tr.log(x - 100) * 2, x))
    assert "sim:1" in str(tr.explain_dispatch(lambda x: tr.sin(x), x))


def test_programs_keep_no_memory(sim):
    """Apart from numbers that programs hold, as much is in use after many calls as after a few."""
    f = tr.compile(lambda x: tr.tanh(x @ x.mT) + tr.mean(x))
    gradient = tr.compile(grad(lambda x: tr.sum(tr.exp(x) * tr.sin(x))))
    x = tr.asarray(X, device="sim:1")

    def live(times):
        for _ in range(times):
            f(x), gradient(x), grad(lambda x: tr.sum(tr.exp(x @ x.mT)))(x), tr.sort(x)
        gc.collect()
        sim.synchronize_all()
        return sim.device(1).memory()["live"]

    live(25)
    fusion.wait()
    assert live(2) == live(20)


def test_contractions_in_slices_need_arrays_of_numpy_or_cupy():
    chain = [tr.asarray(RNG.standard_normal((6, 6, 6)), device="sim:0") for _ in range(3)]
    with pytest.raises(UnsupportedError, match="sliced contractions have no kernel for sim devices; leave out memory"):
        einsum("iab,jbc,kca->ijk", *chain, memory_budget=16000)


def test_second_derivatives():
    f = lambda x: tr.sum(tr.exp(x) * tr.sin(x))
    x, v = np.linspace(0, 1, 4), np.arange(4.0)
    want = values(hvp(f, (tr.asarray(x),), (tr.asarray(v),)))
    got = hvp(f, tuple(on("sim:0", [x])), tuple(on("sim:0", [v])))
    np.testing.assert_allclose(values(got), want, rtol=1e-13)


def test_derivatives_go_through_transfers():
    def f(x):
        y = tr.exp(x.to_device("sim:1"))
        return tr.sum((y.to_device("sim:2") * 2).to_device("cpu:0") * x)

    x = tr.asarray(np.array([0.5, 1.5]))
    want = 2 * np.exp([0.5, 1.5]) * np.array([1.5, 2.5])
    for gradient in (grad(f), tr.compile(grad(f)), grad(tr.compile(f))):
        got = gradient(x)
        assert str(got.device) == "cpu:0"
        np.testing.assert_allclose(np.asarray(got), want)
    assert isinstance(f(variable(x)), EagerTensor)


def test_nothing_is_transferred_by_itself(sim):
    host, one, other = tr.asarray(X), tr.asarray(X, device="sim:0"), tr.asarray(X, device="sim:1")
    sim.issued.clear()
    for mixed in (lambda: host + one, lambda: one * other, lambda: tr.concat([one, other])):
        with pytest.raises(PlacementError):
            mixed()
    with pytest.raises(PlacementError):
        np.asarray(one)
    assert not sim.issued


@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.complex128, np.int32]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.integers(-3, 3),
    ),
    st.integers(0, 3),
)
def test_any_shape_and_dtype(array, device):
    for view in (array, array.T, array[..., ::-1] if array.ndim else array):
        x = tr.asarray(view, device=f"sim:{device}")
        got = values(tr.sum(x * x + 1) + (x - x))
        want = np.sum(view * view + 1) + (view - view)
        np.testing.assert_array_equal(got, want)


def test_random_checks_of_derivatives():
    x = tr.asarray(X, device="sim:1")
    check_grads(lambda x: tr.sum(tr.tanh(x @ x.mT)), (x,), order=1)
