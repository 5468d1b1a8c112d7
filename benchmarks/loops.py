"""Programs with loops beside NumPy and `jax.jit`, one core: values, gradients and first calls.

    python3 dev run benchmarks/loops.py [--only REGEX] [--size S ...] [--gradients] [--first] [--repeat N]
                                        [--limit SECONDS] [--without NAME ...] [--busy] [--json FILE] [--since FILE]

Every row runs in a process of its own with an empty cache of kernels, so that first calls are first calls and a slow
row ends at its limit. Results are compared before anything is timed; then the contestants take turns, and the table
shows medians. A ratio above 1 means that tenferro is faster: `jax/` is JAX's time over ours, `best/` the time of the
better of JAX and NumPy over ours, `was/` our time in an earlier run (`--since`, a file of `--json`) over today's. With
`--gradients` the rows are value and gradient of the sum of squares of a program's results, beside JAX alone. `--first`
shows the first call, that of another small program aside: `ready` is the time until native kernels are in place and a
second call is done; the ratios are ours over JAX's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from contestants import limit, optional
from loop_programs import LoopProgram, every
from loop_programs.record import for_jax, for_tenferro, loss_of
from loop_programs.table import Row, Table

TURN = 0.002
"""Seconds that a turn of a fast contestant lasts at least."""

SHARE = 2.0
"""Seconds that one contestant may take for all of its turns."""


def arrays_of(results: Any) -> list[Any]:
    """The results of a program as NumPy arrays."""
    import numpy as np

    return [np.asarray(r) for r in (results if isinstance(results, tuple | list) else (results,))]


def differs(ours: Any, theirs: Any, tolerance: float) -> str:
    """How two results differ, an empty text where they agree."""
    import numpy as np

    pairs = list(zip(arrays_of(ours), arrays_of(theirs), strict=True))
    for number, (a, b) in enumerate(pairs):
        scale = np.abs(b).max(initial=0.0) if b.dtype.kind in "fc" else 0
        if a.shape != b.shape or not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale):
            far = f"by {np.abs(a - b).max():.1e} of {scale:.1e}" if a.shape == b.shape else f"{a.shape}, {b.shape}"
            return f"result {number} differs {far}"
    return ""


def contestants(program: LoopProgram, size: str, gradients: bool) -> dict[str, Callable[[], Any]]:
    """Calls of a program that end when its results are there; those of tenferro and JAX compile at the first one."""
    import tenferro_runtime as tr
    from tenferro_ad import value_and_grad

    arguments, calls, jax = program.arguments(size), {}, optional("jax")

    def of(xp: Any, differentiated: Callable[..., Any]) -> Callable[..., Any]:
        if gradients:
            return differentiated(loss_of(xp, program.traced), argnums=program.gradient)  # type: ignore[no-any-return]
        return partial(program.traced, xp)

    ours, f = [tr.asarray(x) for x in arguments], tr.compile(of(for_tenferro(), value_and_grad))
    calls["tenferro"] = lambda: f(*ours)
    if jax is not None:
        theirs, g = [jax.numpy.asarray(x) for x in arguments], jax.jit(of(for_jax(), jax.value_and_grad))
        calls["jax"] = lambda: jax.block_until_ready(g(*theirs))
    if not gradients:
        calls["numpy"] = lambda: program.numpy(*arguments)
    return calls


def warm() -> None:
    """Everything that the first compiled program of a process pays for, in both libraries."""
    import tenferro_runtime as tr
    from tenferro_ad import value_and_grad

    tr.compile(value_and_grad(lambda x: tr.sum(tr.sin(x) * x)))(tr.asarray([0.5, 1.5]))
    if (jax := optional("jax")) is not None:
        jax.jit(jax.value_and_grad(lambda x: jax.numpy.sum(jax.numpy.sin(x) * x)))(jax.numpy.ones(2))
    tr.fusion.wait()


def flat(name: str, result: Any, gradients: bool) -> Any:
    """Value and gradients of one call as one tuple, in the convention of tenferro; JAX's gradients are conjugate."""
    if not gradients:
        return result
    value, found = result
    return value, *(x.conj() if name == "jax" else x for x in found)


