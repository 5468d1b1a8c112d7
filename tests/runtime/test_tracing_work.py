"""The work of tracing a gradient with symbolic sizes: about linear in the program, and near that of fixed sizes.

The work is the number of Python calls, which is the same on every machine.
"""

from cProfile import Profile

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_ad._vjp import Vjp
from tenferro_einsum import einsum
from tenferro_tensor import Spec
from tenferro_tensor_core import DIM_MEMO

F8 = np.dtype("float64")


def star(axes):
    """The inside of an array, and a stencil over an element and its neighbours there."""
    inside = (slice(1, -1),) * axes

    def stencil(x):
        out = x[inside] * (1 - 0.2 * axes)
        for axis in range(axes):
            for side in (slice(2, None), slice(None, -2)):
                out = out + 0.1 * x[(*inside[:axis], side, *inside[axis + 1 :])]
        return out

    return inside, stencil


def stencils(axes, arrays, steps, loop):
    inside, stencil = star(axes)

    def step(xs):
        xs = list(xs)
        for i in range(arrays):
            xs[i] = xs[i].at[inside].set(stencil(xs[i - 1]))
        return tuple(xs)

    def f(*xs):
        if loop:
            xs, _ = tr.scan(lambda xs, _: (step(xs), None), xs, None, length=steps)
        for _ in range(0 if loop else steps):
            xs = step(xs)
        return tr.sum(xs[0] ** 2)

    return f, [tuple(range(5, 5 + axes))] * arrays


def concatenations(k):
    def f(*xs):
        y = tr.concat(xs)
        for _ in range(3):
            y = tr.concat([y[1:], y[:-1]])
        return tr.sum(y * y)

    return f, [(4 + i, 3) for i in range(k)]


def pads(k):
    def f(x):
        for _ in range(k):
            x = tr.sin(tr.pad(x, ((1, 2), (0, 1)))[1:, :-1])
        return tr.sum(x)

    return f, [(6, 7)]


def reshapes(k):
    def f(x):
        a, b, c = x.shape
        for _ in range(k):
            for shape in ((a * b, c), (a, b * c), (-1,), (a, b, c)):
                x = tr.sin(tr.reshape(x, shape))
        return tr.sum(x)

    return f, [(3, 4, 5)]


def chain(k):
    def f(*xs):
        v = tr.ones((xs[0].shape[0], xs[0].shape[0]))
        for x in xs:
            v = einsum("ab,aic,bid->cd", v, x, x)
        return tr.sum(v)

    return f, [(4 + i, 3, 5 + i) for i in range(k)]


def network(k):
    letters = "abcdefghijklmnop"
    subscripts = ",".join(letters[i : i + 2] for i in range(k))
    return (lambda *xs: tr.sum(einsum(f"{subscripts}->a{letters[k]}", *xs))), [(4 + i, 5 + i) for i in range(k)]


