"""Results in the memory of operands: where it happens, where it must not, and that nobody sees it."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import Random, random_functions
from tenferro_ad import value_and_grad
from tenferro_cpu.native import available
from tenferro_runtime.fusion import wait
from tenferro_runtime.fusion._region import region_of
from tenferro_runtime.passes import optimise
from tenferro_runtime.rendering._overwriting import overwriting
from tenferro_runtime.running._execute import lowered
from tenferro_tensor import Tensor, get_backend, tensor

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
native = pytest.mark.skipif(not available(), reason="native kernels are off")

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_arrays_are_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels, not the op-by-op form, take small arrays of every layout."""
    monkeypatch.setattr("tenferro_cpu.native.regions._region.SMALL", -1)


def normal(*shape: int) -> Tensor:
    return tensor(rng.standard_normal(shape))


def bits(values) -> list[tuple]:
    return [(v.shape, v.dtype, np.ascontiguousarray(v.data).tobytes()) for v in values]


def plan(f, *args, donated=()) -> list[tuple[str, int]]:
    """Primitive and operand for each result over an operand, in the order of the program."""
    program = lowered(optimise(tr.trace(f, *args)))
    victims = overwriting(program, donated)
    return [
        (eq.op.primitive.name, eq.operands.index(victims[v]))
        for eq in program.equations
        for v in eq.results
        if v in victims
    ]


# ------------------------------------------------------------------------------------------------ what is written over

X, Y = normal(4, 4), normal(4, 4)


@native
def test_a_region_writes_over_a_product_that_nobody_else_reads() -> None:
    assert plan(lambda x, y: tr.tanh(x @ y + 1.0), X, Y) == [("fused", 0)]


@native
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: tr.tanh(x + 1.0),
        lambda x, y: (p := x @ y, tr.tanh(p + 1.0)),
        lambda x, y: ((p := x @ y).mT, tr.tanh(p + 1.0)),
        lambda x, y: tr.tanh((p := x @ y) + 1.0) @ p,
        lambda x, y: tr.tanh((p := x @ y) + 1.0) @ tr.reshape(p, (2, 8)).reshape((4, 4)).mT,
        lambda x, y: tr.tanh((p := x @ y) + p.mT),
        lambda x, y: tr.tanh((x @ y)[:2] + 1.0),
        lambda x, y: tr.astype(tr.tanh(x @ y + 1.0) > 0.5, bool),
        lambda x, y: tr.sum(tr.tanh(x @ y + 1.0)),
        lambda x, y: tr.tanh(tr.broadcast_to((x @ y)[0], (4, 4)) + x),
        lambda x, y: tr.tanh(tr.concat([x @ y]).mT + 1.0),
        lambda x, y: tr.tanh(tr.asarray(np.ones((4, 4))) + 1.0) @ x,
        lambda x, y: tr.cond(x[0, 0] > 0, lambda p: p, lambda p: p * 1.0, x) + y * 2.0,
    ],
    ids="input output view-returned read-later view-read-later own-transpose other-shape other-dtype reduced "
    "broadcast view constant branch".split(),
)
def test_what_is_still_seen_is_not_written_over(f) -> None:
    assert plan(f, X, Y) == []


@native
def test_each_operand_gives_its_memory_to_one_result() -> None:
    def f(x, y):
        p, q = x @ y, y @ x
        s = p + q
        return tr.tanh(s), tr.exp(s * p)

    assert plan(f, X, Y) == [("fused", 0), ("fused", 1)]
    assert plan(lambda x, y: ((t := x @ y + 1.0) @ x, t * 2.0 + 1.0), X, Y)[-1][1] == 0


@native
def test_sizes_must_be_the_same_expressions() -> None:
    n, m = tr.dim("n"), tr.dim("m")
    f8 = np.dtype("float64")
    x, y = tr.Spec((n, m), f8), tr.Spec((m, n), f8)
    assert plan(lambda x, y: tr.tanh(x @ y + 1.0), x, y) == [("fused", 0)]
    assert plan(lambda x, y, z: tr.tanh((x @ y)[0] * z + 1.0), x, y, tr.Spec((tr.dim("k"), n), f8)) == []


def test_numpy_writes_sums_and_products_over_operands() -> None:
    found = plan(lambda x, y: (x @ y) * y, X, Y)
    assert found == ([] if available() else [("mul", 0)])


@native
def test_the_runtime_can_leave_it_out() -> None:
    with tr.Runtime(overwriting=False):
        f = tr.compile(lambda x, y: tr.tanh(x @ y + 1.0))
        f(X, Y)
    assert f.explain(X, Y).reused_bytes == 0
    g = tr.compile(lambda x, y: tr.tanh(x @ y + 1.0))
    explained = g.explain(X, Y)
    assert explained.reused_bytes == 128 and explained.steps[-1].over == (0,)
    assert "over operand 0" in str(explained) and "128 B of results over operands" in str(explained)
    assert (f.explain(X, Y).peak_bytes, explained.peak_bytes) == (256, 128)


# ------------------------------------------------------------------------------------------------ nobody sees it


