"""`find_nan`: the first step that makes a NaN or an infinity, and what it was made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_runtime.compiling._trace import trace
from tenferro_runtime.inspection._running import fitting, steps, store
from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_runtime.reports import BadStep, Statistics
from tenferro_runtime.running._execute import WATCH
from tenferro_runtime.trees._tree import flatten
from tenferro_tensor import REGISTRY, Array, Tensor


def find_nan(f: Program | Callable[..., Any], /, *args: Any, infinities: bool = True, **kwargs: Any) -> BadStep | None:
    """The first step that makes a NaN or an infinity, with statistics of what went in; ``None`` if there is none.

    A function is traced, and run step by step. It may be a derivative: its steps know their lines too.

    Args:
        f: a program, or a function of arrays in any containers.
        args: concrete arguments.
        infinities: whether an infinity counts; a logarithm of zero that `where` leaves out is harmless, say.
        kwargs: the same by name, for a function.

    Returns:
        The step. Where an input or constant is not finite already, that is named instead.

    >>> import tenferro_runtime as tr
    >>> tr.find_nan(lambda x: tr.sqrt(x - 2) * 3, tr.asarray([1.0, 6.0])).results[0].nan
    1
    """
    if isinstance(f, Program):
        return _first(*fitting(f, args), infinities)
    program = trace(f, *args, **kwargs)
    return _first(*fitting(program, flatten((args, kwargs))[0]), infinities)


def _first(program: Program, values: tuple[Tensor, ...], infinities: bool) -> BadStep | None:
    for v, value in (*zip(program.input_ids, values, strict=True), *program.constants.items()):
        if _bad(value, infinities):
            what = "a constant" if v in program.constants else "an input"
            return BadStep(f"{program.label(v)} is {what}", (), "", (), (_statistics(program.label(v), value),))
    with np.errstate(all="ignore"):
        return _walk(program, values, infinities, {})


def _walk(program: Program, values: tuple[Tensor, ...], infinities: bool, env: dict[int, Any]) -> BadStep | None:
    for i, (eq, operands) in enumerate(steps(program, values, env)):
        results = store(env, eq, eq.op(*operands))
        if any(_bad(x, infinities) for x in results):
            return _inside(eq, operands, results, infinities, i) or _report(program, eq, operands, results, i)
    return None


class _Found(Exception):
    """Carries the bad step out of the kernel that ran it."""

    def __init__(self, bad: BadStep, run: int) -> None:
        self.bad, self.run = bad, run


def _inside(
    eq: Equation, operands: tuple[Any, ...], results: tuple[Any, ...], infinities: bool, i: int
) -> BadStep | None:
    """The step that causes it in a program that the equation runs: a call, a branch, the body of a loop.

    The kernel is made anew while programs are watched; it runs them as it always does.
    """
    if not inner_programs(eq.op.params):
        return None
    runs = 0

    def watched(inner: Program) -> Callable[..., tuple[Any, ...]]:
        def run(*raws: Any) -> tuple[Any, ...]:
            nonlocal runs
            runs += 1
            number = runs
            values = tuple([Tensor.wrap(raw, spec) for raw, spec in zip(raws, inner.inputs, strict=True)])
            env: dict[int, Any] = {}
            bad = _walk(inner, values, infinities, env)
            if bad is not None:
                raise _Found(bad, number)
            return tuple([env[v]._data for v in inner.output_ids])

        return run

    ins = tuple([x.spec for x in operands if isinstance(x, Tensor)])
    outs = tuple([x.spec for x in results])
    token = WATCH.set(watched)
    try:
        make = REGISTRY.find("kernel", eq.op.primitive, ins[0].place.device.kind)
        if make is not None:
            make(ins, outs, **eq.op.params)(*[x._data if isinstance(x, Tensor) else x for x in operands])
    except _Found as found:
        bad, number = found.bad, found.run
        times = f"run {number} of " if number > 1 else ""
        return BadStep(
            f"{bad.step}, in {times}step {i}: {eq.op.primitive.name}",
            (i, *bad.path),
            bad.where or eq.where,
            bad.operands,
            bad.results,
        )
    finally:
        WATCH.reset(token)
    return None


def _report(program: Program, eq: Equation, operands: tuple[Any, ...], results: tuple[Any, ...], i: int) -> BadStep:
    text = program.show(eq).partition("  #")[0]
    return BadStep(
        f"step {i}: {text}",
        (i,),
        eq.where,
        tuple([_statistics(program.label(v), x) for v, x in zip(eq.operands, operands, strict=True)]),
        tuple([_statistics(program.label(v), x) for v, x in zip(eq.results, results, strict=True)]),
    )


def _host(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x._concrete() if isinstance(x, Array) else x)


def _bad(x: Any, infinities: bool) -> bool:
    array = _host(x)
    if array.dtype.kind not in "fc":
        return False
    return not np.isfinite(array).all() if infinities else bool(np.isnan(array).any())


def _statistics(name: str, x: Any) -> Statistics:
    array = _host(x)
    exact = array.dtype.kind not in "fc"
    finite = array.ravel() if exact else array[np.isfinite(array)]
    sizes = np.abs(finite) if array.dtype.kind == "c" else finite
    return Statistics(
        name,
        array.shape,
        array.dtype.name,
        0 if exact else int(np.isnan(array).sum()),
        0 if exact else int(np.isinf(array).sum()),
        float(sizes.min()) if sizes.size else None,
        float(sizes.max()) if sizes.size else None,
    )
