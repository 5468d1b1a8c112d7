"""The optimizers of the example: textbook steps, what they reach, and the same run by optax where it is installed."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import example_programs
import tenferro_runtime as tr

optimize = example_programs.load("optimize")
Layer = optimize.Layer

A = np.array([[3.0, 1.0], [1.0, 2.0]])
START = {"x": np.array([1.0, -2.0]), "deep": [Layer(np.array([0.5]), 2.0)]}


def bowl(tree: Any) -> Any:
    """A quadratic whose lowest value 0 is at zero."""
    layer = tree["deep"][0]
    return 0.5 * tr.sum(tree["x"] * tr.matmul(tr.asarray(A), tree["x"])) + 2.0 * tr.sum(layer.w**2) + layer.b**2


def gradient(tree: Any) -> list[Any]:
    x, w, b = tr.tree_leaves(tree)
    return [A @ x, 4 * w, 2 * b]


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in tr.tree_leaves(tree)]


def test_gradient_descent_takes_the_steps_of_its_formula() -> None:
    p, v = leaves(START), [0.0, 0.0, 0.0]
    for _ in range(3):
        v = [0.9 * s + g for s, g in zip(v, gradient(p), strict=True)]
        p = [x - 0.1 * s for x, s in zip(p, v, strict=True)]
    found, values = optimize.minimize(bowl, START, optimize.gradient_descent(0.1, momentum=0.9), 3)
    assert tr.tree_structure(found) is tr.tree_structure(START) and values.shape == (3,)
    for a, b in zip(leaves(found), p, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_adam_takes_the_steps_of_its_formula() -> None:
    p, m, s = leaves(START), [0.0] * 3, [0.0] * 3
    for t in range(1, 5):
        g = gradient(p)
        m = [0.9 * a + 0.1 * d for a, d in zip(m, g, strict=True)]
        s = [0.99 * a + 0.01 * d * d for a, d in zip(s, g, strict=True)]
        p = [
            x - 0.1 * (a / (1 - 0.9**t)) / (np.sqrt(b / (1 - 0.99**t)) + 1e-8) for x, a, b in zip(p, m, s, strict=True)
        ]
    found, _ = optimize.minimize(bowl, START, optimize.adam(0.1, b2=0.99), 4)
    for a, b in zip(leaves(found), p, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_quasi_newton_steps_end_where_the_slope_does() -> None:
    """More steps than numbers: exact curvature is known by then, which a shorter memory loses."""
    found, values = optimize.minimize(bowl, START, optimize.lbfgs(10), 25)
    assert max(np.abs(leaf).max() for leaf in leaves(found)) < 1e-9
    assert np.all(np.diff(np.asarray(values)) <= 0)


def test_the_line_search_keeps_the_loss_going_down_in_a_curved_valley() -> None:
    valley = lambda t: tr.sum(100.0 * (t["y"] - t["x"] ** 2) ** 2 + (1.0 - t["x"]) ** 2)
    found, values = optimize.minimize(valley, {"x": np.array([-1.2]), "y": np.array([1.0])}, optimize.lbfgs(5), 60)
    assert np.all(np.diff(np.asarray(values)) <= 0)
    np.testing.assert_allclose([leaf.item() for leaf in leaves(found)], 1.0, atol=1e-8)


@pytest.mark.parametrize("name", optimize.METHODS)
def test_optax_takes_the_same_steps(name: str) -> None:
    pytest.importorskip("optax")
    (x, y), layers = optimize.waves(16), optimize.network([1, 4, 1], 1)
    loss = partial(optimize.misfit, tr, tr.asarray(x), tr.asarray(y))
    found, values = optimize.minimize(loss, layers, optimize.METHODS[name], 12)
    theirs, others = optimize.with_optax(name, layers, x, y, 12)
    np.testing.assert_allclose(np.asarray(values), others, rtol=1e-9)
    for a, b in zip(leaves(found), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_the_program_prints_a_row_for_each_method(capsys: pytest.CaptureFixture[str]) -> None:
    optimize.main(["--steps", "3", "--points", "8"])
    rows = capsys.readouterr().out.splitlines()
    assert [row[:18].strip() for row in rows] == ["method", *optimize.METHODS]
    with pytest.raises(SystemExit):
        optimize.main(["--steps", "0"])
    assert "--steps and --points must be positive" in capsys.readouterr().err
