"""More than 2^31 elements: indices and sizes are 64 bits wide everywhere."""

import os

import numpy as np
import pytest

import tenferro_runtime as tr
from native_rooms import Reduced
from reduced_entries import of_all
from tenferro_cpu.native import available
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_tensor import catalog

N = 2**31 + 1025


def free_bytes():
    """Memory that is free on this machine, 0 where nobody knows."""
    try:
        with open("/proc/meminfo") as lines:
            found = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
        return found["MemAvailable"] * 1024
    except (OSError, KeyError):
        return 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not available(), reason="native kernels are off"),
    pytest.mark.skipif(free_bytes() < 5 * N or "PYTEST_XDIST_WORKER" in os.environ, reason="needs 11 GB to itself"),
]


@pytest.fixture(scope="module")
def x():
    x = np.zeros(N, "int8")
    x[[0, 2**31 - 1, 2**31, N - 1]] = 1, 2, 3, 4
    return x


def test_element_wise(x):
    add = Elementwise(catalog.add.op(), (x.dtype, x.dtype))
    for y in (add(x, x), add(x, x[:1] * 0), add.entry()(x, x), tr.asarray(x).data + x):
        assert y[[0, 2**31 - 1, 2**31, N - 1]].tolist() in ([2, 4, 6, 8], [1, 2, 3, 4])
        assert np.count_nonzero(y) == 4
        del y


def test_reversed(x):
    y = Elementwise(catalog.neg.op(), (x.dtype,))(x[::-1])
    assert y[[0, 1024, 1025, N - 1]].tolist() == [-4, -3, -2, -1]
    assert np.count_nonzero(y) == 4


@pytest.mark.parametrize("kind, expected", [("sum", 10), ("max", 4)])
def test_reductions(x, kind, expected):
    reduced = Reduced(kind, x.dtype)
    assert reduced(x, axes=(0,)) == expected
    assert of_all(reduced)(x) == expected
    assert getattr(tr, kind)(tr.asarray(x).data.reshape(1, -1), axis=1).data.tolist() == [expected]


def test_permutation(x):
    y = tr.asarray(x[: N // 5 * 5].reshape(5, -1))
    z = tr.reshape(tr.permute_dims(y, (1, 0)), (-1,)).data
    assert z[0] == 1
    assert np.count_nonzero(z) == np.count_nonzero(y.data)
    assert z.reshape(-1, 5)[2**31 - 1 - 4 * (N // 5), 4] == 2
