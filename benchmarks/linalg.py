"""Linear algebra beside JAX and PyTorch on one core: values, jvp, vjp, value and gradient, from 2x2 to 512x512.

A row is one function of one family at one size. Compiled programs stand against the best of jax.jit and PyTorch,
eager ones against eager PyTorch; all in turns in one run, medians. Functions that depend on a choice of bases or signs
are timed through what does not: squares of vectors. Results are compared before anything is timed. A function that
a library does not have is left out.

    python benchmarks/linalg.py [--only TEXT] [--sizes 32 128] [--stacks 100x3] [--kinds value jvp] [--rounds N]
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import contestants

KINDS = ("value", "jvp", "vjp", "grad")
SIZES = (2, 4, 8, 32, 128, 512)
STACKS = ("100x3", "10000x3", "100x8")

options = contestants.parser(__doc__)
options.add_argument("--json", help="file for the figures")
options.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
options.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="one matrix of each of these sizes")
options.add_argument("--stacks", nargs="*", default=STACKS, help="stacks of small matrices, as 100x3")
options.add_argument("--functions", nargs="*", default=[], help="functions to time; all by default")
chosen = options.parse_args()
contestants.prepare(chosen)

import numpy as np  # noqa: E402 - the number of threads is set before
from turns import leaves, medians  # noqa: E402

import tenferro_ad as ad  # noqa: E402
import tenferro_linalg as tl  # noqa: E402
import tenferro_runtime as tr  # noqa: E402
from tenferro_runtime.running.fusion import wait  # noqa: E402

jax, torch = contestants.optional("jax"), contestants.optional("torch")
jnp = jax.numpy if jax else None
TOLERANCE = {"float32": 2e-2, "float64": 1e-6}
NAMES = ("compiled", "jax.jit", "eager", "torch")

Function = Callable[..., Any]


class Family(NamedTuple):
    """One function in three libraries.

    Attributes:
        ours: with tenferro; what is returned depends on no choice of a basis.
        jax: with JAX.
        torch: with PyTorch.
        positive: whether matrices are symmetric and positive definite.
        right: whether a right side is a second argument.
    """

    ours: Function
    jax: Function | None
    torch: Function | None
    positive: bool = False
    right: bool = False


def squares(xp: Any) -> Function:
    """Values and squared moduli of vectors."""
    return lambda *parts: tuple(xp.real(p * xp.conj(p)) for p in parts)


def spectrum(xp: Any, f: Function) -> Function:
    def call(x: Any) -> Any:
        return squares(xp)(*f(x))

    return call


def logdet_by_cholesky(xp: Any, linalg: Any) -> Function:
    """Cholesky factor and log-determinant of one matrix, as a Gaussian density has them."""
    return lambda x: (linalg.cholesky(x), linalg.slogdet(x)[1])


def ours_or_none(name: str) -> Any:
    return getattr(tl, name, None)


def families() -> dict[str, Family]:
    """All functions that exist here."""
    j, t = (jnp.linalg if jax else None), (torch.linalg if torch else None)
    reduced = {"full_matrices": False}
    found = {
        "svd": Family(
            spectrum(tr, lambda x: tl.svd(x, **reduced)),
            jax and spectrum(jnp, lambda x: j.svd(x, **reduced)),
            torch and spectrum(torch, lambda x: t.svd(x, **reduced)),
        ),
        "svdvals": Family(tl.svdvals, jax and (lambda x: j.svd(x, compute_uv=False)), torch and t.svdvals),
        "eigh": Family(
            spectrum(tr, tl.eigh), jax and spectrum(jnp, j.eigh), torch and spectrum(torch, t.eigh), positive=True
        ),
        "eig": Family(spectrum(tr, tl.eig), jax and spectrum(jnp, j.eig), torch and spectrum(torch, t.eig)),
        "qr": Family(spectrum(tr, tl.qr), jax and spectrum(jnp, j.qr), torch and spectrum(torch, t.qr)),
        "solve": Family(tl.solve, jax and j.solve, torch and t.solve, right=True),
        "inv": Family(tl.inv, jax and j.inv, torch and t.inv),
        "cholesky+logdet": Family(
            logdet_by_cholesky(tr, tl),
            jax and logdet_by_cholesky(jnp, j),
            torch and logdet_by_cholesky(torch, t),
            positive=True,
        ),
    }
    if ours_or_none("lu"):
        found["lu"] = Family(
            lambda x: tuple(tl.lu(x))[1:],
            jax and (lambda x: jax.scipy.linalg.lu(x)[1:]),
            torch and (lambda x: tuple(t.lu(x))[1:]),
        )
    if ours_or_none("lstsq"):
        found["lstsq"] = Family(
            lambda x, b: tl.lstsq(x, b)[0],
            jax and (lambda x, b: j.lstsq(x, b)[0]),
            torch and (lambda x, b: t.lstsq(x, b)[0]),
            right=True,
        )
    if ours_or_none("expm"):
        found["expm"] = Family(tl.expm, jax and jax.scipy.linalg.expm, torch and t.matrix_exp)
    wanted = chosen.functions or found
    return {name: f for name, f in found.items() if name in wanted}


class Row(NamedTuple):
    """One comparison: its name, function, kind, and the NumPy arguments."""

    name: str
    family: Family
    kind: str
    arguments: tuple[np.ndarray, ...]


def rows() -> Iterator[Row]:
    """All comparisons that were requested."""
    stacks = [tuple(map(int, s.split("x"))) for s in chosen.stacks]
    for name, family in families().items():
        for shape in [(n, n) for n in chosen.sizes] + [(count, n, n) for count, n in stacks]:
            for kind in chosen.kinds:
                label = f"{name} {kind} {'x'.join(map(str, shape))}"
                if chosen.only in label and not any(text in label for text in chosen.skip):
                    yield Row(label, family, kind, arguments(family, shape))


def arguments(family: Family, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Well-conditioned matrices, and a right side where one is needed."""
    rng, n = np.random.default_rng(0), shape[-1]
    x = rng.normal(size=shape) / math.sqrt(n)
    x = x @ np.swapaxes(x, -1, -2) + np.eye(n) if family.positive else x + 2 * np.eye(n)
    made = (x, rng.normal(size=(*shape[:-1], 3))) if family.right else (x,)
    return tuple(np.asarray(v, chosen.dtype) for v in made)


