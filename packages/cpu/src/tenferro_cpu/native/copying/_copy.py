"""`copy_into` and `contiguous`: copies between layouts by machine code where NumPy's own loops are slow."""

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.copying._copy_ir import JOB, PIECE, Words, text
from tenferro_cpu.native.copying._copy_plan import Piece, plan, streamed
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory._pool import POOLED, serving
from tenferro_cpu.native.python._builtin import FASTCALL, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.python._layout import BYTES, DATA
from tenferro_cpu.native.threads._team import team
from tenferro_tensor_core.forks import new_lock

SMALLEST: Final = 16 << 10
"""Bytes from which on a plan pays; looking one up costs as much as NumPy copies until then."""
STREAMED: Final = 2
"""Results larger than this part of the last-level cache are written past it."""
BREATH: Final = 24 << 20
"""Bytes that are copied at once: the interpreter sees signals between two parts."""
GRAIN: Final = 64
"""Elements in whose multiples an axis is cut."""
PAGE: Final = 4096
"""Bytes along an axis that may be cut without a thought for cache lines."""
ALONE: Final = 256 << 10
"""Bytes above which a copy runs without the interpreter lock."""
CACHED: Final = 8
"""Blocks along each side of a tile where whole cache lines stay in the caches; larger tiles would not."""
PLANS: Final = 256
PLANNED: Final = 64 << 20
"""Bounds of the table of plans: entries, and bytes of their tables of offsets."""

Array = np.ndarray[Any, Any]
Copy = Callable[[Array, Array], Array]

_STORED: Final = JOB.packed("%context", {name: f"ptr %{name}" for name in JOB.names})

# copy(target, source): both were compared with the plan by the caller, who also keeps them alive.
_ENTRY: Final = f"""
declare ptr @tenferro_save_thread()
declare void @tenferro_restore_thread(ptr)
declare void @tenferro_incref(ptr)
declare void @tenferro_parallel_for(ptr, ptr, i64, i64)
declare i64 @tenferro_allowed()
define ptr @copy(ptr %self, ptr %args, i64 %n) nounwind {{
entry:
  %context = alloca [4 x ptr]
  %plan = getelementptr i8, ptr %self, i64 {BYTES}
  %target_object = load ptr, ptr %args
  %source_at = getelementptr ptr, ptr %args, i64 1
  %source_object = load ptr, ptr %source_at
  %target_data = getelementptr i8, ptr %target_object, i64 {DATA}
  %target = load ptr, ptr %target_data
  %source_data = getelementptr i8, ptr %source_object, i64 {DATA}
  %source = load ptr, ptr %source_data
  %usual = load ptr, ptr %plan
  %stream_at = getelementptr i64, ptr %plan, i64 {int(Words.STREAM)}
  %stream = load ptr, ptr %stream_at
  %place = ptrtoint ptr %target to i64
  %offset = and i64 %place, 63
  %aligned = icmp eq i64 %offset, 0
  %have = icmp ne ptr %stream, null
  %past = and i1 %aligned, %have
  %kernel = select i1 %past, ptr %stream, ptr %usual
  %bytes_at = getelementptr i64, ptr %plan, i64 {int(Words.BYTES)}
  %bytes = load i64, ptr %bytes_at
  %long = icmp ugt i64 %bytes, {ALONE}
  br i1 %long, label %alone, label %short
short:
  call void %kernel(ptr %source, ptr %target, ptr %plan)
  br label %done
alone:
  %pieces_at = getelementptr i64, ptr %plan, i64 {int(Words.PIECES)}
  %pieces = load i64, ptr %pieces_at
  %threads = call i64 @tenferro_allowed()
  %thread = call ptr @tenferro_save_thread()
  %cut = icmp sgt i64 %pieces, 1
  %several = icmp sgt i64 %threads, 1
  %shared = and i1 %cut, %several
  br i1 %shared, label %team, label %single
single:
  call void %kernel(ptr %source, ptr %target, ptr %plan)
  br label %back
team:
{_STORED}
  call void @tenferro_parallel_for(ptr @copy_piece, ptr %context, i64 %pieces, i64 %threads)
  br label %back
back:
  call void @tenferro_restore_thread(ptr %thread)
  br label %done
done:
  call void @tenferro_incref(ptr %target_object)
  ret ptr %target_object
}}
"""


@cache
def _entry() -> Any:
    """The compiled entry as a definition, or None where entries cannot be had."""
    have, helpers = interpreter(), team()
    if have is None or helpers is None:
        return None
    address, _ = engine().functions(_ENTRY + PIECE, ("copy", "copy_piece"), have.symbols | helpers.symbols)
    return definition("copy", address, FASTCALL)


