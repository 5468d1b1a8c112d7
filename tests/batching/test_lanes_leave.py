"""Lanes that branch and loop on their own values: each computes what it computes alone, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_runtime.batching._groups import MAX_JOINT_STEPS

Ways = pytest.mark.parametrize("way", [lambda f: f, tr.compile], ids=["eager", "compiled"])


def same_as_a_loop(way: Callable[..., Any], f: Callable[..., Any], *batches: Any) -> None:
    found = way(tr.vmap(f))(*batches)
    rows = [f(*[tr.asarray(x[k]) for x in batches]) for k in range(len(batches[0]))]
    np.testing.assert_allclose(np.asarray(found), np.stack([np.asarray(r) for r in rows]), rtol=1e-13)


def halvings(x: Any) -> Any:
    """Ends for x >= 0 only; for others it goes on for ever."""
    return tr.while_loop(lambda c: (c > 1) | (c < 0), lambda c: tr.where(c < 0, c, c / 2), x)


@Ways
def test_a_branch_that_never_ends_is_not_run_on_lanes_that_do_not_take_it(way: Any) -> None:
    f = lambda x: tr.cond(x >= 0, halvings, lambda x: -x, x)
    same_as_a_loop(way, f, np.array([5.0, -3.0, 0.5, -0.0]))
    same_as_a_loop(way, tr.vmap(f), np.array([[5.0, -3.0], [0.5, -1.0]]))


@Ways
@pytest.mark.parametrize("steps", [3, MAX_JOINT_STEPS - 1, MAX_JOINT_STEPS, MAX_JOINT_STEPS + 1, 4 * MAX_JOINT_STEPS])
def test_every_lane_makes_its_own_number_of_steps(way: Any, steps: int) -> None:
    def f(n: Any, x: Any) -> Any:
        return tr.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, tr.sin(c[1]) + x), (0, x))[1]

    counts = np.array([0, steps, 1, steps // 2, 2])
    same_as_a_loop(way, f, counts, np.linspace(0.1, 0.9, 5))


@Ways
def test_a_bound_on_the_steps_holds_for_every_lane(way: Any) -> None:
    f = lambda n: tr.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, 2 * c[1]), (0, 1.0), max_steps=5)[1]
    same_as_a_loop(way, f, np.array([0, 3, 5, 9]))


@Ways
def test_branches_by_number_and_what_they_close_over(way: Any) -> None:
    w = tr.asarray([1.0, 2.0, 3.0])

    def f(k: Any, x: Any) -> Any:
        y = 2 * x
        return tr.switch(k, [lambda x: tr.sum(w * y), lambda x: x[0] * y[1], lambda x: tr.sum(x)], x)

    same_as_a_loop(way, f, np.array([0, 2, 1, 7, -1]), np.arange(15.0).reshape(5, 3))


@Ways
def test_lanes_that_agree_stay_together(way: Any) -> None:
    f = lambda x: tr.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]
    same_as_a_loop(way, f, np.array([0.5, 2.0]))
    g = lambda x: tr.cond(tr.asarray(True), tr.sin, tr.cos, x)
    same_as_a_loop(way, g, np.array([0.5, 2.0]))


@Ways
def test_no_lanes(way: Any) -> None:
    f = lambda x: tr.cond(x > 0, halvings, tr.negative, x)
    found = way(tr.vmap(f))(np.zeros(0))
    assert found.shape == (0,)
    assert found.dtype == np.float64


@Ways
def test_derivatives_follow_the_lanes(way: Any) -> None:
    f = lambda x: tr.cond(x > 1, lambda x: tr.log(x) * x, lambda x: x**3, x)
    x = np.array([0.5, 2.0, 3.0, -1.0])
    wanted = np.where(x > 1, np.log(np.abs(x)) + 1, 3 * x**2)
    np.testing.assert_allclose(np.asarray(way(tr.vmap(ad.grad(f)))(x)), wanted, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(way(ad.grad(lambda x: tr.sum(tr.vmap(f)(x))))(x)), wanted, rtol=1e-14)
    loop = lambda x: tr.while_loop(lambda c: tr.abs(c) < 10, lambda c: 3 * c, x)
    np.testing.assert_array_equal(np.asarray(way(tr.vmap(ad.jacfwd(loop)))(x)), [27.0, 9.0, 9.0, 27.0])
    pushed = way(lambda x: ad.jvp(tr.vmap(loop), (x,), (np.ones(4),))[1])(x)
    np.testing.assert_array_equal(np.asarray(pushed), [27.0, 9.0, 9.0, 27.0])


def test_uneven_lanes_in_one_program_for_all_numbers_of_lanes() -> None:
    def doubled(n: Any) -> Any:
        return tr.while_loop(lambda c: c < n, lambda c: 2 * c, 1)

    f = tr.compile(tr.vmap(doubled))
    for count in (3, 4, 7):
        n = np.arange(1, count + 1) * 10
        np.testing.assert_array_equal(np.asarray(f(n)), [2 ** int(np.ceil(np.log2(k))) for k in n])
    assert f.cache_info().traces == 1
