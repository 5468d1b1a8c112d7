"""Matrices with equal or zero values beside distinct ones: decompositions and gradients, on one core.

Such spectra are where tensor networks begin: product states, symmetric blocks, converged environments. A row is one
function of one matrix; NumPy, jax.jit, eager and compiled calls take turns in one run. The last column is compiled
over the same function of distinct values: what the treatment of equal ones costs, less what LAPACK saves.

    python benchmarks/equal_values.py [--only TEXT] [--rounds N] [--without jax]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import contestants

options = contestants.parser(__doc__)
chosen = options.parse_args()
contestants.prepare(chosen)

import numpy as np  # noqa: E402 - the number of threads is set before
from turns import medians, warm  # noqa: E402

import tenferro_ad as ad  # noqa: E402
import tenferro_linalg as tl  # noqa: E402
import tenferro_runtime as tr  # noqa: E402

jax = contestants.optional("jax")
jnp = jax.numpy if jax else None
rng = np.random.default_rng(0)

Function = Callable[..., Any]


def hermitian(n: int, values: Any) -> np.ndarray:
    """A symmetric matrix with these eigenvalues and zeros."""
    q = np.linalg.qr(rng.standard_normal((n, n)))[0][:, : len(values)]
    return (q * values) @ q.T


def of_rank(rank: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    """Random matrices of a rank."""

    def normal(*shape: int) -> np.ndarray:
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x

    *stack, m, n = shape
    return normal(*stack, m, rank) @ normal(*stack, rank, n)


SPECTRA = {"distinct": np.arange(1.0, 65), "pairs": np.repeat(np.arange(1.0, 33), 2), "rank 4": np.arange(1.0, 5)}
EIGH = {name: hermitian(64, values) for name, values in SPECTRA.items()}
SVD = {f"rank {r}": of_rank(r, 9, 32, 32, dtype="complex128") for r in (32, 2, 1)}
SQUARE = {f"rank {r}": of_rank(r, 32, 32) for r in (32, 4)}
OBLONG = {"6x8": rng.standard_normal((6, 8)), "8x6, two zeros": rng.standard_normal((8, 6))}


def loss(values: Function, power: int, total: Function) -> Function:
    return lambda x: total(values(x) ** power)


def of_gram(values: Function) -> Function:
    return lambda x: values(x @ x.T)


def functions() -> dict[str, tuple[dict[str, np.ndarray], Function, Function | None, Function | None]]:
    """Each function: its matrices, ours, JAX's and NumPy's."""
    j = jnp.linalg if jax else None
    values = lambda x: j.svd(x, compute_uv=False)
    ours = {
        "value and gradient of sum(eigvalsh^3)": (EIGH, tl.eigvalsh, j and j.eigvalsh, 3),
        "value and gradient of sum(svdvals^2)": (SQUARE, tl.svdvals, j and values, 2),
        "value and gradient of sum(svdvals(x x^T)^2)": (OBLONG, of_gram(tl.svdvals), j and of_gram(values), 2),
    }
    gradients = {
        name: (
            matrices,
            ad.value_and_grad(loss(f, power, tr.sum)),
            jax and jax.value_and_grad(loss(g, power, jnp.sum)),
            None,
        )
        for name, (matrices, f, g, power) in ours.items()
    }
    thin = {"full_matrices": False}
    return {
        "svd of 9 complex 32x32": (
            SVD,
            lambda x: tuple(tl.svd(x, **thin)),
            j and (lambda x: j.svd(x, **thin)),
            lambda x: np.linalg.svd(x, **thin),
        ),
        "eigh of 64x64": (EIGH, lambda x: tuple(tl.eigh(x)), j and j.eigh, np.linalg.eigh),
        **gradients,
    }


def calls_of(x: np.ndarray, ours: Function, jaxs: Function | None, numpys: Function | None) -> dict[str, Function]:
    compiled, given = tr.compile(ours), tr.asarray(x)
    found: dict[str, Function] = {"compiled": lambda: compiled(given), "eager": lambda: ours(given)}
    if jaxs and "jax" not in chosen.without:
        jitted, there = jax.jit(jaxs), jnp.asarray(x)
        found["jax.jit"] = lambda: jax.block_until_ready(jitted(there))
    if numpys:
        found["numpy"] = lambda: numpys(x)
    return found


def main() -> None:
    names = ("numpy", "jax.jit", "eager", "compiled")
    print(f"{'milliseconds':60s}" + "".join(f"{name:>10s}" for name in names) + f"{'of distinct':>13s}")
    for what, (matrices, *contenders) in functions().items():
        distinct: float | None = None
        for name, x in matrices.items():
            label = f"{what}, {name}"
            if chosen.only not in label or any(text in label for text in chosen.skip):
                continue
            calls = calls_of(x, *contenders)
            for call in calls.values():
                warm(call)
            times = medians(calls, chosen.rounds)
            distinct = distinct or times["compiled"]
            shown = "".join(f"{times[n] * 1e3:10.4f}" if n in times else f"{'':10s}" for n in names)
            print(f"{label:60s}{shown}{times['compiled'] / distinct:13.2f}", flush=True)


if __name__ == "__main__":
    main()
