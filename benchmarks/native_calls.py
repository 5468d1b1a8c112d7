"""What a call costs: eager ops of tenferro beside NumPy and PyTorch, from 8 elements to 100 000.

    python3 dev run benchmarks/native_calls.py [--rounds N] [--check]

The contestants of a row run in turns, round after round; medians in nanoseconds of processor time per operation, so
that other programs disturb little. PyTorch takes part where it can be imported. With ``TENFERRO_CPU_JIT=0`` the
interpreted ways are measured.
"""

from __future__ import annotations

import argparse
import math
import operator
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

for variable_name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable_name, "1")

import numpy as np  # noqa: E402 - after the thread settings

import tenferro_runtime as tr  # noqa: E402
from tenferro_ad import variable  # noqa: E402

BATCH = 0.004
PAIRS = 25
SIZES = (8, 100, 1000, 10_000, 100_000)

Calls = dict[str, Callable[[], Any]]
Row = tuple[str, int, Calls]


def chain(x: Any, b: Any, c: Any) -> Any:
    """50 operations."""
    for _ in range(PAIRS):
        x = x * b + c
    return x


def rows(torch: Any) -> list[Row]:
    """Title, operations per call, and the contestants."""
    out: list[Row] = []
    for n in (8, 100, 1000):
        raw = np.linspace(0.9, 1.1, n), np.linspace(0.9, 1.01, n), np.full(n, 0.1)
        x, b, c = map(tr.asarray, raw)
        vx, vb, ones = variable(x), variable(b), tr.ones_like(x)
        plain: Calls = {"tenferro": lambda x=x, b=b, c=c: chain(x, b, c), "numpy": lambda raw=raw: chain(*raw)}
        taped: Calls = {"tenferro": lambda vx=vx, vb=vb, c=c: chain(vx, vb, c)}
        both: Calls = {"tenferro": lambda vx=vx, vb=vb, c=c, ones=ones: chain(vx, vb, c).backward(ones)}
        for calls in (taped, both):
            calls["numpy"] = plain["numpy"]
        if torch is not None:
            px, pb, pc = (torch.tensor(a, requires_grad=k < 2) for k, a in enumerate(raw))
            pones = torch.ones(n, dtype=torch.float64)

            def quiet(px: Any = px, pb: Any = pb, pc: Any = pc) -> Any:
                with torch.no_grad():
                    return chain(px, pb, pc)

            plain["torch"] = quiet
            taped["torch"] = lambda px=px, pb=pb, pc=pc: chain(px, pb, pc)
            both["torch"] = lambda px=px, pb=pb, pc=pc, pones=pones: chain(px, pb, pc).backward(pones)
        out += [
            (f"x*b+c, {n}: no tape", 2 * PAIRS, plain),
            (f"x*b+c, {n}: tape", 2 * PAIRS, taped),
            (f"x*b+c, {n}: tape and sweep", 2 * PAIRS, both),
        ]
    for name in ("multiply", "divide", "exp", "tanh", "log", "sqrt", "less"):
        for dtype in ("float64", "float32"):
            for n in SIZES:
                a = np.linspace(0.5, 2.0, n).astype(dtype)
                args = (a, a[::-1].copy()) if name in ("multiply", "divide", "less") else (a,)
                tensors = [tr.asarray(v) for v in args]
                calls = {
                    "tenferro": partial(getattr(tr, name), *tensors),
                    "numpy": partial(getattr(np, name), *args),
                }
                if torch is not None:
                    calls["torch"] = partial(getattr(torch, name), *[torch.from_numpy(v) for v in args])
                out.append((f"{name} {dtype} {n}", 1, calls))
    return out


PRODUCTS = (((2, 2), (2, 2)), ((8, 8), (8, 8)), ((8,), (8,)), ((64, 2, 2), (64, 2, 2)), ((64, 4, 4), (64, 4, 4)))


