"""Kernels and device runtime of the CuPy backends pass the checks for backends, on a simulated CuPy and on hardware."""

import pytest

from fake_cupy import FakeCupy
from tenferro_tensor import catalog
from tenferro_tensor.conformance import check_backend, check_device_runtime


@pytest.mark.parametrize("count", [1, 3], ids=["one device", "three devices"])
def test_the_device_runtime_on_a_simulated_cupy(with_cupy, count, monkeypatch):
    with_cupy(count=count)
    monkeypatch.setattr(FakeCupy, "pageable", True)  # some checks copy into arrays of their own
    report = check_device_runtime("cuda")
    assert {f.outcome for f in report.findings} == {"passed"}


def test_the_kernels_on_a_simulated_cupy(with_cupy):
    with_cupy(count=2)
    report = check_backend("cuda:1")
    assert {f.outcome for f in report.findings} == {"passed"}
    assert not [name for name in report.absent if hasattr(catalog, name)]  # other tests load special functions


@pytest.mark.gpu
def test_the_device_runtime_on_hardware():
    print(check_device_runtime("cuda"))


@pytest.mark.gpu
def test_the_kernels_on_hardware():
    print(check_backend("cuda:0"))
