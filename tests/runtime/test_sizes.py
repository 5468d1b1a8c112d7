"""`Size`, what ``x.shape[i]`` is while tracing with symbolic sizes: algebra, guards, numbers, arrays made of sizes."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, vjp
from tenferro_runtime.extension import check_program
from tenferro_tensor import MemorySpace, Place, Size, Spec, tensor
from tenferro_tensor_core import ArgumentError, InconclusiveDimError, ShapeError, TracingError

F8 = np.dtype("float64")
F4 = np.dtype("float32")
n, m = tr.dim("n"), tr.dim("m")
SIZES = [(3, 4), (5, 7), (2, 2), (1, 4), (3, 1), (1, 1), (0, 3), (2, 0), (0, 0)]


def guards(program):
    return [str(g).partition(" (")[0] for g in program.guards]


def line_of(program):
    return {int(str(g).rpartition(":")[2].rstrip(")")) for g in program.guards}


def test_a_shape_holds_sizes_only_where_it_is_open():
    seen = []
    tr.trace(lambda x: seen.append((x.shape, x.size, x.spec)) or x, Spec((n, 3), F8))
    (shape, size, spec) = seen[0]
    assert [type(d) for d in shape] == [Size, int] and repr(shape) == "(n, 3)" and repr(size) == "3*n"
    assert spec.shape == (n, 3)


def test_arithmetic_with_integers_gives_sizes():
    def f(x):
        a, b = x.shape
        found = [
            a + 1, 1 + a, a - b, 3 - a, a * b, 2 * a, a // 2, 7 // (a + 1), a % 3, divmod(a, 2), -a, +a, abs(a), a**2,
            np.int64(2) * a, a * np.int64(2), n * a, a * n, round(a), math.floor(a),
        ]  # fmt: skip
        for d in found:
            assert all(isinstance(e, Size) for e in (d if isinstance(d, tuple) else (d,))), d
        assert repr(found) == (
            "[n + 1, n + 1, -m + n, -n + 3, m*n, 2*n, n//2, 7//(n + 1), -3*(n//3) + n, (n//2, -2*(n//2) + n), -n, n, "
            "n, n*n, 2*n, 2*n, n*n, n*n, n, n]"
        )
        assert a - a == 0 and isinstance(a - a, int)
        return x

    assert tr.trace(f, Spec((n, m), F8)).guards == ()


def test_comparisons_are_guards_with_the_line_that_asked():
    def f(x):
        a, b = x.shape
        return x * 2 if a > b and a != 4 and a else x  # n > m says that it is not 0

    program = tr.trace(f, Spec((n, m), F8), examples={"n": 5, "m": 3})
    assert guards(program) == ["n > m", "n != 4"]
    assert all(__file__ in str(g) for g in program.guards)
    assert line_of(program) == {f.__code__.co_firstlineno + 2}


def test_what_bounds_decide_is_no_guard():
    def f(x):
        a, b = x.shape
        assert a >= 0 and min(a, b) is not None
        assert a + b >= a and a + 1 != 0 and a + 1 > a and not a < 0
        return x

    program = tr.trace(lambda x: f(x), Spec((n, m), F8))
    assert guards(program) == ["m >= n"]  # by min(), which chooses


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda a: int(a), "int()"),
        (lambda a: len(range(a)), "range()"),
        (lambda a: float(a), "float()"),
        (lambda a: math.sqrt(a), "a function of math"),
        (lambda a: [0] * a, "an integer"),
        (lambda a: complex(a), "complex"),
        (lambda a: {a: 1}[5], "hash() (for a key of a dict, a set or a cache)"),
    ],
)
def test_numbers_of_a_size_specialise(f, reason):
    program = tr.trace(lambda x: x * len(str(f(x.shape[0]))), Spec((n,), F8), examples={"n": 5})
    assert guards(program) == ["n == 5"] and reason in str(program.guards[0]) and __file__ in str(program.guards[0])
    with (
        tr.Runtime(strict_sizes=True),
        pytest.raises(TracingError, match=rf"needs the value of .* size n at {__file__}:\d+, which .*static"),
    ):
        tr.trace(lambda x: x * len(str(f(x.shape[0]))), Spec((n,), F8), examples={"n": 5})


def test_what_is_made_of_a_number_is_a_number():
    def f(x):
        a = x.shape[0]
        assert isinstance(a + 1, Size) and len(range(2 * a - 1)) == 9  # 2*n - 1 == 9 says what n is
        assert [a + 1, a * a, a**2, 7 - a, a % 3].__repr__() == "[6, 25, 25, 2, 2]"
        assert isinstance(min(a, x.shape[1]), Size) and isinstance(x.shape[1] + a, Size)
        return x

    assert guards(tr.trace(f, Spec((n, m), F8), examples={"n": 5, "m": 3}))[0] == "2*n - 1 == 9"


def test_keys_are_numbers_of_all_sizes_that_they_are_made_of():
    for key in (lambda a, b: a * b, lambda a, b: a // 2 + b, lambda a, b: (a // 2, b), lambda a, b: (a, (b, a))):
        seen = []

        def f(x, key=key, seen=seen):
            a, b = x.shape
            k = key(a, b)
            seen.append({k: 1} == {key(5, 3): 1})
            return x + a * b

        program = tr.trace(f, Spec((n, m), F8), examples={"n": 5, "m": 3})
        assert seen == [True] and sorted(guards(program)) == ["m == 3", "n == 5"]
        assert program.run(np.zeros((5, 3)))[0].numpy().max() == 15
        with pytest.raises(ShapeError, match=r"n == 5 \(hash\(\)"):
            program.run(np.zeros((4, 3)))


@given(runs=st.lists(st.tuples(st.sampled_from(["eager", "f", "g"]), st.integers(1, 6), st.integers(1, 6)), max_size=8))
def test_tables_that_outlive_a_trace_hold_nothing_that_was_true_in_it_only(runs):
    """A cached function of sizes that branches on them gives every trace and every eager call what is right there."""

    @lru_cache
    def padded(a, b):
        return a if a > b else b + 1

    def body(x):
        return tr.concat([x[:, 0], tr.ones(padded(*x.shape))])

    compiled: dict[str, Any] = {
        "f": tr.compile(body),
        "g": tr.compile(lambda x: body(tr.matrix_transpose(x) * 1.0)),
        "eager": body,
    }
    for how, a, b in runs:
        want = max(a, b + 1) if how != "g" else max(b, a + 1)
        assert compiled[how](tr.zeros((a, b))).shape == ((a if how != "g" else b) + want,)


def test_sizes_that_depend_on_data_are_no_keys():
    with pytest.raises(
        InconclusiveDimError, match=r"hash\(\) .* needs the value of the symbolic size u0 .*only when the program"
    ):
        tr.trace(lambda x, k: {tr.truncate(x, k).shape[0]: 1} and x, Spec((n,), F8), Spec((), np.dtype("int64")))


def test_compiled_functions_with_strict_sizes_do_not_fall_back_to_numbers():
    with tr.Runtime(strict_sizes=True):
        f = tr.compile(lambda x: x / int(x.shape[0]))
    with pytest.raises(TracingError, match=rf"needs the value of .* size n0 at {__file__}:\d+, which .*static"):
        f(np.ones(3))


def test_loops_over_rows_and_unstack_specialise():
    for f in (lambda x: sum(list(x)), lambda x: sum(tr.unstack(x)), lambda x: x * len(x)):
        assert guards(tr.trace(f, Spec((n, 2), F8), examples={"n": 3})) == ["n == 3"]


def test_misuse_is_explained():
    def sized(f):
        return tr.trace(lambda x: f(x.shape[0]) and x, Spec((n,), F8))

    with pytest.raises(TracingError, match=r"size n cannot be converted to a NumPy array.*tenferro's asarray"):
        sized(np.asarray)
    with pytest.raises(ArgumentError, match="cannot divide the size n by zero"):
        sized(lambda a: a // 0)
    with pytest.raises(TypeError):
        sized(lambda a: a + "x")
    kept = []
    tr.trace(lambda x: kept.append(x.shape[0]) or x, Spec((n,), F8))
    with pytest.raises(InconclusiveDimError, match=r"cannot decide n == 3 at .*test_sizes.py"):
        bool(kept[0] == 3)
    with pytest.raises(InconclusiveDimError, match=r"needs the value of .* size n at .* outside of any trace"):
        int(kept[0])
    with pytest.raises(TracingError, match=r"has the symbolic sizes n, which have no value outside the trace"):
        tr.zeros(kept[0])


NUMBERS = {
    "divide": lambda x: x / x.shape[0],
    "divided": lambda x: x.shape[0] / (x + 1),
    "times": lambda x: x * x.shape[0] * 0.5,
    "reversed": lambda x: x.shape[0] * x,
    "product of sizes": lambda x: x * (x.shape[0] * x.shape[1]),
    "plus half": lambda x: x + (x.shape[0] + 0.5),
    "ratio": lambda x: x * ((x.shape[0] + 1) / (x.shape[1] + 1)),
    "power": lambda x: x ** x.shape[0],
    "function": lambda x: tr.maximum(x, x.shape[0]),
    "sqrt": lambda x: x * tr.astype(tr.sqrt(x.shape[0]), x.dtype),
    "where": lambda x: tr.where(x > 0, x.shape[1], x),
    "comparison": lambda x: x > x.shape[0],
    "array": lambda x: x + tr.asarray(x.shape[0]),
    "NumPy number": lambda x: x * (np.float64(0.5) * x.shape[0]),
    "mean": lambda x: tr.mean(x + 1, axis=0, keepdims=True) + tr.sum(x) / x.size,
    "var": lambda x: tr.var(x, axis=0, correction=x.shape[0] * 0.5),
}
ARRAYS = {
    "zeros": lambda x: tr.zeros(x.shape[0]),
    "ones": lambda x: x + tr.ones(x.shape),
    "full": lambda x: tr.full((x.shape[0], 2), 3.5),
    "full of a value": lambda x: tr.full((x.shape[0],), tr.sum(x)),
    "zeros_like": lambda x: tr.zeros_like(x) + tr.ones_like(x, dtype=tr.float32),
    "eye": lambda x: tr.eye(x.shape[0]),
    "eye above": lambda x: tr.eye(x.shape[0], x.shape[1], k=1),
    "arange": lambda x: tr.arange(x.shape[0]),
    "arange from": lambda x: tr.arange(1, x.shape[0] + 2, 2),
    "arange down": lambda x: tr.arange(x.shape[0], -1, -1),
    "arange float": lambda x: tr.arange(x.shape[1], dtype=tr.float32),
    "linspace": lambda x: tr.linspace(-1.0, 2.0, x.shape[0]),
    "linspace open": lambda x: tr.linspace(0.5, 3, x.shape[0], endpoint=False),
    "linspace of values": lambda x: tr.linspace(tr.sum(x), 1.0, x.shape[0]),
    "tril": lambda x: tr.tril(x) - tr.triu(x, k=1),
    "reshape rest": lambda x: tr.reshape(x, (-1,)),
    "reshape product": lambda x: tr.reshape(x, (x.shape[0] * x.shape[1],)),
    "reshape apart": lambda x: tr.reshape(tr.concat([x, x]), (x.shape[0], 2, x.shape[1])),
    "broadcast_to": lambda x: tr.broadcast_to(1.5, x.shape),
    "broadcast row": lambda x: tr.broadcast_to(tr.arange(x.shape[1]), x.shape),
    "half": lambda x: x[: x.shape[0] // 2],
    "second half": lambda x: x[x.shape[0] // 2 :],
    "last": lambda x: x[x.shape[0] - 1 :] * 2,
    "neighbours": lambda x: x[1:] - x[:-1],
    "at": lambda x: x.at[: x.shape[0] // 2, 1:].set(7.0),
    "at every other": lambda x: x.at[::2, ::-1].add(x[::2]),
    "split": lambda x: tr.split(x, [x.shape[0] // 2], axis=0)[1],
    "split at numbers": lambda x: tr.split(x, [1, -1], axis=1)[1],
    "roll": lambda x: tr.roll(x, x.shape[0] // 2, axis=0),
    "pad": lambda x: tr.pad(x, ((0, x.shape[0]), (1, 0))),
    "tile": lambda x: tr.tile(x, (x.shape[1], 1)),
    "repeat": lambda x: tr.repeat(x, x.shape[0], axis=1),
    "stack": lambda x: tr.stack([x, x * 2], axis=1),
    "meshgrid": lambda x: tr.meshgrid(tr.arange(x.shape[0]), tr.arange(x.shape[1]))[0],
    "diagonal": lambda x: tr.diagonal(tr.concat([x, tr.zeros((1, x.shape[1]))]) @ tr.ones((x.shape[1], 2))),
    "take": lambda x: tr.take(tr.concat([x, x]), tr.arange(x.shape[0]), axis=0),
}
GUARDED = {"last"}
"""Calls that read or write single elements, hence ask whether there are any."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*NUMBERS, *ARRAYS])
def test_one_trace_equals_the_eager_call_at_every_size(name):
    f = {**NUMBERS, **ARRAYS}[name]
    for dtype in (F8, F4):
        program = check_program(tr.trace(f, Spec((n, m), dtype)))
        assert bool(program.guards) == (name in GUARDED)
        exact = tr.Runtime(deterministic=True).optimise(program)
        for a, b in SIZES:
            if not all(g.holds({"n": a, "m": b}) for g in program.guards):
                assert a == 0 or b == 0
                continue
            x = tensor(np.random.default_rng(a + b).normal(size=(a, b)).astype(dtype))
            (got,), (same,), want = program.run(x), exact.run(x), tr.asarray(f(x))
            assert got.spec is same.spec is want.spec
            np.testing.assert_array_equal(same.numpy(), want.numpy())
            # Fused sums may be added in another order.
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=float(4 * np.finfo(dtype).eps))


