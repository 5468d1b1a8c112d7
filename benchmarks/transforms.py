"""Transforms beside JAX and PyTorch in one run: batches, per-sample gradients, Jacobians, Hessians, uneven loops.

Each row is one function written three times, for `tenferro`, `jax` and `torch.func`. Compiled against `jax.jit`, and
eager against eager PyTorch, on one core; the contestants take turns, and medians are reported. Results are compared
before anything is timed. PyTorch is left out where it is not installed.

    python benchmarks/transforms.py [--only TEXT] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import contestants

options = contestants.parser(__doc__)
options.add_argument("--json", help="file for the figures")
chosen = options.parse_args()
contestants.prepare(chosen)

import numpy as np  # noqa: E402 - the number of threads is set before
from turns import leaves, mapped, medians, warm  # noqa: E402

import tenferro_ad as ad  # noqa: E402
import tenferro_linalg as tl  # noqa: E402
import tenferro_runtime as tr  # noqa: E402

jax, torch = contestants.optional("jax"), contestants.optional("torch")
jnp = jax.numpy if jax else None
if jax:
    jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(0)


class Row(NamedTuple):
    """One comparison.

    Attributes:
        name: what is computed.
        ours: the function with tenferro.
        jax: with JAX.
        torch: with torch.func; ``None`` where it has no such thing.
        arguments: NumPy arrays, in tuples.
    """

    name: str
    ours: Callable[..., Any]
    jax: Callable[..., Any] | None
    torch: Callable[..., Any] | None
    arguments: tuple[Any, ...]


def loss_of(xp: Any) -> Callable[..., Any]:
    """The error of a network with one hidden layer on one sample."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        w, b, v, c = p
        return xp.sum(((xp.tanh(x @ w + b) @ v + c) - y) ** 2)

    return loss


def rosenbrock(xp: Any) -> Callable[..., Any]:
    return lambda x: xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def runge_kutta(f: Callable[[Any], Any], y: Any, h: Any) -> Any:
    a = f(y)
    b = f(y + h / 2 * a)
    c = f(y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c))


def decay(xp: Any, while_loop: Callable[..., Any]) -> Callable[..., Any]:
    """A stiff equation up to time 1 in steps that its rate decides: lanes take from a few to hundreds of them."""

    def solve(rate: Any) -> Any:
        def step(state: Any) -> Any:
            t, y = state
            h = xp.minimum(0.1 / (rate * (1 + xp.abs(y))), 1 - t + 1e-9)
            return t + h, runge_kutta(lambda y: xp.sin(y) - rate * y, y, h)

        return while_loop(lambda state: state[0] < 1, step, (0.0, 1.0))[1]

    return solve


def counted(xp: Any, while_loop: Callable[..., Any]) -> Callable[..., Any]:
    """As many steps as a lane is told."""

    def solve(n: Any) -> Any:
        step = lambda c: (c[0] + 1, 0.5 * xp.sin(c[1]) + 0.25 * c[1] + 1)
        return while_loop(lambda c: c[0] < n, step, (0, 0.5))[1]

    return solve


def sliced(xp: Any) -> Callable[..., Any]:
    """Blocks of a vector, as networks with symmetries keep them, in products."""

    def loss(x: Any) -> Any:
        total = 0.0
        for k in range(231):
            block = xp.reshape(x[400 * k : 400 * k + 400], (20, 20))
            total = total + xp.sum(block @ block)
        return total

    return loss


def network(inputs: int, hidden: int) -> tuple[np.ndarray, ...]:
    shapes = ((inputs, hidden), (hidden,), (hidden, 1), (1,))
    return tuple(random.normal(size=s) / math.sqrt(s[0]) for s in shapes)


