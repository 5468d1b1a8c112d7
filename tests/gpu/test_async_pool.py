"""CUDA's stream-ordered memory pool in place of CuPy's, on a simulated CuPy and on hardware."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tenferro_gpu
import tenferro_runtime as tr
from fake_cupy import FakeCupy, MemoryAsyncPool
from tenferro_gpu import upload
from tenferro_gpu.devices._pools import ASYNC_POOL_VARIABLE
from tenferro_gpu.whole import _graphs
from tenferro_tensor import device_runtime
from tenferro_tensor.conformance import check_device_runtime
from tenferro_tensor_core import BackendUnavailableError


@pytest.fixture
def asked(with_cupy, monkeypatch):
    """Installs a simulated CuPy in a process that asks for CUDA's pool."""
    monkeypatch.setenv(ASYNC_POOL_VARIABLE, "1")
    return with_cupy


def test_the_device_runtime_keeps_its_contract(asked, monkeypatch):
    asked(count=2)
    monkeypatch.setattr(FakeCupy, "pageable", True)  # some checks copy into arrays of their own
    report = check_device_runtime("cuda")
    assert {f.outcome for f in report.findings} == {"passed"}


def test_counts_are_those_of_the_driver(asked):
    asked(count=2)
    device = device_runtime("cuda").device(1)
    assert FakeCupy.allocator == FakeCupy.pool.malloc
    x = upload(np.ones(1000), "cuda:1")
    assert (device.memory()["live"], device.memory()["peak"]) == (8000, 8000)
    FakeCupy.pool.count(1)[0] += 64  # of another library
    assert device.memory()["live"] == 8064
    del x
    assert (device.memory()["live"], device.memory()["peak"]) == (64, 8000)
    assert tenferro_gpu.device("cuda:1").memory.stats() == device.memory()
    tenferro_gpu.device("cuda:1").memory.clear()
    assert FakeCupy.ordered[-1] == ("trimmed", 1)
    assert device_runtime("cuda").device(0).memory()["peak"] == 0


def test_cupy_keeps_its_allocator_unless_asked(with_cupy, monkeypatch):
    monkeypatch.delenv(ASYNC_POOL_VARIABLE, raising=False)
    with_cupy()
    upload(np.ones(3))
    assert FakeCupy.pool is None and FakeCupy.allocator is None


def test_other_kinds_have_none(asked):
    asked(is_hip=True)
    tr.asarray(np.ones(3), device="rocm:0")
    assert FakeCupy.pool is None and FakeCupy.allocator is None


def test_a_device_without_the_pool_says_so(asked, monkeypatch):
    asked()
    monkeypatch.setattr(MemoryAsyncPool, "supported", False)
    with pytest.raises(BackendUnavailableError) as caught:
        upload(np.ones(3))
    assert str(caught.value) == (
        "TENFERRO_CUDA_ASYNC_POOL=1 asks for the asynchronous memory pool of CUDA, which a device does not have "
        "(cudaErrorNotSupported: operation not supported); unset the variable"
    )
    assert FakeCupy.allocator is None


def test_memory_freed_meanwhile_would_be_part_of_graphs(monkeypatch):
    monkeypatch.setenv(_graphs.GRAPHS_VARIABLE, "1")
    monkeypatch.delenv(ASYNC_POOL_VARIABLE, raising=False)
    assert _graphs.wanted()
    monkeypatch.setenv(ASYNC_POOL_VARIABLE, "1")
    assert not _graphs.wanted()


@pytest.mark.gpu
def test_on_hardware():
    code = "from tenferro_tensor.conformance import check_device_runtime; print(check_device_runtime('cuda'))"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {ASYNC_POOL_VARIABLE: "1"}, check=True)
