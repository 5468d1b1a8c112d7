"""Eager functions of the namespace beside NumPy, JAX and PyTorch: rows by expression and number of elements.

    python3 dev bench namespace [--group indexing ...] [--only TEXT ...] [--size 10 10000 1000000] [--seconds S]

Every library that can be imported takes part; NumPy always. A row is one expression, the same for all where they agree
on names. The contestants run in turns, round after round; the table shows the median of NumPy's processor time for one
call, and of the ratios of each contestant to NumPy in the same round (below 1 it is faster), then the geometric means
by size. `--over R` lists only rows where tenferro takes more than R times NumPy's time.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np  # noqa: E402 - after the thread settings

import tenferro_runtime as tr  # noqa: E402

Call = Callable[[], Any]
SIZES = (10, 10_000, 1_000_000)
BATCH = 0.0004
"""Seconds that one contestant runs in one round: short, so that most rounds fall between two time slices of others."""
ROUNDS = 60
"""Most rounds of a row."""


@dataclass(frozen=True)
class Row:
    """An expression of `xp` and the operands of `operands`; other words for libraries that need them.

    An empty expression leaves the library out.
    """

    text: str
    numpy: str | None = None
    torch: str | None = None
    jax: str | None = None

    def of(self, library: str) -> str:
        """The expression that a library evaluates."""
        given = getattr(self, library, None)
        return self.text if given is None else given


GROUPS: dict[str, dict[str, Row]] = {
    "indexing": {
        "x[3]": Row("x[3]"),
        "x[-1]": Row("x[-1]"),
        "x[1:-1]": Row("x[1:-1]"),
        "x[::2]": Row("x[::2]"),
        "x[::-1]": Row("x[::-1]", torch=""),
        "x[...]": Row("x[...]"),
        "x[..., None]": Row("x[..., None]"),
        "m[1]": Row("m[1]"),
        "m[1, 2]": Row("m[1, 2]"),
        "m[:, 1]": Row("m[:, 1]"),
        "m[1:, ::2]": Row("m[1:, ::2]"),
        "x[x0]": Row("x[x0]"),
        "x[idx]": Row("x[idx]"),
        "x[idx32]": Row("x[idx32]"),
        "x[few]": Row("x[few]"),
        "x[list]": Row("x[[0, 2, 1]]"),
        "m[rows]": Row("m[rows]"),
        "m[rows, cols]": Row("m[rows, cols]"),
        "m[:, cols]": Row("m[:, cols]"),
        "m[1, cols]": Row("m[1, cols]"),
        "m[rows, 1:]": Row("m[rows, 1:]"),
        "m[rows, None]": Row("m[rows, None]"),
        "m[outer]": Row("m[rows[:, None], cols]"),
        "x[mask]": Row("x[mask]"),
        "m[masks]": Row("m[masks]"),
        "m[:, mask1]": Row("m[:, mask1]"),
        "m[mask0, 1]": Row("m[mask0, 1]"),
        "take": Row("xp.take(x, idx)"),
        "take axis 0": Row("xp.take(m, rows, axis=0)", torch="xp.index_select(m, 0, rows)"),
        "take axis 1": Row("xp.take(m, cols, axis=1)", torch="xp.index_select(m, 1, cols)"),
        "take_along_axis": Row("xp.take_along_axis(m, ranks, axis=1)", torch="xp.take_along_dim(m, ranks, dim=1)"),
        "where": Row("xp.where(mask, x, y)"),
        "where 0": Row("xp.where(mask, x, 0.0)"),
        "nonzero": Row("xp.nonzero(x)", torch="xp.nonzero(x, as_tuple=True)"),
        "nonzero mask": Row("xp.nonzero(mask)", torch="xp.nonzero(mask, as_tuple=True)"),
        "nonzero 2-d": Row("xp.nonzero(masks)", torch="xp.nonzero(masks, as_tuple=True)"),
        "count_nonzero": Row("xp.count_nonzero(x)"),
    },
    "joining": {
        "concat": Row("xp.concat((x, y))"),
        "concat axis 1": Row("xp.concat((m, m), axis=1)"),
        "concat 10": Row("xp.concat([x] * 10)"),
        "stack": Row("xp.stack((x, y))"),
        "stack last": Row("xp.stack((x, y), axis=-1)"),
        "unstack": Row("xp.unstack(pairs)", torch="xp.unbind(pairs)"),
        "tile": Row("xp.tile(x, (2,))"),
        "tile 2-d": Row("xp.tile(m, (2, 2))"),
        "repeat": Row("xp.repeat(x, 2)", torch="xp.repeat_interleave(x, 2)"),
        "repeat axis 1": Row("xp.repeat(m, 3, axis=1)", torch="xp.repeat_interleave(m, 3, dim=1)"),
        "repeat counts": Row("xp.repeat(x, counts)", torch="xp.repeat_interleave(x, counts)", jax=""),
        "roll": Row("xp.roll(x, 1)"),
        "roll axis": Row("xp.roll(m, 1, axis=1)", torch="xp.roll(m, 1, 1)"),
        "roll 2-d": Row("xp.roll(m, (1, 1), axis=(0, 1))", torch="xp.roll(m, (1, 1), (0, 1))"),
        "flip": Row("xp.flip(x)", torch="xp.flip(x, (0,))"),
        "flip 2-d": Row("xp.flip(m)", torch="xp.flip(m, (0, 1))"),
        "pad": Row("xp.pad(x, 2)", torch="xp.nn.functional.pad(x, (2, 2))"),
        "pad 2-d": Row("xp.pad(m, ((1, 1), (2, 0)))", torch="xp.nn.functional.pad(m, (2, 0, 1, 1))"),
        "meshgrid": Row("xp.meshgrid(m[0], m[:, 0])", torch="xp.meshgrid(m[0], m[:, 0], indexing='xy')"),
        "tril": Row("xp.tril(m)"),
        "triu": Row("xp.triu(m, k=1)", torch="xp.triu(m, 1)"),
    },
    "layout": {
        "reshape": Row("xp.reshape(x, (2, -1))"),
        "x.reshape": Row("x.reshape(2, -1)"),
        "reshape of m.T": Row("xp.reshape(m.T, (-1,))"),
        "permute_dims": Row("xp.permute_dims(m, (1, 0))", torch="xp.permute(m, (1, 0))"),
        "matrix_transpose": Row("xp.matrix_transpose(m)", torch="m.mT"),
        "m.T": Row("m.T"),
        "m.T copy": Row("m.T.copy()", torch="m.T.contiguous()"),
        "moveaxis": Row("xp.moveaxis(m, 0, 1)"),
        "expand_dims": Row("xp.expand_dims(x, axis=0)", torch="xp.unsqueeze(x, 0)"),
        "squeeze": Row("xp.squeeze(column, axis=1)", torch="xp.squeeze(column, 1)"),
        "broadcast_to": Row("xp.broadcast_to(x, (3, x.shape[0]))"),
        "broadcast_arrays": Row("xp.broadcast_arrays(x, column)", torch="xp.broadcast_tensors(x, column)"),
        "astype": Row("xp.astype(x, xp.float32)", torch="x.to(xp.float32)"),
        "copy": Row("x.copy()", torch="x.clone()"),
        "asarray copy": Row("xp.asarray(x, copy=True)", torch="x.clone()"),
        "swapaxes": Row("xp.swapaxes(m, 0, 1)"),
        "ravel": Row("xp.ravel(m)"),
        "split": Row("xp.split(x, 2)", torch="xp.chunk(x, 2)"),
    },
    "sorting": {
        "sort": Row("xp.sort(x)", torch="xp.sort(x)[0]"),
        "sort descending": Row(
            "xp.sort(x, descending=True)", numpy="xp.sort(x)[::-1].copy()", torch="xp.sort(x, descending=True)[0]"
        ),
        "sort axis 0": Row("xp.sort(m, axis=0)", torch="xp.sort(m, 0)[0]"),
        "sort digits": Row("xp.sort(digits)", torch="xp.sort(digits)[0]"),
        "argsort": Row("xp.argsort(x)"),
        "argsort stable": Row("xp.argsort(x, stable=True)"),
        "argsort digits": Row("xp.argsort(digits)"),
        "argsort axis 0": Row("xp.argsort(m, axis=0)", torch="xp.argsort(m, 0)"),
        "searchsorted": Row("xp.searchsorted(ascending, y)"),
        "searchsorted ascending": Row("xp.searchsorted(ascending, ascending)"),
        "unique_values": Row("xp.unique_values(digits)", torch="xp.unique(digits)"),
        "unique_counts": Row("xp.unique_counts(digits)", torch="xp.unique(digits, return_counts=True)"),
        "unique_inverse": Row("xp.unique_inverse(digits)", torch="xp.unique(digits, return_inverse=True)"),
        "unique_all": Row("xp.unique_all(digits)", torch=""),
        "unique floats": Row("xp.unique_values(x)", torch="xp.unique(x)"),
        "isin": Row("xp.isin(digits, few)"),
        "isin floats": Row("xp.isin(x, y)"),
        "cumulative_sum": Row("xp.cumulative_sum(x)", torch="xp.cumsum(x, 0)"),
        "cumulative_sum axis 0": Row("xp.cumulative_sum(m, axis=0)", torch="xp.cumsum(m, 0)"),
        "cumulative_sum from 0": Row("xp.cumulative_sum(x, include_initial=True)", torch=""),
        "cumulative_prod": Row("xp.cumulative_prod(x)", torch="xp.cumprod(x, 0)"),
        "diff": Row("xp.diff(x)"),
        "argmax": Row("xp.argmax(x)"),
        "argmax axis 0": Row("xp.argmax(m, axis=0)", torch="xp.argmax(m, 0)"),
        "argmax axis 1": Row("xp.argmax(m, axis=1)", torch="xp.argmax(m, 1)"),
        "clip": Row("xp.clip(x, -0.5, 0.5)"),
        "clip digits": Row("xp.clip(digits, 1, 5)"),
        "mean": Row("xp.mean(x)"),
        "std": Row("xp.std(x)", torch="xp.std(x, correction=0)"),
        "sum keepdims": Row("xp.sum(m, axis=1, keepdims=True)", torch="xp.sum(m, 1, True)"),
        "max axis 1": Row("xp.max(m, axis=1)", torch="xp.amax(m, 1)"),
        "var axis 0": Row("xp.var(m, axis=0)", torch="xp.var(m, 0, correction=0)"),
    },
    "calls": {
        "x + y": Row("x + y"),
        "x * 2.0": Row("x * 2.0"),
        "2.0 * x": Row("2.0 * x"),
        "-x": Row("-x"),
        "add(x, y)": Row("xp.add(x, y)"),
        "exp": Row("xp.exp(x)"),
        "tanh": Row("xp.tanh(x)"),
        "m @ x": Row("m @ m[0]", numpy="m @ m[0]"),
        "x ** 2": Row("x ** 2"),
        "vecdot": Row("xp.vecdot(x, y)", torch="xp.linalg.vecdot(x, y)"),
        "tensordot": Row("xp.tensordot(m, m, axes=2)", torch="xp.tensordot(m, m, 2)"),
        "x.sum()": Row("x.sum()"),
        "m.sum(axis=0)": Row("m.sum(axis=0)"),
    },
}
"""Rows by group and name."""

SIDES = {10: (2, 5)}


def operands(n: int) -> dict[str, np.ndarray]:
    """The operands of rows: `n` elements each, where the text says nothing else."""
    rng = np.random.default_rng(n)
    side = math.isqrt(n)
    r, c = SIDES.get(n, (side, n // side))
    x, m = rng.standard_normal(n), rng.standard_normal((r, c))
    return {
        "x": x,
        "y": rng.standard_normal(n),
        "x0": np.asarray(3),
        "column": x[:3, None].copy(),
        "pairs": rng.standard_normal((2, n)),
        "m": m,
        "idx": rng.integers(0, n, n),
        "idx32": rng.integers(0, n, n).astype(np.int32),
        "few": np.array([3, -1, 0]),
        "rows": rng.integers(0, r, r),
        "cols": rng.integers(0, c, r),
        "ranks": rng.integers(0, c, (r, c)),
        "mask": x > 0,
        "masks": m > 0,
        "mask0": rng.random(r) > 0.5,
        "mask1": rng.random(c) > 0.5,
        "ascending": np.sort(x),
        "digits": rng.integers(0, max(n // 10, 5), n),
        "counts": rng.integers(0, 3, n),
    }


def libraries(without: list[str]) -> dict[str, tuple[Any, Callable[[np.ndarray], Any], Callable[[Any], Any]]]:
    """By name: the namespace, how an array enters, and how a result is waited for."""
    found: dict[str, Any] = {"tenferro": (tr, tr.asarray, None), "numpy": (np, lambda a: a, None)}
    if "jax" not in without:
        try:
            import jax

            found["jax"] = (jax.numpy, jax.numpy.asarray, jax.block_until_ready)
        except ImportError:
            pass
    if "torch" not in without:
        try:
            import torch

            torch.set_num_threads(1)
            found["torch"] = (torch, torch.from_numpy, None)
        except ImportError:
            pass
    return {name: how for name, how in found.items() if name not in without}


def contestants(row: Row, given: dict[str, np.ndarray], known: dict[str, Any]) -> dict[str, Call]:
    """The calls of a row by library; those that cannot evaluate it are left out."""
    calls: dict[str, Call] = {}
    for name, (xp, enter, wait) in known.items():
        text = row.of(name)
        if not text:
            continue
        scope = {"xp": xp, "wait": wait}
        code = compile(f"lambda: wait({text})" if wait else f"lambda: {text}", f"<{name}>", "eval")
        used = compile(text, "", "eval").co_names
        scope.update({k: enter(v.copy()) for k, v in given.items() if k in used})
        call = eval(code, scope)
        try:
            call()
        except Exception as error:  # a contestant that cannot do a row is no reason to stop
            print(f"    {name}: {text}: {type(error).__name__}: {str(error)[:90]}")
        else:
            calls[name] = call
    return calls


def timed(call: Call, count: int) -> float:
    """Seconds of processor time of one call, the mean over `count`."""
    start = time.process_time_ns()
    for _ in range(count):
        call()
    return (time.process_time_ns() - start) / count * 1e-9


def measured(calls: dict[str, Call], seconds: float) -> dict[str, list[float]]:
    """Times by contestant, one for each round, in which all take their turn."""
    counts, end = {}, time.perf_counter() + seconds
    for name, call in calls.items():
        timed(call, 2)
        counts[name] = max(1, int(BATCH / max(timed(call, 2), 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for number in range(ROUNDS):
        if number >= 5 and time.perf_counter() > end:
            break
        for name, call in calls.items():
            times[name].append(timed(call, counts[name]))
    return times


def chosen_rows(groups: list[str], only: list[str]) -> Iterator[tuple[str, Row]]:
    """Rows of some groups whose names have one of the texts."""
    for group, rows in GROUPS.items():
        if not groups or group in groups:
            for name, row in rows.items():
                if not only or any(text in name for text in only):
                    yield name, row


def main(chosen: argparse.Namespace) -> None:
    """Print the table and the means."""
    known = libraries(chosen.without)
    peers = [name for name in known if name != "numpy"]
    ratios: dict[tuple[str, int], list[float]] = {}
    print(f"{'':18}{'elements':>9}{'numpy us':>12}{''.join(f'{p:>10}' for p in peers)}   quartiles of tenferro")
    for n in chosen.size:
        given = operands(n)
        for name, row in chosen_rows(chosen.group, chosen.only):
            times = measured(contestants(row, given, known), chosen.seconds)
            base, shown, spread, listed = times["numpy"], "", "", True
            for peer in peers:
                if peer not in times:
                    shown += f"{'-':>10}"
                    continue
                each = sorted(t / b for t, b in zip(times[peer], base, strict=True))
                ratio = statistics.median(each)
                ratios.setdefault((peer, n), []).append(ratio)
                shown += f"{ratio:10.2f}"
                if peer == "tenferro":
                    spread = f"{each[len(each) // 4]:10.2f} -{each[len(each) * 3 // 4]:6.2f}"
                    listed = ratio > chosen.over
            if listed:
                print(f"{name:18}{n:9}{statistics.median(base) * 1e6:12.2f}{shown}{spread}", flush=True)
    for n in chosen.size:
        means = [
            f"{peer} {math.exp(statistics.fmean(map(math.log, ratios[peer, n]))):.2f}"
            for peer in peers
            if (peer, n) in ratios
        ]
        slow = sum(r > 1.2 for r in ratios.get(("tenferro", n), []))
        print(f"geometric mean of ratios to NumPy, {n} elements: {', '.join(means)}; {slow} rows above 1.2")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--group", nargs="*", default=[], choices=list(GROUPS))
    options.add_argument("--only", nargs="*", default=[], help="rows whose name has one of these texts")
    options.add_argument("--size", nargs="*", type=int, default=list(SIZES))
    options.add_argument("--seconds", type=float, default=0.5, help="for all rounds of a row")
    options.add_argument("--over", type=float, default=0.0, help="list only rows that take more of NumPy's time")
    options.add_argument("--without", nargs="*", default=[], help="libraries to leave out")
    main(options.parse_args())
