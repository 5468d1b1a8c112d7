"""Applications of automatic differentiation beside JAX in one run: fitting, cameras, networks, nested searches.

Compiled and eager tenferro against `jax.jit`, medians, on one core; results are compared before anything is timed.
What is computed is in `ad_applications`.

    python benchmarks/applications.py [--only TEXT] [--rounds N] [--size tiny|measured] [--json FILE]
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contestants

options = contestants.parser(__doc__)
options.add_argument("--size", choices=("tiny", "measured"), default="measured")
options.add_argument("--json", help="file for the figures")
chosen = options.parse_args()
contestants.prepare(chosen)

import ad_applications  # noqa: E402 - the number of threads is set before
import jax  # noqa: E402
import numpy as np  # noqa: E402
from ad_applications.record import Application, for_jax, for_tenferro  # noqa: E402
from turns import leaves, mapped, medians, seconds, warm  # noqa: E402

import tenferro_runtime as tr  # noqa: E402

SLOW = 0.5
"""Seconds above which a call is timed once."""


def measure(application: Application) -> dict[str, float]:
    arguments = application.make(application.sizes[chosen.size == "measured"], np.random.default_rng(0))
    ours, theirs = mapped(tr.asarray, arguments), mapped(jax.numpy.asarray, arguments)
    task, jitted = application.task(for_tenferro()), jax.jit(application.task(for_jax()))
    compiled = tr.compile(task)
    calls: dict[str, Callable[[], Any]] = {
        "compiled": lambda: compiled(*ours),
        "jax.jit": lambda: jax.block_until_ready(jitted(*theirs)),
    }
    for one, other in zip(leaves(calls["compiled"]()), leaves(calls["jax.jit"]()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8, err_msg=application.name)
    for call in calls.values():
        warm(call)
    eager = seconds(lambda: task(*ours), 0.0)
    if eager < SLOW:
        calls["eager"] = lambda: task(*ours)
    return {"eager": eager, **medians(calls, 3 if chosen.quick else chosen.rounds)}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    figures = {}
    print(f"{'application':22}{'compiled':>11}{'jax.jit':>11}{'ratio':>7}{'eager':>14}   us")
    for name, application in ad_applications.every().items():
        if chosen.only in name:
            t = figures[name] = measure(application)
            us = {k: v * 1e6 for k, v in t.items()}
            ratio = t["jax.jit"] / t["compiled"]
            print(f"{name:22}{us['compiled']:11.1f}{us['jax.jit']:11.1f}{ratio:7.2f}{us['eager']:14.1f}", flush=True)
    if figures:
        ratios = [t["jax.jit"] / t["compiled"] for t in figures.values()]
        print(f"geometric mean against jax.jit: {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
