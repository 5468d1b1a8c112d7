"""Entries of machine code never read or write outside of their operands, and take any objects for operands."""

import sys

import pytest

from guard_pages import require_inside
from native_kernels import FUNCTIONS
from tenferro_cpu.native import available
from thorough import tries

native = pytest.mark.skipif(not available(), reason="native kernels are off")
linux = pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")

ENTRIES = """
import warnings
import numpy as np
from tenferro_cpu.native.eager import _eager
from tenferro_tensor import Spec, catalog
from tenferro_tensor.reference import kernels

warnings.simplefilter("ignore")
REFERENCE = kernels(np, lambda: __import__("scipy.special").special)
rng = np.random.default_rng(0)
for primitive in (catalog.mul, catalog.exp, catalog.sin, catalog.lt, catalog.floor_divide, catalog.pow, catalog.log):
    for dtype in ("float64", "float32", "complex128", "complex64", "int8", "int64", "bool"):
        if primitive is catalog.pow and np.dtype(dtype).kind == "i":
            continue  # left to NumPy
        spec = Spec((4,), np.dtype(dtype))
        ins = (spec,) * len(primitive.operands)
        try:
            out = primitive.infer(*ins)
        except TypeError:
            continue
        entry = _eager.entries(REFERENCE)[primitive](ins, (out,))
        for n in (1, 3, 7, 8, 9, 31, 64, 65, 200):
            for at_end in (False, True):
                xs = [guarded(rng.integers(1, 3, n).astype(dtype), at_end) for _ in ins]
                expected = np.asarray(entry(*[x.copy() for x in xs]))
                result = between_guards((n,), expected.dtype, at_end)
                assert entry(*xs, result) is result
                np.testing.assert_array_equal(result, expected)
                if len(xs) == 2 and primitive is not catalog.pow:
                    entry(xs[0], dtype == "bool" or xs[1][0])
"""


@FUNCTIONS
@linux
def test_entries_stay_inside_of_their_arrays() -> None:
    require_inside(ENTRIES)


PRODUCTS = """
import itertools
import numpy as np
from tenferro_cpu.native.kernels.products import _products
from tenferro_tensor import Spec, catalog
from thorough import tries

rng = np.random.default_rng(0)

def refuse(x, y):
    raise AssertionError((x.shape, y.shape))

shapes = [((m, k), (k, n), ((1,), (0,)), ((), ())) for m, k, n in itertools.product((1, 2, 3, 5, 8), repeat=3)]
shapes += [((5, m, k), (5, k, n), ((2,), (1,)), ((0,), (0,))) for m, k, n in itertools.product((1, 2, 3, 8), repeat=3)]
shapes += [((k, m), (n, k), ((0,), (1,)), ((), ())) for m, k, n in itertools.product((2, 3, 7), repeat=3)]
shapes += [((4,), (4,), ((0,), (0,)), ((), ())), ((4,), (4, 3), ((0,), (0,)), ((), ()))]
shapes += [((20, 33), (33, 17), ((1,), (0,)), ((), ())), ((3, 9, 9), (3, 9, 9), ((2,), (1,)), ((0,), (0,)))]
for kind in "fdFD":
    for left, right, contract, batch in shapes:
        ins = Spec(left, np.dtype(kind)), Spec(right, np.dtype(kind))
        out = catalog.dot_general.infer(*ins, contract=contract, batch=batch)
        run = _products.dot_general(refuse, ins, (out,), contract, batch)
        x, y = (rng.standard_normal(s).astype(kind) for s in (left, right))
        for at_end in (False, True):
            result = run(guarded(x, at_end), guarded(y, at_end))
            np.testing.assert_allclose(result, run(x, y), rtol=1e-5, atol=1e-5)
"""


@native
@linux
def test_products_stay_inside_of_their_arrays() -> None:
    require_inside(PRODUCTS)


@native
@pytest.mark.parametrize("seed", range(tries(2, 10)))
def test_any_objects_are_computed_or_refused_as_without_entries(seed: int) -> None:
    require_inside(f"import entry_fuzz; entry_fuzz.run({seed})")
