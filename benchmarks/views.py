"""Views and writes beside NumPy, PyTorch and JAX: making a view, writing to one, updates in place, loops of writes.

    python3 dev bench views [--only TEXT ...] [--seconds S] [--without LIBRARY ...] [--no-loops]

A row is one statement, the same for all libraries that have it. The contestants take turns, round after round; the
table shows the median of NumPy's processor time for one statement, and of the ratios of each contestant to NumPy in the
same round (below 1 it is faster). Then 1,000 writes to slices of an array of 10 million numbers in one compiled loop:
processor time, and by how much the process grew at most.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from namespace import libraries, measured

import tenferro_runtime as tr


class Row(NamedTuple):
    """A statement over `x`, `y` of `n` elements, the matrix `m` and the views `v`, `c`; other words where needed."""

    text: str
    n: int = 10
    torch: str | None = None
    jax: str | None = ""


SET = "x.at[3].set(1.0)"
COPIED = "z = {copy}; z[3] = 1.0"

ROWS = {
    "a slice": Row("x[2:]"),
    "a row": Row("m[1]"),
    "a column": Row("m[:, 1]"),
    "reversed": Row("x[::-1]", torch=""),
    "transpose": Row("m.T"),
    "reshape": Row("x.reshape(2, -1)"),
    "write to a view": Row("v[:] = w"),
    "a number to a view": Row("v[:] = 1.0"),
    "an element of a view": Row("v[3] = 1.0"),
    "write to a column": Row("c[:] = 1.0"),
    "write to an array": Row("x[:] = y"),
    "an element of an array": Row("x[3] = 1.0"),
    "a slice of an array": Row("x[2:] = w"),
    "a new view, written": Row("x[2:][:] = 1.0"),
    "view += array": Row("v += w"),
    "slice += array": Row("x[2:] += w"),
    "x += y": Row("x += y"),
    "x *= 1.0": Row("x *= 1.0"),
    "x += y, 1e6": Row("x += y", 1_000_000),
    "x[2:] += w, 1e6": Row("x[2:] += w", 1_000_000),
    "a copy with an element set": Row(COPIED, torch=COPIED.format(copy="x.clone()"), jax=SET),
    "read a view after a write": Row("x[3] = 1.0; v + w"),
    "x + y": Row("x + y", jax=None),
    "x * 2.0": Row("x * 2.0", jax=None),
    "x.sum()": Row("x.sum()", jax=None),
    "m @ m.T": Row("m @ m.T", jax=None),
}
"""Rows by name; the last ones read arrays that are no views."""


def statement(row: Row, library: str) -> str:
    """What a library runs; tenferro sets an element in a copy by `at`, as JAX does."""
    if library == "tenferro" and row.text == COPIED:
        return SET
    given = {"torch": row.torch, "jax": row.jax}.get(library)
    return (row.text if given is None else given).format(copy="x.copy()")


def contestants(row: Row, known: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The statement of a row by library, as a call."""
    rng, calls = np.random.default_rng(row.n), {}
    x, y, side = rng.standard_normal(row.n), rng.standard_normal(row.n), max(2, int(row.n**0.5))
    for name, (_, enter, wait) in known.items():
        text = statement(row, name)
        if not text:
            continue
        scope: dict[str, Any] = {
            "x": enter(x.copy()),
            "y": enter(y.copy()),
            "m": enter(x[: side * side].reshape(side, side).copy()),
        }
        if name == "tenferro":
            scope = {k: a.copy() for k, a in scope.items()}  # memory of its own
        scope |= {"v": scope["x"][2:], "w": enter(y[2:].copy()), "c": scope["m"][:, 1], "wait": wait}
        last = text.rpartition("; ")
        lines = [*last[0].split("; ")] * bool(last[0]) + [f"wait({last[2]})" if wait else last[2]]
        names = "".join([f"    global {n}\n" for n in ("x", "v", "z") if re.search(rf"\b{n} [-+*/]?= ", text)])
        exec(f"def call():\n{names}" + "".join([f"    {line}\n" for line in lines]), scope)
        call = scope["call"]
        try:
            call()
        except Exception as error:  # a contestant that cannot do a row is no reason to stop
            print(f"    {name}: {text}: {type(error).__name__}: {str(error)[:90]}")
        else:
            calls[name] = call
    return calls


