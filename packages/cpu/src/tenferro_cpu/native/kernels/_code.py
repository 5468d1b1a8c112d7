"""Machine code of rows: compiled ahead of time, or rendered from loop functions when it is nowhere to be found.

Every function has the signature of `whole/_row.py`. A text is known by what it computes, so that code on disk is loaded
without it: rendering takes longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.machine._jit import Engine
from tenferro_cpu.native.kernels._fixed import fixed_cost, fixed_reduction, fixed_row
from tenferro_cpu.native.kernels._forms import Access, lanes_for
from tenferro_tensor import Op
from tenferro_tensor_core.forks import importing

if TYPE_CHECKING:
    from tenferro_tensor.loop_ir import LoopFunction

DTypes = tuple[np.dtype[Any], ...]


def mapped(
    engine: Engine, op: Op, dtypes: DTypes, out: np.dtype[Any], accesses: Sequence[Access], *, stream: bool = False
) -> int:
    """The address of an element-wise op along a row.

    Args:
        engine: compiles and loads.
        op: the op.
        dtypes: dtypes of its operands.
        out: dtype of the result.
        accesses: accesses of its operands and of the result.
        stream: whether results bypass the caches; they are aligned to 64 bytes.

    Raises:
        UnsupportedError: the op has no native form here.
    """
    fixed = 0 if stream else fixed_row(op, dtypes, accesses, engine.host)
    if fixed:
        return fixed

    def function() -> LoopFunction:
        from tenferro_cpu.native.kernels._rows import mapped_row

        return mapped_row(op, dtypes, accesses)

    what = f"{op_text(op)} {_names((*dtypes, out))} {_words(accesses)} {stream}"
    return _rendered(engine, op.primitive.name, what, function, stream)


def reduced(engine: Engine, kind: str, dtype: np.dtype[Any], access: Access) -> int:
    """The address of a reduction of a row to one element."""
    fixed = _fixed(engine, kind, dtype, access, 0)
    if fixed:
        return fixed

    def function() -> LoopFunction:
        from tenferro_cpu.native.kernels._rows import reduced_row

        return reduced_row(kind, dtype, access)

    return _rendered(engine, kind, f"{dtype.name} {access.value}", function)


def combined(engine: Engine, kind: str, dtype: np.dtype[Any], read: Access, write: Access) -> int:
    """The address of a reduction of rows to one row."""
    fixed = _fixed(engine, kind, dtype, read, 1) if write is Access.UNIT else 0
    if fixed:
        return fixed

    def function() -> LoopFunction:
        from tenferro_cpu.native.kernels._rows import combined_rows

        return combined_rows(kind, dtype, read, write)

    return _rendered(engine, kind, f"of rows {dtype.name} {_words((read, write))}", function)


def short(engine: Engine, kind: str, dtype: np.dtype[Any], length: int, access: Access) -> int:
    """The address of a reduction of rows of a known length, each to one element."""

    def function() -> LoopFunction:
        from tenferro_cpu.native.kernels._rows import short_rows

        return short_rows(kind, dtype, length, access)

    return _rendered(engine, kind, f"of short rows {dtype.name} {length} {access.value}", function)


def _fixed(engine: Engine, kind: str, dtype: np.dtype[Any], access: Access, over: int) -> int:
    found = fixed_reduction(kind, dtype, engine.host) if access is Access.UNIT else None
    return 0 if found is None else found[over]


def _rendered(engine: Engine, name: str, what: str, function: Callable[[], LoopFunction], stream: bool = False) -> int:
    entry = "row_" + re.sub(r"\W", "_", name)

    def text() -> str:
        with importing():
            from tenferro_cpu.native.codegen.whole._row import render_row

            return render_row(function(), entry, engine.host, stream=stream)

    return engine.rendered(what, entry, text)


def op_text(op: Op) -> str:
    """A text that is equal only for equal ops, in every process.

    >>> from tenferro_tensor.catalog import convert
    >>> op_text(convert.op(dtype=np.dtype("int32")))
    "convert|dtype=dtype('int32')"
    """
    return "|".join([op.primitive.name, *[f"{name}={value!r}" for name, value in sorted(op.params.items())]])


def _names(dtypes: Sequence[np.dtype[Any]]) -> str:
    return ",".join([d.name for d in dtypes])


def _words(accesses: Sequence[Access]) -> str:
    return ",".join([access.value for access in accesses])


def mapped_cost(engine: Engine, op: Op, dtypes: DTypes, out: np.dtype[Any]) -> float:
    """Approximate nanoseconds per contiguous element of an op, in one thread; estimated once."""
    accesses = (Access.UNIT,) * (len(dtypes) + 1)
    if fixed_row(op, dtypes, accesses, engine.host):
        return fixed_cost(sum([d.itemsize for d in (*dtypes, out)]))
    return _noted(engine, f"{op_text(op)} {_names((*dtypes, out))}", lambda: _cost(engine.host, op, dtypes, out))


def reduced_cost(engine: Engine, kind: str, dtype: np.dtype[Any]) -> float:
    """The same for a reduction, which is bound by its loads."""
    if _fixed(engine, kind, dtype, Access.UNIT, 0):
        return fixed_cost(2 * dtype.itemsize)
    return _noted(engine, f"{kind} {dtype.name}", lambda: _cost(engine.host, None, (dtype,), dtype))


def _noted(engine: Engine, what: str, cost: Callable[[], float]) -> float:
    return float(engine.noted(f"cost {what}", lambda: repr(cost())))


def _cost(host: Host, op: Op | None, dtypes: DTypes, out: np.dtype[Any]) -> float:
    """Instructions, and bytes moved from and to memory."""
    with importing():
        from tenferro_cpu.native.codegen.whole._row import work
    lanes = lanes_for((*dtypes, out), (), host)
    return 0.16 * work(op, dtypes, out, lanes, host) / lanes + 0.02 * sum([d.itemsize for d in (*dtypes, out)])
