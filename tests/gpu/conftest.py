"""Tests marked `gpu` run where CuPy sees a device, and are skipped with the reason elsewhere; others simulate CuPy."""

import sys

import pytest

from fake_cupy import FakeCupy, fake_cupyx
from simulated.installed import no_accelerator
from tenferro_gpu import CudaContext, _kernels, _stack
from tenferro_linalg import _providers
from tenferro_runtime import fusion
from tenferro_tensor import REGISTRY, clear_plans
from tenferro_tensor import backends as backends
from tenferro_tensor_core import BackendUnavailableError


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        try:
            CudaContext.for_device(0)
        except BackendUnavailableError as reason:
            pytest.skip(str(reason))


def forget():
    for cached in (_stack.cupy, _kernels.core_kernels, _providers.device):
        cached.cache_clear()
    fusion.clear()
    for kind in ("cuda", "rocm"):
        backends._made.pop(kind, None)
        for key in [k for k in REGISTRY._tables["kernel"] if k[1] == kind and k[0].extension is None]:
            del REGISTRY._tables["kernel"][key]
    clear_plans()


@pytest.fixture
def fake_process():
    """A process that has used no accelerator, before the test and after it."""
    with no_accelerator():
        forget()
        yield
        forget()


@pytest.fixture
def with_cupy(fake_process, monkeypatch):
    """Installs a simulated CuPy."""

    def install(**kind):
        forget()
        module = FakeCupy(**kind)
        for name, found in {"cupy": module, **fake_cupyx()}.items():
            monkeypatch.setitem(sys.modules, name, found)
        return module

    return install
