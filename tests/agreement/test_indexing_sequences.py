"""Sequences of index expressions on one tensor, with tables that remember each other's keys, against NumPy."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, variable

SHAPES = [(6, 6), (3, 4, 5), (7,), (2, 1, 3, 2), (0, 3), ()]
SEQUENCES, LENGTH = 60, 25


def _number(rng: random.Random, n: int) -> Any:
    k = rng.randint(-n - 1, n + 1)
    return rng.choice([k, k, k, np.int64(k), np.int8(k), bool(k)])


def _slice(rng: random.Random, n: int) -> slice:
    parts = [rng.choice([None, _number(rng, n)]) for _ in range(3)]
    return slice(*parts[:2], rng.choice([None, None, 1, 2, -1, -3, parts[2] or True]))  # type: ignore[call-overload]


def _item(rng: random.Random, n: int) -> Any:
    way = rng.randrange(12)
    if way < 4:
        return _slice(rng, n)
    if way < 7:
        return _number(rng, n)
    if way < 9:
        return None
    if way == 9:
        return Ellipsis
    if way == 10:
        return [rng.randrange(-n, n) for _ in range(rng.randint(1, 3))] if n else []
    return rng.choice([True, False, np.bool_(True), 1.0, slice(0.0, None), slice(None, None, 1.0)])


def _key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """One item, or a tuple of them: integers and slices come as often alone as with the same numbers in a tuple."""
    n = shape[0] if shape else 0
    if rng.random() < 0.15:  # the same three parts as a slice and as a tuple
        a, b, c = (rng.choice([None, rng.randint(0, max(n - 1, 0))]) for _ in range(3))
        return rng.choice([slice(a, b, c or None), (a, b, c), (slice(a, b, c or None),), (slice(a, b), c)])
    items = [_item(rng, shape[min(i, len(shape) - 1)] if shape else 0) for i in range(rng.randint(1, 4))]
    return items[0] if len(items) == 1 and rng.random() < 0.7 else tuple(items)


def _outcome(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except (IndexError, ValueError, TypeError) as error:  # ours are kinds of these
        return type(error)


def _agree(what: str, history: list[Any], ours: Any, theirs: Any) -> None:
    if isinstance(theirs, type) or isinstance(ours, type):
        assert isinstance(theirs, type) and isinstance(ours, type), (what, history, ours, theirs)
        return
    assert ours.shape == theirs.shape, (what, history, ours.shape, theirs.shape)
    np.testing.assert_array_equal(np.asarray(ours), theirs, err_msg=f"{what} {history}")


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_each_index_gives_what_numpy_gives_whatever_came_before(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    array = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    x, w = tr.asarray(array), variable(array)
    history: list[Any] = []
    for _ in range(LENGTH):
        key = rng.choice(history) if history and rng.random() < 0.3 else _key(rng, shape)
        history.append(key)
        theirs = _outcome(lambda key=key: np.array(array[key]))  # type: ignore[misc]
        _agree("eager", history, _outcome(lambda key=key: x[key]), theirs)  # type: ignore[misc]
        _agree("recorded", history, _outcome(lambda key=key: w[key].detach()), theirs)  # type: ignore[misc]
        if isinstance(theirs, type):
            continue
        counted, changed = np.zeros(shape), array.copy()
        np.add.at(counted, key, 1.0)
        changed[key] = 0.5
        _agree("set", history, x.at[key].set(0.5), changed)
        _agree("gradient", history, grad(lambda v, key=key: tr.sum(v[key]))(x), counted)
    used = [key for key in history[-6:] if not isinstance(_outcome(lambda key=key: array[key]), type)]  # type: ignore[misc]
    parts = tr.compile(lambda v: [v[index] for index in used])(x)
    for got, key in zip(parts, used, strict=True):
        _agree("compiled", history, got, array[key])


def test_a_slice_and_a_tuple_of_the_same_numbers_are_two_keys() -> None:
    y = tr.ones((6, 6))
    assert y[2, None, None].shape == (1, 1, 6)
    assert y[2:].shape == (4, 6)
    assert float(tr.mean(y[2:])) == 1.0
    z = tr.ones((6, 6, 6))
    assert z[1:3:2].shape == (1, 6, 6) and z[1, 3, 2].shape == ()
