"""`compare`: why one function is slower than another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median
from time import perf_counter_ns
from typing import Any, Final

from tenferro_runtime._counters import COUNTERS
from tenferro_runtime.compiling._compile import compile
from tenferro_runtime.compiling._entry import Entrance
from tenferro_runtime.inspection._calls import transfers
from tenferro_runtime.inspection._differences import differences, paired
from tenferro_runtime.ir._program import Program
from tenferro_runtime.lowering import lower
from tenferro_runtime.reports import Comparison, Side
from tenferro_runtime.running.fusion import wait
from tenferro_runtime.runtime import CHANGES
from tenferro_runtime.trees._tree import flatten
from tenferro_tensor import Array, get_backend
from tenferro_tensor.loop_ir import Call, For, Foreign, Switch, While
from tenferro_tensor_core import ArgumentError, TenferroError

WARM_UP_CALLS: Final = 3
"""Warm-up calls, which trace and compile."""


def compare(
    old: Program | Callable[..., Any], new: Program | Callable[..., Any], /, *args: Any, repeat: int = 10, **kwargs: Any
) -> Comparison:
    """Measure two functions on the same arguments, put their steps in line, and say what accounts for the difference.

    Args:
        old: a compiled function, a program, or a function, which is called as it is; its steps are those that it would
            have when compiled.
        new: another one of the same arguments.
        args: concrete arguments.
        repeat: number of calls that are measured, after some that are not.
        kwargs: the same by name, for functions.

    Returns:
        The comparison; it prints as a sentence and tables, and shows them in a notebook.

    Raises:
        ArgumentError: `repeat` is not positive.
        ProgramError: a compiler runs one of the programs as a whole, so that its steps cannot be measured.

    >>> a, x = tr.ones((50, 50)), tr.ones(50)
    >>> found = tr.compare(lambda a, x: a @ (a @ x), lambda a, x: a @ a @ x, a, x)
    >>> [d.kind for d in found.costs], "times as much in its contractions" in found.costs[0].text
    (['contraction'], True)
    """
    if repeat < 1:
        raise ArgumentError(f"compare measures at least one call, got {repeat=}")
    first, second = (_side(f, args, kwargs, repeat) for f in (old, new))
    if first.title == second.title:
        first, second = replace(first, title=f"{first.title} (old)"), replace(second, title=f"{second.title} (new)")
    steps = paired(first.profile.steps, second.profile.steps)
    return Comparison(first, second, steps, differences(first, second), differences(second, first))


def _side(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int) -> Side:
    known = isinstance(f, (Program, Entrance))
    if isinstance(f, Program):
        call, program, title, reason = f.run, f, "program", ""
        profile, explained = f.profile(*args, repeat=repeat), f.explain()
    else:
        compiled: Any = f if known else compile(f)
        call, title = f, getattr(f, "__name__", repr(f))
        title = "function" if title == "<lambda>" else title
        program, profile = compiled.program(*args, **kwargs), compiled.profile(*args, **kwargs)
        explained, reason = compiled.explain(*args, **kwargs), ["", *compiled.cache_info().reasons][-1]
    ms, traces = _measured(call, args, kwargs, repeat)
    with transfers() as log:
        call(*args, **kwargs)
    return Side(
        title, known, ms, profile, explained.flops, explained.bytes, explained.peak_bytes,
        _nests(program) if known and profile.native_bytes is not None else None, traces, reason, log.count, log.nbytes,
        program.memo.get(CHANGES, ()),
    )  # fmt: skip


def _measured(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int) -> tuple[float, float]:
    """Milliseconds per call, and traces per call."""

    def once() -> int:
        start = perf_counter_ns()
        result = call(*args, **kwargs)
        for kind in {x.device.kind for x in flatten(result)[0] if isinstance(x, Array)}:
            get_backend(kind).synchronize()
        return perf_counter_ns() - start

    for _ in range(WARM_UP_CALLS):
        once()
    wait()
    before = COUNTERS.traces
    each = median([once() for _ in range(repeat)]) / 1e6
    return each, (COUNTERS.traces - before) / repeat


def _nests(program: Program) -> int | None:
    """Loop nests of the native function of a program."""
    try:
        function = lower(program)
    except TenferroError:
        return None
    return sum([isinstance(s, (For, While, Call, Foreign, Switch)) for s in function.body])
