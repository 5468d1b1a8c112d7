"""Memory of the gradients of the programs of `loops.py` beside `jax.jit`: `python3 dev bench loop_memory --size small`.

Bytes that a settled call of value and gradient allocates at once, results included and arguments not: ours as
`tracemalloc` sees them, JAX's as XLA has planned them (temporaries and outputs). A ratio above 1 means that tenferro
needs more. `--floor` leaves out programs for which both need fewer bytes, as Python objects are in ours.
"""

from __future__ import annotations

import argparse
import math
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

from contestants import limit

limit(1)

import jax  # noqa: E402 - after the thread settings
from loop_programs import LoopProgram, every  # noqa: E402
from loop_programs.record import for_jax, for_tenferro, loss_of  # noqa: E402

import tenferro_runtime as tr  # noqa: E402
from tenferro_ad import value_and_grad  # noqa: E402


def peak(call: Callable[[], Any]) -> int:
    """Bytes that a call allocates at once."""
    tracemalloc.start()
    call()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    call()
    found = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return found


def ours(program: LoopProgram, size: str) -> int:
    f = tr.compile(value_and_grad(loss_of(for_tenferro(), program.traced), argnums=program.gradient))
    given = [tr.asarray(x) for x in program.arguments(size)]
    for _ in range(2):
        f(*given)
        tr.fusion.wait()
    return peak(lambda: f(*given))


def theirs(program: LoopProgram, size: str) -> int:
    f = jax.jit(jax.value_and_grad(loss_of(for_jax(), program.traced), argnums=program.gradient))
    plan = f.lower(*program.arguments(size)).compile().memory_analysis()
    return int(plan.temp_size_in_bytes + plan.output_size_in_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose family and name, as family/name, have this pattern")
    parser.add_argument("--size", default="medium")
    parser.add_argument("--floor", type=float, default=1e5, metavar="BYTES")
    chosen = parser.parse_args()
    print(f"{'gradient of':44} {'tenferro':>10} {'JAX':>10} {'ratio':>6}   (megabytes)")
    ratios = []
    for program in every().values():
        wanted = re.search(chosen.only, f"{program.family}/{program.name}") and chosen.size in program.sizes
        if not (wanted and program.gradient):
            continue
        try:
            b = theirs(program, chosen.size)
        except ValueError:  # loops whose bounds are computed have no gradient there
            continue
        a = ours(program, chosen.size)
        if max(a, b) >= chosen.floor:
            ratios.append(a / b)
            print(f"{program.name:44} {a / 1e6:10.3f} {b / 1e6:10.3f} {a / b:6.2f}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    print(f"{len(ratios)} programs: geometric mean {mean:.2f}, {sum(r > 1.1 for r in ratios)} above 1.1")


if __name__ == "__main__":
    main()
