"""Programs that XLA runs, written for tenferro and for JAX, and the compiled functions with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tenferro_ad as ad
import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_einsum import einsum

DEVICE = "xla:cpu:0"


class Row(NamedTuple):
    """A function twice, and its arguments.

    Attributes:
        own: makes the function for tenferro.
        other: makes that for JAX.
        arguments: NumPy arrays.
    """

    own: Callable[[], Callable[..., Any]]
    other: Callable[[], Callable[..., Any]]
    arguments: tuple[np.ndarray[Any, Any], ...]


def chain(lib: Any) -> Callable[[Any, Any], Any]:
    def f(x: Any, y: Any) -> Any:
        for i in range(12):
            x, y = lib.sin(x) * y + 0.1 * i, lib.exp(-y * y) + lib.where(x > 0, x, 0.5 * x)
        return x + y

    return f


def perceptron(lib: Any) -> Callable[..., Any]:
    def loss(w1: Any, w2: Any, x: Any) -> Any:
        hidden = lib.tanh(x @ w1)
        logits = hidden @ w2
        top = lib.max(logits, axis=1, keepdims=True)
        return -lib.mean(logits[:, 0] - top[:, 0] - lib.log(lib.sum(lib.exp(logits - top), axis=1)))

    return loss


def matmuls(x: Any, y: Any) -> Any:
    for _ in range(6):
        x = x @ y / 16.0
    return x


def network(contract: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, c, d, e, f: contract("abi,bcj,cdk,ial,jlm,kmn->dn", a, b, c, d, e, f)


def own_scan(x: Any, w: Any) -> Any:
    return tr.scan(lambda c, _: ((c := tr.tanh(c @ w)), tr.sum(c)), x, None, 1000)


def other_scan(x: Any, w: Any) -> Any:
    return jax.lax.scan(lambda c, _: ((c := jnp.tanh(c @ w)), jnp.sum(c)), x, None, 1000)


def own_walk(x: Any) -> Any:
    return tr.while_loop(lambda c: tr.sum(c * c) < 1e6, lambda c: c * 1.01 + 0.001, x)


def other_walk(x: Any) -> Any:
    return jax.lax.while_loop(lambda c: jnp.sum(c * c) < 1e6, lambda c: c * 1.01 + 0.001, x)


def own_draw(key: Any) -> Any:
    return tr.random.normal(key, (1000, 100))


def other_draw(seed: Any) -> Any:
    return jax.random.normal(jax.random.key(seed), (1000, 100))


def rows() -> dict[str, Row]:
    """All rows by name."""
    rng = np.random.default_rng(0)

    def same(f: Callable[[Any], Callable[..., Any]], *arguments: Any) -> Row:
        return Row(lambda: f(tr), lambda: f(jnp), arguments)

    systems = rng.normal(size=(64, 16, 16)) + 8 * np.eye(16)
    places = rng.integers(0, 2000, 5000)
    tensors = tuple(rng.normal(size=(8, 8, 8)) for _ in range(6))
    weights = (rng.normal(size=(64, 128)) / 8, rng.normal(size=(128, 10)) / 8, rng.normal(size=(256, 64)))
    return {
        "tiny call": same(lambda lib: lambda x: x + 1.0, np.ones(3)),
        "element-wise chain": same(chain, rng.normal(size=100_000), rng.normal(size=100_000)),
        "gradient of a perceptron": Row(
            lambda: ad.grad(perceptron(tr), argnums=(0, 1)), lambda: jax.grad(perceptron(jnp), argnums=(0, 1)), weights
        ),
        "scan of 1000 steps": Row(
            lambda: own_scan, lambda: other_scan, (rng.normal(size=32), rng.normal(size=(32, 32)) / 8)
        ),
        "chain of matmuls": same(lambda lib: matmuls, rng.normal(size=(256, 256)), rng.normal(size=(256, 256))),
        "batched solve": Row(
            lambda: lambda a, b: tl.solve(a, b), lambda: lambda a, b: jnp.linalg.solve(a, b),
            (systems, rng.normal(size=(64, 16, 4))),
        ),
        "svd": Row(
            lambda: lambda a: tl.svd(a, full_matrices=False), lambda: lambda a: jnp.linalg.svd(a, full_matrices=False),
            (rng.normal(size=(96, 64)),),
        ),
        "fft": same(lambda lib: lambda x: lib.abs(lib.fft.fft2(x)), rng.normal(size=(16, 128, 128))),
        "einsum network": Row(lambda: network(einsum), lambda: network(jnp.einsum), tensors),
        "gather and scatter": Row(
            lambda: lambda x, i: x.at[i].add(x[i] * 2.0), lambda: lambda x, i: x.at[i].add(x[i] * 2.0),
            (rng.normal(size=(2000, 16)), places),
        ),
        "random numbers": Row(lambda: own_draw, lambda: other_draw, (np.asarray(7, "uint64"),)),
        "while loop": Row(lambda: own_walk, lambda: other_walk, (rng.normal(size=1000),)),
        "sort and cumulative sum": same(
            lambda lib: lambda x: lib.cumsum(lib.sort(x, axis=1), axis=1), rng.normal(size=(64, 256))
        ),
    }  # fmt: skip


def wait(x: Any) -> Any:
    """Wait for a result of either."""
    leaves = tr.tree_leaves(x)
    if isinstance(leaves[0], jax.Array):
        return jax.block_until_ready(x)
    tr.synchronize_all()
    return x


def contestants(row: Row) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The compiled functions, with arguments on the device."""
    own = tr.compile(row.own(), backend="xla")
    return [
        (own, tuple([tr.asarray(a).to_device(DEVICE) for a in row.arguments])),
        (jax.jit(row.other()), tuple([jnp.asarray(a) for a in row.arguments])),
    ]