def directions(arrays: Any, seed: int) -> tuple[np.ndarray, ...]:
    """Arrays like the given ones."""
    rng = np.random.default_rng(seed)
    return tuple(np.asarray(rng.normal(size=np.shape(a)), a.dtype) for a in arrays)


def outputs(family: Family, given: Any) -> list[np.ndarray]:
    return leaves(family.ours(*[tr.asarray(x) for x in given]))


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def weighted(f: Function, weights: Any, total: Function) -> Function:
    """The loss: results times weights, summed."""

    def loss(*xs: Any) -> Any:
        return sum(total(w * y) for w, y in zip(weights, as_tuple(f(*xs)), strict=True))

    return loss


def ours(row: Row, tangents: Any, weights: Any) -> tuple[Function, Function]:
    """What is timed, with the arguments, compiled and eager."""
    f, argnums = row.family.ours, tuple(range(len(row.arguments)))
    xs, ds, ws = (tuple(map(tr.asarray, v)) for v in (row.arguments, tangents, weights))
    given = {"value": (xs,), "jvp": (xs, ds), "vjp": (xs, ws), "grad": (xs, ws)}[row.kind]

    def pulled(xs: Any, ws: Any) -> Any:
        out, pull = ad.vjp(lambda *xs: as_tuple(f(*xs)), *xs)
        return out, pull(ws)

    run: Function = {
        "value": lambda xs: as_tuple(f(*xs)),
        "jvp": lambda xs, ds: ad.jvp(lambda *xs: as_tuple(f(*xs)), xs, ds),
        "vjp": pulled,
        "grad": lambda xs, ws: ad.value_and_grad(weighted(f, ws, tr.sum), argnums)(*xs),
    }[row.kind]
    compiled = tr.compile(run)
    return lambda: compiled(*given), lambda: run(*given)


def with_jax(row: Row, tangents: Any, weights: Any) -> Function:
    f, argnums = row.family.jax, tuple(range(len(row.arguments)))
    xs, ds, ws = (tuple(map(jnp.asarray, v)) for v in (row.arguments, tangents, weights))
    given = {"value": (xs,), "jvp": (xs, ds), "vjp": (xs, ws), "grad": (xs, ws)}[row.kind]

    def pulled(xs: Any, ws: Any) -> Any:
        out, pull = jax.vjp(lambda *xs: as_tuple(f(*xs)), *xs)
        return out, pull(ws)

    run: Function = {
        "value": lambda xs: as_tuple(f(*xs)),
        "jvp": lambda xs, ds: jax.jvp(lambda *xs: as_tuple(f(*xs)), xs, ds),
        "vjp": pulled,
        "grad": lambda xs, ws: jax.value_and_grad(weighted(f, ws, jnp.sum), argnums)(*xs),
    }[row.kind]
    jitted = jax.jit(run)
    return lambda: jax.block_until_ready(jitted(*given))


