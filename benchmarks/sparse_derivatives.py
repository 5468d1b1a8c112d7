"""Sparse Jacobians and Hessians beside JAX with colors by hand, one core.

    python3 dev run benchmarks/sparse_derivatives.py [--only TEXT] [--rounds N]

JAX has no sparse derivatives: its contestant is what its users write, `jit` of `vmap` of `jvp` over seeds that somebody
colored, and a NumPy gather. It is given our pattern and our colors, so its `first` holds no time for them, ours does.
`dense` is `jax.hessian` or `jax.jacfwd`, where the matrix fits into memory. Results are compared before anything is
timed; then the contestants take turns, and the table shows medians in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from contestants import limit

DENSE_MAX = 10_000
"""Number of variables up to which the dense matrix is computed, too."""


class Row(NamedTuple):
    """A function of an array, written with the functions of a module; `second` asks for the Hessian."""

    name: str
    f: Callable[[Any, Any], Any]
    shape: tuple[int, ...]
    second: bool


def rosenbrock(m: Any, x: Any) -> Any:
    return m.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def energy(m: Any, u: Any) -> Any:
    """A grid of nonlinear springs."""
    return m.sum((u[1:] - u[:-1]) ** 4) + m.sum((u[:, 1:] - u[:, :-1]) ** 4) + m.sum(m.cos(u))


def wave(m: Any, x: Any) -> Any:
    """A ring of oscillators: each value depends on three neighbors."""
    return m.roll(x, 1) - 2 * x + m.roll(x, -1) + m.sin(x)


def tridiagonal(m: Any, x: Any) -> Any:
    return x[:-2] * x[1:-1] * m.sin(x[2:])


ROWS = [
    Row("Hessian, Rosenbrock, 1e3", rosenbrock, (1_000,), True),
    Row("Hessian, Rosenbrock, 1e4", rosenbrock, (10_000,), True),
    Row("Hessian, Rosenbrock, 1e6", rosenbrock, (1_000_000,), True),
    Row("Hessian, grid, 1e4", energy, (100, 100), True),
    Row("Jacobian, ring, 1e4", wave, (10_000,), False),
    Row("Jacobian, tridiagonal, 1e6", tridiagonal, (1_000_000,), False),
]


def contestants(row: Row, x: Any) -> tuple[dict[str, Callable[[], Any]], float, tuple[int, ...]]:
    """Calls by name, seconds of our first call, and the compression."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from scipy.sparse import csr_array

    import tenferro_runtime as tr
    from tenferro_ad import sparse_hessian, sparse_jacobian
    from tenferro_ad.sparse._coloring import color_columns, row_numbers
    from tenferro_ad.sparse._star import color_symmetric, positions

    jax.config.update("jax_enable_x64", True)
    start = time.perf_counter()
    make = sparse_hessian if row.second else sparse_jacobian
    ours = make(lambda u: row.f(tr, u))
    tensor = tr.asarray(x)
    pattern = ours(tensor)
    first = time.perf_counter() - start

    mask = csr_array((np.ones(pattern.nnz, bool), pattern.indices, pattern.indptr), shape=pattern.shape)
    rows, columns = row_numbers(mask), mask.indices
    if row.second:
        coloring = color_symmetric(mask, [row.shape])
        turned = positions(mask, coloring)
        rows, columns = np.where(turned, columns, rows), np.where(turned, rows, columns)
    else:
        coloring = color_columns(mask, [row.shape])
    colors, number = coloring
    seeds = jnp.asarray((colors == np.arange(number)[:, None]).astype(float).reshape(number, *row.shape))
    given, g = jnp.asarray(x), lambda u: row.f(jnp, u)
    g = jax.grad(g) if row.second else g
    push = jax.jit(lambda u, s: jax.vmap(lambda t: jax.jvp(g, (u,), (t,))[1])(s).reshape(number, -1))
    place = colors[columns].astype(np.intp) * pattern.shape[0] + rows

    def by_hand() -> Any:
        data = np.asarray(push(given, seeds)).reshape(-1).take(place)
        return csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)

    calls: dict[str, Callable[[], Any]] = {"ours": lambda: ours(tensor), "jax": by_hand}
    if x.size <= DENSE_MAX:
        whole = jax.jit(jax.hessian(lambda u: row.f(jnp, u)) if row.second else jax.jacfwd(g))
        calls["dense"] = lambda: whole(given).block_until_ready()
    return calls, first, tuple(ours.compression(tensor))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="rows whose name has this text")
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    limit(1)
    import numpy as np

    print(f"{'':28}{'products':>9}{'entries':>9}{'first':>9}{'ours':>9}{'jax':>9}{'jax/ours':>9}{'dense':>9}")
    for row in ROWS:
        if given.only not in row.name:
            continue
        x = np.random.default_rng(0).normal(size=row.shape)
        calls, first, (forward, reverse, entries) = contestants(row, x)
        difference = abs(calls["ours"]() - calls["jax"]()).max()
        assert difference < 1e-9, f"{row.name}: results differ by {difference}"
        time.sleep(1.0)  # native code is compiled in the background
        dense = calls.pop("dense", None)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(given.rounds + 2):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                if turn >= 2:
                    times[name].append((time.perf_counter() - start) * 1e3)
        found = {name: statistics.median(t) for name, t in times.items()}
        whole = f"{'-':>9}"
        if dense is not None:
            dense()
            start = time.perf_counter()
            dense()
            whole = f"{(time.perf_counter() - start) * 1e3:9.2f}"
        print(
            f"{row.name:28}{forward + reverse:9d}{entries:9d}{first * 1e3:9.0f}{found['ours']:9.3f}{found['jax']:9.3f}"
            f"{found['jax'] / found['ours']:9.2f}{whole}"
        )


if __name__ == "__main__":
    main()