def rows() -> list[Row]:
    """All comparisons."""
    p, x, y = network(32, 64), random.normal(size=(128, 32)), random.normal(size=128)
    direction = network(32, 64)
    a, b = random.normal(size=(1000, 4, 4)) + 4 * np.eye(4), random.normal(size=(1000, 4))
    small, large = random.normal(size=(20, 20)), random.normal(size=(200, 200)) / 14
    over = (None, 0, 0)

    def total(xp: Any) -> Callable[..., Any]:
        return lambda p, x, y: xp.sum((xp.tanh(x @ p[0] + p[1]) @ p[2] + p[3] - y[:, None]) ** 2)

    def layer(xp: Any) -> Callable[..., Any]:
        return lambda x, m: xp.tanh(m @ xp.sin(x))

    jgrad, tgrad = (jax.grad if jax else None), (torch.func.grad if torch else None)
    found = [
        Row(
            "gradient of an MLP, 128 inputs",
            tr.vmap(ad.grad(loss_of(tr), 1), over),
            jax and jax.vmap(jgrad(loss_of(jnp), 1), over),
            torch and torch.func.vmap(tgrad(loss_of(torch), 1), over),
            (p, x, y),
        ),
        Row(
            "per-sample gradients, 128 samples",
            tr.vmap(ad.grad(loss_of(tr)), over),
            jax and jax.vmap(jgrad(loss_of(jnp)), over),
            torch and torch.func.vmap(tgrad(loss_of(torch)), over),
            (p, x, y),
        ),
        Row(
            "1000 solves, 4x4",
            tr.vmap(tl.solve),
            jax and jax.vmap(jnp.linalg.solve),
            torch and torch.func.vmap(torch.linalg.solve),
            (a, b),
        ),
        *[
            Row(
                f"{name}, {len(m)} -> {len(m)}",
                ours(layer(tr)),
                jax and theirs(layer(jnp)),
                torch and other(layer(torch)),
                (random.normal(size=len(m)), m),
            )
            for m in (small, large)
            for name, ours, theirs, other in (
                ("jacfwd", ad.jacfwd, jax and jax.jacfwd, torch and torch.func.jacfwd),
                ("jacrev", ad.jacrev, jax and jax.jacrev, torch and torch.func.jacrev),
            )
        ],
        Row(
            "Hessian of Rosenbrock, 30 variables",
            ad.hessian(rosenbrock(tr)),
            jax and jax.hessian(rosenbrock(jnp)),
            torch and torch.func.hessian(rosenbrock(torch)),
            (random.normal(size=30),),
        ),
        Row(
            "gradient of 231 blocks of a vector",
            ad.grad(sliced(tr)),
            jax and jgrad(sliced(jnp)),
            torch and tgrad(sliced(torch)),
            (random.normal(size=231 * 400),),
        ),
        Row(
            "hvp of an MLP",
            lambda p, x, y, v: ad.jvp(lambda p: ad.grad(total(tr))(p, x, y), (p,), (v,))[1],
            jax and (lambda p, x, y, v: jax.jvp(lambda p: jgrad(total(jnp))(p, x, y), (p,), (v,))[1]),
            torch and (lambda p, x, y, v: torch.func.jvp(lambda p: tgrad(total(torch))(p, x, y), (p,), (v,))[1]),
            (p, x, y, direction),
        ),
        Row(
            "ODE with uneven steps, 200 lanes",
            tr.vmap(decay(tr, tr.while_loop)),
            jax and jax.vmap(decay(jnp, jax.lax.while_loop)),
            None,
            (random.uniform(0.5, 20, 200),),
        ),
        Row(
            "10000 lanes of 1 to 2000 steps",
            tr.vmap(counted(tr, tr.while_loop)),
            jax and jax.vmap(counted(jnp, jax.lax.while_loop)),
            None,
            (random.integers(1, 2000, 10000),),
        ),
    ]
    return [row for row in found if chosen.only in row.name]


def calls_of(row: Row) -> dict[str, Callable[[], Any]]:
    """The contestants of a row, after a look at whether they agree."""
    given = mapped(tr.asarray, row.arguments)
    compiled = tr.compile(row.ours)
    found: dict[str, Callable[[], Any]] = {"tenferro": lambda: compiled(*given), "eager": lambda: row.ours(*given)}
    if row.jax and "jax" not in chosen.without:
        theirs, jitted = mapped(jnp.asarray, row.arguments), jax.jit(row.jax)
        found["jax.jit"] = lambda: jax.block_until_ready(jitted(*theirs))
    if row.torch and "torch" not in chosen.without:
        tensors = mapped(torch.as_tensor, row.arguments)
        found["torch.func"] = lambda: row.torch(*tensors)
    wanted = leaves(found["eager"]())
    for name, call in found.items():
        for one, other in zip(leaves(call()), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9, err_msg=f"{row.name}: {name}")
    return found


def measure(row: Row) -> dict[str, float]:
    calls = calls_of(row)
    for name in calls:
        if name != "eager":
            warm(calls[name])
    return medians(calls, 3 if chosen.quick else chosen.rounds)


def uneven() -> None:
    """What lanes of uneven length cost, against one lane with the sum of their steps."""
    counts = random.integers(1, 2000, 10000)
    one = counted(tr, tr.while_loop)
    lanes, single = tr.compile(tr.vmap(one)), tr.compile(one)
    every, total = tr.asarray(counts), tr.asarray(int(counts.sum()))
    calls = {"lanes": lambda: lanes(every), "single": lambda: single(total)}
    for call in calls.values():
        warm(call)
    t = medians(calls, 3 if chosen.quick else chosen.rounds)
    print(f"10000 uneven lanes over one lane with the sum of their steps: {t['lanes'] / t['single']:.3f}")


def main() -> None:
    figures = {}
    print(f"{'row':38}{'compiled':>11}{'jax.jit':>11}{'ratio':>7}{'eager':>12}{'torch.func':>12}{'ratio':>7}   us")
    for row in rows():
        t = figures[row.name] = measure(row)
        against = t.get("jax.jit", math.nan), t.get("torch.func", math.nan)
        print(
            f"{row.name:38}{t['tenferro'] * 1e6:11.1f}{against[0] * 1e6:11.1f}{against[0] / t['tenferro']:7.2f}"
            f"{t['eager'] * 1e6:12.1f}{against[1] * 1e6:12.1f}{against[1] / t['eager']:7.2f}",
            flush=True,
        )
    for name, ours, theirs in (("jax.jit", "tenferro", "jax.jit"), ("torch.func", "eager", "torch.func")):
        ratios = [t[theirs] / t[ours] for t in figures.values() if theirs in t]
        if ratios:
            print(f"geometric mean against {name}: {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    if not chosen.only:
        uneven()
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
