"""What recording and sweeping cost where the arrays are small: tenferro beside NumPy, PyTorch, autograd and JAX.

    python3 dev bench [--rounds N] [--only WORD] [--check]

Every library that can be imported takes part. The contestants of a row run in turns, round after round, so that a slow
phase of the machine hits all of them; the median round is shown, in microseconds per call (chains: per operation).
PyTorch is not a dependency; an environment of its own that sees this one by PYTHONPATH will do.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

for variable_name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable_name, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np  # noqa: E402 - after the thread settings

import tenferro_runtime as tr  # noqa: E402
from tenferro_ad import hvp, jvp, value_and_grad, variable  # noqa: E402

BATCH = 0.0015
"""Seconds that one contestant runs in one round: short, so that most rounds fall between two time slices of others."""
PAIRS = 25
DEPTH = 20

X = np.linspace(0.9, 1.1, 8)
B = np.linspace(0.9, 1.01, 8)
C = np.full(8, 0.1)
ONES = np.ones(8)
W = np.linspace(-0.5, 0.5, 16).reshape(4, 4)
H = np.linspace(0.0, 1.0, 16).reshape(4, 4)
WIDE = np.linspace(0.5, 1.5, 32).reshape(4, 8)


def chain(x: Any, b: Any, c: Any) -> Any:
    """50 operations."""
    for _ in range(PAIRS):
        x = x * b + c
    return x


@dataclass
class Row:
    """One measurement: contestants by column, and by what one call is divided."""

    name: str
    divisor: int = 1
    contestants: dict[str, Callable[[], Any]] = field(default_factory=dict)
    medians: dict[str, float] = field(default_factory=dict)

    def measure(self, rounds: int) -> None:
        """Run the contestants that have no number yet, in turns."""
        counts = {}
        waiting = {column: call for column, call in self.contestants.items() if column not in self.medians}
        for column, call in waiting.items():
            for _ in range(4):  # first calls trace and render
                call()
            start = time.perf_counter()
            call()
            counts[column] = max(1, int(BATCH / (time.perf_counter() - start)))
        times: dict[str, list[float]] = {column: [] for column in waiting}
        gc.collect()
        gc.freeze()  # what the libraries have loaded is not searched again and again
        for _ in range(rounds):
            for column, call in waiting.items():
                gc.collect()  # nobody pays for the garbage of the contestant before
                call()
                start = time.perf_counter()
                for _ in range(counts[column]):
                    call()
                times[column].append((time.perf_counter() - start) / counts[column])
        self.medians |= {column: statistics.median(t) * 1e6 / self.divisor for column, t in times.items()}


def rows() -> dict[str, Row]:
    """The empty table."""
    ops = 2 * PAIRS
    return {
        "forward": Row("x * b + c, 8 float64, per op: no derivative", ops),
        "tape": Row("x * b + c, per op: recorded", ops),
        "backward": Row("x * b + c, per op: recorded and swept", ops),
        "jvp": Row("x * b + c, per op: jvp", ops),
        "matmul": Row(f"{DEPTH} x tanh(x @ W), 4 x 4: value and gradient"),
        "compiled": Row(f"{DEPTH} x tanh(x @ W), 4 x 4: the same, compiled"),
        "hvp": Row(f"{DEPTH} x tanh(x @ W), 4 x 4: Hessian times vector"),
        "broadcast": Row("(4, 8) * (8): recorded and swept"),
    }


def enter_numpy(table: dict[str, Row]) -> None:
    """The floor."""
    table["forward"].contestants["NumPy"] = lambda: chain(X, B, C)
    table["broadcast"].contestants["NumPy"] = lambda: WIDE * X


def enter_tenferro(table: dict[str, Row]) -> None:
    """This library."""
    x, b, c, ones, w, h, wide = map(tr.asarray, (X, B, C, ONES, W, H, WIDE))
    vx, vb, vwide = variable(x), variable(b), variable(wide)
    ones_wide = tr.ones_like(wide)

    def loss(w: Any) -> Any:
        y = h
        for _ in range(DEPTH):
            y = tr.tanh(y @ w)
        return y.sum()

    both = value_and_grad(loss)
    fast = tr.compile(both)
    column = "tenferro"
    table["forward"].contestants[column] = lambda: chain(x, b, c)
    table["tape"].contestants[column] = lambda: chain(vx, vb, c)
    table["backward"].contestants[column] = lambda: chain(vx, vb, c).backward(ones)
    table["jvp"].contestants[column] = lambda: jvp(lambda v: chain(v, b, c), (x,), (ones,))
    table["matmul"].contestants[column] = lambda: both(w)
    table["compiled"].contestants[column] = lambda: fast(w)
    table["hvp"].contestants[column] = lambda: hvp(loss, (w,), (w,))
    table["broadcast"].contestants[column] = lambda: (vwide * vx).backward(ones_wide)


def enter_torch(table: dict[str, Row]) -> None:
    """PyTorch, on one thread."""
    import torch

    torch.set_num_threads(1)
    x, b, w, wide = (torch.tensor(a, requires_grad=True) for a in (X, B, W, WIDE))
    c, ones, h, direction = map(torch.tensor, (C, ONES, H, W))
    ones_wide = torch.ones_like(wide)

    def loss(w: Any) -> Any:
        y = h
        for _ in range(DEPTH):
            y = torch.tanh(y @ w)
        return y.sum()

    def plain() -> Any:
        with torch.no_grad():
            return chain(x, b, c)

    def product() -> Any:
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        return torch.autograd.grad((g * direction).sum(), w)

    column = "PyTorch"
    table["forward"].contestants[column] = plain
    table["tape"].contestants[column] = lambda: chain(x, b, c)
    table["backward"].contestants[column] = lambda: chain(x, b, c).backward(ones)
    table["matmul"].contestants[column] = lambda: torch.autograd.grad(loss(w), w)
    table["hvp"].contestants[column] = product
    table["broadcast"].contestants[column] = lambda: (wide * x).backward(ones_wide)


def enter_autograd(table: dict[str, Row]) -> None:
    """HIPS autograd."""
    import autograd.numpy as anp
    from autograd import make_vjp
    from autograd import value_and_grad as with_grad

    def loss(w: Any) -> Any:
        y = H
        for _ in range(DEPTH):
            y = anp.tanh(anp.dot(y, w))
        return anp.sum(y)

    both = with_grad(loss)
    column = "autograd"
    table["backward"].contestants[column] = lambda: make_vjp(lambda p: chain(p[0], p[1], C))((X, B))[0](ONES)
    table["matmul"].contestants[column] = lambda: both(W)
    table["broadcast"].contestants[column] = lambda: make_vjp(lambda p: p[0] * p[1])((WIDE, X))[0](np.ones((4, 8)))


def enter_jax(table: dict[str, Row]) -> None:
    """JAX: eager where the row is eager, ``jit`` in the compiled row."""
    import jax
    import jax.numpy as jnp

    x, b, c, ones, w, h = map(jnp.asarray, (X, B, C, ONES, W, H))

    def loss(w: Any) -> Any:
        y = h
        for _ in range(DEPTH):
            y = jnp.tanh(y @ w)
        return y.sum()

    both = jax.value_and_grad(loss)
    fast = jax.jit(both)
    column = "JAX"
    table["forward"].contestants[column] = lambda: chain(x, b, c).block_until_ready()
    table["backward"].contestants[column] = lambda: jax.block_until_ready(
        jax.vjp(lambda x, b: chain(x, b, c), x, b)[1](ones)
    )
    table["matmul"].contestants[column] = lambda: jax.block_until_ready(both(w))
    table["compiled"].contestants[column] = lambda: jax.block_until_ready(fast(w))


ENTRIES: dict[str, Callable[[dict[str, Row]], None]] = {
    "NumPy": enter_numpy,
    "tenferro": enter_tenferro,
    "PyTorch": enter_torch,
    "autograd": enter_autograd,
    "JAX": enter_jax,
}


@dataclass(frozen=True)
class Goal:
    """What a number may be at most, as a multiple of another."""

    text: str
    of: tuple[str, str]
    limit: float
    against: tuple[str, str]

    def ratio(self, table: dict[str, Row]) -> float | None:
        """How much of the other number it is, where both were measured."""
        top = table[self.of[0]].medians.get(self.of[1])
        bottom = table[self.against[0]].medians.get(self.against[1])
        return None if top is None or bottom is None else top / bottom


GOALS = (
    Goal("forward, against NumPy", ("forward", "tenferro"), 2.5, ("forward", "NumPy")),
    Goal("recorded and swept, against PyTorch", ("backward", "tenferro"), 0.5, ("backward", "PyTorch")),
    Goal("matrix chain, against PyTorch", ("matmul", "tenferro"), 1.0, ("matmul", "PyTorch")),
    Goal("matrix chain compiled, against PyTorch eager", ("compiled", "tenferro"), 0.6, ("matmul", "PyTorch")),
)


def show(title: str, columns: list[str], lines: list[list[str]]) -> None:
    """A table, drawn with rich where it is installed."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(len(line[i]) for line in [columns, *lines]) for i in range(len(columns))]
        print(f"\n{title}")
        for line in [columns, *lines]:
            print(
                "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths)))
            )
        return
    drawn = Table(title=title)
    for i, column in enumerate(columns):
        drawn.add_column(column, justify="left" if i == 0 else "right")
    for line in lines:
        drawn.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 120).print(drawn)


