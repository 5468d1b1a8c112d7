"""`find_nan`: the first step that produces a NaN or an infinity, with its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tenferro_runtime.compiling._trace import trace
from tenferro_runtime.control_flow.primitives import scan, while_loop
from tenferro_runtime.inspection._running import fitting, steps, store
from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_runtime.lowering.native._cost import has_loops
from tenferro_runtime.reports import BadStep, Statistics
from tenferro_runtime.running._execute import WATCH, by_steps
from tenferro_runtime.trees._tree import flatten
from tenferro_runtime.trees._tree_code import wrapped
from tenferro_tensor import REGISTRY, Array, Tensor
from tenferro_tensor_core import is_inexact


def find_nan(f: Program | Callable[..., Any], /, *args: Any, infinities: bool = True, **kwargs: Any) -> BadStep | None:
    """Find the first step that produces a NaN or an infinity, with statistics of its operands.

    A function is traced and run step by step. It may be a derivative, whose steps also have source lines. For a loop,
    only carries and rows are checked, and the first iteration with a bad number is run again step by step; this takes
    little more time and memory than an ordinary run.

    Args:
        f: a program, or a function of arrays in any containers.
        args: concrete arguments.
        infinities: whether infinities count; a logarithm of zero that `where` discards, for instance, is harmless.
        kwargs: keyword arguments of a function.

    Returns:
        The step and the iteration of each enclosing loop, or ``None`` if all values are finite. If an input or a
        constant is not finite, it is named instead.

    >>> import tenferro_runtime as tr
    >>> tr.find_nan(lambda x: tr.sqrt(x - 2) * 3, tr.asarray([1.0, 6.0])).results[0].nan
    1
    """
    if not isinstance(f, Program):
        f, args = trace(f, *args, **kwargs), tuple(flatten((args, kwargs))[0])
    program, values = fitting(f, args)
    for v, value in (*zip(program.input_ids, values, strict=True), *program.constants.items()):
        if _bad(value, infinities):
            what = "a constant" if v in program.constants else "an input"
            return BadStep(f"{program.label(v)} is {what}", (), "", (), (_statistics(program.label(v), value),))
    try:
        with np.errstate(all="ignore"):
            _walk(program, values, infinities)
    except _Found as found:
        return found.bad
    return None


class _Found(Exception):
    """Raised to report a bad step through the kernel that ran it."""

    def __init__(self, bad: BadStep) -> None:
        self.bad, self.iteration = bad, 0


def _walk(program: Program, values: tuple[Tensor, ...], infinities: bool) -> tuple[Any, ...]:
    """The results of a program; raises `_Found` for a bad step."""
    env: dict[int, Any] = {}
    for i, (eq, operands) in enumerate(steps(program, values, env)):
        try:
            results = _watched(eq, operands, infinities) if inner_programs(eq.op.params) else eq.op(*operands)
        except _Found as found:
            raise _Found(_within(found, eq, i)) from None
        if any(_bad(x, infinities) for x in store(env, eq, results)):
            made = [_statistics(program.label(v), env[v]) for v in eq.results]
            read = [_statistics(program.label(v), x) for v, x in zip(eq.operands, operands, strict=True)]
            text = program.show(eq).partition("  #")[0]
            raise _Found(BadStep(f"step {i}: {text}", (i,), eq.where, tuple(read), tuple(made)))
    return tuple([env[v] for v in program.output_ids])


def _watched(eq: Equation, operands: tuple[Any, ...], infinities: bool) -> Any:
    """The results of an equation that runs programs; its kernel is made again while programs are watched."""
    ins = tuple([x.spec for x in operands if isinstance(x, Tensor)])
    make = REGISTRY.find("kernel", eq.op.primitive, ins[0].place.device.kind) if ins else None
    if make is None:
        return eq.op(*operands)
    inferred = eq.op.infer(*ins)
    outs = inferred if isinstance(inferred, tuple) else (inferred,)
    token = WATCH.set(lambda inner: _WatchedProgram(inner, infinities))
    try:
        raws = make(ins, outs, **eq.op.params)(*[x._data if isinstance(x, Tensor) else x for x in operands])
    finally:
        WATCH.reset(token)
    raws = raws if isinstance(raws, tuple | list) else (raws,)
    return tuple([wrapped(raw, spec) for raw, spec in zip(raws, outs, strict=True)])


class _WatchedProgram:
    """A program that an equation runs; raises at the first run whose results contain a bad number.

    A program without loops runs normally, and again step by step on the same operands if its results are bad. A program
    with loops always runs step by step, because a NaN may keep a loop from ending.
    """

    def __init__(self, program: Program, infinities: bool) -> None:
        self.program, self.infinities, self.iteration = program, infinities, -1
        self.quick = None if has_loops(program) else self._unwatched(by_steps, program)

    def __call__(self, *raws: Any) -> tuple[Any, ...]:
        self.iteration += 1
        if self.quick is not None:
            results: tuple[Any, ...] = self._unwatched(self.quick, *raws)
            if not any(_bad(x, self.infinities) for x in results):
                return results
        values = tuple([wrapped(raw, spec) for raw, spec in zip(raws, self.program.inputs, strict=True)])
        try:
            return tuple([x._data for x in _walk(self.program, values, self.infinities)])
        except _Found as found:
            found.iteration = self.iteration
            raise

    @staticmethod
    def _unwatched(f: Callable[..., Any], *args: Any) -> Any:
        token = WATCH.set(None)
        try:
            return f(*args)
        finally:
            WATCH.reset(token)


def _within(found: _Found, eq: Equation, i: int) -> BadStep:
    """The bad step of a nested program as a step of the outer program."""
    bad, name = found.bad, eq.op.primitive.name
    around, iteration = f"in step {i}: {name}", None
    if eq.op.primitive in (scan, while_loop):
        iteration, at = found.iteration, f" at {eq.where}" if eq.where else ""
        around = f"in iteration {iteration} (from 0) of the {name}{at}, step {i}"
    path, iterations = (i, *bad.path), (iteration, *bad.iterations)
    return replace(bad, step=f"{bad.step}, {around}", path=path, where=bad.where or eq.where, iterations=iterations)


def _host(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x._concrete() if isinstance(x, Array) else x)


def _bad(x: Any, infinities: bool) -> bool:
    array = _host(x)
    if not is_inexact(array.dtype):
        return False
    return not np.isfinite(array).all() if infinities else bool(np.isnan(array).any())


def _statistics(name: str, x: Any) -> Statistics:
    array = _host(x)
    exact = not is_inexact(array.dtype)
    finite = array.ravel() if exact else array[np.isfinite(array)]
    sizes = np.abs(finite) if array.dtype.kind == "c" else finite
    nan, inf = (0 if exact else int(counted(array).sum()) for counted in (np.isnan, np.isinf))
    least, most = (float(sizes.min()), float(sizes.max())) if sizes.size else (None, None)
    return Statistics(name, array.shape, array.dtype.name, nan, inf, least, most)