def products(torch: Any) -> list[Row]:
    """`@` of small operands, concrete and recorded; stacks beside ``torch.bmm``."""
    out: list[Row] = []
    for left, right in PRODUCTS:
        a, b = (
            np.linspace(0.5, 2.0, math.prod(left)).reshape(left),
            np.linspace(0.1, 1.0, math.prod(right)).reshape(right),
        )
        x, y = tr.asarray(a), tr.asarray(b)
        plain: Calls = {"tenferro": partial(operator.matmul, x, y), "numpy": partial(operator.matmul, a, b)}
        taped: Calls = {"tenferro": partial(operator.matmul, variable(x), variable(y))}
        if torch is not None:
            p, q = torch.from_numpy(a), torch.from_numpy(b)
            multiply = torch.bmm if len(left) == 3 else torch.matmul
            plain["torch"] = partial(multiply, p, q)
            taped["torch"] = partial(multiply, p.clone().requires_grad_(), q.clone().requires_grad_())
        sizes = "x".join(map(str, left))
        out += [(f"{sizes} @: no tape", 1, plain), (f"{sizes} @: tape", 1, taped)]
    return out


def coverage() -> list[Row]:
    """Functions beside NumPy alone: complex ones, divisions, selection, conversion."""
    out: list[Row] = []
    for n in SIZES[:4]:
        real, other = np.linspace(0.5, 30.0, n), np.linspace(0.5, 3.0, n)
        z, mask = real * 0.1 + 1j * other, real > 9
        x, y, w, m = map(tr.asarray, (real, other, z, mask))
        rows: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            **{
                f"{name} complex128": (partial(getattr(tr, name), w), partial(getattr(np, name), z))
                for name in ("exp", "log", "sqrt", "tanh")
            },
            "floor_divide float64": (partial(tr.floor_divide, x, y), partial(np.floor_divide, real, other)),
            "pow float64": (partial(tr.pow, x, y), partial(np.pow, real, other)),
            "where float64": (partial(tr.where, m, x, y), partial(np.where, mask, real, other)),
            "astype float32": (partial(tr.astype, x, tr.float32), partial(real.astype, "float32")),
        }
        out += [(f"{title} {n}", 1, {"tenferro": ours, "numpy": theirs}) for title, (ours, theirs) in rows.items()]
    return out


REDUCED = (((8,), None), ((1000,), None), ((10, 10), 0), ((1000, 1000), 1), ((100_000, 8), 1), ((100, 100, 100), 1))


def reductions(torch: Any) -> list[Row]:
    """Sums, products and extremes over axes."""
    out: list[Row] = []
    for shape, axis in REDUCED:
        a = np.linspace(0.9, 1.1, math.prod(shape)).reshape(shape)
        x = tr.asarray(a)
        for name in ("sum", "prod", "max"):
            calls: Calls = {
                "tenferro": partial(getattr(tr, name), x, axis=axis),
                "numpy": partial(getattr(a, name), axis),
            }
            if torch is not None:
                p, f = torch.from_numpy(a), getattr(torch, "amax" if name == "max" else name)
                calls["torch"] = partial(f, p) if axis is None else partial(f, p, axis)
            out.append((f"{name} {'x'.join(map(str, shape))} axis {axis}", 1, calls))
    return out


def measure(row: Row, rounds: int) -> dict[str, float]:
    """Median nanoseconds per operation."""
    _, operations, calls = row
    counts = {}
    for name, call in calls.items():
        for _ in range(4):
            call()
        start = time.process_time()
        call()
        counts[name] = max(1, int(BATCH / max(1e-7, time.process_time() - start)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(counts[name]):
                call()
            times[name].append((time.process_time() - start) / counts[name] / operations)
    return {name: 1e9 * statistics.median(t) for name, t in times.items()}


def main() -> int:
    """Measure and print; with ``--check`` fail where the goals of the 8-element chain are missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="only rows whose title contains this")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        torch = None
    print(f"{'ns per operation':28}{'tenferro':>10}{'numpy':>10}{'torch':>10}{'of numpy':>10}{'of torch':>10}")
    found = {}
    for row in [*rows(torch), *products(torch), *coverage(), *reductions(torch)]:
        if options.only not in row[0]:
            continue
        found[row[0]] = m = measure(row, options.rounds)
        ours, peers = m["tenferro"], (m.get("numpy"), m.get("torch"))
        shown = "".join(f"{'-' if p is None else f'{p:.0f}':>10}" for p in peers)
        print(
            f"{row[0]:28}{ours:10.0f}{shown}" + "".join(f"{'-' if p is None else f'{ours / p:.2f}':>10}" for p in peers)
        )
    forward, sweep = found.get("x*b+c, 8: no tape"), found.get("x*b+c, 8: tape and sweep")
    missed = forward is not None and forward["tenferro"] > forward["numpy"]
    missed |= sweep is not None and "torch" in sweep and sweep["tenferro"] > 0.2 * sweep["torch"]
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
