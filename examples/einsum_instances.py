"""Public einsum problems, evaluated and differentiated.

The folder `data/einsum` holds tensor networks from public benchmark suites as equations, shapes and contraction paths:
matrix and outer products, chains of matrices, matrix product states, language and graphical models, up to 415 operands
and 650 labels, so far beyond what letters can name. `data/einsum/SOURCE.md` names their sources and licences.

Each is filled with random positive numbers, contracted by `tenferro_einsum` along the path that needs the fewest
operations, and differentiated with respect to all of its operands. Three checks follow:

- *value*: against opt_einsum on NumPy arrays (timed too), along the path with the smallest intermediates;
- *slope*: the gradient along a random direction, against a central difference;
- *Euler*: a network is linear in each operand, f(..., a x, ...) = a f(..., x, ...), so <df/dx, x> = f for every one.

Run it with `python3 dev run examples/einsum_instances.py`, or with names: `... einsum_instances.py bin_ str_`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_einsum import ContractionPlan, plan
from tenferro_tensor import Array
from tenferro_tensor_core import ArgumentError

try:
    import opt_einsum
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"einsum_instances: the package {missing.name!r} is missing; this example needs opt_einsum, threadpoolctl and "
        "rich: run it with `python3 dev run examples/einsum_instances.py`, which installs them, "
        "or `pip install opt_einsum threadpoolctl rich`"
    ) from missing

DATA = Path(__file__).resolve().parent.parent / "data" / "einsum"
RATE = 2e9
"""Multiplications per second by which the time of a contraction is foreseen before it runs."""
GRADIENT = 6
"""How many times as long as a contraction its gradient may take."""


@dataclass(frozen=True)
class Instance:
    """A tensor network without its numbers.

    Attributes:
        equation: einsum subscripts, one character per label.
        shapes: shapes of the operands.
        path: the contraction path with the fewest operations; `thrifty` is the one with the smallest intermediates.
        log10_flops: operations along `path`, as the benchmark states them.
        log2_size: elements of the largest intermediate along `path`.
    """

    name: str
    equation: str
    shapes: tuple[tuple[int, ...], ...]
    path: tuple[tuple[int, ...], ...]
    thrifty: tuple[tuple[int, ...], ...]
    log10_flops: float
    log2_size: float

    @classmethod
    def load(cls, path: Path) -> Instance:
        """Read an instance.

        Raises:
            ArgumentError: the file is not an instance.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            fast, thrifty = found["paths"]["opt_flops"], found["paths"]["opt_size"]
            return cls(
                name=found["name"],
                equation=found.get("format_string_rowmajor") or found["format_string"],
                shapes=tuple(map(tuple, found["shapes"])),
                path=tuple(map(tuple, fast["path"])),
                thrifty=tuple(map(tuple, thrifty["path"])),
                log10_flops=fast["log10_flops"],
                log2_size=fast["log2_size"],
            )
        except (ValueError, KeyError, TypeError) as cause:
            raise ArgumentError(f"{path.name} is not an einsum instance: {cause!r}") from cause

    def operands(self, seed: int) -> list[np.ndarray[Any, Any]]:
        """Random positive numbers; the more terms the network sums, the smaller, so that results are near one."""
        inputs, output = self.equation.split("->")
        extent = {label: n for term, shape in zip(inputs.split(","), self.shapes) for label, n in zip(term, shape)}
        terms = sum(math.log(n) for label, n in extent.items() if label not in output)
        scale = math.exp(-terms / len(self.shapes))
        rng = np.random.default_rng(seed)
        return [scale * rng.uniform(0.5, 1.5, shape) for shape in self.shapes]

    def plan(self) -> ContractionPlan:
        """The prepared contraction."""
        specs = [tr.Spec(shape, tr.float64) for shape in self.shapes]
        return plan(self.equation, *specs, optimize=self.path)


@dataclass(frozen=True)
class Result:
    """Times in milliseconds and relative errors, nan where not measured; `skipped` says what was not, and why."""

    forward: float = math.nan
    numpy: float = math.nan
    gradient: float = math.nan
    value: float = math.nan
    slope: float = math.nan
    euler: float = math.nan
    skipped: str = ""

    @property
    def passed(self) -> bool:
        """Whether no check failed; a difference of values loses half of their digits."""
        return not (self.value > 1e-10 or self.slope > 1e-6 or self.euler > 1e-10)

    @property
    def verdict(self) -> str:
        """The last column of the table."""
        return self.skipped if self.passed and self.skipped else "ok" if self.passed else "FAILED"


