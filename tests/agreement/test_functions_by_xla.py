"""Every public function and primitive by XLA: values, gradients, and lanes of vmap, many of them in one module.

A part of the functions here; all of them with ``TENFERRO_THOROUGH=1``, which takes minutes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import vjp
from tenferro_tensor_core import (
    ArgumentError,
    DTypeError,
    GradientError,
    MissingRuleError,
    PlacementError,
    TracingError,
    UnsupportedError,
)
from tenferro_xla import XlaExecutor
from thorough import THOROUGH
from vmap_calls import CALLS, OF_DATA
from vmap_table import DTYPES, NotTakenError, lanes_of, leaves_of, smooth

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

MODULES = 60
CHOSEN = range(MODULES) if THOROUGH else (7,)
REFUSED = {
    *OF_DATA, "primitives.transfer", "tenferro_runtime.real_if_close", "tenferro_linalg.funm", "tenferro_linalg.ldl",
}  # fmt: skip
"""What programs of XLA do not have: sizes and dtypes that depend on data, and primitives without a lowering."""

TOLERANCE = 1e-9


class Job(NamedTuple):
    """A function and its operands."""

    what: str
    f: Callable[..., Any]
    operands: list[Any]


def pulled(f: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The cotangents of the operands for cotangents 1."""

    def pull(*xs: Any) -> list[Any]:
        outs, back = vjp(f, *xs)
        return list(back([tr.ones_like(x) for x in outs]))

    return pull


def operands(name: str, f: Callable[..., Any], dtype: np.dtype[Any]) -> list[np.ndarray[Any, Any]] | None:
    """Arrays of a dtype, or ``None`` where the function does not take it."""
    try:
        xs = [make(dtype) for make in CALLS[name].operands]
        f(*map(tr.asarray, xs))
    except (ArgumentError, DTypeError):
        return None
    return xs


def gradient(f: Callable[..., Any], xs: list[np.ndarray[Any, Any]]) -> Callable[..., list[Any]] | None:
    """The gradient of a function where it has one."""
    try:
        pull = pulled(smooth(f, xs))
        pull(*map(tr.asarray, xs))
    except (NotTakenError, GradientError, MissingRuleError):
        return None
    return pull


def jobs(name: str) -> Iterator[Job]:
    """The ways to call a function, of which it meets each, with dtypes by turns."""
    f, turn = leaves_of(CALLS[name].f), [*CALLS].index(name)
    taken = {dtype: xs for dtype in DTYPES if (xs := operands(name, f, dtype)) is not None}
    lanes = tr.vmap(f)
    ways = (
        [Job(f"{name} {dtype}", f, list(map(tr.asarray, xs))) for dtype, xs in taken.items()],
        [Job(f"vmap of {name} {dtype}", lanes, [tr.asarray(lanes_of(x)) for x in xs]) for dtype, xs in taken.items()],
        [
            Job(f"gradient of {name} {dtype}", pull, list(map(tr.asarray, xs)))
            for dtype, xs in taken.items()
            if (pull := gradient(f, xs)) is not None
        ],
    )
    for at, found in enumerate(ways):
        yield from found if THOROUGH or not found else [found[(turn + at) % len(found)]]


def whole(found: list[Job]) -> Callable[..., list[list[Any]]]:
    """All of them as one function of the operands of all."""

    def run(*flat: Any) -> list[list[Any]]:
        rest, out = list(flat), []
        for job in found:
            count = len(job.operands)
            out.append(list(job.f(*rest[:count])))
            del rest[:count]
        return out

    return run


def compare(what: str, got: Any, want: Any) -> None:
    """Near elements; infinities and NaN in the same places."""
    assert got.spec is want.spec, (what, got.spec, want.spec)
    x, y = np.asarray(got), np.asarray(want)
    scale = float(np.abs(y[np.isfinite(y)]).max(initial=1.0)) if y.dtype.kind in "fc" else 0.0
    tolerance = TOLERANCE if y.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale, err_msg=what)


@pytest.mark.parametrize("part", CHOSEN)
def test_functions_by_xla(part: int) -> None:
    found = [job for name in [n for n in CALLS if n not in REFUSED][part::MODULES] for job in jobs(name)]
    wanted = [list(job.f(*job.operands)) for job in found]
    flat = [x for job in found for x in job.operands]
    got = iter(XlaExecutor().run(tr.trace(whole(found), *flat), *flat))
    for job, want in zip(found, wanted, strict=True):
        for y in want:
            compare(job.what, next(got), y)


def test_what_is_refused_has_no_program() -> None:
    for name in REFUSED:
        f = leaves_of(CALLS[name].f)
        xs = [tr.asarray(make(DTYPES[0])) for make in CALLS[name].operands]
        with pytest.raises((TracingError, UnsupportedError, PlacementError)):
            XlaExecutor().compile(tr.trace(f, *xs))
