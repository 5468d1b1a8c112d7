"""How programs run: as one native function or in parts, step by step until those are compiled; always the same."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from runtime_rooms import lowered
from tenferro_ad import value_and_grad
from tenferro_cpu import CpuPool
from tenferro_cpu.native import available
from tenferro_runtime.extension import check_program
from tenferro_runtime.ir import interpret
from tenferro_runtime.ir._call import is_part
from tenferro_runtime.lowering.native import how
from tenferro_runtime.passes import optimise
from tenferro_runtime.running.fusion import kernel_stats, parts, wait
from tenferro_tensor import Tensor, catalog, tensor
from thorough import tries

pytestmark = [
    pytest.mark.skipif(not available(), reason="native kernels are off"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

rng = np.random.default_rng(0)


def normal(*shape: int) -> Tensor:
    return tensor(rng.standard_normal(shape))


def names(program: tr.Program) -> list[str]:
    return [eq.op.primitive.name for eq in program.equations]


def inner(program: tr.Program) -> list[list[str]]:
    return [names(eq.op.params["program"]) for eq in program.equations if is_part(eq)]


def split(f, *args, deterministic: bool = True) -> tr.Program:
    """The program of a function with its parts as steps."""
    with tr.Runtime(deterministic=deterministic):
        program = optimise(tr.trace(f, *args))
        return check_program(parts(program, lambda part: len(part.equations) > 1))


def test_steps_that_round_alike_are_one_part() -> None:
    program = split(lambda x, y: tr.abs(x * y + 1.0) * 2.0, normal(3, 4), normal(3, 4))
    assert names(program) == ["call"]
    assert inner(program) == [["mul", "add", "abs", "mul"]]


def test_one_step_alone_stays_what_it_is() -> None:
    with tr.Runtime(deterministic=True):
        program = optimise(tr.trace(lambda x, w: tr.abs(x @ w), normal(3, 3), normal(3, 3)))
        assert parts(program, lambda part: len(part.equations) > 1) is program


def test_values_that_others_read_are_results() -> None:
    program = split(lambda x, w: ((h := tr.abs(x + 1.0)) @ w, h * 2.0 + x), normal(3, 3), normal(3, 3))
    assert names(program) == ["call", "dot_general", "call"]
    assert [len(eq.results) for eq in program.equations] == [1, 1, 1]


def test_a_step_that_waits_for_a_product_joins_the_steps_before_it() -> None:
    program = split(lambda x, w: tr.abs(x * 2.0 + x.T @ w), normal(3, 3), normal(3, 3))
    assert names(program)[-1] == "call" and inner(program) == [["mul", "add", "abs"]]


def test_views_are_computed_in_a_part_and_outside() -> None:
    """A sum of a view rounds by the memory of the view, and a part reads it through its index."""

    def f(x, y):
        rows = tr.broadcast_to(x + 1.0, (4, 3))
        return rows * y - y, tr.sum(rows, axis=0)

    program = split(f, normal(3), normal(4, 3))
    assert names(program) == ["call", "broadcast_in_dim", "reduce_sum"]
    assert inner(program) == [["add", "broadcast_in_dim", "mul", "sub"]]
    assert [len(eq.results) for eq in program.equations] == [2, 1, 1]


def test_a_view_that_two_parts_read_is_computed_in_both() -> None:
    def f(x, w):
        y = x.T
        return tr.sin((y + 1.0) * 2.0) @ w, (y - 1.0) * 3.0

    with tr.Runtime(deterministic=True):
        program = optimise(tr.trace(lambda x, w: f(tr.exp(x), w), normal(3, 3), normal(3, 3)))
    program.memo.clear()  # the views of a deterministic program stay outside of its parts

    def has_native_form(part: tr.Program) -> bool:
        assert "dot_general" not in names(part) or len(part.equations) > 1
        return len(part.equations) > 1

    assert inner(check_program(parts(program, has_native_form))) == [names(program)]


def test_updates_of_memory_from_outside_stay_steps() -> None:
    """A single step may write to the memory of its operand, of which a part would make a copy."""
    x = normal(5)
    program = optimise(tr.trace(lambda x: (x * 2.0 + 1.0, x.at[1].set(0.0) + 1.0, (x + 1.0).at[2].set(0.0) * 3.0), x))
    found = check_program(parts(program, lambda part: len(part.equations) > 1))
    outside = [eq.op.primitive for eq in found.equations if not is_part(eq)]
    assert len(outside) == 1 and outside[0] in (catalog.scatter, catalog.dynamic_update_slice, catalog.update_slice)


def test_equal_parts_are_one_program() -> None:
    def f(x, w):
        for _ in range(4):
            x = tr.abs(x * 2.0 + 1.0) @ w
        return x

    program = split(f, normal(3, 3), normal(3, 3))
    called = {id(eq.op.params["program"]) for eq in program.equations if is_part(eq)}
    assert len(called) == 1 and len(inner(program)) == 4


def test_a_part_does_not_wait_for_another_device_before_it_must() -> None:
    def f(x, y):
        with tr.compute_device("cpu:1"):
            a = x @ x @ x
        b = y @ y @ y + 1.0
        return (a + b) * 2.0

    with CpuPool(index=1):
        plan = tr.compile(f).plan(normal(3, 3), normal(3, 3))
    titles = [step.action.task.title for step in plan.steps]
    assert titles == ["dot_general", "dot_general", "part", "part"]


def bits(x: Tensor) -> bytes:
    """The bits, with one NaN: which of two operands' NaN, and which sign, a processor gives is nobody's promise."""
    return np.where(np.isnan(x.data), np.nan, x.data).tobytes()


def run_in_all_tiers(f, *args: Tensor, **how: bool) -> None:
    expected = f(*args)
    compiled = tr.compile(f, **how)
    first, second = compiled(*args), compiled(*args)
    wait()
    for got in (first, second, compiled(*args), compiled(*args)):
        for a, b in zip(got, expected, strict=True):
            if how:
                assert a.spec == b.spec and bits(a) == bits(b)
            same(a, b)


@settings(max_examples=30)
@given(random_functions())
def test_random_functions_give_the_same_in_all_tiers(f: Random) -> None:
    run_in_all_tiers(f, *f.inputs)


@settings(max_examples=30)
@given(random_functions(max_steps=20))
def test_deterministic_functions_have_the_bits_of_their_steps_in_all_tiers(f: Random) -> None:
    run_in_all_tiers(f, *f.inputs, deterministic=True)


@given(random_functions(max_steps=20), st.booleans())
def test_a_program_in_parts_keeps_the_law_and_the_values(f: Random, deterministic: bool) -> None:
    with tr.Runtime(deterministic=deterministic):
        program = optimise(tr.trace(f, *f.inputs))
        found = check_program(parts(program, lambda part: len(part.equations) > 1))
        for got, want in zip(interpret(found, f.inputs), interpret(program, f.inputs), strict=True):
            same(got, want)


REAL = ("float64", "float32")
DTYPES = (*REAL, "complex128", "complex64", "int64", "int32", "int8", "uint8", "bool")
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -3.5)


def array(draw, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    r = np.random.default_rng(draw(st.integers(0, 2**20)))
    x = r.normal(size=shape) * 3
    if dtype in REAL and draw(st.booleans()) and x.size:
        x = np.where(r.random(shape) < 0.3, r.choice(SPECIAL, size=shape), x)
    with np.errstate(all="ignore"):
        y = (x + 1j * r.normal(size=shape) if dtype.startswith("c") else np.abs(x) if dtype[0] == "u" else x).astype(
            dtype
        )
    layout = draw(st.sampled_from("plain plain fortran reversed stepped".split()))
    if layout == "fortran":
        y = np.asfortranarray(y)
    elif layout == "reversed" and y.ndim:
        y = np.ascontiguousarray(y[::-1])[::-1]
    elif layout == "stepped" and y.ndim:
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        wide[..., ::2] = y
        y = wide[..., ::2]
    return y


@st.composite
def regions(draw):
    """A function over one space with broadcast operands, selects, comparisons, several outputs, a reduction."""
    space = draw(st.sampled_from([(2, 3), (3, 17), (1, 4), (0, 3), (3, 0), (5,), (1,), (2, 3, 4), (2, 1, 9)]))
    dtype = draw(st.sampled_from(DTYPES))
    rank = len(space)
    shapes = [space, space, (), space[-1:], (*space[:-1], 1), (*[1] * (rank - 1), space[-1])]
    inputs = [tensor(array(draw, space, dtype))]
    inputs += [tensor(array(draw, draw(st.sampled_from(shapes)), dtype)) for _ in range(draw(st.integers(1, 3)))]
    steps = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=8))
    end = draw(st.sampled_from([None, None, "sum", "max", "prod"]))
    axes = draw(st.sampled_from([None, 0, -1]))
    several = draw(st.booleans())
    number = draw(st.sampled_from([2, 3, 1]))

    def f(*xs):
        pool = list(xs)
        for kind, i, j in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if kind < 3 or dtype.startswith("c"):
                pool.append(a * b if kind % 2 else a + b)
            elif kind == 3:
                pool.append(tr.where(a < b, a, b))
            elif kind == 4:
                pool.append(tr.maximum(a, b))
            elif kind == 5 and dtype in REAL:
                pool.append(tr.tanh(a) * number)
            elif kind == 6:
                pool.append(tr.where(tr.isfinite(a), a, b))
            elif kind == 7:
                pool.append(a * number)
            elif kind == 8 and dtype in REAL:
                pool.append(tr.astype(tr.astype(a, tr.float64) * b, a.dtype))
            else:
                pool.append(tr.abs(a) + b)
        last = tr.broadcast_to(pool[-1] + pool[0], space) if pool[-1].shape != space else pool[-1] + pool[0]
        if end and not dtype.startswith("c") and (end == "sum" or 0 not in space) and dtype != "bool":
            last = getattr(tr, end)(last, axis=axes)
        return (last, pool[-1]) if several else (last,)

    return inputs, f


@settings(max_examples=tries(24, 60))
@given(regions())
def test_random_regions_give_the_same_in_all_tiers(case) -> None:
    inputs, f = case
    with np.errstate(all="ignore"):
        run_in_all_tiers(f, *inputs)


@settings(max_examples=tries(16, 40))
@given(regions())
def test_random_deterministic_regions_have_the_bits_of_their_steps(case) -> None:
    inputs, f = case
    with np.errstate(all="ignore"):
        run_in_all_tiers(f, *inputs, deterministic=True)


def test_gradients_of_fused_programs() -> None:
    def loss(x, y):
        return tr.sum(tr.tanh(x * y + 1.0) * tr.exp(-x) + tr.where(x > 0, x * x, y))

    x, y = normal(4, 5), normal(5)
    expected = value_and_grad(loss, argnums=(0, 1))(x, y)
    for f in (tr.compile(value_and_grad(loss, argnums=(0, 1))), value_and_grad(tr.compile(loss), argnums=(0, 1))):
        for _ in range(3):
            value, grads = f(x, y)
            same(value, expected[0])
            same(grads[0], expected[1][0])
            same(grads[1], expected[1][1])
            wait()


def test_the_first_call_compiles_nothing_and_later_ones_swap() -> None:
    f = tr.compile(lambda x: tr.tanh(x * 3.25 + 1.125) * 0.3125)
    x = normal(7)
    expected = f(x)
    assert "step by step at first" in str(f.explain(x))
    same(f(x), expected)
    wait()
    assert "runs as one native function" in str(f.explain(x))
    for shape in ((7,), (0,), (100,)):
        y = normal(*shape)
        same(f(y), tensor(np.tanh(y.data * 3.25 + 1.125) * 0.3125), rtol=1e-12)


def test_threads_may_run_while_kernels_are_swapped() -> None:
    wrong: list[object] = []

    def work(k: int) -> None:
        x = tensor(np.linspace(0, 1, 64))
        for i in range(12):
            f = tr.compile(lambda x, c=float(i): tr.exp(x * c) - x * (c + 0.5))
            for _ in range(30):
                if not np.allclose(f(x).data, np.exp(x.data * i) - x.data * (i + 0.5), rtol=1e-12):
                    wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_layouts_that_no_kernel_is_ready_for_run_op_by_op_first() -> None:
    f = tr.compile(lambda x, y: tr.tanh(x * y) + x)
    x = normal(6, 8)
    f(x, x), f(x, x)
    wait()
    y = np.asfortranarray(x.data)
    for _ in range(2):
        same(f(x, tensor(y)), tensor(np.tanh(x.data * y) + x.data), rtol=1e-12)
        same(f(tensor(x.data[:, ::-1]), tensor(y)), tensor(np.tanh(x.data[:, ::-1] * y) + x.data[:, ::-1]), rtol=1e-12)
        wait()


def test_steps_that_round_in_several_ways_are_in_no_part_of_a_deterministic_program() -> None:
    def f(x, y):
        return (x * y + x) / 3.0 - tr.where(x > y, x, 2.0 * y), tr.tanh(x) * y + 1.0

    x, z = normal(100), tensor(np.full(100, 0.6 + 0.8j))
    program = split(f, x, x)
    assert "tanh" in names(program) and inner(program)[0].count("mul") == 3
    for g in (lambda z: tr.sign(z) + z, lambda z: tr.abs(z) + tr.real(z), lambda z: z * z + z):
        assert not {"sign", "abs", "mul", "real"} & {name for part in inner(split(g, z)) for name in part}


def test_numbers_that_do_not_fit_are_refused_as_without_fusion() -> None:
    x = tensor(np.array([1, 2], "uint8"))
    with pytest.raises((OverflowError, TypeError, ValueError)):
        tr.compile(lambda x: (x + 1) * 300)(x)


def test_a_runtime_may_leave_fusion_out_or_keep_every_bit() -> None:
    def f(x):
        return tr.tanh(x * 2.5 + 0.125) * x

    x = normal(3000)
    expected = f(x)
    for runtime in (tr.Runtime(fusion=False), tr.Runtime(deterministic=True)):
        with runtime:
            compiled = tr.compile(f)
        for _ in range(3):
            assert compiled(x).data.tobytes() == expected.data.tobytes()
            wait()


def test_what_cannot_be_one_function_is_in_parts() -> None:
    """Sums in an order of their own keep a deterministic program in steps; those that round alike are one function."""

    def f(x):
        return tr.sum(tr.tanh(x * 2.5 + 0.125) * x)

    compiled = tr.compile(f, deterministic=True)
    for n in (3000, 3000, 1, 0, 7):
        x = normal(n)
        assert compiled(x).data.tobytes() == f(x).data.tobytes()
        wait()
    (part,) = [eq for eq in lowered(compiled.program(x)).equations if is_part(eq)]
    assert names(part.op.params["program"]) == ["mul", "add"] and kernel_stats()["native"]
    assert how(part.op.params["program"]) == "runs as one native function"


def test_a_part_keeps_the_layouts_on_which_later_steps_round() -> None:
    """A sum of a column-major array adds in another order than that of the same numbers in rows."""

    def f(x, y):
        return tr.sum(x * y + x, axis=0)

    compiled = tr.compile(f, deterministic=True)
    for _ in range(2):
        for a, b in [(40, 30), (1, 70), (300, 2), (0, 3)]:
            x, y = rng.standard_normal((2, a, b))
            for left in (x, np.asfortranarray(x), np.ascontiguousarray(x[::-1])[::-1]):
                for right in (y, np.asfortranarray(y)):
                    given = tensor(left), tensor(right)
                    assert compiled(*given).data.tobytes() == f(*given).data.tobytes()
        wait()


def test_a_part_is_differentiated_and_traced_as_what_it_means() -> None:
    def f(x, y):
        return tr.sum(tr.tanh(x * y + 1.0) * tr.exp(-x))

    x, y = normal(3, 4), normal(4)
    program = split(f, x, y, deterministic=False)
    expected = value_and_grad(f, argnums=(0, 1))(x, y)
    value, grads = value_and_grad(lambda x, y: program.run(x, y)[0], argnums=(0, 1))(x, y)
    for got, want in zip((value, *grads), (expected[0], *expected[1]), strict=True):
        same(got, want)


def of(dtype: str, *values: complex) -> Tensor:
    return tensor(np.array(values, dtype))


NAN, INF = np.nan, np.inf
EDGES = {
    "integer powers": (lambda x, y: x**y + 1, of("int64", 2, 3, -4), of("int64", 1, 0, 2)),
    "negative integer powers": (lambda x, y: x**y + 1, of("int64", 2, 3, 4), of("int64", 1, -1, 2)),
    "integer quotients": (lambda x, y: x // y + x % y, of("int64", 2, -3, 4), of("int64", 0, 2, -3)),
    "quotients": (lambda x, y: x // y + x % y, of("float64", 2.5, -3, INF, NAN, 1), of("float64", 0, 2, 3, 1, -0.3)),
    "to integers": (lambda x, y: tr.astype(x * y, tr.int8) + 1, of("float64", 2.5, 300, NAN), of("float64", 1, 1, 1)),
    "to floats": (lambda x, y: tr.astype(x + y, tr.float32) * 2, of("int64", 2, 2**62 + 1, -5), of("int64", 1, 1, 1)),
    "to booleans": (
        lambda x, y: tr.astype(x * y, tr.bool) | (x > y),
        of("float64", 2.5, 0, NAN),
        of("float64", 1, 2, 3),
    ),
    "shifts": (lambda x, y: (x << y) + (x >> y), of("int64", 2, -3, 4), of("int64", 70, 2, 63)),
    "wrapping": (lambda x, y: (x * y + x) * x, of("int8", 100, -128, 127), of("int8", 100, -1, 2)),
    "complex": (lambda x, y: x * y / (x + y), of("complex128", 2 + 1j, -3, 4j), of("complex128", 1, 2j, -3)),
    "sums that are or": (lambda x, y: tr.sum(x & y), of("bool", 1, 0, 1), of("bool", 1, 1, 1)),
    "any": (lambda x, y: tr.any((x > y) | (x < 0)), of("int64", 1, 0, 1), of("int64", 1, 1, 1)),
    "products that wrap": (lambda x, y: tr.prod(x * y, dtype=x.dtype), of("int16", 100, 3, 7), of("int16", 1000, 1, 1)),
    "maximum with NaN": (lambda x, y: tr.max(tr.maximum(x, y) * 2), of("float64", 1, NAN, 3), of("float64", 0, 1, 2)),
    "maximum of nothing": (lambda x, y: tr.max(x * y + 1.0), of("float64"), of("float64")),
}


@pytest.mark.parametrize("what", EDGES)
def test_edges_are_the_same_in_all_tiers(what: str) -> None:
    f, x, y = EDGES[what]

    def outcome(g) -> tuple[object, ...]:
        try:
            out = g(x, y)
        except (ValueError, ArithmeticError) as error:
            return (type(error).__mro__[1],)
        return out.spec, out.data.tobytes()

    with np.errstate(all="ignore"):
        expected, compiled = outcome(f), tr.compile(f)
        for call in range(4):
            got = outcome(compiled)
            assert got == expected or (len(got) == len(expected) == 1)
            if call == 1:
                wait()
