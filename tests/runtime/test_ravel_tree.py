"""`ravel_tree`: eager, traced, mapped and differentiated."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor_core import ShapeError

TREES = {
    "dict": {"w": tr.asarray([[1.0, 2.0], [3.0, 4.0]]), "b": 5.0},
    "array": tr.asarray([1.0, 2.0]),
    "number": 2.5,
    "dtypes": [tr.asarray([1.0], dtype=tr.float32), np.arange(3), (True, None)],
    "complex": {"z": tr.asarray([1 + 2j]), "x": tr.asarray([0.5, 1.5])},
    "no elements": [tr.zeros((0, 3)), tr.ones(2)],
    "no leaves": {"a": None, "b": ()},
}


def _there_and_back(tree):
    vector, unravel = tr.ravel_tree(tree)
    return unravel(vector)


def alike(a, b):
    assert tr.tree_structure(a) is tr.tree_structure(b)
    for x, y in zip(tr.tree_leaves(a), tr.tree_leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        assert np.asarray(x).dtype == np.asarray(y).dtype


@pytest.mark.parametrize("name", TREES)
def test_there_and_back(name):
    tree = TREES[name]
    vector, unravel = tr.ravel_tree(tree)
    parts = [np.ravel(np.asarray(x)) for x in tr.tree_leaves(tree)]
    np.testing.assert_array_equal(np.asarray(vector), np.concatenate(parts) if parts else np.zeros(0))
    alike(unravel(vector), tree)
    alike(unravel(np.asarray(vector)), tree)
    if parts:
        alike(tr.compile(_there_and_back)(tree), tree)


def test_one_trace_for_all_sizes():
    f = tr.compile(lambda t: tr.ravel_tree(t)[1](2 * tr.ravel_tree(t)[0]))
    for n in (2, 3, 7):
        tree = {"w": tr.ones((n, 2)), "b": tr.ones(n)}
        alike(f(tree), tr.tree_map(lambda x: 2 * x, tree))
    assert f.cache_info().traces == 1


def test_derivatives():
    tree = TREES["dict"]
    vector, unravel = tr.ravel_tree(tree)

    def loss(t):
        return tr.sum(tr.sin(t["w"])) * t["b"] ** 2

    expected = tr.ravel_tree(tr.grad(loss)(tree))[0]
    for g in (tr.grad(lambda v: loss(unravel(v))), tr.compile(tr.grad(lambda v: loss(unravel(v))))):
        np.testing.assert_allclose(np.asarray(g(vector)), np.asarray(expected), rtol=1e-14)
    square = tr.grad(lambda t: tr.sum(tr.ravel_tree(t)[0] ** 2))(tree)
    alike(square, tr.tree_map(lambda x: 2 * tr.asarray(x), tree))
    tr.linalg.cholesky(-tr.hessian(lambda v: -tr.sum(tr.cosh(unravel(v)["w"])) - unravel(v)["b"] ** 2)(vector))


def test_mapped():
    lanes = tr.vmap(lambda w: tr.ravel_tree({"w": w, "b": 1.0})[0])(tr.ones((4, 3)))
    assert lanes.shape == (4, 4)


def test_a_vector_of_another_length():
    unravel = tr.ravel_tree(TREES["dict"])[1]
    with pytest.raises(ShapeError, match=r"a vector of the 5 elements of \{'w': \*, 'b': \*\}, got float64\[4\]; give"):
        unravel(tr.ones(4))


def test_a_fit_of_a_dict_with_scipy():
    minimize = pytest.importorskip("scipy.optimize").minimize
    x = np.linspace(0.0, 2.0, 20)
    y = 1.5 * np.exp(-0.7 * x) + 0.25

    def loss(p):
        return tr.sum((p["a"][0] * tr.exp(-p["a"][1] * x) + p["c"] - y) ** 2)

    start, unravel = tr.ravel_tree({"a": tr.ones(2), "c": 0.0})
    fit = minimize(tr.compile(tr.value_and_grad(lambda v: loss(unravel(v)))), start, jac=True, tol=1e-12)
    best = unravel(fit.x)
    np.testing.assert_allclose([*best["a"].tolist(), float(best["c"])], [1.5, 0.7, 0.25], atol=1e-4)