@given(a=st.integers(0, 9), start=st.integers(-6, 6), stop=st.integers(-6, 6), step=st.sampled_from([1, 2, 3]))
def test_slices_with_any_bounds(a, start, stop, step):
    program = tr.trace(lambda x: x[start:stop:step], Spec((n,), F8))
    assert not program.guards
    np.testing.assert_array_equal(program.run(np.arange(float(a)))[0].numpy(), np.arange(float(a))[start:stop:step])


@pytest.mark.parametrize("name", [k for k in NUMBERS if k not in ("comparison", "power")])
def test_derivatives_of_programs_with_sizes(name):
    f = NUMBERS[name]

    def loss(x):
        return tr.sum(f(x) * tr.sin(f(x)))

    program = tr.trace(lambda x: [grad(loss)(x), jvp(loss, (x,), (tr.ones(x.shape),))[1]], Spec((n, m), F8))
    for a, b in [(3, 4), (1, 2)]:
        x = tensor(np.random.default_rng(a).normal(size=(a, b)))
        pulled, pushed = program.run(x)
        np.testing.assert_allclose(pulled.numpy(), grad(loss)(x).numpy(), rtol=1e-12)
        np.testing.assert_allclose(float(pushed), float(jvp(loss, (x,), (tr.ones(x.shape),))[1]), rtol=1e-12)


