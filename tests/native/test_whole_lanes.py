"""Lanes that loop on their own in native vectors: each leaves when it is done, with the bits that it has alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from interrupts import interrupt_after
from tenferro_cpu.native import available
from tenferro_runtime.running import fusion

pytestmark = pytest.mark.skipif(not available(), reason="no machine code here")


def newton(x: Any) -> Any:
    """A square root, in as many steps as it takes; 0 and infinity leave at once."""
    goes_on = lambda c: (c[1] < 60) & (tr.abs(c[0] * c[0] - x) > 1e-5 * x)
    return tr.while_loop(goes_on, lambda c: (0.5 * (c[0] + x / c[0]), c[1] + 1), (x, 0))


def collatz(n: Any) -> Any:
    even = lambda n: n % 2 == 0
    return tr.while_loop(
        lambda c: c[0] > 1, lambda c: (tr.where(even(c[0]), c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0)
    )[1]


def nested(x: Any) -> Any:
    """A loop in a loop, both as long as the lane says, and a counted one inside."""

    def step(c: Any) -> Any:
        total, left = c
        inner = tr.while_loop(lambda d: d[0] < left, lambda d: (d[0] + 1.0, d[1] + tr.sin(d[0])), (0.0, total))[1]
        return tr.fori_loop(0, 3, lambda i, t: 0.5 * t + i, inner), left - 1

    return tr.while_loop(lambda c: c[1] > 0, step, (0.0, x))[0]


def bounded(x: Any) -> Any:
    return tr.while_loop(lambda c: c < 100, lambda c: 2 * c + x, x, max_steps=5)


def with_table(table: Any, x: Any) -> Any:
    """Reads at places that the lane computes: those of lanes that are done would lie outside."""
    inside = lambda c: c[0] < table.shape[0]
    return tr.while_loop(inside, lambda c: (c[0] + x, c[1] + table[c[0]]), (x, 0.0))[1]


def same_as_alone(f: Callable[..., Any], *batches: np.ndarray, shared: tuple[Any, ...] = ()) -> None:
    axes = (*[None] * len(shared), *[0] * len(batches))
    every, alone = tr.compile(tr.vmap(f, axes)), tr.compile(f)
    given = (*shared, *batches)
    every(*given)
    if len(batches[0]):
        alone(*shared, *[b[0] for b in batches])
    fusion.wait()
    found = every(*given)
    rows = [alone(*shared, *[b[k] for b in batches]) for k in range(len(batches[0]))]
    many = isinstance(found, tuple)
    for i, column in enumerate(found if many else (found,)):
        want = [np.asarray(row[i] if many else row) for row in rows]
        assert column.shape == (len(want),)
        if want:
            np.testing.assert_array_equal(np.asarray(column), np.stack(want))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [0, 1, 3, 8, 17, 64, 1001])
def test_every_number_of_lanes(dtype: str, count: int) -> None:
    x = (10 ** np.random.default_rng(count).uniform(-8, 8, count)).astype(dtype)
    x[: min(3, count)] = [0.0, np.inf, 1.0][: min(3, count)]
    same_as_alone(newton, x)
    same_as_alone(bounded, x)


def test_integers() -> None:
    same_as_alone(collatz, np.arange(1, 200))
    same_as_alone(collatz, np.arange(1, 60, dtype=np.int32))


def test_loops_in_loops() -> None:
    same_as_alone(nested, np.random.default_rng(0).integers(0, 9, 37).astype(float))


def test_a_lane_that_is_done_reads_nothing() -> None:
    table = np.random.default_rng(0).normal(size=50)
    same_as_alone(with_table, np.random.default_rng(1).integers(1, 60, 101), shared=(tr.asarray(table),))


def test_complex_numbers_and_several_carries() -> None:
    escape = lambda c: tr.while_loop(
        lambda s: (tr.abs2(s[0]) < 4) & (s[1] < 50), lambda s: (s[0] * s[0] + c, s[1] + 1), (0 * c, 0)
    )[1]
    x, y = np.meshgrid(np.linspace(-2, 1, 31), np.linspace(-1, 1, 21))
    same_as_alone(escape, (x + 1j * y).ravel())


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=0, max_size=40),
    most=st.none() | st.integers(0, 30),
)
def test_lanes_of_any_lengths(lengths: list[int], most: int | None) -> None:
    f = lambda n: tr.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, 1.5 * c[1] - c[0]), (0, 1.0), max_steps=most)[
        1
    ]
    want = np.ones(len(lengths))
    for k, n in enumerate(lengths):
        for i in range(n if most is None else min(n, most)):
            want[k] = 1.5 * want[k] - i
    g = tr.compile(tr.vmap(f))
    n = np.array(lengths, int)
    g(n)
    fusion.wait()
    np.testing.assert_array_equal(np.asarray(g(n)), want)


@pytest.mark.parametrize("most", [None, 10**12])
def test_an_interrupt_ends_lanes_that_never_leave(most: int | None) -> None:
    def endless(x: Any) -> Any:
        return tr.while_loop(lambda c: c > -1.0, lambda c: c + 1.0, x, max_steps=most)

    f = tr.compile(tr.vmap(endless))
    with interrupt_after(0.5), pytest.raises(KeyboardInterrupt):
        f(np.zeros(20))
