"""No kernel reads or writes beyond its arrays: they lie against pages that are out of bounds."""

import sys

import pytest

from guard_pages import require_inside
from tenferro_cpu.native import available

pytestmark = [
    pytest.mark.skipif(not available(), reason="native kernels are off"),
    pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls"),
]

COMMON = """
import numpy as np
from tenferro_cpu.native.threads._team import team
from functools import partial
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._fused_entry import Rows, entry
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_tensor.catalog import mul

for word in ("cores", "allowed"):
    team()._set(word, 4)

rng = np.random.default_rng(0)
"""

ELEMENT_WISE = """
for dtype in ("float64", "float32", "complex64", "int16", "int8"):
    kernel = Elementwise(mul.op(), (np.dtype(dtype),) * 2)
    call = kernel.entry()
    for n in (1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 1000, 1001, 100_003):
        for at_end in (False, True):
            x, y = (guarded((rng.random(n) * 9).astype(dtype), at_end) for _ in range(2))
            out = between_guards((n,), dtype, at_end)
            expected = x * y
            kernel(x, y, out=out)
            np.testing.assert_allclose(out, expected, rtol=1e-5)
            np.testing.assert_allclose(call(x, y), expected, rtol=1e-5)
            kernel._streams = lambda both: True
            kernel(x, y, out=out)
            del kernel._streams
            np.testing.assert_allclose(out, expected, rtol=1e-5)
            np.testing.assert_allclose(kernel(x[::-1], y[:1]), x[::-1] * y[:1], rtol=1e-5)
            if n > 2:
                kernel(x[::2], y[1::2][: x[::2].size] if n % 2 == 0 else y[::2], out=out[::2])
"""

EAGER = """
from tenferro_tensor import catalog, tensor
for dtype in ("float64", "float32", "int32"):
    for n in (1, 7, 8, 9, 65, 1001, 300_001):
        for at_end in (False, True):
            x = guarded((rng.random(n) * 9 + 1).astype(dtype), at_end)
            np.testing.assert_array_equal(catalog.mul(tensor(x), tensor(x)).data, x * x)
            np.testing.assert_array_equal(catalog.add(tensor(x), 2).data, x + 2)
            if dtype != "int32":
                for name in ("exp", "log", "tanh"):
                    catalog.__dict__[name](tensor(x))
"""

REDUCING = """
for kind in ("sum", "max"):
    for dtype in ("float64", "float32", "int8"):
        d = np.dtype(dtype)
        reduce = Reduced(kind, d)
        rows = Rows(trailing=1, reduced=True)
        whole = partial(reduce, axes=(-1,))
        call = entry(reduce.row(Access.UNIT), (d,), d, rows, whole, cost=reduce.cost, partible=True)
        shapes = (1, 1), (3, 5), (64, 3), (65, 7), (1003, 10), (71, 16), (9, 17), (3, 1000), (40, 2049), (2, 300_001)
        for shape in shapes:
            for at_end in (False, True):
                x = guarded((rng.random(shape) * 9).astype(dtype), at_end)
                for axis in (0, 1):
                    for y in (x, x[::-1], x[:, ::-1], x[:, ::2], x[::2]):
                        expected = getattr(np, kind)(y, axis, **({"dtype": dtype} if kind == "sum" else {}))
                        np.testing.assert_allclose(reduce(y, axes=(axis,)), expected, rtol=1e-5)
                expected = getattr(np, kind)(x, 1, **({"dtype": dtype} if kind == "sum" else {}))
                np.testing.assert_allclose(call(x), expected, rtol=1e-5)
"""


@pytest.mark.parametrize("code", [ELEMENT_WISE, EAGER, REDUCING], ids=["element-wise", "eager", "reducing"])
def test_no_access_beyond_the_arrays(code):
    require_inside(COMMON + code)


def test_an_access_beyond_an_array_would_be_seen():
    with pytest.raises(AssertionError):
        require_inside("import ctypes\nx = between_guards((8,), 'u1', True)\nctypes.string_at(x.ctypes.data, 9)")