def clocked(run: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds that a call takes, and its result; a short call is repeated, so that plans are made and warm."""
    for _ in range(3):
        start = time.perf_counter()
        out = run()
        seconds = time.perf_counter() - start
        if seconds > 0.2:
            break
    return 1e3 * seconds, out


def distance(x: Any, y: Any) -> float:
    """Relative difference in the largest norm."""
    return float(np.max(np.abs(x - y), initial=0.0) / np.max(np.abs(y), initial=1e-300))


def examine(instance: Instance, seconds: float, seed: int) -> Result:
    """Evaluate, differentiate and check one instance, as far as that can be done in the time given."""
    if 10**instance.log10_flops / RATE > seconds:
        return Result(skipped=f"skipped: over {seconds:g} s")
    numbers = instance.operands(seed)
    operands = [tr.asarray(x) for x in numbers]
    contraction = instance.plan()
    forward, out = clocked(lambda: contraction(*operands))
    numpy, reference = clocked(
        lambda: opt_einsum.contract(instance.equation, *numbers, optimize=list(instance.thrifty))
    )
    value = distance(np.asarray(out), reference)
    if GRADIENT * forward > 1e3 * seconds:
        return Result(forward, numpy, value=value, skipped=f"gradient skipped: over {seconds:g} s")

    rng = np.random.default_rng(seed + 1)
    weight = tr.asarray(rng.uniform(0.5, 1.5, out.shape))

    def weighted(*xs: Array) -> Any:
        return tr.sum(weight * contraction(*xs))

    slope = value_and_grad(weighted, argnums=range(len(operands)))
    gradient, (total, slopes) = clocked(lambda: slope(*operands))
    f = float(total)
    # A direction relative to each number, so that a step is small against all of them.
    ways = [x * rng.normal(size=x.shape) for x in numbers]
    along = sum(float(np.vdot(np.asarray(g), way)) for g, way in zip(slopes, ways))
    h = 1e-5
    there, back = (float(weighted(*[tr.asarray(x + s * way) for x, way in zip(numbers, ways)])) for s in (h, -h))
    return Result(
        forward,
        numpy,
        gradient,
        value,
        slope=abs((there - back) / (2 * h) - along) / (abs(along) + abs(f)),
        euler=max(abs(float(np.vdot(np.asarray(g), x)) / f - 1) for g, x in zip(slopes, numbers)),
    )


def row(instance: Instance, result: Result) -> tuple[str, ...]:
    """A line of the table."""

    def cells(numbers: Sequence[float], form: str) -> list[str]:
        return ["" if math.isnan(x) else format(x, form) for x in numbers]

    head = (instance.name, str(len(instance.shapes)), f"10^{instance.log10_flops:.1f}")
    times = cells((result.forward, result.gradient, result.numpy), ".2f")
    errors = cells((result.value, result.slope, result.euler), ".0e")
    return (*head, *times, *errors, result.verdict)


def chosen(prefixes: Sequence[str], folder: Path) -> list[Instance]:
    """The instances whose names begin with one of the prefixes; all without any, the cheapest first.

    Raises:
        ArgumentError: a prefix fits no instance, or there are none at all.
    """
    found = sorted((Instance.load(path) for path in folder.glob("*.json")), key=lambda x: (x.log10_flops, x.name))
    if not found:
        raise ArgumentError(f"there are no instances in {str(folder)!r}; give a folder of .json files")
    for prefix in prefixes:
        if not any(x.name.startswith(prefix) for x in found):
            raise ArgumentError(f"no instance is named {prefix!r}...; there are {', '.join(x.name for x in found)}")
    return [x for x in found if not prefixes or x.name.startswith(tuple(prefixes))]


def main(argv: Sequence[str] | None = None) -> int:
    """Examine the instances and print the table; status 1 where a check failed."""
    parser = argparse.ArgumentParser(
        prog="einsum_instances",
        description="Evaluate, differentiate and check public einsum problems.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("names", nargs="*", default=[], help="beginnings of the names to take; all by default")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the instances")
    parser.add_argument("--seconds", type=float, default=20.0, help="skip what would take longer")
    parser.add_argument("--seed", type=int, default=0, help="seed of the numbers")
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads")
    options = parser.parse_args(argv)
    if options.threads < 1:
        parser.error(f"--threads is {options.threads}; give an integer of at least 1")
    if options.seed < 0:
        parser.error(f"--seed is {options.seed}; give an integer of at least 0")
    if not options.seconds > 0:
        parser.error(f"--seconds is {options.seconds}; give a positive number")
    try:
        instances = chosen(options.names, options.data)
    except ArgumentError as error:
        parser.error(str(error))

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # in a file or a pipe nothing needs to fit a window
    table = Table(title="Einsum instances, float64")
    table.add_column("instance", overflow="fold")
    for heading in ("operands", "flops", "forward ms", "gradient ms", "opt_einsum ms", "value", "slope", "Euler"):
        table.add_column(heading, justify="right")
    table.add_column("check")
    passed = True
    with threadpool_limits(options.threads):
        for instance in track(instances, "contracting", console=console, transient=True):
            result = examine(instance, options.seconds, options.seed)
            passed &= result.passed
            table.add_row(*row(instance, result))
    console.print(table)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
