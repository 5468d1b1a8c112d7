"""Element-wise kernels against NumPy: every rule and dtype, every way operands can lie in memory."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_kernels import DTYPES, meaning, one_op, operands, values
from tenferro_cpu.native import available
from tenferro_tensor import Primitive, catalog
from tenferro_tensor.catalog import analytic, arithmetic, comparison, numbers
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, finfo, is_inexact, is_narrow

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

LENGTHS = (0, 1, 3, 16, 67, 300)
DIVISIONS = (arithmetic.floor_divide, arithmetic.remainder, arithmetic.fmod)


def rules():
    from tenferro_cpu.native.codegen.operations._ops import COMPLEX_RULES, FUSED_RULES, RULES

    for primitive, (kinds, _) in (*RULES.items(), *FUSED_RULES.items(), *COMPLEX_RULES.items()):
        if primitive is not numbers.convert:
            yield from ((primitive, dtype) for kind in kinds for dtype in DTYPES[kind])


def label(value):
    return getattr(value, "name", value)


def require_same(got, expected, dtype, scale=1.0):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    # Bounds of the library are in test_native_math; here, that it is the right function of the right operands.
    eps = finfo(expected.dtype).eps
    if is_narrow(expected.dtype):
        got, expected = (x.astype("float32") for x in (got, expected))
    np.testing.assert_allclose(got, expected, rtol=16 * eps * scale, atol=16 * eps * scale)


@pytest.mark.parametrize(("primitive", "dtype"), list(rules()) if available() else [], ids=label)
def test_every_rule_agrees_with_the_reference(primitive, dtype):
    rng = np.random.default_rng(3)
    dtypes = operands(rng, primitive, dtype, len(primitive.operands))
    run = one_op(primitive.op(), *dtypes)
    for n in LENGTHS:
        xs = [values(rng, d, n, special=primitive not in (analytic.logaddexp,)) for d in dtypes]
        if primitive in (arithmetic.add, arithmetic.sub, arithmetic.mul, arithmetic.div) and dtype[0] == "c":
            xs = [values(rng, d, n) for d in dtypes]
        if primitive.name.startswith("shift"):
            xs[1] = rng.integers(0, 80, n).astype(dtype)
        elif primitive in DIVISIONS and n > 8:
            xs[1][: n // 2] = rng.integers(-5, 6, n // 2).astype(dtype)
        expected = meaning(run.op, *xs)
        # The exponential in a complex power makes the relative error of its argument an absolute one.
        require_same(run(*xs), np.asarray(expected), dtype, 8 if primitive is arithmetic.pow else 1)


def test_every_elementwise_primitive_is_native_or_reserved_with_a_reason():
    from tenferro_cpu.native.codegen.operations._ops import COMPLEX_RULES, FUSED_RULES, RESERVED, RULES

    catalogued = [p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise]
    assert len(catalogued) > 60
    for primitive in catalogued:
        kinds = primitive.kinds
        native = "".join(table[primitive][0] for table in (RULES, FUSED_RULES, COMPLEX_RULES) if primitive in table)
        reserved = "".join(RESERVED.get(primitive, {}))
        assert sorted(native + reserved) == sorted(kinds), primitive
        assert all(len(reason) > 20 for reason in RESERVED.get(primitive, {}).values())


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_numbers_beyond_an_integer_dtype_wrap_within_a_wider_one(source, target):
    """As NumPy's do on x86."""
    run = one_op(numbers.convert.op(dtype=np.dtype(target)), source)
    x = np.array([300.0, -300.0, 70000.5, -70000.5, 2.9, -0.9, 0.0] * 3, source)
    np.testing.assert_array_equal(run(x), x.astype("int64").astype(target))
    far = np.array([np.nan, -np.inf, -1e30] * 3, source)
    lowest = np.full(9, -(2**31) if np.dtype(target).itemsize < 4 or target == "int32" else -(2**63), "int64")
    np.testing.assert_array_equal(run(far)[1:3], lowest.astype(target)[1:3])
    if np.dtype(target).kind == "i":
        np.testing.assert_array_equal(run(far), lowest.astype(target))