def with_torch(row: Row, tangents: Any, weights: Any) -> Function:
    """Forward mode by torch.func, reverse mode by the tape, which is the faster one."""
    f = row.family.torch
    xs, ds, ws = (tuple(map(torch.as_tensor, v)) for v in (row.arguments, tangents, weights))

    def pulled() -> Any:
        leaf = [x.detach().requires_grad_() for x in xs]
        out = as_tuple(f(*leaf))
        return out, torch.autograd.grad(out, leaf, ws)

    def loss() -> Any:
        leaf = [x.detach().requires_grad_() for x in xs]
        value = weighted(f, ws, torch.sum)(*leaf)
        return value, torch.autograd.grad(value, leaf)

    found: Function = {
        "value": lambda: as_tuple(f(*xs)),
        "jvp": lambda: torch.func.jvp(lambda *xs: as_tuple(f(*xs)), xs, ds),
        "vjp": pulled,
        "grad": loss,
    }[row.kind]
    return found


def arrays_of(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, (tuple, list)):
        return [x for t in tree for x in arrays_of(t)]
    return [tree.detach().numpy() if torch and isinstance(tree, torch.Tensor) else np.asarray(tree)]


def calls_of(row: Row) -> dict[str, Function]:
    """The contestants of a row that agree; those that cannot do it, or do not agree, are named and left out."""
    tangents = directions(row.arguments, 1)
    if row.family.positive:  # elsewhere a triangle of the tangent is read, or its symmetric part
        tangents = tuple(d + np.swapaxes(d, -1, -2) for d in tangents)
    weights = directions(outputs(row.family, row.arguments), 2)
    compiled, eager = ours(row, tangents, weights)
    found: dict[str, Function] = {"compiled": compiled, "eager": eager}
    wanted = arrays_of(eager())
    for name, library, make in (("jax.jit", row.family.jax, with_jax), ("torch", row.family.torch, with_torch)):
        if library and name.split(".")[0] not in chosen.without:
            found[name] = make(row, tangents, weights)
    for name, call in list(found.items()):
        try:
            got = arrays_of(call())
            for one, other in zip(got, wanted, strict=True):
                scale = max(1.0, float(np.abs(other).max(initial=0)))
                np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[chosen.dtype] * scale)
        except Exception as error:
            if name in ("compiled", "eager"):
                raise
            print(f"    {row.name}: {name}: {type(error).__name__}: {' '.join(str(error).split())[:110]}", flush=True)
            if not isinstance(error, AssertionError):
                del found[name]
    return found


def warm(call: Function) -> None:
    """Call until native code has come, which would be made beside the others' turns."""
    for _ in range(4):
        call()
        wait()


def measure(row: Row) -> dict[str, float]:
    calls = calls_of(row)
    warm(calls["compiled"])
    return medians(calls, 3 if chosen.quick else chosen.rounds)


def ratio(t: dict[str, float], ours: str, peers: tuple[str, ...]) -> float:
    """The best peer's time over ours."""
    return min([t[p] for p in peers if p in t], default=math.nan) / t[ours]


def summary(figures: dict[str, dict[str, float]]) -> None:
    for ours, peers in (("compiled", ("jax.jit", "torch")), ("eager", ("torch",))):
        ratios = {name: r for name, t in figures.items() if not math.isnan(r := ratio(t, ours, peers))}
        if ratios:
            least = min(ratios, key=ratios.__getitem__)
            behind = sum(r < 0.95 for r in ratios.values())
            mean = statistics.geometric_mean(ratios.values())
            print(
                f"{ours} against {' and '.join(peers)}: {len(ratios)} rows, geometric mean {mean:.2f}, "
                f"least {ratios[least]:.2f} ({least}), behind by more than 5 %: {behind}"
            )


def main() -> None:
    figures: dict[str, dict[str, float]] = {}
    print(f"{'row':34}{''.join(f'{n:>12}' for n in NAMES)}   us{'compiled':>12}{'eager':>8}   (times the best peer)")
    for row in rows():
        t = figures[row.name] = measure(row)
        times = "".join(f"{t[n] * 1e6:12.1f}" if n in t else f"{'-':>12}" for n in NAMES)
        best = ratio(t, "compiled", ("jax.jit", "torch")), ratio(t, "eager", ("torch",))
        print(f"{row.name:34}{times}     {best[0]:12.2f}{best[1]:8.2f}", flush=True)
    summary(figures)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
