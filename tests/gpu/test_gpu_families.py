"""Every primitive and family on a simulated CuPy: the kernels exist, stay on their device, and mean the same."""

import numpy as np
import pytest

import tenferro_runtime as tr
from device_cases import elementwise, families, structure
from fake_cupy import DeviceArray, FakeCupy
from tenferro_gpu import download

CASES = [
    *elementwise(("float64", "complex128", "int64", "bool")),
    *structure(),
    *families("float64"),
    *families("complex128"),
]


def agree(case):
    expected = case.run(*map(tr.asarray, case.operands))
    FakeCupy.current = 0
    found = case.run(*[tr.asarray(x, device="cuda:1") for x in case.operands])
    assert FakeCupy.current == 0, case.name
    for y, z in zip(*[v if isinstance(v, tuple) else (v,) for v in (found, expected)], strict=True):
        assert str(y.device) == "cuda:1", case.name
        assert isinstance(y.data, DeviceArray) and y.data.device.id == 1, case.name
        assert y.dtype == z.dtype and y.shape == z.shape, case.name
        np.testing.assert_allclose(np.asarray(download(y)), np.asarray(z), rtol=1e-9, atol=1e-9, err_msg=case.name)


@pytest.mark.parametrize("start", range(0, len(CASES), 25))
def test_cases_agree_with_the_cpu(with_cupy, start):
    with_cupy()
    with np.errstate(all="ignore"):
        for case in CASES[start : start + 25]:
            agree(case)


def test_what_cannot_be_computed_is_found_on_the_device(with_cupy):
    with_cupy()
    with pytest.raises(Exception, match="finite|nan"):
        tr.linalg.svd(tr.asarray(np.array([[np.nan, 1.0], [0.0, 1.0]]), device="cuda:0"))