def attention(k):
    def layer(x, query, key, value):
        b, t, d = x.shape
        q, k, v = (tr.permute_dims(tr.reshape(x @ w, (b, t, 2, d // 2)), (0, 2, 1, 3)) for w in (query, key, value))
        scores = q @ tr.matrix_transpose(k) / (d // 2)
        scores = tr.exp(scores - tr.max(scores, axis=-1, keepdims=True))
        scores = tr.where(tr.arange(t)[:, None] >= tr.arange(t), scores / tr.sum(scores, axis=-1, keepdims=True), 0.0)
        return x + tr.reshape(tr.permute_dims(scores @ v, (0, 2, 1, 3)), (b, t, d))

    def f(x, *weights):
        for i in range(0, 3 * k, 3):
            x = layer(x, *weights[i : i + 3])
        return tr.sum(x * x)

    return f, [(2, 5, 8)] + [(8, 8)] * (3 * k)


def convolutions(k):
    def f(x, *weights):
        for w in weights:
            n, m = x.shape
            x = tr.tanh(sum(x[i : n - 2 + i, j : m - 2 + j] * w[i, j] for i in range(3) for j in range(3)))
        return tr.sum(x)

    return f, [(20, 21)] + [(3, 3)] * k


def pooling(k):
    def f(x):
        for _ in range(k):
            n, m = x.shape[0] // 2, x.shape[1] // 2
            x = tr.max(tr.reshape(x[: 2 * n, : 2 * m], (n, 2, m, 2)), axis=(1, 3)) * 1.5
        return tr.sum(x)

    return f, [(64, 66)]


def slices(k):
    def f(x):
        for _ in range(k):
            x = tr.sin(x[1:-1]) * x[2:]
        return tr.sum(x)

    return f, [(200,)]


def edges(k):
    def f(x):
        for _ in range(k):
            x = tr.concat([x[:1], x, x[-1:]])
            x = x[1:] - x[:-1]
        return tr.sum(x * x)

    return f, [(20,)]


def halves(k):
    def f(x):
        for _ in range(k):
            x = x[::2] + x[::-1][::2]
        return tr.sum(x)

    return f, [(257,)]


def sums(k):
    return (lambda *xs: tr.sum(sum(x[1:] * 2 for x in xs))), [(9,)] * k


def products(k):
    def f(x, *xs):
        for y in xs:
            x = tr.reshape(x[:, None] * y, (-1,))
        return tr.sum(x)

    return f, [(2 + i % 3,) for i in range(k)]


def rolls(k):
    def f(x):
        for _ in range(k):
            x = tr.roll(x, 1) + tr.flip(x) + tr.tile(x, (2,))[: x.shape[0]]
        return tr.sum(x)

    return f, [(20,)]


def updates(k):
    def f(x):
        for _ in range(k):
            n = x.shape[0]
            x = x.at[n // 2 :].add(x[: n - n // 2])
            x = x.at[: n // 2].multiply(2.0)
        return tr.sum(x)

    return f, [(21,)]


FAMILIES = {
    "stencils over arrays in a loop": lambda k: stencils(3, k, 3, True),
    "stencils in a row": lambda k: stencils(3, 2, k, False),
    **{f.__name__: f for f in (concatenations, pads, reshapes, chain, network, attention, convolutions, pooling)},
    **{f.__name__: f for f in (slices, edges, halves, sums, products, rolls, updates)},
}


def work(symbolic, f, shapes):
    """Number of Python calls of the trace of a gradient, with all tables empty."""
    examples = {}
    for i, shape in enumerate(shapes):
        examples.update({f"n{i}_{j}": n for j, n in enumerate(shape)})
    names = iter(examples)
    specs = [Spec(tuple([tr.dim(next(names)) if symbolic else n for n in shape]), F8) for shape in shapes]
    g = grad(f, argnums=tuple(range(len(shapes))))
    tr.Runtime().clear()
    DIM_MEMO.clear()
    Vjp.traces.clear()  # rules that were traced often are traced later
    with tr.Runtime(unroll=True), Profile(subcalls=False, builtins=False) as counted:
        # Arrays of equal sizes are a loop over them, others are not.
        program = tr.trace(g, *specs, examples=examples if symbolic else None)
    return sum(entry.callcount for entry in counted.getstats()), program


@pytest.mark.parametrize("family", FAMILIES)
def test_work_grows_with_the_program_and_is_near_that_of_fixed_sizes(family):
    make = FAMILIES[family]
    work(True, *make(2)), work(False, *make(2))  # imports
    (small, _), (middle, _), (large, program) = (work(True, *make(k)) for k in (2, 4, 8))
    fixed, _ = work(False, *make(8))
    assert large - middle < 3 * (middle - small), "twice the program is twice the work, one search for a path aside"
    assert large < (14 if family == "sums" else 7) * fixed, "sizes of many names share less than equal numbers"
    x = [np.random.default_rng(i).normal(size=shape) for i, shape in enumerate(make(8)[1])]
    assert len(program.run(*x)) == len(x)


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_work_for_stencils_of_any_number_of_axes(axes):
    work(True, *stencils(axes, 1, 2, True))
    one, two, three = (work(True, *stencils(axes, k, 2, True))[0] for k in (1, 2, 3))
    assert three - two < 1.6 * (two - one) and two < 4 * one
    assert two < 6 * work(False, *stencils(axes, 2, 2, True))[0]


def test_sizes_without_end_are_numbers():
    """Sizes made of the sizes before are followed for some steps; beyond them the function is traced for numbers."""
    f, [shape] = edges(120)
    compiled, x = tr.compile(f), np.linspace(0, 1, *shape)
    np.testing.assert_allclose(compiled(x).numpy(), f(tr.asarray(x)).numpy())
    (reason,) = compiled.cache_info().reasons
    assert "sizes cannot be symbolic (TracingError: a size of n0 nests 49 quotients" in reason
