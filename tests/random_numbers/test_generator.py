"""NumPy's methods over the stream of a key."""

import inspect
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.random import Generator, default_rng
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, TenferroError, TracingError


def test_numpy_s_methods() -> None:
    theirs = {n for n, v in inspect.getmembers(np.random.Generator) if not n.startswith("_") and callable(v)}
    assert theirs <= set(dir(Generator))


@pytest.mark.parametrize("name", ["random", "standard_normal", "standard_exponential"])
def test_what_is_drawn_in_pieces_is_what_one_call_gives(name: str) -> None:
    rng, whole = default_rng(3), getattr(default_rng(3), name)(40)
    pieces = [np.asarray(getattr(rng, name)(size)).reshape(-1) for size in (7, (2, 3), None, 26)]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_integers_and_gamma_numbers_in_pieces() -> None:
    rng, other = default_rng(3), default_rng(3)
    assert np.array_equal(
        np.concatenate([rng.integers(5, size=4), rng.integers(5, size=6)]), other.integers(5, size=10)
    )
    both = np.concatenate([rng.standard_gamma(2.0, 4), rng.standard_gamma(2.0, 6)])
    assert np.array_equal(both, other.standard_gamma(2.0, 10))


def test_seeds() -> None:
    key = tr.random.key(5)
    wanted = np.asarray(tr.random.uniform(key, (3,)))
    for seed in (5, key, np.int64(5)):
        assert np.array_equal(default_rng(seed).random(3), wanted)
    rng = default_rng(5)
    assert default_rng(rng) is rng
    assert not np.array_equal(default_rng().random(3), default_rng().random(3))
    assert np.array_equal(default_rng([1, 2]).random(3), default_rng(np.random.SeedSequence([1, 2])).random(3))
    with pytest.raises(ArgumentError, match="default_rng takes an integer, a key"):
        default_rng("dice")


def test_children_are_independent() -> None:
    first, second = default_rng(1).spawn(2)
    assert not np.array_equal(first.random(4), second.random(4))


def test_a_generator_from_outside_is_refused_in_programs() -> None:
    rng = default_rng(0)
    with pytest.raises(TracingError, match="a Generator from outside would draw the same numbers"):
        tr.compile(lambda x: x + rng.random(3))(tr.zeros(3))
    with pytest.raises(TracingError, match="pass a key"):
        tr.compile(lambda n: tr.fori_loop(0, n, lambda i, x: x + rng.normal(), tr.asarray(0.0)))(tr.asarray(3))


def test_a_generator_of_a_key_draws_in_programs() -> None:
    def draw(key: Any) -> Any:
        rng = default_rng(key)
        return rng.normal(1.0, 2.0, 3), rng.poisson(3.0, 4), rng.permutation(5)

    key = tr.random.key(9)
    for eager, compiled in zip(draw(key), tr.compile(draw)(key), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-15)


def test_order() -> None:
    rng, x = default_rng(4), np.arange(24).reshape(4, 6)
    assert sorted(np.asarray(rng.permutation(x))[:, 0]) == [0, 6, 12, 18]
    assert np.array_equal(np.sort(rng.permuted(x), axis=None), x.reshape(-1))
    along = np.asarray(rng.permuted(x, axis=1))
    assert np.array_equal(np.sort(along, axis=1), x) and not np.array_equal(
        along % 6, np.broadcast_to(along[0] % 6, (4, 6))
    )
    for target in (np.arange(9), list(range(9)), tr.arange(9)):
        rng.shuffle(target)
        assert sorted(np.asarray(target).tolist()) == list(range(9)) and np.asarray(target).tolist() != list(range(9))


def test_shapes_of_every_method() -> None:
    rng = default_rng(0)
    ones, half = tr.ones((2, 1)), tr.full((3,), 0.5)
    for name, arguments in {
        "uniform": (half * 0.0, ones), "normal": (half, ones), "beta": (half, ones), "binomial": (ones, half),
        "hypergeometric": (ones, half * 4, 2), "wald": (half, ones), "f": (half, ones), "gamma": (half, ones),
        "triangular": (-ones, half * 0.0, half), "vonmises": (half, ones), "laplace": (half, ones),
        "integers": (0, tr.asarray([[3], [4]]) + tr.asarray([1, 2, 3])), "negative_binomial": (ones, half),
    }.items():  # fmt: skip
        assert getattr(rng, name)(*arguments).shape == (2, 3), name
        assert getattr(rng, name)(*arguments, size=(5, 2, 3)).shape == (5, 2, 3), name
    assert rng.standard_t(3.0).shape == ()
    assert len(rng.bytes(11)) == 11


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tr.random.normal(0), DTypeError, "takes a key, which is of dtype uint64"),
        (lambda: tr.random.uniform(tr.random.key(0), 3, tr.int64), DTypeError, "real floating-point"),
        (lambda: tr.random.bits(tr.random.key(0), 3, tr.int64), DTypeError, "unsigned integers"),
        (lambda: tr.random.poisson(tr.random.key(0), 3.0, 3, tr.float64), DTypeError, "draws integers"),
        (lambda: tr.random.gamma(tr.random.key(0), tr.ones(3), 2), TenferroError, "broadcast"),
        (lambda: tr.random.randint(tr.random.key(0), 3, 5, 5), ArgumentError, "no integers from 5"),
        (lambda: tr.random.choice(tr.random.key(0), 3, (4,), replace=False), ArgumentError, "without replacement"),
        (lambda: tr.random.choice(tr.random.key(0), 3, p=tr.ones(4)), ShapeError, "one probability for each"),
        (lambda: tr.random.key(0.5), ArgumentError, "key takes an integer as seed"),
        (lambda: tr.random.wrap_key_data(tr.ones(3)), DTypeError, "wrap_key_data takes uint32"),
    ],
    ids=lambda p: p if isinstance(p, str) else "",
)
def test_mistakes(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_zero_extents() -> None:
    key = tr.random.key(0)
    for x in (
        tr.random.normal(key, (0, 3)),
        tr.random.gamma(key, tr.ones((0, 3))),
        tr.random.poisson(key, 2.0, (0, 3)),
    ):
        assert x.shape == (0, 3)
    assert tr.random.permutation(key, 0).shape == (0,)
    assert tr.random.split(key, 0).shape == (0,)
