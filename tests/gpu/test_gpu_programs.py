"""Whole programs as kernels on a simulated CuPy: devices, streams, memory, constants."""

import numpy as np
import pytest

import tenferro_runtime as tr
from fake_cupy import FakeCupy
from host_kernels import COMPILER, HostCompiler
from tenferro_gpu import CudaContext, _machine_code, upload
from tenferro_runtime.lowering import lower
from tenferro_tensor import compute_context, device_runtime, get_backend
from tenferro_tensor.loop_ir import Foreign, everything
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError

on_host = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")

X = np.random.default_rng(0).uniform(0, 1, (30, 200))
TABLE = np.random.default_rng(1).uniform(0, 1, 200)


def program(x):
    y = tr.fori_loop(0, 3, lambda i, c: c * 0.5 + tr.sum(c) * TABLE, x)
    return tr.while_loop(lambda c: tr.max(c) > 10.0, lambda c: c * 0.25, y)


@pytest.fixture
def compiler(with_cupy, monkeypatch):
    with_cupy()
    made = HostCompiler()
    monkeypatch.setattr(_machine_code, "compiler", lambda kind, architecture, major: made)
    return made


def whole():
    return get_backend("cuda").whole(lower(tr.trace(program, tr.asarray(X))), bare=True)


@on_host
def test_a_program_runs_where_its_operands_are(compiler):
    run, want = whole().run, np.asarray(program(tr.asarray(X)))
    for device in ("cuda:0", "cuda:1", "cuda:0"):
        x = upload(X, device).data
        FakeCupy.launched.clear()
        raw = run((), x)
        assert {at for at, _ in FakeCupy.launched} == {x.device.id} == {raw.device.id}
        np.testing.assert_allclose(raw.view(np.ndarray), want, rtol=1e-12)
        turned = upload(np.ascontiguousarray(X.T), device).data.T
        assert not turned.flags.c_contiguous
        np.testing.assert_array_equal(run((), turned).view(np.ndarray), raw.view(np.ndarray))


@on_host
def test_a_program_runs_on_the_stream_of_its_operands(compiler):
    context = CudaContext.for_device(1)
    run = whole().run
    with compute_context(context):
        x = tr.asarray(X, device="cuda:1").data
        FakeCupy.launched.clear()
        raw = run((), x)
    assert set(FakeCupy.launched) == {(1, context.stream.raw)}  # type: ignore[attr-defined]
    assert device_runtime("cuda").stream_of(raw) is context.stream
    assert FakeCupy.current == 0


@on_host
def test_memory_of_a_run_is_given_back(compiler):
    native, x = whole(), upload(X, "cuda:0").data
    native.run((), x)  # constants stay
    device = device_runtime("cuda").device(0)
    before = device.memory()["live"]
    raw = native.run((), x)
    assert device.memory()["live"] - before == raw.nbytes


def smoothed(x):
    inner = lambda c: 0.25 * (c[2:] + c[:-2]) + 0.5 * c[1:-1]
    return tr.scan(lambda c, _: (c.at[1:-1].set(inner(c)), tr.sum(c)), x, None, length=4)


def power_iteration(a):
    def step(v, _):
        v = a.T @ (a @ v)
        return v / tr.linalg.vector_norm(v), None

    return tr.scan(step, a[0], None, length=3)[0]


