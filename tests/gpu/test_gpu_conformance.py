"""The contract of device runtimes, on a simulated CuPy and on hardware."""

import pytest

from fake_cupy import FakeCupy
from runtime_conformance import RuntimeConformance
from tenferro_tensor import device_runtime


class TestSimulated(RuntimeConformance):
    @pytest.fixture(params=[1, 3], ids=["one device", "three devices"])
    def runtime(self, with_cupy, request, monkeypatch):
        with_cupy(count=request.param)
        monkeypatch.setattr(FakeCupy, "pageable", True)  # some tests copy into arrays of their own
        return device_runtime("cuda")


@pytest.mark.gpu
class TestHardware(RuntimeConformance):
    @pytest.fixture
    def runtime(self):
        return device_runtime("cuda")
