"""What the benchmarks of contractions share: tenferro beside NumPy, PyTorch and JAX in one run, and the table.

Contestants take turns, warm. tenferro runs the planned contraction, JAX the compiled one; NumPy and PyTorch follow the
path call by call: of opt_einsum's way and their own `einsum`, the one that was faster in a first trial.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]
Calls = dict[str, list[Callable[[], Any]]]

PATIENCE = 20.0
"""Seconds that one contestant may take for a row; it gets fewer rounds where it is slow."""

PAUSE = 0.02
"""Seconds before a contestant's turn, for the workers of the one before: they first wait for work on their cores."""

PEERS = ("numpy", "torch", "jax")
TOLERANCE = {"float32": 3e-4, "complex64": 3e-4, "float64": 1e-9, "complex128": 1e-9}


@dataclass(frozen=True)
class Instance:
    """A contraction: its name, subscripts, shapes, and a path in opt_einsum's convention."""

    name: str
    subscripts: str
    shapes: tuple[Shape, ...]
    path: tuple[Shape, ...] = ((0, 1),)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--only", default="", help="rows whose name has this text")
    made.add_argument("--skip", nargs="*", default=[], help="texts: rows whose name has one of them are left out")
    made.add_argument("--without", nargs="*", default=[], help="contestants to leave out")
    made.add_argument("--dtype", default="float64", choices=list(TOLERANCE))
    made.add_argument("--quick", action="store_true", help="three rounds")
    made.add_argument("--busy", action="store_true", help="processor time of all threads, the least of all rounds")
    return made


def limit(threads: int) -> None:
    """Give every library as many threads; before any of them is imported, for that is when they ask.

    One thread means one core, where the system can be told: JAX asks for nothing but the cores.
    """
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def prepare(chosen: argparse.Namespace) -> None:
    """`limit`, and PyTorch, which has to be told."""
    limit(chosen.threads)
    torch = optional("torch")
    if torch is not None:
        torch.set_num_threads(chosen.threads)


def optional(name: str) -> Any:
    """A library, None where it cannot be imported."""
    try:
        module = __import__(name)
    except ImportError:
        return None
    if name == "jax":
        module.config.update("jax_enable_x64", True)
    return module


def contestants(instance: Instance, dtype: str, without: Sequence[str]) -> Calls:
    """What is timed, by name; where there are several ways the best is taken."""
    import numpy as np
    import opt_einsum

    import tenferro_runtime as tr
    from tenferro_einsum import plan

    subscripts, shapes, path = instance.subscripts, instance.shapes, [tuple(p) for p in instance.path]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) / math.sqrt(max(1, math.prod(s) ** 0.5)) for s in shapes]
    if dtype.startswith("complex"):
        arrays = [x + 1j * rng.permuted(x) for x in arrays]
    arrays = [np.asarray(x, dtype) for x in arrays]
    mine = [tr.asarray(x) for x in arrays]
    planned = plan(subscripts, *mine, optimize=path)
    calls: Calls = {"tenferro": [lambda: planned(*mine)]}
    express = opt_einsum.contract_expression(subscripts, *shapes, optimize=path)
    if len(set(subscripts)) < 52:  # NumPy knows no more letters in one step of many axes
        calls["numpy"] = [
            lambda: express(*arrays, backend="numpy"),
            lambda: np.einsum(subscripts, *arrays, optimize=["einsum_path", *path]),
        ]
    torch, jax = optional("torch"), optional("jax")
    if torch is not None:
        tensors = [torch.from_numpy(x) for x in arrays]
        calls["torch"] = [lambda: express(*tensors, backend="torch")]
        if len(shapes) == 2:
            calls["torch"].append(lambda: torch.einsum(subscripts, *tensors))
    if jax is not None:
        given = [jax.numpy.asarray(x) for x in arrays]
        compiled = jax.jit(lambda *xs: express(*xs, backend="jax"))
        calls["jax"] = [lambda: compiled(*given).block_until_ready()]
    return {name: ways for name, ways in calls.items() if name not in without}


def measured(calls: Calls, rounds: int, busy: bool, tolerance: float) -> dict[str, float]:
    """Median seconds per call, the contestants in turns; those that fail are left out."""
    clock, choose = (time.process_time, min) if busy else (time.perf_counter, statistics.median)
    repeats, budget, results, chosen = {}, {}, {}, {}
    for name, ways in calls.items():
        trials = []
        for call in ways:
            try:
                results[name] = call()
                call()
                start = clock()
                call()
                trials.append((clock() - start, call))
            except Exception as error:  # a contestant that cannot do an instance is no reason to stop
                print(f"    {name}: {type(error).__name__}: {str(error)[:100]}")
        if not trials:
            continue
        took, chosen[name] = min(trials, key=lambda trial: trial[0])
        repeats[name], budget[name] = max(1, int(0.002 / took)), max(2, int(PATIENCE / took))
    times: dict[str, list[float]] = {name: [] for name in chosen}
    for number in range(rounds):
        for name, call in chosen.items():
            if number >= budget[name]:
                continue
            time.sleep(PAUSE)
            call()
            start = clock()
            for _ in range(repeats[name]):
                call()
            times[name].append((clock() - start) / repeats[name])
    require_equal(results, tolerance)
    return {name: choose(values) for name, values in times.items()}


def require_equal(results: dict[str, Any], tolerance: float) -> None:
    """Everyone has computed the same."""
    import numpy as np

    ours = np.asarray(results["tenferro"])
    for name, result in results.items():
        theirs = np.asarray(result)
        scale = np.abs(theirs).max(initial=0)
        if not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale):
            print(f"    DIFFERS from {name}: {np.abs(ours - theirs).max()} of {scale}")


@dataclass
class Table:
    """Rows as they are measured, and what they come to."""

    chosen: argparse.Namespace
    ratios: dict[str, float] = field(default_factory=dict)

    def run(self, instances: Iterable[Instance]) -> None:
        """Print one line for each instance, then the summary."""
        print(f"{'':52}{'ms':>10}{''.join(f'{n:>8}' for n in PEERS)}{'best':>8}   (times tenferro's time)")
        rounds = 3 if self.chosen.quick else self.chosen.rounds
        for instance in instances:
            if any(text in instance.name for text in self.chosen.skip):
                continue
            calls = contestants(instance, self.chosen.dtype, self.chosen.without)
            medians = measured(calls, rounds, self.chosen.busy, TOLERANCE[self.chosen.dtype])
            ours = medians["tenferro"]
            row = "".join(f"{medians[k] / ours:8.2f}" if k in medians else f"{'-':>8}" for k in PEERS)
            best = min([medians[k] for k in PEERS if k in medians], default=math.nan) / ours
            self.ratios[instance.name] = best
            print(f"{instance.name[:50]:52}{ours * 1e3:10.3f}{row}{best:8.2f}", flush=True)
        values = sorted(self.ratios.values())
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            least = min(self.ratios, key=self.ratios.__getitem__)
            print(
                f"{len(values)} rows against the best peer: geometric mean {mean:.2f}, "
                f"median {statistics.median(values):.2f}, least {values[0]:.2f} ({least})"
            )
