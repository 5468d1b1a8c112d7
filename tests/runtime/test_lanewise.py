"""Functions applied along axes, over axes and element by element, against NumPy and against loops."""

import numpy as np
import pytest

import tenferro_runtime as tr
from array_oracles import array, assert_same
from tenferro_ad import check_grads
from tenferro_tensor_core import ArgumentError, ShapeError


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(axis):
    x = array((2, 3, 4), "float64")
    t = tr.asarray(x)
    for f in (
        lambda xp, v: xp.sum(v * v),
        lambda xp, v: v[1:] - v[0],
        lambda xp, v: v[:, None] * v[None, :2],
    ):
        want = np.apply_along_axis(lambda v: f(np, v), axis, x)  # noqa: B023
        assert_same(tr.apply_along_axis(lambda v: f(tr, v), axis, t), want)  # noqa: B023
        run = tr.compile(lambda x: tr.apply_along_axis(lambda v: f(tr, v), axis, x))  # noqa: B023
        assert_same(run(t), want)
        check_grads(lambda x: tr.apply_along_axis(lambda v: f(tr, v), axis, x), (x,))  # noqa: B023
    assert_same(tr.apply_along_axis(lambda v, a, b: v * a + b, axis, t, 2.0, b=1.0), x * 2 + 1)
    assert tr.apply_along_axis(lambda v: 1, axis, t).dtype == np.int64
    assert tr.apply_along_axis(tr.sum, 0, tr.ones((3, 0))).shape == (0,)


def test_over_axes():
    x = array((2, 3, 4), "float64")
    for axes in (0, (0, 2), (1, -1), ()):
        want = np.apply_over_axes(np.sum, x, axes)
        assert_same(tr.apply_over_axes(tr.sum, tr.asarray(x), axes), want)
        check_grads(lambda x, axes=axes: tr.apply_over_axes(tr.prod, x, axes), (x,))
    assert_same(tr.apply_over_axes(lambda x, a: tr.sum(x, a, keepdims=True), tr.asarray(x), 1), x.sum(1, keepdims=True))
    with pytest.raises(ShapeError, match="results with 3 or 2 axes"):
        tr.apply_over_axes(lambda x, a: tr.sum(x), tr.asarray(x), 0)


def test_functions_of_numbers():
    @tr.vectorize
    def step(a, b):
        assert a.shape == b.shape == ()
        return tr.cond(a > b, lambda: a - b, lambda: a + b), a

    a, b = array((4, 1), "float64"), array((3,), "float64", 1)
    found, first = step(tr.asarray(a), tr.asarray(b))
    assert_same(found, np.where(a > b, a - b, a + b))
    assert_same(first, np.broadcast_to(a, (4, 3)))
    assert_same(tr.compile(lambda a, b: step(a, b)[0])(tr.asarray(a), tr.asarray(b)), np.where(a > b, a - b, a + b))
    assert float(step(1.0, 2.0)[0]) == 3.0
    assert step.__name__ == "step"
    check_grads(lambda a, b: step(a, b)[0], (a, b))


def test_signatures():
    matrix, vector = array((2, 1, 3, 4), "float64"), array((5, 4), "float64", 1)
    wanted = np.vectorize(np.matmul, signature="(n,m),(m)->(n)")(matrix, vector)
    given = tr.asarray(matrix), tr.asarray(vector)
    product = tr.vectorize(tr.matmul, signature="(n,m),(m)->(n)")
    assert_same(product(*given), wanted)
    assert_same(tr.vmap(product)(tr.stack([given[0]] * 2), tr.stack([given[1]] * 2))[1], wanted)
    pair = tr.vectorize(lambda x: (tr.sum(x), x[:2]), signature="(k) -> (), (2)")
    total, two = pair(given[1])
    assert_same([total, two], [vector.sum(-1), vector[:, :2]])
    power = tr.vectorize(lambda x, n, scale=1.0: scale * x**n, excluded=[1])
    assert_same(power(given[1], 2, scale=3.0), 3 * vector**2)


def test_wrong_signatures():
    for text in ("(n)", "n->n", "(n)->m", "(n)(m)->()"):
        with pytest.raises(ArgumentError, match="cannot read the signature"):
            tr.vectorize(tr.sum, signature=text)
    dot = tr.vectorize(tr.vecdot, signature="(n),(n)->()")
    with pytest.raises(ShapeError, match=r"axis n of operand 1 has extent 4, and elsewhere 3"):
        dot(tr.ones((2, 3)), tr.ones(4))
    with pytest.raises(ShapeError, match=r"operand 0 needs at least the 1 axes"):
        dot(1.0, tr.ones(4))
    with pytest.raises(ArgumentError, match="has 2 operands, but there are 1"):
        dot(tr.ones(3))  # type: ignore[call-arg]
    with pytest.raises(ShapeError, match="result 0 has 1 axes of its own"):
        tr.vectorize(lambda x: x, signature="(n)->()")(tr.ones((2, 3)))
