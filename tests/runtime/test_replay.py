"""New sizes cost no trace and no rendering: one program is bound to them; and its kernels are those of single sizes."""

import logging
import re
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from runtime_rooms import COMPILING, COUNTERS
from tenferro_ad import grad, jvp, value_and_grad
from tenferro_cpu.native import available
from tenferro_runtime.extension import flatten, interpret
from tenferro_runtime.ir import concrete
from tenferro_runtime.ir._bind import render_fit
from tenferro_runtime.running.rendering._tiers import CALLS_BEFORE_COMPILING
from tenferro_tensor import Spec, catalog, tensor
from tenferro_tensor_core import Guard, ShapeError, ask, dim

pytestmark = pytest.mark.background

F8 = np.dtype("float64")
rng = np.random.default_rng(0)


def X(*shape):
    return tensor(rng.normal(size=shape))


def counts():
    return COUNTERS.traces, COUNTERS.renders, COUNTERS.compiles


def settled(f, *args):
    """Call a compiled function until its kernels are machine code, as far as there is some."""
    for _ in range(CALLS_BEFORE_COMPILING + 1):
        f(*args)
        COMPILING.drain()


def same(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-9, atol=1e-11)


def test_a_new_shape_of_an_svd_and_its_gradient_is_bound_and_nothing_else():
    def loss(a, b):
        u, s, vh = tr.linalg.svd(a @ b, full_matrices=False)
        return tr.sum(tr.sin((u * s) @ vh)) + tr.sum(s)

    f = tr.compile(value_and_grad(loss, (0, 1)))
    settled(f, X(4, 6), X(6, 3))
    settled(f, X(80, 90), X(90, 70))
    for i in range(30):
        n, k = rng.integers(2, 12, 2) * (1 if i % 5 else 8)
        m = max(n, k) + rng.integers(0, 3)
        a, b = X(n, m), X(m, k)
        before = counts()
        got = f(a, b)
        COMPILING.drain()
        assert counts() == before
        want = value_and_grad(loss, (0, 1))(a, b)
        same(got[0], want[0])
        for g, w in zip(got[1], want[1], strict=True):
            same(g, w)
    assert f.cache_info().traces == 1 and f.cache_info().size == 1


def test_new_shapes_of_a_fused_program_compile_nothing():
    f = tr.compile(value_and_grad(lambda x, y: tr.sum(tr.tanh(x * y) * tr.sin(x) + tr.exp(-y * y)), (0, 1)))
    for shape in ((4, 6), (100, 100)):  # op by op at first where arrays are large
        settled(f, X(*shape), X(*shape))
    for n, m in [(3, 5), (1, 1), (0, 2), (2, 0), (1, 7), (7, 1), (40, 30), *rng.integers(1, 50, (24, 2))]:
        x, y = X(n, m), X(n, m)
        before = counts()
        for _ in range(CALLS_BEFORE_COMPILING + 1):
            got = f(x, y)
            COMPILING.drain()
        assert counts() == before
        want = f.__wrapped__(x, y)
        same(got[0], want[0])
        same(got[1][0], want[1][0])
    assert f.cache_info().traces == 1


def test_what_has_to_be_compiled_is_counted():
    if available():
        before = COUNTERS.compiles
        settled(tr.compile(lambda x: tr.sin(x * 0.123) * tr.cos(x - 0.456) + 0.789 * x), X(50, 60))
        assert COUNTERS.compiles > before


def test_a_branch_on_a_size_makes_two_programs_and_the_reason_names_it():
    @tr.compile
    def f(x):
        return x * 2 if x.shape[0] > 3 else x + 1

    for n in (5, 2, 0, 9, 1, 4, 3):
        x = X(n)
        same(f(x), x.data * 2 if n > 3 else x.data + 1)
    info = f.cache_info()
    assert info.traces == info.size == 2
    assert "the guard n0 > 3 (" in info.reasons[1] and __file__ in info.reasons[1]
    assert "does not hold for n0 = x.shape[0] = 2" in info.reasons[1]


def test_sizes_that_must_be_equal_are_one_size_and_broadcasting_is_another_program():
    f = tr.compile(lambda x, y: (x * y + x).sum(axis=0))
    for n, m in [(5, 3), (0, 3), (3, 0), (1, 1), (0, 0), (7, 2)]:
        x, y = X(n, m), X(n, m)
        same(f(x, y), (x.data * y.data + x.data).sum(0))
    assert f.cache_info().traces == 1
    for shapes in [((5, 3), (1, 3)), ((4, 3), (1, 3)), ((5, 1), (5, 3)), ((2, 1), (1, 4))]:
        x, y = (X(*s) for s in shapes)
        same(f(x, y), (x.data * y.data + x.data).sum(0))
    assert f.cache_info().traces == 4


