"""`vmap` of functions with a rule of their own: their rule is the derivative in every order of composition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_tensor_core import GradientError

X = np.arange(3.0) + 0.5
Y = np.arange(3.0) + 1.0
SEEN: list[str] = []


@ad.custom_rule(vjp=lambda primals, outs, cotangents: (7 * cotangents[0] * primals[1], None))
def seven(x: Any, y: Any) -> Any:
    """A product whose rule is not its derivative, so that one can be told from the other."""
    SEEN.append(type(x).__name__)
    return tr.sin(x) * y


@ad.custom_rule(jvp=lambda primals, tangents, outs, k: (k * tangents[0], None), family="tenferro-tests.pushed.v1")
def pushed(x: Any, *, k: int) -> Any:
    return x * x, tr.sum(x)


@ad.custom_rule(vjp=lambda primals, outs, cotangents: ({"a": 5 * cotangents[0], "b": [cotangents[1]["c"]]},))
def of_trees(tree: Any) -> Any:
    return tree["a"] * tree["b"][0], {"c": tr.sum(tree["b"][0])}


@ad.custom_rule(jvp=lambda primals, tangents, outs: (3 * primals[0] ** 2 * tangents[0],), infer=lambda x: x)
def cube(x: Any) -> Any:
    return np.power(x.numpy(), 3)


def four(x: Any) -> Any:
    return pushed(x, k=4)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-14)


def test_the_function_runs_once_for_all_lanes() -> None:
    SEEN.clear()
    close(tr.vmap(seven)(X, Y), np.sin(X) * Y)
    assert SEEN.count("Batched") == 1
    assert "Tensor" not in SEEN


def test_the_rule_is_the_derivative_in_every_order() -> None:
    mapped = tr.vmap(seven)
    close(tr.vmap(ad.grad(seven))(X, Y), 7 * Y)
    close(ad.grad(lambda x: tr.sum(mapped(x, Y)))(X), 7 * Y)
    close(tr.vmap(lambda x, y: ad.jvp(lambda x: seven(x, y), (x,), (1.0,))[1])(X, Y), 7 * Y)
    close(ad.jvp(lambda x: mapped(x, Y), (X,), (np.ones(3),))[1], 7 * Y)
    close(ad.linearize(lambda x: mapped(x, Y), X)[1](np.ones(3)), 7 * Y)
    close(ad.jacfwd(lambda x: mapped(x, Y))(X), np.diag(7 * Y))
    close(ad.jacrev(lambda x: mapped(x, Y))(X), np.diag(7 * Y))
    for outer in (tr.compile, ad.checkpoint):
        close(outer(ad.grad(lambda x: tr.sum(mapped(x, Y))))(X), 7 * Y)
        close(ad.grad(outer(lambda x: tr.sum(mapped(x, Y))))(X), 7 * Y)
        close(tr.vmap(outer(ad.grad(seven)))(X, Y), 7 * Y)


def test_shared_operands_get_the_sum_over_lanes() -> None:
    close(ad.grad(lambda x: tr.sum(tr.vmap(seven, (None, 0))(x, Y)))(2.0), 7 * Y.sum())
    outer = tr.vmap(tr.vmap(seven, (None, 0)), (0, None))
    close(outer(X, Y), np.outer(np.sin(X), Y))
    close(ad.grad(lambda x: tr.sum(outer(x, Y)))(X), np.full(3, 7 * Y.sum()))
    close(tr.vmap(ad.grad(lambda x: tr.sum(tr.vmap(seven, (None, 0))(x, Y))))(X), np.full(3, 7 * Y.sum()))


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_metadata_and_several_results(wrap: Any) -> None:
    x = np.arange(6.0).reshape(3, 2)
    square, total = wrap(tr.vmap(four))(x)
    close(square, x * x)
    close(total, x.sum(1))
    out, tangent = ad.jvp(wrap(tr.vmap(four)), (x,), (np.ones((3, 2)),))
    close(tangent[0], np.full((3, 2), 4.0))
    close(tangent[1], np.zeros(3))
    close(out[1], x.sum(1))


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_arguments_and_results_in_containers(wrap: Any) -> None:
    tree = {"a": X, "b": [np.stack([Y, Y, Y])]}
    product, rest = wrap(tr.vmap(of_trees))(tree)
    close(product, X[:, None] * np.stack([Y, Y, Y]))
    close(rest["c"], np.full(3, Y.sum()))
    scalars = {"a": X, "b": [Y]}

    def loss(tree: Any) -> Any:
        a, b = tr.vmap(of_trees)(tree)
        return tr.sum(a) + 2 * tr.sum(b["c"])

    found = wrap(ad.grad(loss))(scalars)
    close(found["a"], np.full(3, 5.0))
    close(found["b"][0], np.full(3, 2.0))


def test_a_function_with_an_inference_takes_one_lane_after_the_other() -> None:
    """It may call NumPy, which knows no lanes."""
    close(tr.vmap(cube)(X), X**3)
    close(ad.grad(lambda x: tr.sum(tr.vmap(cube)(x)))(X), 3 * X**2)
    close(tr.vmap(ad.grad(ad.grad(cube)))(X), 6 * X)
    f = tr.compile(tr.vmap(cube))
    close(f(X), X**3)
    assert "lane by lane" in str(f.explain(X))


def test_no_lanes() -> None:
    assert tr.vmap(seven)(np.zeros(0), np.zeros(0)).shape == (0,)
    assert tr.vmap(cube)(np.zeros(0)).shape == (0,)
    assert ad.grad(lambda x: tr.sum(tr.vmap(seven, (0, None))(x, 2.0)))(np.zeros(0)).shape == (0,)


def test_a_rule_of_the_wrong_length_is_refused() -> None:
    @ad.custom_rule(vjp=lambda primals, outs, cotangents: (cotangents[0], None))
    def wrong(x: Any) -> Any:
        return x * 2

    with pytest.raises(GradientError, match="one value or None for each operand, 1 in all, but returned 2 values"):
        ad.grad(lambda x: tr.sum(tr.vmap(wrong)(x)))(X)


def test_programs_are_saved_and_loaded(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    f = tr.compile(tr.vmap(four))
    f(x)
    f.save(tmp_path / "lanes.tfp", x)
    square, total = tr.load(tmp_path / "lanes.tfp")(x)
    close(square, x * x)
    close(total, x.sum(1))


def test_one_program_serves_all_numbers_of_lanes() -> None:
    f = tr.compile(tr.vmap(four))
    for n in (3, 5, 8):
        x = np.arange(2.0 * n).reshape(n, 2)
        close(f(x)[1], x.sum(1))
    assert f.cache_info().traces == 1