def test_broadcasting_asks_one_question():
    f = lambda x, y: tr.sum(x * y, axis=0)
    same = tr.trace(f, Spec((n,), F8), Spec((m,), F8), examples={"n": 4, "m": 4})
    one = tr.trace(f, Spec((n,), F8), Spec((m,), F8), examples={"n": 4, "m": 1})
    assert guards(same) == ["n == m"] and guards(one) == ["m == 1"]
    for k in (0, 1, 6):
        assert float(same.run(np.ones(k), np.ones(k))[0]) == k
        assert float(one.run(np.ones(k), np.ones(1))[0]) == k
    batched = tr.trace(lambda x, y: x @ y, Spec((n, 2, 3), F8), Spec((n, 3, 2), F8))
    assert not batched.guards


def test_derivatives_of_sizes_that_turned_out_equal():
    """Cotangents come under the names of the operand's own extents."""

    def loss(x, y):
        return tr.sum(tr.sin(x @ y)), tr.sum(x * y)

    examples = {"n": 4, "m": 4}
    for k, f in enumerate((lambda x, y: tr.sum(tr.sin(x @ y)), lambda x, y: tr.sum(x * tr.sin(y)))):
        specs = [Spec((3, n), F8), Spec((m, 3) if k == 0 else (3, m), F8)]
        primal = tr.trace(f, *specs, examples=examples)
        program = check_program(
            tr.trace(lambda x, y, f=f: list(vjp(f, x, y)[1](tr.ones(()))), *specs, examples=examples)
        )
        assert guards(program) == guards(primal) == ["n == m"]
        x, y = np.ones((3, 2)), np.ones((2, 3) if k == 0 else (3, 2))
        for got, want in zip(program.run(x, y), vjp(f, tensor(x), tensor(y))[1](tr.ones(())), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy())


