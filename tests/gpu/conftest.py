"""Tests marked `gpu` run where CuPy sees a device, and are skipped with the reason elsewhere; others simulate CuPy.

With ``--require-gpu`` a missing device is an error.
"""

import sys

import pytest

from installed_cupy import forget, fresh_process, modules
from tenferro_gpu import CudaContext
from tenferro_tensor_core import BackendUnavailableError


def missing():
    """Why there is no device; empty if there is one."""
    try:
        CudaContext.for_device(0)
    except BackendUnavailableError as reason:
        return str(reason)
    return ""


def pytest_addoption(parser):
    parser.addoption("--require-gpu", action="store_true", help="fail without a device for the tests marked `gpu`")


def pytest_configure(config):
    if config.getoption("--require-gpu", False) and not hasattr(config, "workerinput"):
        reason = missing()
        if reason:
            raise pytest.UsageError(f"no test marked `gpu` can run: {reason}")


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        reason = missing()
        if reason:
            pytest.skip(reason)


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