class CopyPlans:
    """Copies by layout, made on first use; bounded by entries and by bytes, safe to share between threads."""

    def __init__(self, entries: int = PLANS, nbytes: int = PLANNED) -> None:
        self._entries, self._most = entries, nbytes
        self._table: dict[Any, tuple[Copy, int]] = {}
        self._nbytes = 0
        self._lock = new_lock()

    def find(
        self, shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], item: int, part: bool = False
    ) -> Copy:
        """``copy(target, source)`` for arrays of these layouts (strides in bytes), perhaps as parts of large ones."""
        key = (shape, source, target, item, part)
        found = self._table.get(key)
        if found is None:
            found = _made(shape, source, target, item, part)
            with self._lock:
                if len(self._table) >= self._entries or self._nbytes + found[1] > self._most:
                    self._table.clear()
                    self._nbytes = 0
                self._table[key] = found
                self._nbytes += found[1]
        return found[0]

    def stats(self) -> dict[str, int]:
        """Entries and bytes of tables now."""
        return {"size": len(self._table), "bound": self._entries, "nbytes": self._nbytes}

    def clear(self) -> None:
        """Forget all plans; what is needed again is made again."""
        with self._lock:
            self._table.clear()
            self._nbytes = 0


COPIES: Final = CopyPlans()
"""The plans of the process."""


def _made(
    shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], item: int, part: bool
) -> tuple[Copy, int]:
    entry = _entry()
    pieces = None if entry is None else plan(shape, source, target, item, engine().host.vector_bytes)
    if pieces is None:
        return _by_numpy, 0
    total = prod(shape) * item
    streams = part or STREAMED * total > engine().host.cache_bytes
    calls = [builtin(entry, _payload(piece, streams)) for piece in pieces]
    nbytes = sum(piece.words.nbytes for piece in pieces)
    if len(calls) == 1:
        return calls[0], nbytes

    def copy(to: Array, of: Array) -> Array:
        for call in calls:
            call(to, of)
        return to

    return copy, nbytes


def _by_numpy(to: Array, of: Array) -> Array:
    np.copyto(to, of)
    return to


def _payload(piece: Piece, streams: bool) -> bytes:
    words = piece.words.copy()
    attributes = engine().host.attributes
    variants = {Words.KERNEL: piece.variant}
    if piece.aligned:
        if streams:
            variants[Words.STREAM] = streamed(piece.variant)
        else:
            words[Words.TILE] = CACHED
    for field, variant in variants.items():
        words[field] = engine().function(text(variant, attributes), variant.name)
    return words.tobytes()


def _carried(target: Array, source: Array, part: bool = False) -> Array:
    """Copy as planned, more than `BREATH` bytes in parts."""
    if source.nbytes <= BREATH:
        return COPIES.find(source.shape, source.strides, target.strides, source.itemsize, part)(target, source)
    part = part or STREAMED * source.nbytes > engine().host.cache_bytes
    axis = max(range(source.ndim), key=lambda k: _merit(k, target, source))
    extent = source.shape[axis]
    length = max(1, extent * BREATH // source.nbytes)
    length -= length % GRAIN if length > GRAIN else 0
    for start in range(0, extent, length):
        at = (*[slice(None)] * axis, slice(start, start + length))
        _carried(target[at], source[at], part)
    return target


def _merit(axis: int, target: Array, source: Array) -> tuple[int, int]:
    """How good an axis is to cut: first, parts should not share cache lines and pages; then, the target is in order."""
    steps = abs(target.strides[axis]), abs(source.strides[axis])
    return (min(PAGE, min(steps) * source.shape[axis]), steps[0]) if source.shape[axis] > 1 else (-1, 0)


def copy_into(target: Array, source: Array) -> Array:
    """``target[...] = source`` for arrays of one shape and dtype; gives `target`.

    Overlapping arrays and small ones are left to NumPy.

    >>> x = np.arange(60000.0).reshape(20, 30, 100)
    >>> out = np.empty((100, 20, 30))
    >>> bool((copy_into(out, x.transpose(2, 0, 1)) == x.transpose(2, 0, 1)).all())
    True
    """
    if (
        target.nbytes < SMALLEST
        or target.shape != source.shape
        or target.dtype != source.dtype
        or not target.flags.writeable
        or not (target.flags.aligned and source.flags.aligned)
        or target.dtype.hasobject
        or np.may_share_memory(target, source)
    ):
        np.copyto(target, source)
        return target
    return _carried(target, source)


def copy_in_order(target: Array, source: Array) -> None:
    """``target[...] = source`` for arrays with axes, both in one order, where NumPy's own loop is fast; in parts."""
    length = max(1, len(source) * BREATH // max(1, source.nbytes))
    for start in range(0, len(source), length):
        target[start : start + length] = source[start : start + length]


def contiguous(x: Array) -> Array:
    """`x` itself where it is C-contiguous, else a C-contiguous copy from the memory pool.

    >>> contiguous(np.eye(300)[:, ::-1]).flags.c_contiguous
    True
    """
    if x.nbytes < SMALLEST or x.flags.c_contiguous or not x.flags.aligned or x.dtype.hasobject:
        return np.ascontiguousarray(x)
    have = serving() if x.nbytes >= POOLED else None
    out = np.empty(x.shape, x.dtype) if have is None else have.empty(x.shape, x.dtype)
    # New memory shares nothing, and its layout is known: the checks of `copy_into` are not needed.
    return _carried(out, x)
