"""Random nested branches and loops: Python's own, compiled, differentiated in every order, and by XLA."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad, jvp
from tenferro_xla import XlaExecutor
from thorough import tries

XLA = XlaExecutor()
TABLE = np.array([[0.3, -0.6, 0.2], [0.5, 0.1, -0.4], [-0.2, 0.7, 0.9]])

LEAVES = {
    "sin": lambda x, y: tr.sin(x) + 0.5 * y,
    "product": lambda x, y: 0.8 * x * y + 0.1,
    "tanh": lambda x, y: tr.tanh(x + y),
    "forget": lambda x, y: y * y,
    "constant": lambda x, y: 0.0 * x + 0.7,
}


def branch(a, b):
    return lambda x, y: tr.cond(x[0] + y[1] > 0.2, lambda u: a(u, y), lambda u: b(u, x), x)


def choose(a, b):
    return lambda x, y: tr.switch(tr.astype(tr.floor(2 * x[0]), "int64"), [lambda u: a(u, y), lambda u: b(y, u)], x)


def fold(a, b):
    return lambda x, y: tr.scan(lambda c, v: (a(c, v), None), b(x, y), TABLE)[0]


def rows(a, b):
    def f(x, y):
        c, ys = tr.scan(lambda c, v: (a(c, y), b(v, c)), x, TABLE, reverse=True)
        return c + tr.sum(ys, axis=0)

    return f


def repeat(a, b):
    def f(x, y):
        return tr.while_loop(
            lambda c: (c[0] < 3) & (tr.sum(c[1]) < 4.0), lambda c: (c[0] + 1, a(c[1], y)), (0, b(x, y)), max_steps=4
        )[1]

    return f


def functions(depth):
    leaf = st.sampled_from(sorted(LEAVES)).map(LEAVES.get)
    if depth == 0:
        return leaf
    inner = functions(depth - 1)
    makers = st.sampled_from([branch, choose, fold, rows, repeat])
    return st.one_of(leaf, st.builds(lambda make, a, b: make(a, b), makers, inner, inner))


@settings(max_examples=tries(8, 40))
@given(functions(3), st.lists(st.sampled_from([-1.3, -0.4, 0.3, 0.9, 1.7]), min_size=6, max_size=6))
def test_all_ways_agree(f, numbers):
    x, y = tr.asarray(np.array(numbers[:3])), tr.asarray(np.array(numbers[3:]))

    def loss(u, v):
        return tr.sum(tr.sin(f(u, v)))

    def same(got, want):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-9, atol=1e-9)

    compiled = tr.compile(f)
    same(compiled(x, y), f(x, y))
    want = grad(loss, (0, 1))(x, y)
    assume(max(np.abs(np.asarray(w)).max() for w in want) < 1e5)  # sines of large values amplify rounding errors
    whole = tr.compile(grad(loss, (0, 1)))
    for got in (grad(tr.compile(loss), (0, 1))(x, y), whole(x, y), XLA.run(whole.program(x, y), x, y)):
        for a, b in zip(got, want, strict=True):
            same(a, b)
    slope = jvp(loss, (x, y), (y, x))[1]
    same(jvp(tr.compile(loss), (x, y), (y, x))[1], slope)
    same(tr.compile(lambda u, v: jvp(loss, (u, v), (v, u))[1])(x, y), slope)
