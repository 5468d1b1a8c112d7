"""`fori_loop`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from tenferro_runtime.control_flow._blocks import keep_written_out, steps_of
from tenferro_runtime.control_flow._budget import budget_of
from tenferro_runtime.control_flow._carry import Carry
from tenferro_runtime.control_flow._scan import recorded, require_loop
from tenferro_runtime.control_flow._values import LeafKind, require_functions
from tenferro_runtime.control_flow._while import most_steps, recorded_while
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing._traced import innermost, is_traced
from tenferro_runtime.trees._tree import LEAF, flatten
from tenferro_tensor import HOST, Interval, Place, Size, Spec, catalog, get_backend
from tenferro_tensor.functions import arange
from tenferro_tensor.operands import number, size_of, value
from tenferro_tensor_core import (
    ArgumentError,
    BackendUnavailableError,
    Dim,
    DimLike,
    as_size,
    decide,
    dim_max,
    dim_min,
    int64,
)
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime._signatures import Leaf, R
    from tenferro_tensor import Array

LISTED_STEPS_MAX: Final = 1 << 20
"""Most steps of a loop with known bounds whose indices are listed in one array."""
BLOCK_STEPS: Final = 1 << 16
"""Steps of a block of a longer loop."""


@overload
def fori_loop(
    lo: Any, hi: Any, body: Callable[[Any, Any], Any], init: Leaf, *, unroll: bool | int = ...,
    max_steps: Any = ..., memory_budget: int | None = ...,
) -> Array: ...  # fmt: skip
@overload
def fori_loop(
    lo: Any, hi: Any, body: Callable[[Any, Any], R], init: Any, *, unroll: bool | int = ...,
    max_steps: Any = ..., memory_budget: int | None = ...,
) -> R: ...  # fmt: skip
@boundary
def fori_loop(
    lo: Any,
    hi: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    unroll: bool | int = False,
    max_steps: Any = None,
    memory_budget: int | None = None,
) -> Any:
    """Run ``for i in range(lo, hi): carry = body(i, carry)`` and return the last carry.

    The body is traced once, for concrete and traced operands alike; it may use values from outside. The index is a weak
    integer, which takes the dtype of other operands, and its bounds are known, so that indexing with it needs no steps
    for negative indices. If `lo` is not less than `hi`, the carry does not change.

    With bounds that are integers or sizes, the loop is a `scan`. With traced bounds, it is a `while_loop`; its reverse
    mode stores the values of all steps if their largest number is known: from `max_steps`, or from bounds that are
    themselves bounded, as in ``fori_loop(0, i, ...)`` for the index ``i`` of an enclosing loop.

    Args:
        lo: first index: an integer, a size, or a 0-d integer array, which may be traced.
        hi: end of the loop, excluded.
        body: a function of index and carry that returns a carry of the same containers, shapes and dtypes.
        init: initial carry: arrays and numbers in any containers. A Python number takes the dtype of the body's result.
        unroll: ``True`` to unroll all steps, or the number of steps to unroll in each iteration. With ``True``, a loop
            over concrete values is Python's own, so that its body can be debugged. Bounds must not be traced.
        max_steps: largest number of steps with traced bounds: an integer or a size.
        memory_budget: bytes that reverse mode may store; see `scan` and `while_loop`.

    Returns:
        The last carry.

    Raises:
        ArgumentError: a bound is not an integer, `unroll` is combined with traced bounds or a `memory_budget`,
            `max_steps` is negative, `memory_budget` is not a positive integer, or `body` is not a function.
        StructureError: the carry changes its structure, shape or dtype.

    >>> tr.fori_loop(0, 4, lambda i, x: x.at[i].add(i), tr.zeros(4))
    Tensor([0., 1., 2., 3.])
    """
    require_functions("fori_loop", body)
    count = steps_of(unroll, "fori_loop")
    first, last = _bound("lo", lo), _bound("hi", hi)
    most = most_steps("fori_loop", max_steps)
    budget = budget_of("fori_loop", memory_budget)
    if hasattr(first, "spec") or hasattr(last, "spec"):
        if count != 1:
            raise ArgumentError(
                f"fori_loop was asked to unroll steps{here()}, but its bounds are traced, so that their number is not "
                f"known; leave out {unroll=}, or pass bounds that are integers or sizes"
            )
        return _up_to(first, last, body, init, most, budget)
    require_loop("fori_loop", count, budget)
    return _counted(first, last if most is None else _sooner(first, last, most), body, init, count, budget)


def _bound(which: str, x: Any) -> Any:
    """A bound as an integer or a symbolic size; as a value if it is traced.

    Raises:
        ArgumentError: it is not a single integer.
    """
    x = as_size(x)
    if isinstance(x, Dim):
        return x
    if hasattr(x, "spec") or isinstance(x, (np.ndarray, np.generic)):
        x = value(x)
        if x.spec.ndim or x.spec.dtype.kind not in "iu":
            raise ArgumentError(
                f"fori_loop takes an integer as {which}{here()}, got {x.spec!r}; convert it with astype(int64), or "
                "index a single element"
            )
        return x if is_traced(x) else int(innermost(x))
    return size_of("fori_loop", which, x)


def _sooner(first: DimLike, last: DimLike, most: DimLike) -> DimLike:
    return first + dim_min(last - first, most)


def _counted(lo: DimLike, hi: DimLike, body: Any, init: Any, count: int | None, budget: int | None = None) -> Any:
    """The loop with bounds that are known before it runs, as a scan over the indices."""
    known = lo.__class__ is int and hi.__class__ is int
    if count is None or (known and hi - lo <= count > 1):  # type: ignore[operator]
        carry = Carry("fori_loop", init, body)
        for i in range(_number(lo), _number(hi)):
            carry.step(lambda c, i=i: (body(i, c), None), unroll=True)  # type: ignore[misc]
        return carry.arrays()
    n = hi - lo if decide(hi, ">=", lo) else dim_max(hi - lo, 0)
    if known and n > LISTED_STEPS_MAX and count == 1 and budget is None:  # type: ignore[operator]
        return _in_long_blocks(lo, n, body, init)  # type: ignore[arg-type]
    if count > 1:
        blocks = n // count
        init = _counted(0, blocks, lambda b, c: _steps(body, b * count + lo, count, c), init, 1)
        return _counted(lo + blocks * count, lo + n, body, init, 1)
    carry = Carry("fori_loop", init, body)
    indices = _indices(lo, n, _place(init))
    index = LeafKind(Spec((), int64, indices.spec.place), int, Interval(lo, hi - 1))
    step = lambda c, i: (body(i, c), None)
    return recorded("fori_loop", step, carry, [indices], LEAF, [index], n, False, budget)[0]


def _in_long_blocks(lo: int, n: int, body: Any, init: Any) -> Any:
    """A long loop as one over blocks of steps, so that no array lists all indices."""
    blocks, rest = divmod(n, BLOCK_STEPS)

    @wraps(body)
    def block(b: Any, carry: Any) -> Any:
        start = b * BLOCK_STEPS + lo  # here, so that it stays weak inside of the loop
        return _counted(0, BLOCK_STEPS, wraps(body)(lambda j, c: body(start + j, c)), carry, 1)

    init = _counted(0, blocks, block, init, 1)
    return _counted(lo + n - rest, lo + n, body, init, 1) if rest else init


def _number(d: DimLike) -> int:
    """A size as a number, for which the trace is specialized."""
    return d if isinstance(d, int) else int(Size(d))


def _place(init: Any) -> Place:
    """The place of the indices: the accelerator of the carry, or main memory."""
    places: set[Place] = {x.spec.place for x in flatten(init)[0] if hasattr(x, "spec")}
    if len(places) != 1 or (place := places.pop()).memory_space.kind == "host":
        return HOST
    try:
        get_backend(place.device.kind).require(place.device)
    except BackendUnavailableError:  # the program is traced for a machine with other devices
        return HOST
    return place


def _indices(lo: DimLike, n: DimLike, place: Place) -> Any:
    if isinstance(lo, int) and isinstance(n, int):
        return arange(lo, lo + n, device=None if place is HOST else place.device)
    counted = catalog.iota(shape=(n,), dtype=int64, axis=0, place=place)
    return counted if lo.__class__ is int and not lo else catalog.add(counted, number(lo, place))


def _steps(body: Any, start: Any, count: int, carry: Any) -> Any:
    for j in range(count):
        carry = body(start + j, carry)
    keep_written_out(flatten(carry)[0])
    return carry


def _up_to(lo: Any, hi: Any, body: Any, init: Any, most: DimLike | None, budget: int | None) -> Any:
    """The loop with traced bounds, as a `while_loop`."""
    lows, highs = _interval(lo), _interval(hi)
    if most is None and lows.low is not None and highs.high is not None:
        most = dim_max(highs.high - lows.low, 0)
    inside = Interval(lows.low, None if highs.high is None else highs.high - 1)
    carry = Carry(
        "fori_loop", (lo if lo.__class__ is int else value(Size(lo) if isinstance(lo, Dim) else lo), init), body
    )
    return recorded_while(
        "fori_loop", lambda c: c[0] < hi, lambda c: (c[0] + 1, body(c[0], c[1])), carry, most, inside, budget
    )[1]


def _interval(x: Any) -> Interval:
    return x._interval() if hasattr(x, "spec") else Interval(x, x)
