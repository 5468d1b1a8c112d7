"""Whole programs as kernels on a simulated CuPy: devices, streams, memory, constants."""

import numpy as np
import pytest

import tenferro_runtime as tr
from fake_cupy import FakeCupy
from host_kernels import COMPILER, HostCompiler
from tenferro_gpu import CudaContext, _fusing, upload
from tenferro_runtime.lowering import lower
from tenferro_tensor import compute_context, device_runtime, get_backend
from tenferro_tensor_core import BackendUnavailableError

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
    monkeypatch.setattr(_fusing, "compiler", lambda kind, architecture, major: made)
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
    assert native.memory(()) >= 2 * X.nbytes


def test_without_a_compiler_there_is_no_form(with_cupy, monkeypatch):
    with_cupy()

    def absent(*args):
        raise BackendUnavailableError("no compiler")

    monkeypatch.setattr(_fusing, "compiler", absent)
    assert whole() is None
