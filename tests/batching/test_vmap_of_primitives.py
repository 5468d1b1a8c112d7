"""`vmap` of every differentiable primitive, alone and together with the other transforms, against a loop over lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_runtime as tr
from rule_cases import CASES, Case

LANES = 3


def lanes_of(x: np.ndarray, count: int = LANES) -> np.ndarray:
    """A batch of arrays like one, which are different from each other and keep its zeros and its signs."""
    return np.stack([x * (1 - k / 16) for k in range(count)]) if count else np.empty((0, *x.shape), x.dtype)


def by_loop(f: Callable[..., Any], xs: tuple[np.ndarray, ...], axes: tuple[int | None, ...]) -> np.ndarray:
    rows = [
        f(*[tr.asarray(x if axis is None else np.take(np.asarray(x), k, axis)) for x, axis in zip(xs, axes)])
        for k in range(LANES)
    ]
    return np.stack([np.asarray(row) for row in rows])


def agree(found: Any, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-13)


def arguments(case: Case, kind: str) -> tuple[np.ndarray, ...]:
    given = case.xs if kind == "real" else case.zs
    assert given is not None
    return tuple(np.asarray(x) for x in given)


every_case = pytest.mark.parametrize(
    ("case", "kind"),
    [(case, kind) for case in CASES for kind in ("real", "complex") if (case.xs, case.zs)[kind == "complex"]],
    ids=str,
)


@every_case
def test_all_and_some_operands_have_lanes(case: Case, kind: str) -> None:
    xs = arguments(case, kind)
    batches = tuple(map(lanes_of, xs))
    every = (0,) * len(xs)
    agree(tr.vmap(case.f)(*batches), by_loop(case.f, batches, every))
    agree(tr.compile(lambda *xs: tr.vmap(case.f)(*xs))(*batches), by_loop(case.f, batches, every))
    for i in range(len(xs)):
        mixed: Any = tuple([tr.asarray(b if k == i else x) for k, (b, x) in enumerate(zip(batches, xs))])
        axes = tuple([0 if k == i else None for k in range(len(xs))])
        agree(tr.vmap(case.f, axes)(*mixed), by_loop(case.f, mixed, axes))


@every_case
def test_axes_are_taken_from_the_end_and_put_there(case: Case, kind: str) -> None:
    batches = tuple([np.moveaxis(lanes_of(x), 0, -1) for x in arguments(case, kind)])
    found = tr.vmap(case.f, -1, -1)(*batches)
    agree(found, np.moveaxis(by_loop(case.f, batches, (-1,) * len(batches)), 0, -1))


@every_case
def test_no_lanes_and_one(case: Case, kind: str) -> None:
    xs = arguments(case, kind)
    one = np.asarray(case.f(*map(tr.asarray, xs)))
    none = tr.vmap(case.f)(*[lanes_of(x, 0) for x in xs])
    assert none.shape == (0, *one.shape)
    assert none.dtype == one.dtype
    agree(tr.vmap(case.f)(*[x[None] for x in xs]), one[None])


@every_case
def test_nested(case: Case, kind: str) -> None:
    xs = arguments(case, kind)
    twice = tuple([np.stack([lanes_of(x), 0.875 * lanes_of(x)]) for x in xs])
    wanted = np.stack([by_loop(case.f, tuple([x[k] for x in twice]), (0,) * len(xs)) for k in range(2)])
    agree(tr.vmap(tr.vmap(case.f))(*twice), wanted)


@every_case
def test_inside_of_a_loop(case: Case, kind: str) -> None:
    xs = arguments(case, kind)
    steps = tuple([np.stack([lanes_of(x), 0.875 * lanes_of(x)]) for x in xs])
    wanted = np.stack([by_loop(case.f, tuple([x[k] for x in steps]), (0,) * len(xs)) for k in range(2)])
    f = tr.compile(lambda *xs: tr.scan(lambda c, x: (c, tr.vmap(case.f)(*x)), 0.0, xs)[1])
    agree(f(*steps), wanted)
    turned = tuple([np.swapaxes(x, 0, 1) for x in steps])
    g = tr.vmap(lambda *xs: tr.scan(lambda c, x: (c, case.f(*x)), 0.0, xs)[1])
    agree(g(*turned), np.swapaxes(wanted, 0, 1))


@every_case
def test_with_derivatives(case: Case, kind: str) -> None:
    xs = arguments(case, kind)
    batches = tuple(map(lanes_of, xs))
    if not np.issubdtype(np.asarray(case.f(*map(tr.asarray, xs))).dtype, np.inexact):
        pytest.skip("no derivative")
    tangents = tuple([0.3 * x + 0.1 for x in batches])

    def push(*args: Any) -> Any:
        n = len(args) // 2
        return ad.jvp(case.f, args[:n], args[n:])[1]

    every = (0,) * len(xs)
    pushed = by_loop(push, (*batches, *tangents), (*every, *every))
    agree(tr.vmap(push)(*batches, *tangents), pushed)
    agree(ad.jvp(tr.vmap(case.f), batches, tangents)[1], pushed)

    def pull(*args: Any) -> Any:
        value, back = ad.vjp(case.f, *args)
        return back(tr.ones_like(value))

    value, back = ad.vjp(tr.vmap(case.f), *batches)
    swept = back(tr.ones_like(value))
    mapped = tr.vmap(pull)(*batches)
    for i in range(len(xs)):
        wanted = by_loop(lambda *args, i=i: pull(*args)[i], batches, every)
        agree(swept[i], wanted)
        agree(mapped[i], wanted)
