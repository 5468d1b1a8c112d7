"""Contractions of public benchmarks: tenferro beside NumPy (opt_einsum), PyTorch and JAX, along the same paths.

    python3 dev run benchmarks/einsum.py [--rounds N] [--threads N] [--only TEXT] [--without NAME ...] [--busy]

Instances and paths are those of data/einsum. The contestants of a row take turns, warm; medians in milliseconds, and
how many times as long the others take. tenferro's time is one call of the planned contraction, JAX's one of the
compiled one; NumPy and PyTorch follow the path call by call, as opt_einsum and torch.einsum do. With ``--busy``, for
machines that are not quiet, the time is that of the processor, in all threads, and the least one of all rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "einsum"
PATIENCE = 20.0
"""Seconds that one contestant may take for a row; it gets fewer rounds where it is slow."""


def instances(only: str) -> list[tuple[str, str, list[tuple[int, ...]], list[tuple[int, ...]]]]:
    """Name, equation, shapes and path of every instance and strategy."""
    found = []
    for file in sorted(DATA.glob("*.json")):
        read = json.loads(file.read_text())
        equation = read.get("format_string_rowmajor") or read["format_string"]
        shapes = [tuple(shape) for shape in read["shapes"]]
        for strategy, path in read["paths"].items():
            name = f"{file.stem} {strategy}"
            if only in name and (path["path"] not in [f[3] for f in found if f[1] == equation]):
                found.append((name, equation, shapes, path["path"]))
    return found


def kernel(equation: str, shapes: list[tuple[int, ...]], path: list[tuple[int, ...]]) -> Any:
    """The engine's kernel for an equation and a path of opt_einsum's convention."""
    import numpy as np

    from tenferro_tensor import ComputeDevice, get_backend
    from tenferro_tensor.device_model import ContractionIR

    terms, output = equation.split("->")
    number = {label: k for k, label in enumerate(dict.fromkeys(terms.replace(",", "")))}
    operands = tuple(tuple(number[x] for x in term) for term in terms.split(","))
    extents = dict(zip([x for term in operands for x in term], [n for shape in shapes for n in shape], strict=True))
    here, steps = list(range(len(operands))), []
    for pair in path:
        steps.append(tuple(here[k] for k in sorted(pair)))
        here = [v for k, v in enumerate(here) if k not in pair] + [len(operands) + len(steps) - 1]
    ir = ContractionIR(
        np.dtype("float64"), operands, tuple(extents[k] for k in range(len(number))),
        tuple(number[x] for x in output), tuple(steps),
    )  # fmt: skip
    return get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))


def contestants(
    equation: str, shapes: list[tuple[int, ...]], path: list[tuple[int, ...]], without: list[str]
) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    import numpy as np
    import opt_einsum

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) / math.sqrt(max(1, math.prod(shape) ** 0.5)) for shape in shapes]
    contract = kernel(equation, shapes, path)
    calls: dict[str, Callable[[], Any]] = {"tenferro": lambda: contract(*arrays)}
    express = opt_einsum.contract_expression(equation, *shapes, optimize=[tuple(p) for p in path])
    if len(set(equation)) < 52:  # NumPy knows no more letters in one step of many axes
        calls["numpy"] = lambda: express(*arrays, backend="numpy")
    torch, jax = optional("torch"), optional("jax")
    if torch is not None:
        tensors = [torch.from_numpy(x) for x in arrays]
        calls["torch"] = lambda: express(*tensors, backend="torch")
    if jax is not None:
        given = [jax.numpy.asarray(x) for x in arrays]
        compiled = jax.jit(lambda *xs: express(*xs, backend="jax"))
        calls["jax"] = lambda: compiled(*given).block_until_ready()
    return {name: call for name, call in calls.items() if name not in without}


def measured(calls: dict[str, Callable[[], Any]], rounds: int, busy: bool) -> dict[str, float]:
    """Median seconds per call, the contestants in turns; those that fail are left out."""
    clock, choose = (time.process_time, min) if busy else (time.perf_counter, statistics.median)
    repeats, budget, results = {}, {}, {}
    for name, call in list(calls.items()):
        try:
            results[name] = call()
            call()
            start = clock()
            call()
        except Exception as error:  # a contestant that cannot do an instance is no reason to stop
            print(f"    {name}: {type(error).__name__}: {str(error)[:100]}")
            del calls[name]
            continue
        took = clock() - start
        repeats[name], budget[name] = max(1, int(0.002 / took)), max(2, int(PATIENCE / took))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name, call in calls.items():
            if number >= budget[name]:
                continue
            call()
            start = clock()
            for _ in range(repeats[name]):
                call()
            times[name].append((clock() - start) / repeats[name])
    require_equal(results)
    return {name: choose(values) for name, values in times.items()}


def require_equal(results: dict[str, Any]) -> None:
    """Everyone has computed the same."""
    import numpy as np

    ours = np.asarray(results["tenferro"])
    for name, result in results.items():
        theirs = np.asarray(result)
        scale = np.abs(theirs).max(initial=0)
        if not np.allclose(ours, theirs, rtol=1e-9, atol=1e-9 * scale):
            print(f"    DIFFERS from {name}: {np.abs(ours - theirs).max()} of {scale}")


def optional(name: str) -> Any:
    """A library, None where it cannot be imported."""
    try:
        module = __import__(name)
    except ImportError:
        return None
    if name == "jax":
        module.config.update("jax_enable_x64", True)
    return module


def main() -> None:
    """Print one line for each instance and strategy, then the geometric mean of the ratios to the best peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--busy", action="store_true")
    chosen = parser.parse_args()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(chosen.threads)
    if chosen.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    torch = optional("torch")
    if torch is not None:
        torch.set_num_threads(chosen.threads)
    names = ("numpy", "torch", "jax")
    print(f"{'':52}{'ms':>10}{''.join(f'{n:>8}' for n in names)}{'best':>8}   (times tenferro's time)")
    ratios = []
    for name, equation, shapes, path in instances(chosen.only):
        medians = measured(contestants(equation, shapes, path, chosen.without), chosen.rounds, chosen.busy)
        ours = medians["tenferro"]
        row = "".join(f"{medians[k] / ours:8.2f}" if k in medians else f"{'-':>8}" for k in names)
        best = min([medians[k] for k in names if k in medians], default=math.nan) / ours
        ratios.append(best)
        print(f"{name[:50]:52}{ours * 1e3:10.3f}{row}{best:8.2f}", flush=True)
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