@pytest.mark.parametrize(
    "source", ["bool", "int8", "uint16", "int64", "uint64", "float32", "float64", "complex64", *DTYPES["n"]]
)
@pytest.mark.parametrize(
    "target", ["bool", "int8", "uint8", "int32", "uint64", "float32", "float64", "complex128", *DTYPES["n"]]
)
def test_conversions(source, target):
    kernel = one_op(numbers.convert.op(dtype=np.dtype(target)), source)
    x = values(np.random.default_rng(5), source, 77)
    if is_inexact(np.dtype(source)) and np.dtype(target).kind == "u":
        x = np.abs(x).astype(source)  # NumPy leaves the others open
    expected = meaning(kernel.op, x)
    got, comparable = kernel(x), "float32" if is_narrow(np.dtype(target)) else target
    np.testing.assert_array_equal(got.astype(comparable), expected.astype(comparable))


def product(dtype="float64", engine=None):
    return one_op(arithmetic.mul.op(), dtype, dtype, engine=engine)


def chosen(dtype="float64", engine=None):
    return one_op(comparison.select.op(), "bool", dtype, dtype, engine=engine)


@st.composite
def views(draw, shape):
    """How to lay an operand of this shape out: order of axes in memory, steps, reversals, broadcast axes."""
    rank = len(shape)
    return (
        draw(st.permutations(range(rank))),
        tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in range(rank)),
        tuple(draw(st.booleans()) for _ in range(rank)),
        tuple(draw(st.sampled_from([False, False, True])) for _ in range(rank)),
        draw(st.integers(0, rank)),
        draw(st.sampled_from([0, 0, 1])),
    )


def laid_out(rng, dtype, shape, view, droppable=True):
    order, steps, reversed_, broadcast, dropped, shift = view
    own = tuple(1 if droppable and b else d for d, b in zip(shape, broadcast))
    inner = tuple(own[k] * steps[k] for k in order)
    size = int(np.prod(inner, dtype=int)) * np.dtype(dtype).itemsize
    # Bytes shifted off their natural alignment.
    raw = np.zeros(size + 1, np.uint8)[shift : shift + size]
    x = raw.view(dtype).reshape(inner).transpose(np.argsort(order))
    x = x[(..., *(slice(None, None, -s if r else s) for s, r in zip(steps, reversed_)))]  # never a scalar
    x[...] = values(rng, dtype, x.shape)
    while droppable and x.ndim and dropped and x.shape[0] == 1:
        x, dropped = x[0], dropped - 1
    return x


@given(st.data())
@pytest.mark.parametrize("make", [product, chosen])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128", "int16", "bool"])
def test_layouts(dtype, make, data):
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 19]), max_size=4)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    run = RUNS.setdefault((make, dtype), make(dtype))
    xs = [laid_out(rng, d, shape, data.draw(views(shape))) for d in run.dtypes]
    expected = meaning(run.op, *xs)
    got = run(*xs)
    require_same(got, np.asarray(expected), dtype, 8)
    full = np.broadcast_shapes(*(x.shape for x in xs))
    out = laid_out(rng, dtype, full, data.draw(views(full)), droppable=False)
    if out.flags.aligned:
        assert run(*xs, out=out) is out
        np.testing.assert_array_equal(out, got)


RUNS: dict = {}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128", "int8", "bool"])
def test_nothing_is_written_outside_of_the_result(dtype):
    run = product(dtype)
    rng = np.random.default_rng(0)
    for n in range(70):
        xs = [values(rng, dtype, n) for _ in range(2)]
        guarded = np.zeros(n + 32, dtype)
        guarded.view(np.uint8)[...] = 1 if dtype == "bool" else 0xA5
        before = guarded.copy()
        run(*xs, out=guarded[16 : 16 + n])
        untouched = np.r_[0:16, 16 + n : n + 32]
        np.testing.assert_array_equal(guarded[untouched].view(np.uint8), before[untouched].view(np.uint8))


