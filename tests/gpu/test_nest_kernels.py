"""Loop nests as GPU kernels, run by the processor, against the interpreter of `LoopIR`; NVRTC takes them, too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from host_kernels import COMPILER, ORDERS
from nest_kernels import HostTarget, run_kernels
from random_loops import Recipe, recipes
from random_nests import EDGE, RandomLoops
from tenferro_gpu.compiling import RuntimeCompiler, runtime_library
from tenferro_gpu.rendering import Sharing, _group_writer, _sharing
from tenferro_gpu.whole import KernelSequence, _native, _shape, planned, source_of
from tenferro_gpu.whole._interchange import turned
from tenferro_gpu.whole._steps import HostLoop
from tenferro_runtime.lowering import _lower, _reductions, _values, lower
from tenferro_tensor import ComputeDevice, Place
from tenferro_tensor.catalog import arithmetic, bits
from tenferro_tensor.device_model import ProgramSpec
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Affine, For, Order, verify
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError, dim
from thorough import tries
from whole_functions import Writing, literal

on_host = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")


@pytest.fixture(scope="module", params=["few kernels", "many kernels"])
def kernels(request):
    """Small nests as part of one kernel, or as kernels of their own as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "many kernels":
            spread_out(patch)
        yield request.param


def spread_out(monkeypatch):
    monkeypatch.setattr(_shape, "MAX_GROUP_WORK", 0)
    monkeypatch.setattr(_sharing, "MIN_GROUP_EXTENT", 2)
    monkeypatch.setattr(_sharing, "FEW_ROWS", 3)
    monkeypatch.setattr(_group_writer, "MIN_SHARED_WORK", 2)
    monkeypatch.setattr(_native, "MIN_PART", 3)


