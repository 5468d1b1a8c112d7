"""Words and numbers of streams: published vectors, JAX, and the same bits however they are drawn."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_cpu import threads
from tenferro_runtime.tracing.expanding import apply_expansion
from tenferro_tensor.random_streams import (
    random_bits,
    random_exponential,
    random_loggamma,
    random_normal,
    random_uniform,
)

PRIMITIVES = {
    "bits": (random_bits, ("uint8", "uint16", "uint32", "uint64")),
    "uniform": (random_uniform, ("float32", "float64")),
    "normal": (random_normal, ("float32", "float64")),
    "exponential": (random_exponential, ("float32", "float64")),
}
CASES = [(name, dtype) for name, (_, dtypes) in PRIMITIVES.items() for dtype in dtypes]


def word(x: int) -> Any:
    return tr.asarray(np.uint64(x))


@pytest.mark.parametrize(
    ("key", "counter", "wanted"),
    [
        (0, 0, 0x6B20015999BA4EFE),
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x1CB996FCBB002BE7),
        (0x13198A2E03707344, 0x243F6A8885A308D3, 0xC4923A9C483DF7A0),
    ],
)
def test_vectors_of_threefry(key: int, counter: int, wanted: int) -> None:
    """The known answers that the authors publish with their library Random123."""
    found = random_bits(word(key), word(counter), shape=(), dtype=np.dtype("uint64"))
    assert int(found) == wanted


def test_numbers_of_jax() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        theirs, ours = jax.random.key(1234567890123), tr.random.key(1234567890123)
        assert np.array_equal(tr.random.key_data(ours), jax.random.key_data(theirs))
        for dtype in ("uint32", "uint64", "uint8"):
            assert np.array_equal(tr.random.bits(ours, (5, 7), dtype), jax.random.bits(theirs, (5, 7), dtype))
        for dtype, ulps in (("float32", 8), ("float64", 40)):
            assert np.array_equal(tr.random.uniform(ours, (99,), dtype), jax.random.uniform(theirs, (99,), dtype))
            normal = np.asarray(jax.random.normal(theirs, (2999,), dtype))
            error = np.abs(np.asarray(tr.random.normal(ours, (2999,), dtype)) / normal - 1)
            assert error.max() < ulps * np.finfo(dtype).eps
        keys = jax.random.split(theirs, 5)
        assert np.array_equal(tr.random.key_data(tr.random.split(ours, 5)), jax.random.key_data(keys))
        folded = jax.random.fold_in(theirs, 77)
        assert np.array_equal(tr.random.key_data(tr.random.fold_in(ours, 77)), jax.random.key_data(folded))
        assert np.array_equal(
            tr.random.wrap_key_data(np.asarray(jax.random.key_data(folded))), tr.random.fold_in(ours, 77)
        )


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_programs_give_the_bits_of_kernels(name: str, dtype: str) -> None:
    primitive = PRIMITIVES[name][0]
    key, start = tr.asarray(np.array([3, 2**63 + 5], np.uint64)), tr.asarray(np.array([0, 2**32 - 40], np.uint64))
    op = primitive.op(shape=(50, 7), dtype=np.dtype(dtype))
    eager = np.asarray(op(key, start))
    assert eager.shape == (2, 50, 7)
    assert eager.dtype == dtype
    assert np.array_equal(eager, tr.compile(lambda k, s: op(k, s))(key, start))
    assert np.array_equal(eager, apply_expansion(op, (key, start))[0])


@pytest.mark.parametrize(("name", "dtype"), CASES)
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 255, 256, 257, 1000])
def test_pieces_of_a_stream(name: str, dtype: str, count: int) -> None:
    """Blocks of kernels, and the carry of positions, leave no trace."""
    primitive, dt, base = PRIMITIVES[name][0], np.dtype(dtype), 2**32 - 300
    whole = np.asarray(primitive(word(9), word(base), shape=(1300,), dtype=dt))
    piece = np.asarray(primitive(word(9), word(base + 5), shape=(count,), dtype=dt))
    assert np.array_equal(piece, whole[5 : 5 + count])


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential"])
def test_any_number_of_threads(name: str) -> None:
    draw: Callable[..., Any] = getattr(tr.random, name)
    with threads(1):
        alone = np.asarray(draw(tr.random.key(1), (200_001,)))
    with threads(2):
        assert np.array_equal(alone, draw(tr.random.key(1), (200_001,)))


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential", "gumbel", "laplace"])
def test_lanes_have_the_numbers_of_their_keys(name: str) -> None:
    draw: Callable[..., Any] = getattr(tr.random, name)
    keys = tr.random.split(tr.random.key(5), 4)
    alone = np.stack([np.asarray(draw(keys[k], (3, 2))) for k in range(4)])
    assert np.array_equal(alone, draw(keys, (3, 2)))
    assert np.array_equal(alone, tr.vmap(lambda k: draw(k, (3, 2)))(keys))
    assert np.array_equal(alone, tr.compile(lambda keys: tr.vmap(lambda k: draw(k, (3, 2)))(keys))(keys))


def test_gamma_numbers_are_the_same_in_kernels_and_programs() -> None:
    rng = np.random.default_rng(0)
    a = tr.asarray(
        np.concatenate([rng.uniform(1e-3, 8, 300), [1e-30, 1e-3, 1.0, 1e5, 1e15, 1e300, 0.0, -1.0, np.inf, np.nan]])
    )
    op = random_loggamma.op()
    eager = np.asarray(op(word(3), word(2**32 - 5), a))
    assert np.array_equal(eager, tr.compile(lambda k, s, a: op(k, s, a))(word(3), word(2**32 - 5), a), equal_nan=True)
    assert np.isneginf(eager[-4]) and np.isnan(eager[[-3, -1]]).all() and eager[-2] == np.inf
    assert np.array_equal(eager[7:], op(word(3), word(2**32 + 2), a[7:]), equal_nan=True)
    keys = tr.random.split(tr.random.key(5), 3)
    alone = np.stack([np.asarray(tr.random.loggamma(keys[k], 2.5, (4,))) for k in range(3)])
    assert np.array_equal(alone, tr.vmap(lambda k: tr.random.loggamma(k, 2.5, (4,)))(keys))
    assert np.array_equal(alone, tr.random.loggamma(keys, 2.5, (4,)))


def test_loops_draw_with_folded_keys() -> None:
    def walk(key: Any, n: Any) -> Any:
        return tr.fori_loop(0, n, lambda i, x: x + tr.random.normal(tr.random.fold_in(key, i)), tr.asarray(0.0))

    key = tr.random.key(8)
    wanted = sum(float(tr.random.normal(tr.random.fold_in(key, i))) for i in range(20))
    assert float(tr.compile(walk)(key, tr.asarray(20))) == pytest.approx(wanted, rel=1e-14)


def test_xla_has_the_same_bits() -> None:
    pytest.importorskip("jax")
    from tenferro_xla import XlaExecutor

    def draw(key: Any) -> Any:
        numbers = (
            tr.random.bits(key, (40,), tr.uint64),
            tr.random.uniform(key, (40,)),
            tr.random.randint(key, (9,), 0, 77),
        )
        return *numbers, tr.random.normal(key, (40,)), tr.random.exponential(key, (40,), tr.float32)

    key = tr.random.key(77)
    theirs = XlaExecutor().run(tr.trace(draw, key), key)
    for k, (wanted, found) in enumerate(zip(draw(key), theirs, strict=True)):
        if k < 3:
            assert np.array_equal(wanted, found)
        else:
            np.testing.assert_allclose(found, wanted, rtol=float(32 * np.finfo(np.asarray(wanted).dtype).eps))


def test_open_sizes() -> None:
    @tr.compile
    def like(key: Any, x: Any) -> Any:
        return tr.random.normal(key, x.shape) + x

    for n in (3, 4, 5, 6):
        assert np.array_equal(like(tr.random.key(2), tr.zeros(n)), tr.random.normal(tr.random.key(2), (n,)))


def test_rules_are_found_where_kernels_came_first() -> None:
    """The CPU backend registers kernels before the extension is loaded, which programs and batches still ask for."""
    code = (
        "import tenferro_runtime as tr\n"
        "from tenferro_tensor import REGISTRY, get_backend\n"
        "from tenferro_tensor.random_streams import random_normal\n"
        "get_backend('cpu')\n"
        "assert REGISTRY.find('batching', random_normal) and REGISTRY.find('expansion', random_normal)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