def test_operands_may_share_memory_with_the_result():
    run = product()
    for move in (-9, -1, 0, 1, 8):
        x = np.random.default_rng(1).standard_normal(300)
        a, out = x[50:250], x[50 + move : 250 + move]
        expected = a * a
        np.testing.assert_array_equal(run(a, a, out=out), expected)
    square = np.arange(25.0).reshape(5, 5)
    expected = square.T * square.T
    np.testing.assert_array_equal(run(square.T, square.T, out=square), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_results_larger_than_the_cache(monkeypatch, dtype, shift):
    from tenferro_cpu.native import Engine

    engine = Engine()
    object.__setattr__(engine.host, "cache_bytes", 4096)
    rng = np.random.default_rng(2)
    xs = [values(rng, dtype, 5003) for _ in range(2)]
    run = product(dtype, engine)
    guarded = np.full(5011, 7, dtype)
    run(*xs, out=guarded[shift : shift + 5003])
    expected = meaning(run.op, *xs)
    require_same(guarded[shift : shift + 5003], expected, dtype, 8)
    assert (np.delete(guarded, slice(shift, shift + 5003)) == 7).all()
    assert any(stream for _, stream in run._variants)


def test_many_threads_at_once():
    run = product()
    rng = np.random.default_rng(4)
    wrong = []

    def work(seed):
        for n in (5, 1000, 40000):
            x = np.random.default_rng(seed).standard_normal((2, n))
            if not np.array_equal(run(*x), x[0] * x[1]):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(int(rng.integers(99)),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_wrong_input_is_a_typed_error():
    run = product()
    x = np.zeros(3)
    with pytest.raises(ArgumentError, match="takes 2 array\\(s\\), got 1"):
        run(x)
    with pytest.raises(DTypeError, match="operand 1 of the kernel is float32, but it was made for float64; convert"):
        run(x, x.astype("float32"))
    with pytest.raises(ShapeError, match="shapes \\(3,\\), \\(2,\\) do not broadcast; reshape"):
        run(x, x[:2])
    with pytest.raises(ArgumentError, match="aligned float64 array of shape \\(3,\\), got float64 of shape \\(2,\\)"):
        run(x, x, out=np.zeros(2))
    with pytest.raises(ArgumentError, match="got list to write to"):
        run(x, x, out=[0.0])
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="cannot be written to"):
        run(x, x, out=frozen)
    with pytest.raises(DTypeError, match="made for float64"):
        run(x, x.astype(">f8"))


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float64", "int16"])
def test_numbers_in_records_may_lie_half_elements_apart(dtype):
    """Rows step by whole elements; such operands are copied first, by every way in."""
    rng, run = np.random.default_rng(8), product(dtype)
    records = np.zeros(50, [("left", "f8"), ("x", dtype), ("right", "f8")])
    records["x"] = values(rng, dtype, 50)
    x, y = records["x"], values(rng, dtype, (3, 50))
    for other in (y, y[:, ::-1], y[:1]):
        np.testing.assert_array_equal(run(x, other), run(x.copy(), other.copy()))
        np.testing.assert_array_equal(run.strided(run)(x, other), run(x.copy(), other.copy()))


@pytest.mark.parametrize("limit", ["avx2", "generic"])
def test_narrower_vectors(limit):
    from tenferro_cpu.native import Engine

    engine = Engine(limit=limit)
    rng = np.random.default_rng(6)
    for dtype in ("float64", "float32", "complex64", "int8", "bool", "uint16"):
        run = product(dtype, engine)
        for shape in ((0,), (5,), (67,), (3, 4)):
            whole, row, turned = (values(rng, dtype, s) for s in (shape, shape[-1:], shape[::-1]))
            if len(shape) > 1:
                whole = whole[::-1, ::-1]
            for xs in ((whole, row), (row, turned.T), (turned.T, whole)):
                require_same(run(*xs), meaning(run.op, *xs), dtype, 8)


@pytest.mark.parametrize("columns", [1024, 1025, 1032, 2048])
@pytest.mark.parametrize("offset", [0, 8])
def test_rows_written_past_the_caches(monkeypatch, columns, offset):
    """Whole lines only: every row begins with one, or ordinary stores serve; nothing else is written."""
    from tenferro_cpu.native.kernels._elementwise import Elementwise

    monkeypatch.setattr(Elementwise, "_streams", lambda self, both: True)
    rng = np.random.default_rng(columns)
    x, y = rng.random((37, columns)), rng.random(columns)
    run = product()
    raw = np.zeros(x.nbytes + 256, np.uint8)
    start = -raw.ctypes.data % 64 + 64 + offset
    out = raw[start : start + x.nbytes].view("float64").reshape(x.shape)
    run(x, y, out=out)
    np.testing.assert_array_equal(out, x * y)
    assert not raw[:start].any() and not raw[start + x.nbytes :].any()
    np.testing.assert_array_equal(run(x, y[:1]), x * y[0])
