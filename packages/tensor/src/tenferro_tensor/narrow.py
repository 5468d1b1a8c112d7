"""Ops on narrow floats: operands are widened to float32, and results are rounded back once.

float16 and bfloat16 are storage types. Ops that only move elements keep the type; every other op converts its narrow
operands to float32, computes, and converts its results. This is the law in every mode: a compiled program rounds after
each of its steps, as eager execution does, however its steps are fused. A Python number takes the dtype of the array
operands, so it is first rounded to the narrow type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import SCALARS
from tenferro_tensor_core import ArgumentError, DType, float32, is_narrow

T = TypeVar("T", bound=Any)

__all__ = ["rounded", "wide", "widened_kernel", "widens"]


def __dir__() -> list[str]:
    return __all__.copy()


Kernel = Callable[..., Any]
Makes = Callable[[Op, tuple[Spec, ...], tuple[Spec, ...]], Kernel]
"""Makes the kernel of an op for specs of its operands and results."""


def widens(op: Op, specs: Sequence[Spec]) -> bool:
    """Whether an op computes in float32 on operands or results that are stored in fewer bits.

    Args:
        op: the op.
        specs: specs of operands and results.

    Returns:
        True if conversions are needed.
    """
    for s in specs:
        if s.narrow:
            return op.primitive.widens and op.params.get("mode") != "set"
    return False


def wide(spec: Spec) -> Spec:
    """The spec in which an operation computes: float32 instead of a narrow dtype.

    Args:
        spec: spec of an operand or a result.

    Returns:
        The spec.
    """
    return spec.with_(dtype=float32) if spec.narrow else spec


def rounded(x: T, dtype: DType) -> T:
    """Round a Python number to the narrow dtype of the array operands.

    Args:
        x: Python number.
        dtype: dtype of the arrays.

    Returns:
        The rounded number; `x` itself for other dtypes.

    Raises:
        ArgumentError: it is an integer beyond the range of floating point.

    >>> rounded(0.1, np.dtype("float16")), rounded(3, np.dtype("float16")), rounded(0.1, np.dtype("float32"))
    (0.0999755859375, 3, 0.1)
    """
    if x.__class__ is bool or not is_narrow(dtype):
        return x
    try:
        near = np.asarray(float(x), dtype).item()
    except OverflowError as cause:
        raise ArgumentError(f"{x} does not fit {dtype.name}, the dtype of the arrays beside it", value=x) from cause
    return x if near == x else near  # type: ignore[no-any-return]


def widened_kernel(make: Makes, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
    """The kernel of an op that `widens`: conversions around the kernel for float32.

    Args:
        make: creates the kernels.
        op: the op.
        ins: specs of the operands.
        outs: specs of the results.

    Returns:
        A callable on raw arrays.
    """
    run = make(op, tuple(map(wide, ins)), tuple(map(wide, outs)))
    widen = [_conversion(make, s, wide(s)) for s in ins]
    narrow = [_conversion(make, wide(s), s) for s in outs]
    dtypes = [s.dtype for s in ins]
    several = len(outs) != 1 or op.infer(*ins).__class__ is tuple
    if not several and None not in widen and len(ins) <= 2:
        return _of_few(run, widen, narrow[0], dtypes[0])

    def widened(*raws: Any) -> Any:
        given = [
            rounded(x, dtype) if x.__class__ in SCALARS else x if to is None else to(x)
            for x, to, dtype in zip(raws, widen, dtypes)
        ]
        found = run(*given, *raws[len(given) :])
        if several:
            return tuple([x if to is None else to(x) for x, to in zip(found, narrow, strict=True)])
        return found if narrow[0] is None else narrow[0](found)

    return widened


def _of_few(run: Kernel, widen: list[Kernel | None], narrow: Kernel | None, dtype: DType) -> Kernel:
    """The fast path for one or two narrow operands and one result, the usual case."""
    wider: Kernel = widen[0]  # type: ignore[assignment]
    back: Kernel = (lambda x: x) if narrow is None else narrow
    if len(widen) == 1:
        return lambda x: back(run(wider(x)))
    other: Kernel = widen[1]  # type: ignore[assignment]

    def widened(x: Any, y: Any) -> Any:
        a = rounded(x, dtype) if x.__class__ in SCALARS else wider(x)
        return back(run(a, rounded(y, dtype) if y.__class__ in SCALARS else other(y)))

    return widened


def _conversion(make: Makes, x: Spec, goal: Spec) -> Kernel | None:
    if x is goal:
        return None
    return make(catalog.convert.op(dtype=goal.dtype), (x,), (goal,))
