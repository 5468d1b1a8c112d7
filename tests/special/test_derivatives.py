"""Special functions and their derivatives against a table computed by mpmath with 40 digits."""

import json
from collections import defaultdict
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_runtime as tr

TABLE = json.loads((Path(__file__).parents[1] / "assets" / "special" / "derivatives.json").read_text())

GROUPS: dict[str, dict[tuple[int, ...], list[tuple[list[float], float]]]] = defaultdict(lambda: defaultdict(list))
for _name, _at, _orders, _value in TABLE:
    GROUPS[_name][tuple(_orders)].append((_at, _value))

TOLERANCE = [2e-13, 2e-12, 5e-11, 2e-9]
"""By the order of the derivative, relative to the larger of it and the function."""


def function(name):
    """The function of the namespace, with integer operands of the table as such; of several results the one named."""
    first, _, result = name.partition(".")
    f = getattr(tr.special, first)
    if result:
        return lambda *xs: getattr(f(*xs), result)
    return (lambda z: tr.real(f(z))) if first == "lambertw" else f


def operands(name, points):
    columns = np.array(points).T
    integers = {"yn": 1, "kn": 1, "sph_legendre_p": 2, "lpmv": 2}
    count = 1 if name.startswith(("eval_", "spherical_")) else integers.get(name, 0)
    return [tr.asarray(c.astype(np.int64) if i < count else c) for i, c in enumerate(columns)]


def derivative(f, i, forward):
    """The element-wise derivative by operand `i`, in one of the modes."""

    def total(*xs):
        return tr.sum(f(*xs))

    if not forward:
        return ad.grad(total, argnums=i)

    def pushed(*xs):
        return ad.jvp(lambda x: f(*xs[:i], x, *xs[i + 1 :]), (xs[i],), (tr.ones_like(xs[i]),))[1]

    return pushed


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_derivatives_agree_with_mpmath(name):
    groups = GROUPS[name]
    sizes = {tuple(at): abs(value) for at, value in groups[(0,) * len(next(iter(groups)))]}
    for orders, rows in groups.items():
        steps = [i for i, order in enumerate(orders) for _ in range(order)]
        # Both modes, and one inside the other: the first step forwards, the second in reverse, and so on.
        f = reduce(lambda g, step: derivative(g, step[1], step[0] % 2 == 0), enumerate(steps), function(name))
        values = np.asarray(f(*operands(name, [at for at, _ in rows])))
        for value, (at, expected) in zip(values, rows, strict=True):
            scale = max(abs(expected), sizes[tuple(at)])
            assert abs(value - expected) <= TOLERANCE[sum(orders)] * scale, (orders, at, value, expected)


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_single_precision_batches_and_programs(name):
    groups = GROUPS[name]
    zeros = next(iter(sorted(groups)))
    last = len(zeros) - 1
    points = [at for at, value in groups[zeros] if abs(value) < 1e30]
    xs, f = operands(name, points), function(name)
    slope = derivative(f, last, forward=False)
    value, expected = np.asarray(f(*xs)), np.asarray(slope(*xs))
    np.testing.assert_array_equal(np.asarray(derivative(f, last, forward=True)(*xs)), expected)
    np.testing.assert_array_equal(np.asarray(tr.vmap(slope)(*xs)), expected)
    np.testing.assert_allclose(np.asarray(tr.compile(slope)(*xs)), expected, rtol=1e-12)
    single = [x if x.dtype == tr.int64 else tr.astype(x, tr.float32) for x in xs]
    wide = [x if x.dtype == tr.int64 else tr.astype(x, tr.float64) for x in single]
    assert f(*single).dtype == slope(*single).dtype == tr.float32
    np.testing.assert_allclose(np.asarray(f(*single)), np.asarray(f(*wide)), rtol=2e-5, atol=1e-6 * np.abs(value).max())
    np.testing.assert_allclose(np.asarray(slope(*single)), np.asarray(slope(*wide)), rtol=2e-5, atol=1e-12)
