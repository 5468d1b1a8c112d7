"""One compiled function at sizes that change between its calls, 0 and 1 among them, as eagerly in every tier."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, vjp
from tenferro_cpu.native import available
from tenferro_runtime.running import fusion
from tenferro_tensor.checked import CHECKED_VARIABLE
from tenferro_tensor_core import AxisError, ShapeError

pytestmark = [pytest.mark.optimised, pytest.mark.filterwarnings("ignore:divide by zero")]

RNG = np.random.default_rng(7)
SIZES = [(4, 3), (0, 3), (1, 1), (0, 0), (3, 0), (0, 100_000), (5, 2), (1, 3)]
"""Extents of a matrix in consecutive calls."""


def assigned(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i % x.shape[0]] = 7.0
    return y


def looped_update(x: Any, i: Any) -> Any:
    return tr.fori_loop(0, 3, lambda k, c: c.at[(i + k) % x.shape[0]].add(x[i]), x)


def searched(x: Any, i: Any) -> Any:
    row = tr.sort(x[:, 0])
    return row[tr.searchsorted(row, row[i] * 0.5) % x.shape[0]]


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "an element": lambda x, i: x[i, i] * 2.0,
    "a row": lambda x, i: x[i] * 2.0,
    "a column": lambda x, i: x[:, i] * 2.0,
    "a row modulo their number": lambda x, i: x[i % x.shape[0]] * 2.0,
    "taken rows": lambda x, i: tr.take(x, tr.asarray([0, 0]) + i, axis=0) * 2.0,
    "taken along an axis": lambda x, i: tr.take_along_axis(x, tr.argsort(x, axis=0), axis=0) * 2.0,
    "an element of each row": lambda x, i: tr.vmap(lambda row: row[i])(x) * 2.0,
    "a window": lambda x, i: tr.dynamic_slice(x, (i, 0), (1, x.shape[1])) * 2.0,
    "an updated row": lambda x, i: x.at[i % x.shape[0]].set(7.0) * 2.0,
    "an updated column": lambda x, i: x.at[:, i].add(7.0) * 2.0,
    "an assigned row": assigned,
    "an updated window": lambda x, i: tr.dynamic_update_slice(x, tr.ones((1, x.shape[1])), (i, 0)) * 2.0,
    "rows in a loop": lambda x, i: tr.fori_loop(0, 4, lambda k, c: c + tr.sum(x[i]), tr.asarray(0.0)),
    "an update in a loop": looped_update,
    "rows of a scan": lambda x, i: tr.scan(lambda c, r: (c + r * x[i], c), tr.zeros(x.shape[1]), x),
    "an argument of the largest": lambda x, i: tr.argmax(x, axis=0) + i,
    "a searched element": searched,
    "reversed and joined": lambda x, i: tr.concatenate([x[::-1], x[:1] * 2.0]),
    "a branch": lambda x, i: tr.cond(i < 0, lambda: tr.sum(x[i]), lambda: tr.sum(x)),
    "a gradient": lambda x, i: grad(lambda x: tr.sum(x[i] ** 2))(x),
    "a gradient modulo": lambda x, i: grad(lambda x: tr.sum(x[i % x.shape[0]] ** 2))(x),
    "a tangent": lambda x, i: jvp(lambda x: x.at[i].multiply(x[i]), (x,), (x,))[1],
    "a cotangent": lambda x, i: vjp(lambda x: x[:, i] * x[:, 0], x)[1](tr.ones(x.shape[0]))[0],
}


def outcome(f: Callable[..., Any], x: np.ndarray[Any, Any], i: int) -> Any:
    """The result as arrays, or the class of the error."""
    try:
        found = f(tr.asarray(x), tr.asarray(i))
    except (AxisError, ShapeError) as error:
        return type(error)
    return [np.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]


def agree(got: Any, want: Any) -> bool:
    if isinstance(want, type) or isinstance(got, type):
        return got is want
    return all(a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("first", [(4, 3), (1, 1)])
def test_every_tier_at_every_size(name: str, deterministic: bool, first: tuple[int, int]) -> None:
    f = PROGRAMS[name]
    compiled = tr.compile(f, deterministic=deterministic)
    sizes = [first, *SIZES]
    for tier in ("step by step", "native"):
        for shape in sizes:
            x = RNG.standard_normal(shape)
            for i in range(min(2, max(1, *shape)) if min(shape) != 1 else 1):  # unknown indices are clamped
                got, want = outcome(compiled, x, i), outcome(f, x, i)
                assert agree(got, want), (tier, shape, i, got, want)
        fusion.wait()


@pytest.mark.skipif(not available(), reason="there is no machine code here")
def test_checked_code_sees_no_access_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKED_VARIABLE, "1")
    for f in PROGRAMS.values():
        compiled = tr.compile(lambda x, i, f=f: f(x, i))
        for _ in range(3):
            outcome(compiled, RNG.standard_normal((4, 3)), 1)
        fusion.wait()
        for shape in SIZES:
            x = RNG.standard_normal(shape)
            assert agree(outcome(compiled, x, 0), outcome(f, x, 0))