def test_derivatives_of_sizes_that_turned_out_to_be_numbers():
    """Cotangents come in the extents of the operand, be these sizes or numbers."""

    def loss(x, y):
        assert x.shape[1] == 2 and y.shape == (2, 2)
        z = tr.reshape(y, (2, 2))
        return tr.sum(tr.sin(x @ z) + tr.sum(x * y[0] * tr.ones(2), axis=0) @ z)

    specs, examples = [Spec((3, n), F8), Spec((m, m), F8)], {"n": 2, "m": 2}
    program = check_program(tr.trace(lambda x, y: list(vjp(loss, x, y)[1](tr.ones(()))), *specs, examples=examples))
    assert set(guards(program)) == {"n == 2", "m == 2"}
    x, y = (np.random.default_rng(0).normal(size=s) for s in ((3, 2), (2, 2)))
    for got, want in zip(program.run(x, y), vjp(loss, tensor(x), tensor(y))[1](tr.ones(())), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy())


def test_rules_that_were_used_under_one_trace_ask_again_under_another():
    """Plans of derivatives hold no answers: each trace records its own guards."""

    def f(x, y):
        return grad(lambda x: tr.sum(tr.exp(x) * y))(x)

    specs = [Spec((n,), F8), Spec((m,), F8)]
    first, second, other = (
        tr.trace(f, *specs, examples=e) for e in ({"n": 4, "m": 4}, {"n": 6, "m": 6}, {"n": 4, "m": 1})
    )
    assert guards(first) == guards(second) == ["n == m"] and guards(other) == ["m == 1"]


