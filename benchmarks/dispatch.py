"""What a call of a compiled function costs before its kernels: at sizes that it has met, and at new ones.

    OPENBLAS_NUM_THREADS=1 python benchmarks/dispatch.py

One row for each program: the first call of all (trace, passes, rendering), the median first call at a new size, a warm
call, and the ratio of the last two. Beside it `jax.jit`, where JAX is installed, which compiles again for each size.
Processor time of the process, so that other work on the machine counts less; compare the ratios.
"""

import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_einsum import einsum
from tenferro_tensor import tensor

NEW, JAX_NEW = 60, 3
"""Numbers of new sizes."""

Shapes = list[tuple[int, ...]]


class Case(NamedTuple):
    """A program: of tenferro, of JAX given its modules, and shapes for a random generator and a largest extent."""

    f: Callable[..., Any]
    jax: Callable[[Any], Callable[..., Any]]
    shapes: Callable[[np.random.Generator, int], Shapes]
    most: int


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def best(call: Callable[[], Any], count: int, rounds: int = 20) -> float:
    """Seconds of one call, the best of some rounds of `count` calls."""
    return min(seconds(lambda: [call() for _ in range(count)]) / count for _ in range(rounds))


def svd_loss(a: Any, b: Any) -> Any:
    u, s, vh = tr.linalg.svd(a @ b, full_matrices=False)  # type: ignore[attr-defined, unused-ignore]
    return tr.sum(tr.sin((u * s) @ vh)) + tr.sum(s)


def jax_svd(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def loss(a: Any, b: Any) -> Any:
        u, s, vh = jnp.linalg.svd(a @ b, full_matrices=False)
        return jnp.sum(jnp.sin((u * s) @ vh)) + jnp.sum(s)

    return jax.value_and_grad(loss, (0, 1))  # type: ignore[no-any-return]


def product_shapes(rng: np.random.Generator, most: int) -> Shapes:
    n, k = map(int, rng.integers(max(2, most // 2), most, 2))
    m = max(n, k) + int(rng.integers(0, 5))
    return [(n, m), (m, k)]


def chain_loss(xs: Any, ws: Any) -> Any:
    for _ in range(10):
        xs = tr.tanh(einsum("ij,jk->ik", xs, ws))
    return tr.sum(xs)


def jax_chain(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def loss(xs: Any, ws: Any) -> Any:
        for _ in range(10):
            xs = jnp.tanh(jnp.einsum("ij,jk->ik", xs, ws))
        return jnp.sum(xs)

    return jax.value_and_grad(loss, (0, 1))  # type: ignore[no-any-return]


def chain_shapes(rng: np.random.Generator, most: int) -> Shapes:
    n, m = map(int, rng.integers(2, most, 2))
    return [(n, m), (m, m)]


def wave(x: Any, y: Any) -> Any:
    return tr.sum(tr.sin(x) * y + tr.exp(-x * x), axis=0)


def jax_wave(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy
    return lambda x, y: jnp.sum(jnp.sin(x) * y + jnp.exp(-x * x), axis=0)


def wave_shapes(rng: np.random.Generator, most: int) -> Shapes:
    shape = tuple(map(int, rng.integers(2, most, 2)))
    return [shape, shape]


CASES = {
    "value and gradient of an SVD, to 30": Case(value_and_grad(svd_loss, (0, 1)), jax_svd, product_shapes, 30),
    "value and gradient of an SVD, to 150": Case(value_and_grad(svd_loss, (0, 1)), jax_svd, product_shapes, 150),
    "value and gradient of ten products": Case(value_and_grad(chain_loss, (0, 1)), jax_chain, chain_shapes, 20),
    "element-wise with a sum": Case(wave, jax_wave, wave_shapes, 30),
}


def known_sizes() -> None:
    """Programs of one and of two small operations, at one size."""
    x, y = tensor(np.ones(8)), tensor(np.ones(8))
    for name, f in {"x * y": lambda x, y: x * y, "sin(x) + y": lambda x, y: tr.sin(x) + y}.items():
        g = tr.compile(f)
        best(lambda: g(x, y), 1000)  # noqa: B023
        print(f"{name} of 8 numbers, known sizes: {best(lambda: g(x, y), 2000) * 1e9:.0f} ns a call")  # noqa: B023


def measured(
    case: Case, f: Callable[..., Any], new: int, made: Callable[[Any], Any], done: Callable[[Any], Any]
) -> tuple[float, float, float, float]:
    """Seconds of the very first call, of first calls at new sizes and of warm ones; and the ratio of the last two."""
    rng = np.random.default_rng(0)

    def operands() -> list[Any]:
        return [made(rng.normal(size=shape)) for shape in case.shapes(rng, case.most)]

    given = operands()
    once = seconds(lambda: done(f(*given)))
    for _ in range(4 if new == NEW else 0):
        f(*operands())
    firsts, warms = [], []
    for _ in range(new):
        given = operands()
        firsts.append(seconds(lambda: done(f(*given))))  # noqa: B023
        warms.append(statistics.median(seconds(lambda: done(f(*given))) for _ in range(9)))  # noqa: B023
    ratio = statistics.median(a / b for a, b in zip(firsts, warms, strict=True))
    return once, statistics.median(firsts), statistics.median(warms), ratio


def new_sizes() -> None:
    """The table of all programs."""
    print(f"{'program':40} {'who':9} {'first':>10} {'new size':>10} {'warm':>10} {'ratio':>8}")
    for name, case in CASES.items():
        rows = {}
        f = tr.compile(case.f)
        rows["tenferro"] = measured(case, f, NEW, tensor, lambda out: out)
        if importlib.util.find_spec("jax") is not None:
            import jax

            rows["jax.jit"] = measured(case, jax.jit(case.jax(jax)), JAX_NEW, jax.numpy.asarray, jax.block_until_ready)
        for who, (once, first, warm, ratio) in rows.items():
            print(f"{name:40} {who:9} {once * 1e3:7.1f} ms {first * 1e6:7.0f} us {warm * 1e6:7.0f} us {ratio:8.2f}")
        print(f"{'':40} traces of tenferro: {f.cache_info().traces}")


if __name__ == "__main__":
    known_sizes()
    new_sizes()
