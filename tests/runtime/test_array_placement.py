"""Where values are: nothing leaves an accelerator unless asked, and tables of remembered calls stay bounded."""

from types import SimpleNamespace

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor import MemorySpace, Place, Spec, Tensor, backends
from tenferro_tensor.identity import identity
from tenferro_tensor.tables import TABLES, Table
from tenferro_tensor_core import PlacementError


class DeviceArray(np.ndarray):
    """Stands in for an array in accelerator memory."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        return options


def on_cuda():
    data = np.zeros(2).view(DeviceArray)
    return Tensor.wrap(data, Spec((2,), np.dtype("float64"), Place(MemorySpace("cuda:0"))))


def test_no_silent_copy_from_an_accelerator():
    text = r"np.asarray\(\) of float64\[2\] at cuda:0 would copy it .*call .numpy\(\), or .to_device\('cpu:0'\) first"
    with pytest.raises(PlacementError, match=text):
        np.asarray(on_cuda())


def test_dlpack_names_the_device_of_the_data(monkeypatch):
    backend = SimpleNamespace(exported=lambda raw, **options: raw.__dlpack__(**options))
    monkeypatch.setitem(backends._made, "cuda", backend)
    assert on_cuda().__dlpack_device__() == (2, 0)
    assert on_cuda().__dlpack__(stream=7)["stream"] == 7


def test_operands_on_two_devices():
    with pytest.raises(
        PlacementError, match=r"add has operands in several memory spaces:(.*\n)+.*move operand 1 with .to_d"
    ):
        tr.add(tr.zeros(2), on_cuda())


def test_to_device_is_the_identity_where_the_value_is():
    x = tr.zeros(2)
    assert identity(tr.to_device(x, "cpu:0")) == identity(x.to_device(x.device)) == identity(x)
    assert tr.zeros(2, device="cpu:0").spec is x.spec


def test_copy_shares_nothing():
    host = np.zeros(2)
    shared, apart = tr.asarray(host), tr.asarray(host).copy()
    host[0] = 5.0
    assert (shared.tolist(), apart.tolist()) == ([5.0, 0.0], [0.0, 0.0])
    assert tr.asarray(shared, copy=True).tolist() == [5.0, 0.0]


def test_tables_are_bounded():
    table = Table("test", bound=2)
    try:
        for i in range(5):
            table.remember(i, i)
        assert table.stats() == {"size": 1, "bound": 2}
    finally:
        TABLES.remove(table)
    tr.zeros((2, 2))[0]
    assert {"matrix products", "sum", "ops behind keys of integers and slices"} <= {t.name for t in TABLES}
    for t in TABLES:
        t.clear()
    assert (tr.ones((2, 2)) @ tr.ones(2)).sum(0).tolist() == 4.0
