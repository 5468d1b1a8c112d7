"""Tests marked `gpu` run where CuPy sees a device, and are skipped with the reason elsewhere; others simulate CuPy."""

import sys

import pytest

from installed_cupy import forget, fresh_process, modules
from tenferro_gpu import CudaContext
from tenferro_tensor_core import BackendUnavailableError


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        try:
            CudaContext.for_device(0)
        except BackendUnavailableError as reason:
            pytest.skip(str(reason))


@pytest.fixture
def fake_process():
    """A process that has used no accelerator, before the test and after it."""
    with fresh_process():
        yield


@pytest.fixture
def with_cupy(fake_process, monkeypatch):
    """Installs a simulated CuPy."""

    def install(**kind):
        forget()
        for name, found in modules(**kind).items():
            monkeypatch.setitem(sys.modules, name, found)
        return sys.modules["cupy"]

    return install