def test_nested_traces_share_sizes():
    def f(x):
        inner = tr.compile(lambda y: y * x.shape[0] + tr.zeros(x.shape))
        return inner(tr.sum(x))

    program = check_program(tr.trace(f, Spec((n,), F8)))
    assert program.run(np.ones(3))[0].tolist() == [9.0, 9.0, 9.0]


def test_numbers_of_sizes_are_where_the_array_is():
    there = Place(MemorySpace("cuda:0"))
    for f in (NUMBERS["divide"], NUMBERS["mean"], lambda x: x[tr.argmax(x, axis=0)], tr.tril):
        program = check_program(tr.trace(f, Spec((n, m), F8, there)))
        made = [program.specs[v] for eq in program.equations for v in eq.results]
        assert made and {spec.place for spec in made} == {there}


def test_a_size_from_outside_of_a_traced_function():
    def inner(rows, y):
        return tr.sum(tr.broadcast_to(y, (rows, 2)))

    x, y = tensor(np.arange(3.0)), tensor(np.ones(2))
    n, pair = tr.dim("n"), Spec((2,), np.dtype("float64"))
    vector = Spec((n,), np.dtype("float64"))
    with pytest.raises(
        TracingError, match=rf"uses the size n from outside at {__file__}:\d+, an extent of no argument; .*use compile"
    ):
        tr.trace(lambda x, y: tr.trace(lambda y: inner(x.shape[0], y), pair).run(y)[0], vector, pair)

    def outer(x, y):
        return tr.compile(lambda y: inner(x.shape[0], y))(y)

    assert float(tr.trace(outer, vector, pair).run(x, y)[0]) == float(tr.compile(outer)(x, y)) == 6.0


def test_sizes_are_numbers_in_threads_that_the_trace_does_not_reach():
    kept = []

    def f(x):
        rows, columns = x.shape
        kept.append(columns)
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(lambda: (rows * 2 + 1, rows > 4, math.log2(rows + 3), rows * 0.5, -rows)).result()
        assert [type(v) for v in found] == [int, bool, float, tr.Tensor, int]
        return x * found[0], rows + 1

    program = tr.trace(lambda x: f(x)[0], Spec((n, m), F8), examples={"n": 5, "m": 7})
    assert guards(program) == ["n == 5"]
    with ThreadPoolExecutor(1) as pool, pytest.raises(InconclusiveDimError, match="outside of any trace"):
        pool.submit(int, kept[0]).result()  # the trace has ended, and could not keep a guard


def test_sizes_travel_to_other_processes_as_numbers():
    def f(x):
        assert pickle.loads(pickle.dumps([x.shape, x.shape[0] * 2])) == [(5, 4), 10]
        return x

    assert guards(tr.trace(f, Spec((n, 4), F8), examples={"n": 5})) == ["n == 5"]
