"""Element-wise kernels and reductions rendered for AArch64 and run there, in an emulator, against NumPy.

A developer's test: it needs `aarch64-linux-gnu-gcc` and `qemu-aarch64` (Debian's gcc-aarch64-linux-gnu and qemu-user).
"""

import numpy as np
import pytest

from native_kernels import meaning, operands, values
from tenferro_cpu.native import available
from tenferro_cpu.native.codegen.whole._row import render_row
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._rows import combined_rows, mapped_row, reduced_row
from tenferro_tensor.catalog import arithmetic, numbers

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

NAMES = ["bool", "int8", "int32", "int64", "uint16", "uint64", "float32", "float64", "complex64", "complex128"]
LENGTHS = (0, 1, 3, 16, 67)
DIVISIONS = (arithmetic.floor_divide, arithmetic.remainder, arithmetic.fmod)


@pytest.fixture(scope="module")
def emulated():
    import emulated

    if emulated.LINKER is None or emulated.EMULATOR is None:
        pytest.skip("there is no cross compiler or emulator for AArch64")
    return emulated


def require_close(found, expected, what, scale=1.0):
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    tolerance = 16 * scale * float(np.finfo(expected.dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=what)


def rules(dtype):
    """Every primitive with a native form for operands of a dtype, and conversions of them."""
    from tenferro_cpu.native.codegen.operations._ops import COMPLEX_RULES, FUSED_RULES, RULES

    for primitive, (kinds, _) in (*RULES.items(), *FUSED_RULES.items(), *COMPLEX_RULES.items()):
        if np.dtype(dtype).kind in kinds and primitive is not numbers.convert:
            yield primitive.op(), operands(np.random.default_rng(0), primitive, dtype, len(primitive.operands))
    for target in NAMES:
        yield numbers.convert.op(dtype=np.dtype(target)), [np.dtype(dtype)]


def drawn(rng, op, dtypes, n):
    """Operands for which NumPy says what the result is."""
    primitive, dtype = op.primitive, dtypes[-1]
    xs = [values(rng, d, n) for d in dtypes]
    if primitive.name.startswith("shift"):
        xs[1] = rng.integers(0, 80, n).astype(dtype)
    elif primitive in DIVISIONS:
        xs[1][: n // 2] = rng.integers(-5, 6, n // 2).astype(dtype)
    elif primitive is numbers.convert and dtype.kind in "fc" and op.params["dtype"].kind == "u":
        xs[0] = np.abs(xs[0]).astype(dtype)
    return xs


@pytest.mark.parametrize("dtype", NAMES)
def test_every_rule(emulated, dtype):
    """Operands that lie together; for some dtypes also ones with gaps, backwards, as each operand is read alike."""
    kernels = []
    for op, dtypes in rules(dtype):
        for access in (Access.UNIT, *([Access.STRIDED] if dtype in ("bool", "int8", "float64") else [])):
            kernels.append((op, access, dtypes))
    texts = [
        render_row(mapped_row(op, dtypes, (*[access] * len(dtypes), Access.UNIT)), f"row{k}", emulated.HOST)
        for k, (op, access, dtypes) in enumerate(kernels)
    ]
    program, memory, rng = emulated.Program(texts), emulated.Memory(), np.random.default_rng(3)
    calls, expected = [], []
    for k, (op, access, dtypes) in enumerate(kernels):
        for n in LENGTHS:
            xs = drawn(rng, op, dtypes, n)
            result = meaning(op, *xs)
            if access is Access.STRIDED:
                xs = [np.repeat(x, 3)[::-1][::3] for x in (x[::-1].copy() for x in xs)]
            at = memory.room(n * 16)
            pointers = memory.words([*[memory.put(x) for x in xs], at])
            strides = memory.words([*[x.strides[0] for x in xs], result.itemsize])
            calls.append((f"row{k}", (pointers, n, strides, 1, strides)))
            expected.append((f"{op!r} of {dtype}, {n}, {access}", at, np.asarray(result)))
    program.run(memory, calls)
    for what, at, result in expected:
        scale = 8 if "pow" in what else 2
        require_close(memory.read(at, result.shape, result.dtype), result, what, scale)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128", "int64", "uint8", "int16", "bool"])
def test_reductions(emulated, dtype):
    """Rows that become one element, and rows that are combined."""
    kinds = ("sum", "prod") if dtype[0] == "c" else ("sum", "prod", "max", "min")
    ways, unit, d = [(kind, leading) for leading in (False, True) for kind in kinds], Access.UNIT, np.dtype(dtype)
    functions = [
        combined_rows(kind, d, unit, unit) if leading else reduced_row(kind, d, unit) for kind, leading in ways
    ]
    texts = [render_row(function, f"reduce{k}", emulated.HOST) for k, function in enumerate(functions)]
    program, memory, rng = emulated.Program(texts), emulated.Memory(), np.random.default_rng(5)
    calls, expected = [], []
    for k, (kind, leading) in enumerate(ways):
        for shape in ((1, 1), (3, 5), (7, 64), (40, 33), (2, 1001)):
            x = values(rng, dtype, shape)
            if kind == "prod" and x.dtype.kind in "fc":
                x = np.exp(x / 100).astype(dtype)
            x = x if leading else x[:1]
            of = {"dtype": x.dtype} if kind in ("sum", "prod") else {}
            result = np.asarray(getattr(x, kind)(0 if leading else 1, **of))
            at = memory.room(shape[1] * 16)
            pointers = memory.words([memory.put(x), at])
            strides, rows = memory.words([x.itemsize, x.itemsize]), memory.words([x.strides[0], 0])
            calls.append((f"reduce{k}", (pointers, x.shape[1], strides, x.shape[0], rows)))
            expected.append((f"{kind} {leading} of {dtype} {x.shape}", at, result, np.abs(x).sum()))
    program.run(memory, calls)
    for what, at, result, size in expected:
        require_close(memory.read(at, result.shape, result.dtype), result, what, max(1.0, float(size)))
