"""The ways a compiled function runs, each of which writes in place on its own: by steps, by loop nests, natively."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import numpy as np

import tenferro_runtime as tr
from runtime_rooms import by_steps
from tenferro_cpu import CpuPool
from tenferro_runtime.lowering import _reductions, _values, lower
from tenferro_runtime.passes import optimise
from tenferro_runtime.running import fusion
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import plan_arena
from tenferro_tensor_core import UnsupportedError

Results = list[np.ndarray[Any, Any]]


def leaves(result: Any) -> Results:
    """The arrays of a result."""
    return [np.array(x) for x in tr.tree_leaves(result)]


def tiers(f: Callable[..., Any], args: Sequence[Any]) -> Iterator[tuple[str, Results]]:
    """The results of `f` on arrays in each tier, with the name of the tier.

    Args:
        f: the function.
        args: the arrays.
    """
    yield from compiled_tiers(f, args)
    program = optimise(tr.trace(f, *args))
    yield "single steps", leaves(by_steps(program)(*[np.array(x) for x in args]))
    with ExitStack() as few:
        for module in (_values, _reductions):
            few.enter_context(patch.object(module, "REGISTERS_MAX_ELEMENTS", 3))
        try:
            nests = lower(program)
        except UnsupportedError:
            nests = None
    if nests is not None:
        raws = [np.array(x) for x in args]
        yield "loop nests", leaves(interpret(nests, raws, arena=plan_arena(nests)))
    donating = tr.compile(f, donate=tuple(range(len(args))))
    for call in ("first call", "second call", "native"):
        yield f"donated, {call}", leaves(donating(*[x + 0 for x in args]))
        fusion.wait()
    with CpuPool(index=1):
        yield "on a pool", leaves(tr.compile(f)(*[x.with_compute_device("cpu:1") for x in args]))


def compiled_tiers(f: Callable[..., Any], args: Sequence[Any]) -> Iterator[tuple[str, Results]]:
    """Ordinary and deterministic programs."""
    for tier in COMPILED.values():
        yield from tier(f, args)


def _compiled(f: Callable[..., Any], args: Sequence[Any], name: str) -> Iterator[tuple[str, Results]]:
    """The first call, which runs by steps, and a call once machine code is there."""
    compiled = tr.compile(f, deterministic=name == "deterministic")
    yield f"{name}, first call", leaves(compiled(*args))
    fusion.wait()
    yield f"{name}, native", leaves(compiled(*args))


COMPILED: Final[dict[str, Callable[..., Iterator[tuple[str, Results]]]]] = {
    name: partial(_compiled, name=name) for name in ("ordinary", "deterministic")
}
"""The two kinds of programs."""


def agree(f: Callable[..., Any], args: Sequence[Any], ways: Any = tiers, tolerance: float = 1e-9) -> None:
    """Assert that tiers give the values of calls on concrete arrays and leave the arguments unchanged."""
    before = [np.array(x) for x in args]
    want = leaves(f(*args))
    for name, got in ways(f, args):
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape, name
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=name)
        for x, y in zip(args, before, strict=True):
            np.testing.assert_array_equal(np.array(x), y, err_msg=f"an argument, after {name}")