def measure(program: LoopProgram, size: str, chosen: argparse.Namespace, tell: Callable[[Row], None]) -> None:
    """Tell what is found about a row, as soon as it is found."""
    from tenferro_runtime.running import fusion

    calls = contestants(program, size, chosen.gradients)
    calls = {name: call for name, call in calls.items() if name not in chosen.without}
    warm()
    clock = time.process_time if chosen.busy else time.perf_counter
    results = {}
    for name in ("numpy", "jax", "tenferro"):
        if name not in calls:
            continue
        start = clock()
        try:
            results[name] = flat(name, calls[name](), chosen.gradients)
        except Exception as error:
            tell({"failed" if name == "tenferro" else "without": f"{name}: {type(error).__name__}: {str(error)[:160]}"})
            del calls[name]
            continue
        tell({"first": {name: clock() - start}})
        if name == "tenferro":
            fusion.wait()
            calls[name]()
            tell({"first": {"ready": clock() - start}})
            fusion.wait()  # for kernels that the second call has asked for
    if "tenferro" in results:
        for name in results:
            if name != "tenferro" and (text := differs(results["tenferro"], results[name], program.tolerance)):
                tell({"failed": f"beside {name} {text}"})
    tell({"times": medians(calls, chosen.repeat, clock, tell)})


def medians(
    calls: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float], tell: Callable[[Row], None]
) -> dict[str, float]:
    """Median seconds of one call of each, in turns; a slow contestant has fewer."""
    repeats, turns, times = {}, {}, {}
    for name in sorted(calls, key=["numpy", "jax", "tenferro"].index):
        start = clock()
        calls[name]()
        once = max(clock() - start, 1e-7)
        tell({"times": {name: once}})
        repeats[name], turns[name] = max(1, math.ceil(TURN / once)), max(1, int(SHARE / max(once, TURN)))
        times[name] = [] if turns[name] > 1 else [once]
    for number in range(rounds):
        for name, call in calls.items():
            if number < turns[name]:
                start = clock()
                for _ in range(repeats[name]):
                    call()
                times[name].append((clock() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in times.items()}


def in_process(name: str, size: str, chosen: argparse.Namespace) -> Row:
    """A row, measured in a process of its own that ends at the limit."""
    options = ["--repeat", str(chosen.repeat)]
    options += [f"--{flag}" for flag in ("gradients", "busy") if getattr(chosen, flag)]
    options += ["--without", *chosen.without]
    found: Row = {"name": name, "size": size, "gradients": chosen.gradients, "first": {}, "times": {}}
    found |= {"failed": [], "without": []}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "row")
        command = [sys.executable, __file__, "--row", name, size, str(out), *options]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "TENFERRO_CACHE_DIR": folder},
                timeout=chosen.limit,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                found["failed"].append(f"ended with {done.returncode}: {done.stderr.strip()[-200:]}")
        except subprocess.TimeoutExpired:
            found["failed"].append(f"over the limit of {chosen.limit:g} s")
        for line in out.read_text().splitlines() if out.exists() else ():
            for key, value in json.loads(line).items():
                found[key] = found[key] | value if key in ("times", "first") else found[key] + [value]
    return found


def parsed() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--only", default="", help="rows whose family and name, as family/name, have this pattern")
    made.add_argument("--size", nargs="*", default=[], help="sizes to run; all but tiny by default")
    made.add_argument("--gradients", action="store_true", help="values and gradients instead of values")
    made.add_argument("--first", action="store_true", help="show first calls")
    made.add_argument("--repeat", type=int, default=11, help="turns of each contestant")
    made.add_argument("--limit", type=float, default=60.0, help="seconds for a row")
    made.add_argument("--busy", action="store_true", help="processor time instead of the clock on the wall")
    made.add_argument("--without", nargs="*", default=[], help="contestants to leave out")
    made.add_argument("--json", type=Path, help="where to write the rows")
    made.add_argument("--since", type=Path, help="rows that an earlier run has written")
    made.add_argument("--row", nargs=3, metavar=("NAME", "SIZE", "FILE"), help=argparse.SUPPRESS)
    return made.parse_args()


def main() -> None:
    chosen, programs = parsed(), every()
    limit(1)
    if chosen.row:
        name, size, out = chosen.row
        with Path(out).open("a") as file:
            measure(programs[name], size, chosen, lambda row: print(json.dumps(row), file=file, flush=True))
        return
    earlier = json.loads(chosen.since.read_text()) if chosen.since else []
    table = Table({p.name: p.family for p in programs.values()}, chosen.first, earlier)
    print(table.heading())
    for program in programs.values():
        if not re.search(chosen.only, f"{program.family}/{program.name}") or chosen.gradients > bool(program.gradient):
            continue
        for size in program.sizes:
            if size in chosen.size or (not chosen.size and size != "tiny"):
                print(table.line(in_process(program.name, size, chosen)), flush=True)
    print(table.summary())
    if chosen.json:
        chosen.json.write_text(json.dumps(table.rows, indent=1))


if __name__ == "__main__":
    main()
