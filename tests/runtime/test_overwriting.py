"""Results in the memory of operands: where it happens, where it must not, and that nobody sees it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import Random, random_functions
from runtime_rooms import lowered
from tenferro_ad import value_and_grad
from tenferro_cpu.native import available
from tenferro_runtime.passes import optimise
from tenferro_runtime.running.fusion import wait
from tenferro_runtime.running.rendering._overwriting import overwriting
from tenferro_tensor import Tensor, tensor

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
native = pytest.mark.skipif(not available(), reason="native kernels are off")

rng = np.random.default_rng(0)


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


def test_numpy_writes_sums_and_products_over_operands() -> None:
    found = plan(lambda x, y: (x @ y) * y, X, Y)
    assert found == ([] if available() else [("mul", 0)])


@native
def test_the_runtime_can_leave_it_out() -> None:
    def f(x, y):
        return tr.tanh(x * y + 1.0)

    with tr.Runtime(overwriting=False):
        kept = tr.compile(f, donate=0)
    over = tr.compile(f, donate=0)
    y = normal(4, 4)
    for g, bytes_ in ((kept, 128), (over, 0)):
        for _ in range(4):
            g(normal(4, 4) + 0.0, y)
        wait()
        assert g.explain(normal(4, 4), y).peak_bytes == bytes_


# ------------------------------------------------------------------------------------------------ nobody sees it


LATER_SUMS = """
import numpy as np
import tenferro_runtime as tr

def f(x, y):
    return tr.sum(x / (x * x + 1.5) - y, axis=2)

rng = np.random.default_rng(0)
rows, columns = tr.asarray(rng.normal(size=(9, 9, 9))), tr.asarray(rng.normal(size=(9, 9, 9)).T)
exact = tr.compile(f, deterministic=True)
for x, y in ((columns, rows), (rows, columns), (columns, columns), (rows, rows)):
    assert exact(x, y).data.tobytes() == f(x, y).data.tobytes()
assert "over operand" in str(exact.explain(rows, rows))
"""


def test_exact_programs_keep_the_layout_by_which_later_sums_are_rounded() -> None:
    """NumPy writes over operands: a difference with rows must not take the memory of one with columns."""
    subprocess.run([sys.executable, "-c", LATER_SUMS], env={**os.environ, "TENFERRO_CPU_JIT": "0"}, check=True)


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
