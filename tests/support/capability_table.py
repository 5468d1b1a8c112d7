"""What every public function of arrays can do: dtypes, derivatives, batches, and the backends that run it.

``python3 dev run tests/support/capability_table.py`` writes the page ``docs/reference/capabilities.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

import gpu_table
import reference_pages
import tenferro_ad as ad
import tenferro_runtime as tr
import xla_table
from installed_cupy import installed_cupy
from reference_groups import PAGES
from tenferro_runtime.extension import call
from tenferro_runtime.ir import inner_programs
from tenferro_runtime.lowering import lower
from tenferro_tensor import Primitive
from tenferro_tensor_core import (
    ArgumentError,
    DTypeError,
    GradientError,
    MissingRuleError,
    TenferroError,
    TracingError,
    UnsupportedError,
)
from vmap_calls import CALLS
from vmap_table import NotTakenError, lanes_of, leaves_of, smooth

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "capabilities.md"
KINDS: Final = {
    "b": ("bool",),
    "i": ("int64", "int32"),
    "f": ("float64", "float32"),
    "c": ("complex128", "complex64"),
}
DERIVED: Final = ("float64", "complex128")
YES, NO, NONE = "✓", "✗", "–"

Function = Callable[..., Any]
Arrays = list[np.ndarray[Any, Any]]

HEAD: Final = f"""# What every function can do

The table is written by `python3 dev run tests/support/capability_table.py`: it calls, traces and differentiates each
function on an example, and looks up the primitives of its program. The tests compare it anew. Values and derivatives
are checked elsewhere; [What vmap does with every function](vmap.md) has the outcome for batches in detail.

- *dtypes*: kinds of operands: booleans (b), integers (i), floats (f), complex numbers (c).
- *traced*: it compiles; {NO} where it needs the elements.
- *jvp*, *vjp*, *2nd*: forward, reverse, and forward over reverse; {NONE} where the result has no derivative, such as
  indices and booleans.
- *vmap*: it takes a batch.
- *native*: the whole program becomes one native function on the CPU; otherwise it runs step by step.
- *CUDA*: all of its primitives have kernels on GPUs; {NO} where the CPU must help, under `host_fallback()`. The kernel
  of `ldl` refuses when it runs.
- *XLA*: all of its primitives are lowered to StableHLO.

[Special functions](../special-functions.md) and [random numbers](../random-numbers.md) have pages of their own.
"""

COLUMNS: Final = ("function", "dtypes", "traced", "jvp", "vjp", "2nd", "vmap", "native", "CUDA", "XLA")


def operands(name: str, dtype: str) -> Arrays | None:
    """The operands of a call, or ``None`` where the function does not take the dtype."""
    try:
        xs = [make(np.dtype(dtype)) for make in CALLS[name].operands]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaves_of(CALLS[name].f)(*map(tr.asarray, xs))
    except (ArgumentError, DTypeError, TypeError, ValueError):
        return None
    except TenferroError:  # it takes the dtype, but the example rounded to integers is a singular matrix
        return xs
    return xs


def mark(attempt: Callable[[], Any]) -> str:
    """Whether something works; nothing where it has no meaning."""
    try:
        attempt()
    except NotTakenError:
        return NONE
    except (GradientError, MissingRuleError, TracingError, UnsupportedError):
        return NO
    return YES


def total(f: Function) -> Function:
    """The sum of the real parts of all results."""

    def summed(*xs: Any) -> Any:
        parts = [tr.sum(tr.real(x)) for x in f(*xs)]
        return sum(parts[1:], parts[0])

    return summed


def derivatives(f: Function, xs: Arrays) -> tuple[str, str, str]:
    """The marks of jvp, vjp and forward over reverse."""
    tensors, tangents = tuple(map(tr.asarray, xs)), tuple(tr.asarray(0.3 * x + 0.1) for x in xs)

    def gradient() -> Function:
        return ad.grad(total(smooth(f, xs)), argnums=tuple(range(len(xs))))

    return (
        mark(lambda: ad.jvp(smooth(f, xs), tensors, tangents)),
        mark(lambda: gradient()(*tensors)),
        mark(lambda: ad.jvp(gradient(), tensors, tangents)),
    )


def primitives(program: Any) -> Iterator[Primitive]:
    """The primitives of a program and of those inside it."""
    for eq in program.equations:
        yield eq.op.primitive
        for inner in inner_programs(eq.op.params):
            yield from primitives(inner)


@contextmanager
def simulated_gpu() -> Iterator[None]:
    """The backend of CUDA, on a simulated CuPy."""
    with installed_cupy():
        tr.zeros(1, device="cuda:0")
        yield


@cache
def on_cuda(primitive: Primitive) -> bool:
    """Whether GPUs compute a primitive."""
    return primitive is call or gpu_table.one_by_one(primitive) != "CPU"


@cache
def on_xla(primitive: Primitive) -> bool:
    """Whether XLA computes a primitive."""
    return bool(xla_table.how(primitive.name, primitive))


def cells(name: str) -> tuple[str, ...]:
    """The cells of a function's line, but the first."""
    f = leaves_of(CALLS[name].f)
    found = {
        kind: next((xs for d in names if (xs := operands(name, d)) is not None), None) for kind, names in KINDS.items()
    }
    kinds = "".join(kind for kind, xs in found.items() if xs is not None)
    xs = next(xs for kind in "fcib" if (xs := found[kind]) is not None)
    slopes = derivatives(f, xs) if xs and all(x.dtype.name in DERIVED for x in xs) else (NONE,) * 3
    batch = mark(lambda: tr.trace(tr.vmap(f), *map(lanes_of, xs))) if xs else NONE
    try:
        program = tr.trace(f, *xs)
    except (TracingError, UnsupportedError):
        return kinds, NO, *slopes, batch, NONE, NONE, NONE
    native = mark(lambda: lower(program))
    used = set(primitives(program))
    return kinds, YES, *slopes, batch, native, *(YES if all(map(runs, used)) else NO for runs in (on_cuda, on_xla))


def row(name: str) -> str:
    """A line of the table."""
    label = name.removeprefix("tenferro_runtime.") if name.startswith("tenferro_runtime.") else name
    return f"| `{label}` | {' | '.join(cells(name))} |"


def grouped() -> dict[str, list[str]]:
    """The calls of public functions, by the page of the reference that describes the function."""
    pages = {name: entry.page for entry in reference_pages.entries() for name in entry.names}
    groups: dict[str, list[str]] = {slug: [] for slug in PAGES}
    for name in CALLS:
        with suppress(KeyError):
            groups[pages[name.partition(",")[0]]].append(name)
    return {slug: names for slug, names in groups.items() if names}


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    with simulated_gpu():
        for slug, names in grouped().items():
            lines += [f"\n## {PAGES[slug].title}\n", f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
            lines += [row(name) for name in names]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