def main() -> int:
    """Measure and print; with ``--check`` fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=61, help="rounds of each row (default 61)")
    parser.add_argument("--only", default="", help="only rows whose key or name contains this")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    options = parser.parse_args()

    table = rows()
    chosen = {key: row for key, row in table.items() if options.only in key or options.only in row.name}
    columns = []
    # JAX comes alone and last: once imported, it does work of its own at every run of Python's garbage collector.
    for phase in (("NumPy", "tenferro", "PyTorch", "autograd"), ("JAX",)):
        for name in phase:
            try:
                ENTRIES[name](table)
            except ImportError as error:
                print(f"without {name}: {error}")
                continue
            columns.append(name)
        for row in chosen.values():
            row.measure(options.rounds)

    def cell(row: Row, column: str) -> str:
        us = row.medians.get(column)
        return "-" if us is None else f"{us:.2f}" if us < 100 else f"{us:.0f}"

    show(
        f"microseconds, median of {options.rounds} interleaved rounds",
        ["", *columns],
        [[row.name, *[cell(row, column) for column in columns]] for row in chosen.values()],
    )
    lines, missed = [], False
    for goal in GOALS:
        ratio = goal.ratio(table)
        if ratio is not None:
            missed = missed or ratio > goal.limit
            verdict = "met" if ratio <= goal.limit else "missed"
            lines.append([goal.text, f"{ratio:.2f}", f"<= {goal.limit}", verdict])
    if lines:
        show("goals", ["", "measured", "goal", ""], lines)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
