"""The ways a compiled function runs, each of which writes in place on its own: by steps, by loop nests, natively."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_cpu import CpuPool
from tenferro_runtime import fusion
from tenferro_runtime.lowering import lower
from tenferro_runtime.passes import optimise
from tenferro_runtime.running._execute import by_steps
from tenferro_tensor.loop_ir import interpret, plan_arena
from tenferro_tensor_core import UnsupportedError

Results = list[np.ndarray[Any, Any]]


def leaves(result: Any) -> Results:
    """The arrays of a result."""
    return [np.array(x) for x in tr.tree_leaves(result)]


def tiers(f: Callable[..., Any], args: Sequence[Any], *, pools: bool = False) -> Iterator[tuple[str, Results]]:
    """The results of `f` on arrays in each tier, with the name of the tier.

    Args:
        f: the function.
        args: the arrays; each tier gets copies, which must be unchanged after it.
        pools: whether to run it on another pool of threads too.
    """
    program = optimise(tr.trace(f, *args))
    yield "single steps", leaves(by_steps(program)(*[np.array(x) for x in args]))
    try:
        nests = lower(program)
    except UnsupportedError:
        pass
    else:
        raws = [np.array(x) for x in args]
        yield "loop nests", leaves(interpret(nests, raws, arena=plan_arena(nests)))
    for name, deterministic in (("compiled", False), ("deterministic", True)):
        compiled = tr.compile(f, deterministic=deterministic)
        yield f"{name}, first call", leaves(compiled(*args))
        yield f"{name}, second call", leaves(compiled(*args))
        fusion.wait()
        yield f"{name}, native", leaves(compiled(*args))
    donating = tr.compile(f, donate=tuple(range(len(args))))
    for call in ("first call", "second call", "native"):
        yield f"donated, {call}", leaves(donating(*[x + 0 for x in args]))
        fusion.wait()
    if pools:
        with CpuPool(index=1):
            yield "on a pool", leaves(tr.compile(f)(*[x.with_compute_device("cpu:1") for x in args]))


def agree(f: Callable[..., Any], args: Sequence[Any], *, pools: bool = False, tolerance: float = 1e-9) -> None:
    """Assert that all tiers give the values of calls on concrete arrays and leave the arguments unchanged."""
    before = [np.array(x) for x in args]
    want = leaves(f(*args))
    for name, got in tiers(f, args, pools=pools):
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape, name
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=name)
        for x, y in zip(args, before, strict=True):
            np.testing.assert_array_equal(np.array(x), y, err_msg=f"an argument, after {name}")
