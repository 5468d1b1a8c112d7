"""Regions carried out step by step in one native call: the bits of single kernels, for whatever lies simply."""

import gc
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_kernels import FUNCTIONS
from tenferro_cpu.native import available
from tenferro_cpu.native.kernels._elementwise import Fused
from tenferro_cpu.native.kernels._fused_entry import Rows
from tenferro_cpu.native.regions._stepped import BLOCK, SCRATCH, _Plan, stepped
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Apply, KernelIR, Literal, Operand, Reduction, Region

pytestmark = [
    pytest.mark.skipif(not available(), reason="native kernels are off"),
    FUNCTIONS,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

F8, F4, C16, I8, B1 = (np.dtype(name) for name in ("float64", "float32", "complex128", "int64", "bool"))

UNARY = {
    F8: "exp tanh sin neg sqrt abs log1p", F4: "exp tanh neg cos", C16: "exp neg conj sqrt", I8: "neg abs",
    B1: "bitwise_not",
}  # fmt: skip
BINARY = {
    F8: "add sub mul div maximum pow atan2", F4: "add mul div", C16: "add mul div", I8: "add mul maximum",
    B1: "bitwise_and bitwise_xor",
}  # fmt: skip


def refuse(*raws: Any) -> Any:
    raise AssertionError("the fallback was called")


class Lines:
    """A kernel under construction over inputs of some dtypes."""

    def __init__(self, *inputs: np.dtype) -> None:
        self.inputs, self.dtypes, self.lines = inputs, list(inputs), []

    def literal(self, value: complex, dtype: np.dtype) -> int:
        self.lines.append(Literal(value, dtype))
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def apply(self, name: str, *args: int, out: np.dtype | None = None, **params: Any) -> int:
        self.lines.append(Apply(getattr(catalog, name).op(**params), args))
        self.dtypes.append(out or self.dtypes[args[0]])
        return len(self.dtypes) - 1

    def kernel(self, *outputs: int, reduction: str | None = None) -> KernelIR:
        how = None if reduction is None else Reduction(reduction)
        return KernelIR(tuple(map(Operand, self.inputs)), tuple(self.lines), outputs, reduction=how)


@st.composite
def kernels(draw: Any) -> KernelIR:
    dtypes = draw(st.lists(st.sampled_from((F8, F8, F4, C16, I8, B1)), min_size=1, max_size=4))
    lines = Lines(*dtypes)
    results: list[int] = []
    for _ in range(draw(st.integers(1, 14))):
        x = draw(st.integers(0, len(lines.dtypes) - 1))
        dtype = lines.dtypes[x]
        same = [v for v, d in enumerate(lines.dtypes) if d == dtype]
        how = draw(st.sampled_from("unary binary binary number compare select convert".split()))
        if how == "unary":
            name = draw(st.sampled_from(UNARY[dtype].split()))
            results.append(lines.apply(name, x))
        elif how in ("binary", "number"):
            name = draw(st.sampled_from(BINARY[dtype].split()))
            y = draw(st.sampled_from(same)) if how == "binary" else lines.literal(dtype.type(1).item(), dtype)
            results.append(lines.apply(name, *draw(st.permutations((x, y)))))
        elif how == "compare":
            results.append(lines.apply("eq", x, draw(st.sampled_from(same)), out=B1))
        elif how == "select":
            masks = [v for v, d in enumerate(lines.dtypes) if d == B1]
            if masks:
                y = draw(st.sampled_from([*same, lines.literal(dtype.type(0).item(), dtype)]))
                results.append(lines.apply("select", draw(st.sampled_from(masks)), x, y, out=dtype))
        elif dtype in (I8, B1, F4):
            results.append(lines.apply("convert", x, out=F8, dtype=F8))
    if not results:
        results.append(lines.apply(UNARY[dtypes[0]].split()[0], 0))
    outputs = draw(st.lists(st.sampled_from(results), min_size=1, max_size=4, unique=True))
    return lines.kernel(*outputs)


def numbers(r: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    x = r.normal(size=shape) * 3
    return np.asarray(x + 1j * r.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def same_bits(got: Any, want: Any) -> None:
    for a, b in zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def one_by_one(kernel: KernelIR, arrays: list[np.ndarray]) -> Any:
    """The outputs by the kernels of single ops."""
    space = np.broadcast_shapes(*[x.shape for x in arrays])
    values = [np.ascontiguousarray(np.broadcast_to(x, space)) for x in arrays]
    for line in kernel.lines:
        if isinstance(line, Literal):
            values.append(np.full(space, line.value, line.dtype))
        else:
            inputs = tuple([Operand(values[v].dtype) for v in line.args])
            single = KernelIR(inputs, (Apply(line.op, tuple(range(len(inputs)))),), (len(inputs),))
            values.append(Fused(single)(*[values[v] for v in line.args]))
    outs = tuple([values[v] for v in kernel.outputs])
    return outs if len(outs) > 1 else outs[0]


@settings(max_examples=60, deadline=None)
@given(kernels(), st.sampled_from((0, 1, 3, 8, 63, 64, 65, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7)), st.data())
def test_it_gives_the_bits_of_single_kernels(kernel: KernelIR, n: int, data: Any) -> None:
    shapes = {(0, 1): (2, n), (1,): (n,), (0,): (2,), (): ()}
    axes = [(0, 1), *[data.draw(st.sampled_from(sorted(shapes))) for _ in kernel.inputs[1:]]]
    region = Region(kernel, 2, tuple(axes))
    run = stepped(region, refuse)
    assert run is not None
    r = np.random.default_rng(n)
    arrays = [numbers(r, shapes[a], o.dtype) for a, o in zip(axes, kernel.inputs, strict=True)]
    held = [x.copy() for x in arrays]
    whole = [x[:, None] if a == (0,) else x for a, x in zip(axes, arrays, strict=True)]
    same_bits(run(*arrays), one_by_one(kernel, whole))
    for x, copy in zip(arrays, held, strict=True):
        np.testing.assert_array_equal(x, copy)
    # Results may take the memory of operands that have their shape and dtype.
    spare: list[Any] = []
    for operand in kernel.written:
        fits = [x for x in arrays if x.shape == (2, n) and x.dtype == operand.dtype and not any(x is y for y in spare)]
        spare.append(data.draw(st.sampled_from([None, *fits])))
    outs = run(*arrays, *spare)
    same_bits(outs, one_by_one(kernel, [np.expand_dims(x, 1) if a == (0,) else x for a, x in zip(axes, held)]))
    for y, out in zip(spare, outs if isinstance(outs, tuple) else (outs,), strict=True):
        assert y is None or y is out


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("n", [8, 9, 100, BLOCK])
def test_rows_are_reduced_after_the_last_step(kind: str, n: int) -> None:
    lines = Lines(F8, F8)
    kernel = lines.kernel(lines.apply("mul", lines.apply("exp", 0), 1), reduction=kind)
    region = Region(kernel, 2, ((0, 1), (1,)), (1,))
    run = stepped(region, refuse)
    assert run is not None
    r = np.random.default_rng(0)
    x, y = r.normal(size=(20, n)), r.normal(size=n)
    want = getattr(np, kind)(np.exp(x) * y, axis=1)
    np.testing.assert_allclose(run(x, y), want, rtol=1e-12, atol=1e-12)
    long = r.normal(size=(3, BLOCK + n)), r.normal(size=BLOCK + n)
    want = getattr(np, kind)(np.exp(long[0]) * long[1], axis=1)
    np.testing.assert_allclose(run(*long), want, rtol=1e-11, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from("sum prod max min".split()),
    st.sampled_from([(), (0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]),
    st.sampled_from([(0, 1, 2), (1, 2), (2,), (0, 1), (0,), ()]),
    st.sampled_from([(1, 1, 1), (2, 3, 4), (3, 5, 20), (4, 1, 600), (40, 30, 2)]),
)
def test_every_reduction_is_that_of_numpy(
    kind: str, gone: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    lines = Lines(F8, F8)
    product = lines.apply("mul", lines.apply("tanh", 0), 1)
    second = lines.apply("sub", product, 0)
    kernel = lines.kernel(product, second, reduction=kind if gone else None)
    run = stepped(Region(kernel, 3, ((0, 1, 2), axes), gone), refuse)
    assert run is not None
    r = np.random.default_rng(0)
    x, y = r.uniform(0.9, 1.1, size=shape), r.uniform(0.9, 1.1, size=tuple([shape[a] for a in axes]))
    wide = y.reshape([shape[a] if a in axes else 1 for a in range(3)])
    values = np.tanh(x) * wide, np.tanh(x) * wide - x
    want = [getattr(np, kind)(v, axis=gone) if gone else v for v in values]
    for got, expected in zip(run(x, y), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


def test_reductions_of_nothing_are_left_to_the_op() -> None:
    lines = Lines(F8)
    kernel = lines.kernel(lines.apply("is_nan", 0, out=B1), reduction="max")
    for gone in ((0,), (1,), (0, 1)):
        run = stepped(Region(kernel, 2, ((0, 1),), gone), lambda x: "fallback")
        assert run(np.ones((3, 0))) == run(np.ones((0, 0))) == "fallback"


def chain(steps: int) -> KernelIR:
    lines = Lines(F8)
    v = 0
    for _ in range(steps):
        v = lines.apply("add", lines.apply("sin", v), 0)
    return lines.kernel(v)


def test_what_does_not_lie_simply_goes_to_the_fallback() -> None:
    run = stepped(Region(chain(2), 2, ((0, 1),)), lambda *raws: "fallback")
    x = np.ones((4, 6))
    odd = np.frombuffer(bytes(8 * 4 + 1), "float64", 4, offset=1).reshape(2, 2)
    for other in (
        x[::-1],
        x[:, ::2],
        x.T,
        x.astype("float32"),
        x.astype(">f8"),
        np.ma.masked_array(x),
        odd,
        "text",
        None,
    ):
        assert run(other) == "fallback"
    assert run() == run(x, x, x) == "fallback"
    np.testing.assert_allclose(run(x), np.sin(np.sin(1) + 1) + 1)


def test_scratch_is_taken_again_and_long_chains_fit() -> None:
    rows = Rows.of(Region(chain(60), 1, ((0,),)))
    assert rows is not None
    plan = _Plan(chain(60), rows)
    assert len([1 for kind, *_ in plan._places if kind == SCRATCH]) == 1 and plan.block == BLOCK
    x = np.random.default_rng(0).normal(size=5000)
    want = x
    for _ in range(60):
        want = np.sin(want) + x
    run = stepped(Region(chain(60), 1, ((0,),)), refuse)
    np.testing.assert_allclose(run(x), want, rtol=1e-9, atol=1e-9)


def test_many_values_between_steps_make_blocks_shorter() -> None:
    lines = Lines(C16)
    many = [lines.apply("exp", 0) if i == 0 else lines.apply("neg", 0) for i in range(40)]
    total = many[0]
    for v in many[1:]:
        total = lines.apply("add", total, v)
    region = Region(lines.kernel(total), 1, ((0,),))
    rows = Rows.of(region)
    assert rows is not None
    plan = _Plan(region.kernel, rows)
    assert 0 < plan.block < BLOCK and plan.block % 64 == 0
    x = np.random.default_rng(0).normal(size=1000) + 0j
    np.testing.assert_allclose(stepped(region, refuse)(x), np.exp(x) - 39 * x, rtol=1e-12)


def test_the_context_lives_as_long_as_the_function() -> None:
    lines = Lines(F8)
    kernel = lines.kernel(lines.apply("add", lines.apply("pow", 0, lines.literal(2.5, F8)), lines.literal(0.25, F8)))
    run = stepped(Region(kernel, 1, ((0,),)), refuse)
    gc.collect()
    rubbish = [np.full(BLOCK, 7.0) for _ in range(100)]
    x = np.random.default_rng(0).uniform(1, 2, size=2000)
    np.testing.assert_allclose(run(x), x**2.5 + 0.25, rtol=1e-13)
    assert rubbish


def test_large_arrays_in_many_threads() -> None:
    run = stepped(Region(chain(5), 1, ((0,),)), refuse)
    x = np.random.default_rng(0).normal(size=300_000)
    want = x
    for _ in range(5):
        want = np.sin(want) + x
    first = run(x)
    np.testing.assert_allclose(first, want, rtol=1e-12, atol=1e-12)
    wrong: list[int] = []

    def work() -> None:
        for n in (300_000, 70_000, 8, 40_000):
            if not np.array_equal(run(x[:n]), first[:n]):
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_result_in_the_memory_of_an_operand_waits_for_its_last_reader() -> None:
    lines = Lines(F8, F8)
    early = lines.apply("exp", 0)
    kernel = lines.kernel(early, lines.apply("add", early, lines.apply("sub", 0, 1)))
    run = stepped(Region(kernel, 1, ((0,), (0,))), refuse)
    for n in (5, 2 * BLOCK + 5):
        x, y = np.linspace(0, 1, n), np.linspace(1, 2, n)
        want = np.exp(x), np.exp(x) + (x - y)
        got = run(x, y, x, y)
        assert got[0] is x and got[1] is y
        np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-14, atol=1e-15)
