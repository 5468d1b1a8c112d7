"""Mathematics in whole programs has the bits of single steps."""

import numpy as np
import pytest

from native_kernels import FUNCTIONS, one_op, values
from tenferro_cpu.native.codegen.operations._ops import COMPLEX_RULES, FUSED_RULES
from tenferro_tensor import Spec
from tenferro_tensor.loop_ir import Order
from whole_functions import Native, Writing

pytestmark = FUNCTIONS
SIZE = 200
APPLIED = [
    (primitive, dtype)
    for table, dtypes in ((FUSED_RULES, ("f4", "f8")), (COMPLEX_RULES, ("c8", "c16")))
    for primitive in table
    for dtype in dtypes
]


@pytest.mark.parametrize("order", [Order.GIVEN, Order.ANY], ids=["numbers", "vectors"])
@pytest.mark.parametrize(("primitive", "dtype"), APPLIED, ids=lambda p: getattr(p, "name", p))
def test_functions_have_the_bits_of_the_kernels(primitive, dtype, order):
    op, dtype = primitive.op(), np.dtype(dtype)
    count = len(primitive.operands)
    out = op.infer(*[Spec((), dtype)] * count).dtype
    w = Writing()
    ins, result = [w.input(dtype, SIZE) for _ in range(count)], w.output(out, SIZE)
    with w.loop(SIZE, order) as i:
        w.store(result, i, w.let(op, *[w.load(x, i) for x in ins], dtype=out))
    rng = np.random.default_rng(3)
    arrays = [values(rng, dtype, SIZE, special=True) for _ in range(count)]
    with np.errstate(all="ignore"):
        want = one_op(op, *[dtype] * count)(*arrays)
    native = Native(w.function())
    assert ("@llvm.masked.store" in native.rendered.text) == (order is Order.ANY)
    (got,) = native(*arrays)
    np.testing.assert_array_equal(got, want, strict=True)
    if out.kind == "f":
        np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(want)[want == 0])