def both(f, *args) -> None:
    """With and without, several times: every bit is equal, and no argument changes."""
    with tr.Runtime(overwriting=False):
        plain = tr.compile(f)
    over = tr.compile(f)
    before = bits(args)
    for _ in range(6):  # layouts are compiled as they are met, after the kernels
        plain(*args), over(*args)
        wait()
    for _ in range(2):
        kept = over(*args)
        want = bits(plain(*args))
        assert bits(over(*args)) == want
        assert bits(kept) == want  # a later call does not touch the results of an earlier one
    alone = []  # the same for programs of these sizes alone
    for overwrites in (False, True):
        with tr.Runtime(overwriting=overwrites):
            program = tr.trace(f, *args)
            for _ in range(6):
                program.run(*args)
                wait()
            alone.append(bits(program.run(*args)))
    assert alone[0] == alone[1]
    assert bits(args) == before


@given(random_functions())
def test_random_functions_give_the_same_bits(f: Random) -> None:
    both(f, *f.inputs)


@st.composite
def matrix_programs(draw):
    """Functions of two square matrices, with many products, regions and views of one shape."""
    count = draw(st.integers(3, 14))
    steps = [
        (draw(st.sampled_from(KINDS)), draw(st.integers(0, 40)), draw(st.integers(0, 40)), draw(st.floats(-2, 2)))
        for _ in range(count)
    ]
    outputs = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))

    def f(x, y):
        n, pool = x.shape[0], [x, y]
        for kind, i, j, c in steps:
            a, b = pool[-1 - i % 2], pool[-1 - j % min(len(pool), 4)]
            pool.append(STEPS[kind](a, b, c, n))
        return tuple(pool[-1 - i % len(pool)] for i in outputs)

    return f


STEPS = {
    "product": lambda a, b, c, n: a @ b,
    "tanh": lambda a, b, c, n: tr.tanh(a + c),
    "mixed": lambda a, b, c, n: tr.sin(a) * b - c,
    "single": lambda a, b, c, n: a * b,
    "shifted": lambda a, b, c, n: a - c,
    "transpose": lambda a, b, c, n: a.mT,
    "reverse": lambda a, b, c, n: tr.flip(a, axis=0),
    "reshape": lambda a, b, c, n: tr.reshape(tr.reshape(a, (n * n,)), (n, n)),
    "row": lambda a, b, c, n: tr.tanh(a * b[0] + c),
    "column": lambda a, b, c, n: tr.tanh(a * b[:, :1] + c),
    "sum": lambda a, b, c, n: a / (1.0 + tr.sum(tr.exp(-b * b), axis=0)),
    "select": lambda a, b, c, n: tr.where(a > c, a, b * 2.0),
    "own transpose": lambda a, b, c, n: tr.tanh(a * a.mT + c),
    "convert": lambda a, b, c, n: tr.real(tr.astype(a, tr.float64)) * 0.5 + c,
    "round": lambda a, b, c, n: tr.stop_gradient(tr.floor(a)) + b * c,
    "branch": lambda a, b, c, n: tr.cond(a[0, 0] > c, lambda p, q: p, lambda p, q: q, a, b),
    "loop": lambda a, b, c, n: tr.scan(lambda s, r: (tr.tanh(s + r), None), b[0], a)[0] + a * c,
}  # fmt: skip
KINDS = list(STEPS)


@given(matrix_programs(), st.sampled_from([(1, 1), (3, 3), (5, 5)]))
def test_random_programs_of_matrices_give_the_same_bits(f, shape) -> None:
    both(f, normal(*shape), normal(*shape))


@native
@given(matrix_programs(), st.sampled_from([(5, 5), (70, 70)]))
def test_every_form_of_a_region_may_write_over_any_whole_operand(f, shape) -> None:
    backend = get_backend("cpu")
    program = lowered(optimise(tr.trace(f, normal(*shape), normal(*shape))))
    for eq in program.equations:
        if eq.op.primitive.name != "fused":
            continue
        specs: Any = program.specs
        region, out = region_of(eq.op.params["program"]), specs[eq.results[0]]
        if region.kernel.reduction is not None:
            continue
        whole = [i for i, v in enumerate(eq.operands) if specs[v] == out]
        for form in (backend.stepped(region, refuse), backend.fused(region, refuse, refuse)):
            arrays = [rng.standard_normal(specs[v].shape) for v in eq.operands]
            if form is None or any(specs[v].dtype != np.float64 for v in (*eq.operands, *eq.results)):
                continue
            want = form(*arrays)
            for first in range(len(whole)):
                given = [a.copy() for a in arrays]
                order = whole[first:] + whole[:first]
                spare = [given[order[k]] if k < len(order) else None for k in range(len(eq.results))]
                found = form(*given, *spare)
                pairs = zip(found, want, strict=True) if len(spare) > 1 else [(found, want)]
                assert all(got.tobytes() == expected.tobytes() for got, expected in pairs)
                assert (found[0] if len(spare) > 1 else found) is spare[0]


def refuse(*raws):
    raise AssertionError("contiguous arrays need no other way")


@given(matrix_programs())
def test_random_gradients_give_the_same_bits(f) -> None:
    both(
        lambda x, y: value_and_grad(lambda x, y: tr.sum(f(x, y)[0]), argnums=(0, 1))(x, y)[1],
        normal(3, 3),
        normal(3, 3),
    )


def test_several_threads_run_one_program() -> None:
    f = tr.compile(lambda x, y: (tr.tanh(tr.tanh(x @ y + 1.0) @ y + 1.0) * 2.0 + x,))
    args = [(normal(70, 70), normal(70, 70)) for _ in range(4)]
    for a in args:
        f(*a), f(*a)
    wait()
    want = [bits(f(*a)) for a in args]
    wrong = []

    def work(k: int) -> None:
        for _ in range(60):
            if bits(f(*args[k])) != want[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