FUNCTIONS = {
    "flatten": lambda x: tr.reshape(x, (-1,)),
    "slices": lambda x: x[1:] - x[:-1] if x.shape[0] > 0 else x,
    "half": lambda x: x[: x.shape[0] // 2],
    "concat": lambda x: tr.concat([x, x * 2], axis=1),
    "means": lambda x: tr.mean(x, axis=1) if x.shape[1] > 0 else tr.sum(x, axis=1),
    "gram": lambda x: tr.matmul(tr.matrix_transpose(x), x),
    "outer": lambda x: x[:, None, :] * x[None, :, :],
    "identity": lambda x: x @ tr.eye(x.shape[1]),
    "scan": lambda x: tr.cumulative_sum(x, axis=0),
    "dict": lambda x: {"a": x.T, "b": (x.shape[0] * 1.0, tr.sum(x))},
    "order": lambda x: tr.sort(x, axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_gives_at_every_size_what_eager_calls_give(name):
    f = FUNCTIONS[name]
    g = tr.compile(f)
    for n, m in [(3, 4), (0, 2), (1, 1), (5, 0), (2, 7), (4, 4), (1, 6)]:
        x = X(n, m)
        for _ in range(2):
            for a, b in zip(flatten(g(x))[0], flatten(f(x))[0], strict=True):
                assert np.shape(a) == np.shape(b)
                same(a, b)


@pytest.mark.parametrize("n", [1, 4, 8, 30])
def test_results_do_not_depend_on_how_often_a_size_comes(n):
    def f(x, y):
        return tr.sin(x @ y) @ y.T + tr.sum(x @ x.T, axis=0)

    x, y = X(n, n), X(n, n)
    compiled = tr.compile(f, deterministic=True)
    want = f(x, y).data.tobytes()
    assert {compiled(x, y).data.tobytes() for _ in range(20)} == {want}
    assert compiled.cache_info().traces == 1


def test_derivatives_of_a_compiled_function_are_made_once_for_all_sizes():
    f = tr.compile(lambda x, y: tr.sum(tr.tanh(x @ y) * tr.sum(x, axis=1, keepdims=True)))
    plain = f.__wrapped__

    def derivatives(x, y):
        return grad(f, (0, 1))(x, y), jvp(f, (x, y), (x, y))[1]

    # Kernels are made for classes of layouts: axes of one element, nothing to do, arrays that are worth planning.
    for n, m, k in [(3, 4, 2), (1, 1, 1), (5, 2, 1), (2, 1, 5), (0, 3, 2), (3, 2, 0), (70, 60, 80)]:
        settled(derivatives, X(n, m), X(m, k))
    for n, m, k in [(2, 3, 4), (0, 4, 5), (6, 5, 0), (1, 1, 1), (3, 0, 2), (7, 3, 1), *rng.integers(2, 60, (12, 3))]:
        x, y = X(n, m), X(m, k)
        before = counts()
        pulled, pushed = derivatives(x, y)
        COMPILING.drain()
        assert counts() == before
        for got, want in zip(pulled, grad(plain, (0, 1))(x, y), strict=True):
            same(got, want)
        same(pushed, jvp(plain, (x, y), (x, y))[1])
    assert f.cache_info().traces == 1
    h = tr.compile(grad(lambda x: tr.sum(grad(lambda z: tr.sum(z * z * z))(x) ** 2)))
    for n in (3, 0, 1, 6):
        x = X(n)
        same(h(x), 36 * x.data**3)
    assert h.cache_info().traces == 1


def test_a_function_that_needs_numbers_is_traced_for_each_and_says_so():
    @tr.compile
    def f(x):
        return x + np.arange(float(x.shape[0]))

    for n in (3, 4, 3):
        x = X(n)
        same(f(x), x.data + np.arange(float(n)))
    assert f.cache_info().traces == 2


def test_many_traces_are_told_once(caplog):
    f = tr.compile(lambda x: tr.sum(x) if x.shape[0] == 0 else sum(x[i] for i in range(x.shape[0])))
    with caplog.at_level(logging.WARNING, logger="tenferro_runtime.compile"):
        for n in range(1, 12):
            f(X(n))
    assert len(caplog.records) == 1
    text = caplog.records[0].getMessage()
    assert "has been traced 8 times" in text and __file__ in text and "the guard n0 == " in text
    assert "7 of them for this reason: a question about sizes, an integer" in text and "static_argnames" not in text


SCALE = 0.0


def _structures(k):
    return X(3), [1.0] * k


def _outside(k):
    global SCALE
    SCALE = float(k)
    return (X(3),)


@pytest.mark.parametrize(
    ("function", "call", "options", "text"),
    [
        (
            lambda x, k: x * k,
            lambda k: (X(3), 0.5 * k),
            {"static_argnames": "k"},
            r"another value of the static argument k \(most recently static k is 3.5 instead of 3.0\). To avoid "
            "traces, pass k as an ordinary argument if",
        ),
        (
            lambda x, k: x * len(k),
            _structures,
            {},
            r"another structure of the arguments \(most recently .*\). To avoid traces, pass containers of one",
        ),
        (
            lambda x: x * 2,
            lambda k: (X(*[1] * k),),
            {},
            r"another rank, dtype or device of x \(most recently x: .* instead of .*\). To avoid traces, convert x",
        ),
        (
            lambda x: x * SCALE,
            _outside,
            {},
            "data outside the arguments has changed: SCALE. To avoid traces, pass data that changes as an argument",
        ),
    ],
    ids=["static", "structure", "rank", "outside"],
)
def test_the_advice_fits_the_cause(function, call, options, text, caplog):
    f = tr.compile(function, **options)
    with caplog.at_level(logging.WARNING, logger="tenferro_runtime.compile"):
        for k in range(8):
            f(*call(k))
    (record,) = caplog.records
    assert re.search(f"traced 8 times, 7 of them for this reason: {text}", record.getMessage())
    assert "static_argnames" not in record.getMessage()


def test_threads_bind_one_program_at_once():
    f = tr.compile(lambda x, y: tr.sum(x @ y, axis=0))
    f(X(2, 2), X(2, 2))
    wrong = []

    def work(seed):
        own = np.random.default_rng(seed)
        for _ in range(40):
            n, m, k = own.integers(0, 6, 3)
            x, y = own.normal(size=(n, m)), own.normal(size=(m, k))
            if not np.allclose(np.asarray(f(tensor(x), tensor(y))), (x @ y).sum(0)):
                wrong.append((n, m, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.cache_info().traces == 1


def test_the_rendered_test_of_sizes_asks_in_order_and_survives_division_by_zero():
    n, m = dim("n"), dim("m")
    fit = render_fit([(n, m), (n + 1,)], [Guard(m, ">", 1, ""), Guard(n // (m - 2), "==", 1, "")], ("m", "n"))
    assert fit([(3, 4), (4,)]) == (4, 3)
    assert fit([(3, 4), (5,)]) is None  # not n + 1
    assert fit([(3, 1), (4,)]) is None  # the guard
    assert fit([(3, 2), (4,)]) is None  # n // 0
    assert render_fit([], [], ())([]) == ()
    k = dim("k", min=2, max=4)
    bounded = render_fit([(k,)], [], ("k",))
    assert [bounded([(i,)]) for i in (1, 2, 4, 5)] == [None, (2,), (4,), None]


N, M = dim("n"), dim("m")


def matrices(make):
    return make, (Spec((N, M), F8), Spec((M, N), F8))


OPS = {
    "product": matrices(lambda x, y: catalog.dot_general(x, y, contract=((1,), (0,)), batch=((), ()))),
    "inner product": matrices(lambda x, y: catalog.dot_general(x, y, contract=((0, 1), (1, 0)), batch=((), ()))),
    "batch": matrices(lambda x, y: catalog.dot_general(x, y, contract=((), ()), batch=((0,), (1,)))),
    "outer product": matrices(lambda x, y: catalog.dot_general(x, y, contract=((), ()), batch=((), ()))),
    "pad": matrices(lambda x, y: catalog.pad(x, tensor(2.0), low=(1, -0), high=(0, 2), interior=(1, 0))),
    "broadcast": matrices(lambda x, y: catalog.broadcast_in_dim(x, shape=(N, 3, M), dims=(0, 2))),
    "reshape": matrices(lambda x, y: catalog.reshape(x, shape=(N * M,))),
    "iota": matrices(lambda x, y: x + catalog.iota(shape=(N, M), dtype=F8, axis=1)),
    "slice": matrices(lambda x, y: catalog.slice_(x, start=(N // 2, 0), limit=(N, M), stride=(1, 1))),
    "concatenate": matrices(lambda x, y: catalog.concatenate(x, y.T, axis=1)),
    "reduce": matrices(lambda x, y: catalog.reduce_sum(x, axes=(0,))),
    "take": matrices(lambda x, y: tr.take(x, tr.asarray([0]), axis=0) if ask(N, ">", 0) else x),
}


@pytest.mark.parametrize("name", OPS)
@given(n=st.integers(0, 5), m=st.integers(0, 5))
def test_kernels_for_all_sizes_agree_with_those_of_single_sizes(name, n, m):
    make, specs = OPS[name]
    program = tr.trace(make, *specs, examples={"n": n, "m": m})
    x, y = (tensor(np.arange(1.0, n * m + 1).reshape(s)) for s in ((n, m), (m, n)))
    closed = concrete(program, [x.spec, y.spec])
    (want,) = interpret(closed, [x, y])
    (got,) = program.run(x, y)
    assert got.spec is want.spec
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-13)


def test_a_trace_that_failed_is_not_what_the_next_one_is_compared_with() -> None:
    f = tr.compile(lambda x, y: x @ y)
    f(np.ones((2, 3)), np.ones((3, 2)))
    with pytest.raises(ShapeError):
        f(np.ones((2, 3)), np.ones(2))
    f(np.ones((2, 3)), np.ones(3))
    assert "y: float64[3] instead of float64[3, 2]" in f.cache_info().reasons[-1]