def table(chosen: argparse.Namespace) -> None:
    """Print the rows."""
    known = libraries(chosen.without)
    peers = [name for name in known if name != "numpy"]
    print(f"{'':28}{'numpy ns':>12}{''.join(f'{p:>10}' for p in peers)}   quartiles of tenferro")
    for name, row in ROWS.items():
        if chosen.only and not any(text in name for text in chosen.only):
            continue
        times = measured(contestants(row, known), chosen.seconds)
        base, shown, spread = times["numpy"], "", ""
        for peer in peers:
            if peer not in times:
                shown += f"{'-':>10}"
                continue
            each = sorted([t / b for t, b in zip(times[peer], base, strict=True)])
            shown += f"{statistics.median(each):10.2f}"
            if peer == "tenferro":
                spread = f"{each[len(each) // 4]:10.2f} -{each[len(each) * 3 // 4]:6.2f}"
        print(f"{name:28}{statistics.median(base) * 1e9:12.0f}{shown}{spread}", flush=True)


# A loop of writes to slices

COUNT, LENGTH, PART = 1_000, 10_000, 100


def body(i: Any, x: Any) -> Any:
    """One write to a slice of a row: a part of a view of a view."""
    row = x.reshape(COUNT, LENGTH)[i]
    row[:PART] += 1.0
    return x


def by_numpy(x: Any) -> Any:
    for i in range(COUNT):
        body(i, x)
    return x


def looped(x: Any) -> Any:
    return tr.fori_loop(0, COUNT, body, x)


def by_jax() -> Callable[[Any], Any]:
    import jax

    def step(i: Any, x: Any) -> Any:
        part = jax.lax.dynamic_slice(x, (i * LENGTH,), (PART,)) + 1.0
        return jax.lax.dynamic_update_slice(x, part, (i * LENGTH,))

    f = jax.jit(lambda x: jax.lax.fori_loop(0, COUNT, step, x), donate_argnums=0)
    return lambda x: f(x).block_until_ready()


def by_numba() -> Callable[[Any], Any]:
    import numba

    @numba.njit  # type: ignore[untyped-decorator]
    def f(x: Any) -> Any:
        for i in range(COUNT):
            row = x.reshape(COUNT, LENGTH)[i]
            row[:PART] += 1.0
        return x

    return f  # type: ignore[no-any-return]


def grown(call: Callable[[], Any]) -> float:
    """MiB by which the process was larger at most during a call (Linux)."""

    def status(field: str) -> int:
        found = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
        return int(found[1]) if found else 0

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = status("VmRSS")
    kept = call()
    del kept
    return (status("VmHWM") - before) / 1024


def measured_loop(enter: Callable[[], Any], f: Callable[[Any], Any]) -> tuple[float, float]:
    """Seconds of processor time of a call, and MiB by which the process grew; every call takes its argument over."""
    end = time.perf_counter() + 3.0
    while time.perf_counter() < end:  # until native code is there
        f(enter())
    times = []
    for _ in range(7):
        x = enter()
        start = time.process_time_ns()
        f(x)
        times.append((time.process_time_ns() - start) * 1e-9)
    x = enter()
    return statistics.median(times), grown(lambda: f(x))


def loops(without: list[str]) -> None:
    """Print time and memory of the loop for each library."""
    first = np.zeros(COUNT * LENGTH)

    def tensor() -> Any:
        return tr.asarray(first, copy=True)

    def of_jax() -> Any:
        import jax

        return jax.numpy.asarray(first.copy())

    ways: dict[str, tuple[Callable[[], Any], Callable[[], Callable[[Any], Any]]]] = {
        "NumPy": (first.copy, lambda: by_numpy),
        "tenferro, compiled, donated": (tensor, lambda: tr.compile(looped, donate=0)),
        "tenferro, compiled": (tensor, lambda: tr.compile(lambda x: looped(x.copy()))),
        "tenferro, eager": (tensor, lambda: by_numpy),
        "numba": (first.copy, by_numba),
        "jax": (of_jax, by_jax),
    }
    print(f"\n{COUNT} writes to slices of {COUNT * LENGTH:,} numbers{'ms':>24}{'MiB more at most':>18}")
    for name, (enter, make) in ways.items():
        if name not in without:
            try:
                took, more = measured_loop(enter, make())
            except Exception as error:  # not installed, or not able to
                print(f"{name:50}{type(error).__name__}: {str(error)[:60]}")
            else:
                print(f"{name:50}{took * 1e3:12.3f}{more:18.1f}", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=[], help="rows whose name has one of these texts")
    options.add_argument("--seconds", type=float, default=0.5, help="for all rounds of a row")
    options.add_argument("--without", nargs="*", default=[], help="libraries to leave out")
    options.add_argument("--no-loops", action="store_true")
    given = options.parse_args()
    table(given)
    if not given.no_loops:
        loops(given.without)