@pytest.fixture(scope="module", params=[3, _values.REGISTERS_MAX_ELEMENTS])
def most_numbers(request):
    """Fewer numbers in registers, so that small arrays are in memory."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (_values, _reductions):
            patch.setattr(module, "REGISTERS_MAX_ELEMENTS", request.param)
        patch.setattr(_lower, "_require_one_device", lambda program, kind: None)  # the processor stands in for one
        yield


def require_agreement(function, arrays, sizes=None, order="random"):
    """The kernels that a function took, having compared what they compute with what it means."""
    target = HostTarget(order)
    want = interpret(verify(function), arrays, list((sizes or {}).values()))
    for got, expected in zip(run_kernels(function, *arrays, sizes=sizes, target=target), want, strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        tolerance = 1e-4 if expected.dtype.name in ("float32", "complex64") else 1e-11
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    return target.launches


@on_host
@settings(max_examples=tries(4, 12), deadline=None)
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("order", ORDERS)
def test_random_functions_do_what_the_interpreter_does(kernels, order, seed):
    made = RandomLoops(seed)
    f, rng = made.function(), np.random.default_rng(seed)
    arrays = [rng.integers(0, 50, [made.values[k] + EDGE for k in "nm"]).astype(b.dtype) for b in f.inputs]
    require_agreement(f, arrays, made.values, order)


@on_host
@settings(max_examples=tries(5, 15), deadline=None)
@given(recipes())
def test_random_programs_do_what_single_steps_do(kernels, most_numbers, recipe: Recipe):
    arrays = recipe.inputs()
    program = tr.trace(recipe.run, *map(tr.asarray, arrays))
    found = run_kernels(lower(program, kind="cuda"), *arrays)
    with np.errstate(all="ignore"):
        want = program.run(*map(tr.asarray, arrays))
    tolerance = 1e-4 if recipe.dtype == "float32" else 1e-9
    for got, value in zip(found, map(np.asarray, want), strict=True):
        assert (got.dtype, got.shape) == (value.dtype, value.shape)
        np.testing.assert_allclose(got, value, rtol=tolerance, atol=tolerance)


DTYPES = ("bool", "int8", "int64", "uint16", "float32", "float64", "complex64", "complex128")


def values_of(rng, dtype, shape):
    x = rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(1, 5, shape)
    return (x + 1j * rng.integers(1, 5, shape)).astype(dtype) if dtype.startswith("c") else x.astype(dtype)


ACCUMULATIONS = {
    "b": (arithmetic.add, arithmetic.mul, arithmetic.maximum, arithmetic.minimum, bits.bitwise_xor),
    "i": (arithmetic.add, arithmetic.mul, arithmetic.maximum, arithmetic.minimum, bits.bitwise_and, bits.bitwise_or),
    "f": (arithmetic.add, arithmetic.mul, arithmetic.maximum, arithmetic.minimum),
    "c": (arithmetic.add, arithmetic.mul),
}


@on_host
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_every_kind(kernels, dtype):
    w = Writing("n", "m")
    n, m = dim("n"), dim("m")
    kind = np.dtype(dtype).kind.replace("u", "i")
    ops = ACCUMULATIONS[kind]
    x, whole, rows = w.input(dtype, n, m), w.output(dtype, len(ops)), w.output(dtype, len(ops), n)
    for k, op in enumerate(ops):
        one = literal(np.dtype(dtype).type(1).item(), dtype)

        def total(i, c, op=op):
            return w.fold(m, [c], lambda j, d: [w.let(op, d, w.load(x, Affine.of(i) * m + j))], Order.GROUPED)

        w.store(whole, k, w.fold(n, [one], total, Order.GROUPED)[0])
        with w.loop(n) as i:
            w.store(rows, Affine.of(i) + n * k, total(i, one)[0])
    rng = np.random.default_rng(1)
    for sizes in ({"n": 3, "m": 17}, {"n": 0, "m": 4}, {"n": 5, "m": 0}, {"n": 70, "m": 2}):
        require_agreement(w.function(), [values_of(rng, dtype, tuple(sizes.values()))], sizes)


@on_host
def test_large_reductions_are_shared_among_groups_and_joined():
    w = Writing("n")
    n = dim("n")
    x, y = w.input("float64", n), w.output("float64", 2)
    double = w.let(arithmetic.add, literal(1.0), literal(1.0))

    def step(i, total, most):
        value = w.load(x, i)
        return [
            w.let(arithmetic.add, total, w.let(arithmetic.mul, double, value)),
            w.let(arithmetic.maximum, most, value),
        ]

    total, most = w.fold(n, [literal(0.0), literal(-1.0)], step, Order.GROUPED)
    w.store(y, 0, total)
    w.store(y, 1, w.let(arithmetic.sub, most, double))
    x = np.random.default_rng(0).uniform(0, 1, 50_000)
    launches = require_agreement(w.function(), [x], {"n": x.size})
    assert launches == [("nest_0", x.size // _native.MIN_PART), ("nest_1", 1)]
    assert require_agreement(w.function(), [x[:0]], {"n": 0}) == [("nest_0", 1), ("nest_1", 1)]


GPU = Place(ComputeDevice("cuda:0").memory_space)


def on_gpu(f, *arrays):
    """A traced function lowered for arrays of a GPU."""
    return lower(tr.trace(f, *[tr.asarray(a).spec.with_(place=GPU) for a in arrays]), kind="cuda")


def sharings(f, *arrays):
    """Who runs the kernels of a function."""
    return [k.sharing for k in planned(on_gpu(f, *arrays)).kernels]


LARGE = np.ones((2000, 300))


def test_neighbours_in_memory_go_to_neighbouring_work_items():
    items, groups = Sharing.ITEMS, Sharing.GROUPS
    assert sharings(lambda x: tr.exp(x[1:]) + x[:-1], LARGE) == [items]
    assert sharings(lambda x: tr.sum(x, axis=1), LARGE) == [groups]
    assert sharings(lambda x: tr.sum(x, axis=0), LARGE) == [items]
    assert sharings(lambda x: x - tr.sum(x, axis=1, keepdims=True), LARGE) == [groups]
    assert sharings(lambda x: tr.sum(x) + tr.max(x), LARGE) == [Sharing.PARTS, Sharing.ONE]


@on_host
def test_sums_to_few_results_are_shared_among_groups():
    def both(x):
        return tr.sum(x * x, axis=(1, 2)) / tr.max(x, axis=(1, 2)), tr.prod(x[:, :1, 0], axis=1)

    x = np.random.default_rng(0).uniform(0, 1, (3, 40, 300))
    f = on_gpu(both, x)
    assert sharings(both, x)[:2] == [Sharing.PARTS, Sharing.GROUPS]
    launches = require_agreement(f, [x])
    parts = x[0].size // _native.MIN_PART
    assert launches[:2] == [("nest_0", 3 * parts), ("nest_1", 3)]


@on_host
def test_few_long_rows_are_taken_one_after_the_other(monkeypatch):
    def softmax(x):
        y = tr.exp(x - tr.max(x, axis=1, keepdims=True))
        return y / tr.sum(y, axis=1, keepdims=True)

    f = on_gpu(softmax, np.ones((3, 70_000)))
    (rows,) = planned(f).steps
    assert isinstance(rows, HostLoop) and rows.extent == 3
    assert [k.sharing for k in planned(f).kernels].count(Sharing.PARTS) == 2
    monkeypatch.setattr(_shape, "MIN_GRID_WORK", 1 << 12)
    x = np.random.default_rng(0).uniform(0, 1, (3, 5000))
    assert len(require_agreement(on_gpu(softmax, x), [x])) == 3 * len(planned(f).kernels)
    assert sharings(softmax, np.ones((100, 5000))) == [Sharing.GROUPS]


def test_shifts_pads_and_flips_are_one_kernel():
    def stencil(x):
        return 0.5 * x[2:, 1:-1] + tr.flip(x[:-2, 1:-1], axis=1) + x[1:-1, 2:]

    assert sharings(stencil, LARGE) == [Sharing.ITEMS]
    assert sharings(lambda x: tr.concat([x[:, 5:], 2 * x[:, :5]], axis=1), LARGE) == [Sharing.GROUPS]


@on_host
@pytest.mark.parametrize("shape", [(200, 300), (0, 300), (300, 2), (7, 0)])
def test_sums_over_leading_axes_go_along_columns(shape):
    x = np.random.default_rng(0).uniform(0, 1, shape)
    f = on_gpu(lambda x: tr.sum(x * x, axis=0), x)
    assert len(require_agreement(f, [x])) == min(shape[1], 1)


@on_host
def test_recurrences_on_arrays_go_along_time_in_one_kernel():
    def recurrence(x):
        return tr.scan(lambda c, row: (c * 0.5 + tr.tanh(row), c - row), x[0], x)

    assert sharings(recurrence, np.ones((20, 9000))) == [Sharing.ITEMS] * 2  # after a copy
    x = np.random.default_rng(0).uniform(0, 1, (20, 30))
    f = on_gpu(recurrence, x)
    assert not [k for k in turned(f).body if isinstance(k, For) and k.order is Order.GIVEN]
    require_agreement(f, [x])
    (got,) = interpret(turned(on_gpu(lambda x: recurrence(x)[0], x)), [x])
    np.testing.assert_allclose(got, interpret(f, [x])[0])


@on_host
def test_loops_that_are_not_turned():
    w = Writing()
    x, y, z = w.input("float64", 90, 80), w.output("float64", 80), w.output("float64", 80)
    a, b = (w.temporary("float64", 81) for _ in range(2))
    for buffer in (y, z, a, b):
        with w.loop(buffer.shape[0]) as j:
            w.store(buffer, j, literal(0.5))
    with w.loop(90, Order.GIVEN) as i, w.loop(80) as j:  # in order
        w.store(y, j, w.let(arithmetic.sub, w.load(x, Affine.of(i) * 80 + j), w.load(y, j)))
    with w.loop(90, Order.GIVEN) as i, w.loop(80) as j:  # other elements are read
        w.store(z, j, w.let(arithmetic.add, w.load(y, Affine(79) - j), w.load(x, Affine.of(i) * 80 + j)))
    with w.loop(40, Order.GIVEN) as i, w.loop(40) as j:  # other elements in each iteration
        w.store(z, Affine.of(j) + i, w.load(x, Affine.of(i) * 80 + j))
    with w.loop(41, Order.GIVEN, [(a, b)]) as i, w.loop(80) as j:  # neighbours are read
        w.store(b, j, w.let(arithmetic.add, w.load(a, Affine.of(j) + 1), w.load(x, Affine.of(i) * 80 + j)))
    with w.loop(41, Order.GIVEN, [(a, b)]) as i, w.loop(80) as j:  # the older elements are read afterwards
        w.store(b, j, w.let(arithmetic.add, w.load(a, j), w.load(x, Affine.of(i) * 80 + j)))
    with w.loop(80) as j:
        w.store(y, j, w.let(arithmetic.mul, w.load(b, j), w.load(y, j)))
    f = w.function()
    assert [s.order for s in turned(f).body] == [Order.ANY] * 6 + [Order.GIVEN] * 3 + [Order.ANY]
    x = np.random.default_rng(0).uniform(0, 1, (90, 80))
    for got, want in zip(interpret(verify(turned(f)), [x]), interpret(f, [x]), strict=True):
        np.testing.assert_array_equal(got, want)
    require_agreement(f, [x])


@on_host
def test_loops_around_large_nests_are_run_by_the_host(monkeypatch):
    def heat(x):
        inner = lambda c: (c[:-2] + c[2:]) * 0.25 + c[1:-1] * 0.5
        return tr.fori_loop(0, 5, lambda i, c: c.at[1:-1].set(inner(c)), x)

    x = np.random.default_rng(0).uniform(0, 1, (40, 3))
    f = lower(tr.trace(heat, tr.asarray(x)))
    one_kernel = require_agreement(f, [x])
    spread_out(monkeypatch)
    assert len(require_agreement(f, [x])) > len(one_kernel)


@on_host
def test_numbers_go_from_kernel_to_kernel_and_to_the_host(kernels):
    def halved(x):
        def body(c):
            return c[0] * (0.5 + 0.01 * tr.max(c[0])), c[1] + 1, tr.cond(c[1] % 2 == 0, tr.exp, tr.sin, c[2])

        y, count, z = tr.while_loop(lambda c: tr.sum(c[0]) > 1.0, body, (x, tr.asarray(0), x[0]))
        return y, count, z * tr.astype(count, tr.float64)

    x = np.random.default_rng(0).uniform(0, 1, (7, 9))
    require_agreement(lower(tr.trace(halved, tr.asarray(x))), [x])


@on_host
def test_what_one_work_item_writes_others_read_after_a_barrier():
    w = Writing()
    x, y, t = w.input("int64", 40), w.output("int64", 40), w.temporary("int64", 40)
    with w.loop(40) as i:
        w.store(t, Affine(39) - i, w.load(x, i))
    with w.loop(40) as i:  # elements that other work items wrote
        w.store(y, i, w.load(t, i))
    first = w.load(y, 0)
    w.store(y, 0, w.load(y, 39))  # all of them read, one writes
    w.store(y, 39, first)

    def step(k, c):
        with w.loop(40) as i:
            w.store(t, i, w.let(arithmetic.add, w.load(y, Affine(39) - i), c))
        with w.loop(40) as i:
            w.store(y, i, w.load(t, Affine(39) - i))
        return [w.load(y, 3)]

    w.store(y, 7, w.fold(4, [literal(5, "int64")], step)[0])
    for order in ORDERS:
        assert len(require_agreement(w.function(), [np.arange(40)], order=order)) == 1


@on_host
@pytest.mark.parametrize(
    ("dtype", "indices"), [("bool", (False, True)), ("int32", (-3, 0, 1, 2, 9)), ("uint64", (0, 2**63 + 1))]
)
def test_branches_by_every_kind_of_index(kernels, dtype, indices):
    w = Writing()
    x, where, y = w.input("float64", 5), w.input(dtype), w.output("float64", 6)

    def case(k):
        with w.loop(6) as i:
            w.store(y, i, literal(float(k)))
        with w.loop(5) as i:
            w.store(y, i, w.let(arithmetic.mul, w.load(x, i), literal(float(k))))
        return [w.let(arithmetic.add, w.load(y, 1), literal(1.0))]

    (found,) = w.switch(w.load(where, 0), *[lambda k=k: case(k) for k in range(2 if dtype == "bool" else 3)])
    w.store(y, 5, found)
    for index in indices:
        require_agreement(w.function(), [np.arange(5.0), np.asarray(index, dtype)])


def test_what_is_no_nest_is_named():
    program = lower(tr.trace(lambda x: x @ x + 1, tr.asarray(np.ones((50, 50)))))
    with pytest.raises(UnsupportedError, match="dgemm is nothing that one GPU does by itself"):
        planned(program)
    w = Writing()
    w.store(w.output("float64", 1), 0, literal(1.0))
    with pytest.raises(UnsupportedError, match="does not say on which device it runs"):
        KernelSequence(w.function(), HostTarget())
    w = Writing()
    a, b, y = w.input("int64"), w.input("int64"), w.output("int64")
    w.store(y, 0, w.let(arithmetic.pow, w.load(a, 0), w.load(b, 0)))
    with pytest.raises(UnsupportedError, match="pow of int64, int64 has no form in a kernel of a GPU"):
        source_of(w.function(), planned(w.function()))


def test_nvrtc_takes_the_kernels():
    try:
        compiler = RuntimeCompiler(runtime_library("cuda"), "90")
    except BackendUnavailableError as reason:
        pytest.skip(str(reason))

    def f(x, z):
        rows = tr.softmax(x, axis=1) if hasattr(tr, "softmax") else tr.exp(x - tr.max(x, axis=1, keepdims=True))
        return tr.fori_loop(0, 3, lambda i, c: c * 0.5 + tr.mean(c) + rows, x), z * tr.sum(z)

    function = on_gpu(f, LARGE, LARGE[0] + 1j)
    sequence = planned(function)
    assert {k.sharing for k in sequence.kernels} >= {Sharing.GROUPS, Sharing.PARTS, Sharing.ONE}
    code = compiler.compile(ProgramSpec(source_of(function, sequence), "", (), 0, (), ())).code
    assert isinstance(code, bytes) and code.startswith(b"\x7fELF")
    assert all(k.entry.encode() in code for k in sequence.kernels)
