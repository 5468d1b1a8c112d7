"""`find_nan`: the first step that makes a NaN or an infinity, and what it was made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_runtime._program import Equation, Program
from tenferro_runtime._trace import trace
from tenferro_runtime._tree import flatten
from tenferro_runtime.inspection._running import fitting, steps, store
from tenferro_runtime.reports import BadStep, Statistics
from tenferro_tensor import Array, Tensor


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
        return _walk(program, values, infinities)


def _walk(program: Program, values: tuple[Tensor, ...], infinities: bool) -> BadStep | None:
    for i, (eq, operands, env) in enumerate(steps(program, values)):
        results = store(env, eq, eq.op(*operands))
        if any(_bad(x, infinities) for x in results):
            return _inside(program, eq, operands, infinities, i) or _report(program, eq, operands, results, i)
    return None


def _inside(program: Program, eq: Equation, operands: tuple[Any, ...], infinities: bool, i: int) -> BadStep | None:
    """The step of a called program that is to blame."""
    inner = eq.op.params.get("program")
    if not isinstance(inner, Program):
        return None
    found = _walk(*fitting(inner, operands), infinities)
    if found is None:
        return None
    return BadStep(found.step, (i, *found.path), found.where or eq.where, found.operands, found.results)


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
