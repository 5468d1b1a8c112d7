"""Long calls in parts: between two calls of machine code the interpreter sees signals."""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from tenferro_cpu.native.kernels import _driver
from tenferro_cpu.native.kernels._elementwise import empty
from tenferro_cpu.native.kernels._fused_entry import Kind, Rows
from tenferro_tensor.device_model import Operand


def breathing(
    make: Callable[..., Any], fallback: Callable[..., Any], rows: Rows, written: Sequence[Operand]
) -> Callable[..., Any]:
    """The entry that `make` makes of a fallback, but long calls are made in parts where rows can be told apart."""
    if rows.combined or (rows.reduced and not rows.trailing):
        return make(fallback)  # type: ignore[no-any-return]
    most = _driver.BREATH
    large = in_parts(make(left), fallback, rows, written)
    return make(fallback, near=most, most=most, large=large)  # type: ignore[no-any-return]


def left(*raws: Any) -> None:
    """The fallback of an entry that is called in parts: the whole call is for another one."""


def in_parts(
    part: Callable[..., Any], fallback: Callable[..., Any], rows: Rows, written: Sequence[Operand]
) -> Callable[..., Any]:
    """A function of arrays that lie simply which calls `part` for one part of a large space after the other.

    The bits are those of one call, because rows are independent and a row is cut where vectors and blocks begin. When
    a call raises, or a signal handler between two calls, nobody holds the results.

    Args:
        part: takes operands and slices of the results; returns None where it leaves them to the fallback.
        fallback: called with the same arguments where the arrays are others, and where a part is left to it.
        rows: the iteration space, which is cut into rows that are combined nowhere.
        written: the results.
    """
    count, first = len(rows.inputs), rows.inputs.index(Kind.WHOLE)
    result = Kind.COLUMN if rows.reduced else Kind.WHOLE
    kinds = (*rows.inputs, *[result] * len(written))

    def run(*raws: Any) -> Any:
        x = raws[first]
        lead = x.ndim - rows.trailing if rows.trailing else 0
        shapes = {Kind.WHOLE: x.shape, Kind.ROW: x.shape[lead:], Kind.COLUMN: x.shape[:lead], Kind.NUMBER: ()}
        if not all(map(_lies_simply, raws[:count], [shapes[kind] for kind in rows.inputs])):
            return fallback(*raws)
        given = raws[count:]
        outs = _results(given, raws[:count], shapes[result], written)
        if any(y.__class__ is np.ndarray and y is not out for y, out in zip(given, outs)):
            return fallback(*raws)
        many, width = prod(x.shape[:lead]), prod(x.shape[lead:])
        ones = (1,) * max(rows.trailing - 1, 0)
        folded = {Kind.WHOLE: (many, *ones, width), Kind.ROW: (*ones, width), Kind.COLUMN: (many,)}
        folds = [y if k is Kind.NUMBER else y.reshape(folded[k]) for y, k in zip((*raws[:count], *outs), kinds)]
        for some, columns in _cuts(many, width, rows.reduced):
            at = {Kind.WHOLE: (some, ..., columns), Kind.ROW: (..., columns), Kind.COLUMN: some}
            if part(*[y if k is Kind.NUMBER else y[at[k]] for y, k in zip(folds, kinds)]) is None:
                return fallback(*raws)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return run


def _cuts(many: int, width: int, whole: bool) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of each part: several rows, or a piece of one unless rows stay `whole`."""
    step = max(1, _driver.BREATH // width)
    length = width if whole else min(width, _driver.BREATH)
    for row in range(0, many, step):
        for column in range(0, width, length):
            yield slice(row, row + step), slice(column, column + length)


def _lies_simply(x: Any, shape: tuple[int, ...]) -> bool:
    if x.__class__ is np.ndarray:
        return x.shape == shape and x.flags.c_contiguous
    return shape == ()


def _results(
    given: Sequence[Any], operands: Sequence[Any], shape: tuple[int, ...], written: Sequence[Operand]
) -> list[np.ndarray[Any, Any]]:
    """The arrays to write: those given where they fit, and fresh ones."""
    outs = []
    for y, operand in zip(given or [None] * len(written), written, strict=True):
        fits = y.__class__ is np.ndarray and y.dtype == operand.dtype and y.flags.carray and y.shape == shape
        outs.append(y if fits and not any(map(_partly_shares, operands, [y] * len(operands))) else None)
    return [empty(shape, o.dtype) if y is None else y for y, o in zip(outs, written, strict=True)]


def _partly_shares(x: Any, y: np.ndarray[Any, Any]) -> bool:
    """Whether a part of a result may be memory of an operand that another part reads."""
    same = x.__class__ is np.ndarray and (x.ctypes.data, x.nbytes) == (y.ctypes.data, y.nbytes)
    return not same and x.__class__ is np.ndarray and np.may_share_memory(x, y)