FUNCTIONS = {
    "rows": (lambda x: tr.exp(x - tr.max(x, axis=1, keepdims=True)), X),
    "columns": (lambda x: tr.sum(x * x, axis=0) / x.shape[0], X),
    "shifts": (lambda x: tr.flip(x, axis=0)[2:] + tr.concat([x[1:-1], x[:0]]) * tr.roll(x, 1, axis=1)[1:-1], X),
    "turned": (lambda x: x[:, :30].T + x[:, 5:35] * tr.expand_dims(x[0, :30], axis=1), X),
    "product": (lambda x: tr.tanh(x @ x.T) + 1.0, X),
    "batch of products": (lambda x: tr.sum(x @ tr.matrix_transpose(x), axis=0), X.reshape(5, 30, 40)),
    "eigenvalues": (lambda x: tr.linalg.eigvalsh(x @ x.T)[::-1] * 2.0, X),
    "transform": (lambda x: tr.abs(tr.fft.rfft(x * 2.0, axis=1)), X),
    "sorted": (lambda x: tr.sort(x, axis=1) - x, X),
    "scan": (smoothed, X),
    "calls in loops": (power_iteration, X),
    "table": (lambda x: x * tr.to_device(tr.asarray(TABLE), x.device), X),
    "complex": (lambda x: tr.sum(x * tr.conj(x) + tr.exp(1j * x.real), axis=1), X + 1j),
    "empty": (lambda x: (tr.sum(x, axis=1), tr.exp(x)), X[:, :0]),
    "gathered": (lambda x: x[tr.argmax(x, axis=0) % 3], X),
}


@on_host
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_of_a_device_are_lowered_for_it(compiler, name):
    f, x = FUNCTIONS[name]
    program = tr.trace(f, tr.asarray(x, device="cuda:1"))
    function = lower(program, kind="cuda")
    found = get_backend("cuda").whole(function).run((), upload(x, "cuda:1").data)
    want = f(tr.asarray(x))
    for got, value in zip(found, map(np.asarray, want if isinstance(want, tuple) else (want,)), strict=True):
        assert (got.device.id, got.dtype, got.shape) == (1, value.dtype, value.shape)
        np.testing.assert_allclose(got.view(np.ndarray), value, rtol=1e-10, atol=1e-10)
    assert not any(isinstance(s, Foreign) for s in everything(function.body))


@on_host
def test_open_sizes_are_arguments(compiler):
    n, m = tr.dim("n", 1), tr.dim("m", 1)
    f = lambda x, y: (tr.tanh(x @ y), tr.sum(x, axis=0) + tr.max(y), tr.linalg.qr(x @ y)[0])
    x = tr.asarray(X, device="cuda:0").spec
    function = lower(tr.trace(f, x.with_(shape=(n, m)), x.with_(shape=(m, n))), kind="cuda")
    native = get_backend("cuda").whole(function)
    for rows in (30, 7):
        a, b = X[:rows], X[:rows].T * 0.5
        sizes = tuple({"n": rows, "m": X.shape[1]}[name] for name in function.sizes)
        found = native.run(sizes, *[upload(v, "cuda:0").data for v in (a, b)])
        for got, value in zip(found, f(tr.asarray(a), tr.asarray(b)), strict=True):
            np.testing.assert_allclose(got.view(np.ndarray), np.asarray(value), rtol=1e-9, atol=1e-9)
    assert len(compiler.sources) == len(set(compiler.sources)) + 1  # compiled, then loaded


def test_what_is_not_on_one_device_is_not_lowered_for_it(compiler):
    x = tr.asarray(X, device="cuda:1")
    for f, given in ((lambda x: x + 1, tr.asarray(X)), (lambda x: (x, tr.asarray(2) + 1), x)):
        with pytest.raises(UnsupportedError, match="only programs on one device of kind cuda are lowered to loops"):
            lower(tr.trace(f, given), kind="cuda")
    moved = lower(tr.trace(lambda x: x.to_device("cpu:0").to_device("cuda:1") * 2.0, x), kind="cuda")
    with pytest.raises(UnsupportedError, match="transfer is nothing that one GPU does by itself"):
        get_backend("cuda").whole(moved)


def test_without_a_compiler_there_is_no_form(with_cupy, monkeypatch):
    with_cupy()

    def absent(*args):
        raise BackendUnavailableError("no compiler")

    monkeypatch.setattr(_machine_code, "compiler", absent)
    assert whole() is None
