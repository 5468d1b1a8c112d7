"""Element-wise kernels and reductions rendered for AArch64 and run there, in an emulator, against NumPy.

A developer's test: it needs `aarch64-linux-gnu-gcc` and `qemu-aarch64` (Debian's gcc-aarch64-linux-gnu and qemu-user).
"""

from dataclasses import replace

import numpy as np
import pytest

from native_kernels import meaning, one_op, operands, values
from tenferro_cpu.native import available
from tenferro_tensor.catalog import arithmetic, numbers
from tenferro_tensor.device_model import Access, KernelIR, Operand, Over, Reduction

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
    from tenferro_cpu.native.operations._ops import COMPLEX_RULES, FUSED_RULES, RULES

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
    from tenferro_cpu.native.kernels._render import render_row

    kernels = []
    for op, dtypes in rules(dtype):
        for access in (Access.UNIT, *([Access.STRIDED] if dtype in ("bool", "int8", "float64") else [])):
            kernel = one_op(op, *dtypes)
            inputs = tuple(replace(o, access=access) for o in kernel.inputs)
            kernels.append((op, replace(kernel, inputs=inputs), dtypes))
    texts = [render_row(kernel, f"row{k}", emulated.HOST) for k, (_, kernel, _) in enumerate(kernels)]
    program, memory, rng = emulated.Program(texts), emulated.Memory(), np.random.default_rng(3)
    calls, expected = [], []
    for k, (op, kernel, dtypes) in enumerate(kernels):
        for n in LENGTHS:
            xs = drawn(rng, op, dtypes, n)
            (result,) = meaning(kernel, *xs)
            if kernel.inputs[0].access is Access.STRIDED:
                xs = [np.repeat(x, 3)[::-1][::3] for x in (x[::-1].copy() for x in xs)]
            at = memory.room(n * 16)
            pointers = memory.words([*[memory.put(x) for x in xs], at])
            strides = memory.words([*[x.strides[0] for x in xs], kernel.written[0].dtype.itemsize])
            calls.append((f"row{k}", (pointers, n, strides)))
            expected.append((f"{op!r} of {dtype}, {n}, {kernel.inputs[0].access}", at, np.asarray(result)))
    program.run(memory, calls)
    for what, at, result in expected:
        scale = 8 if "pow" in what else 2
        require_close(memory.read(at, result.shape, result.dtype), result, what, scale)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128", "int64", "uint8", "int16", "bool"])
def test_reductions(emulated, dtype):
    """Rows that become one element, and rows that are combined."""
    from tenferro_cpu.native.kernels._render_reduce import render_reduction

    kinds = ("sum", "prod") if dtype[0] == "c" else ("sum", "prod", "max", "min", "argmax", "argmin")
    ways = [(kind, over) for over in (Over.TRAILING, Over.LEADING) for kind in kinds]
    ways = [(kind, over) for kind, over in ways if over is Over.TRAILING or kind[0] != "a"]
    operand = Operand(np.dtype(dtype))
    kernels = [KernelIR((operand,), (), (0,), reduction=Reduction(kind, over)) for kind, over in ways]
    texts = [render_reduction(kernel, f"reduce{k}", emulated.HOST) for k, kernel in enumerate(kernels)]
    program, memory, rng = emulated.Program(texts), emulated.Memory(), np.random.default_rng(5)
    calls, expected = [], []
    for k, ((kind, over), kernel) in enumerate(zip(ways, kernels, strict=True)):
        for shape in ((1, 1), (3, 5), (7, 64), (40, 33), (2, 1001)):
            x = values(rng, dtype, shape)
            if kind == "prod" and x.dtype.kind in "fc":
                x = np.exp(x / 100).astype(dtype)
            trailing = over is Over.TRAILING
            x = x[:1] if trailing else x
            axis = 1 if trailing else 0
            result = getattr(x, kind)(axis) if kind[0] == "a" else np.asarray(
                getattr(x, kind)(axis, **({"dtype": x.dtype} if kind in ("sum", "prod") else {}))
            )  # fmt: skip
            at, item = memory.room(shape[1] * 16), kernel.written[0].dtype.itemsize
            pointers = memory.words([memory.put(x), at])
            strides, rows = memory.words([x.itemsize, item]), memory.words([x.strides[0], 0])
            calls.append((f"reduce{k}", (pointers, x.shape[1], strides, x.shape[0], rows)))
            expected.append((f"{kind} {over} of {dtype} {x.shape}", at, result, np.abs(x).sum()))
    program.run(memory, calls)
    for what, at, result, size in expected:
        require_close(memory.read(at, result.shape, result.dtype), result, what, max(1.0, float(size)))
