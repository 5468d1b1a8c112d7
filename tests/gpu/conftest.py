"""Tests marked `gpu` run where CuPy sees a device, and are skipped with the reason elsewhere."""

import pytest

from tenferro_gpu import CudaContext
from tenferro_tensor_core import BackendUnavailableError


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        try:
            CudaContext.for_device(0)
        except BackendUnavailableError as reason:
            pytest.skip(str(reason))
