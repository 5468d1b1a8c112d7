"""The loop over rows: one compiled function that calls a kernel for every row of an iteration space of any rank.

Where the work pays for it, one axis is cut and the thread team takes the pieces.

A call is one block of 64-bit words, so that Python passes two arguments whatever the rank: number of operands, length
of a row, rank of the outer axes, number of combined rows, then pointers, inner strides and combined rows' strides of
the operands, then outer extents and, axis by axis, outer strides of the operands. Strides are in bytes.
"""

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, Final

from tenferro_cpu.native.kernels._body import Fields
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.threads._team import team

CUT: Final = Fields("kernel block words place strides_place length extent")
"""What a piece is told: kernel, block and its words, where in it the extent and the strides of the cut axis are, length
of a piece, extent."""

TEXT = f"""
; A piece of a cut axis.
define void @drive_piece(ptr %context, i64 %piece) nounwind {{
entry:
{CUT.unpacked("%context", "kernel block")}
  %copy = alloca i64, i64 %words, align 8
  %bytes = mul i64 %words, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %copy, ptr align 8 %block, i64 %bytes, i1 false)
  %from = mul i64 %piece, %length
  %left = sub i64 %extent, %from
  %short = icmp slt i64 %left, %length
  %n = select i1 %short, i64 %left, i64 %length
  %own = getelementptr i64, ptr %copy, i64 %place
  store i64 %n, ptr %own
  %ops = load i64, ptr %block
  %data = getelementptr i64, ptr %copy, i64 4
  %strides = getelementptr i64, ptr %copy, i64 %strides_place
  br label %move
move:
  %k = phi i64 [ 0, %entry ], [ %k1, %move ]
  %ps = getelementptr i64, ptr %strides, i64 %k
  %s = load i64, ptr %ps
  %shift = mul i64 %s, %from
  %pp = getelementptr i64, ptr %data, i64 %k
  %p = load i64, ptr %pp
  %q = add i64 %p, %shift
  store i64 %q, ptr %pp
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %ops
  br i1 %more, label %move, label %run
run:
  call void @drive(ptr %kernel, ptr %copy)
  ret void
}}

define void @drive(ptr %kernel, ptr %block) nounwind {{
entry:
  %index = alloca [64 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %index, i8 0, i64 512, i1 false)
  %ops = load i64, ptr %block, align 8
  %pn = getelementptr i64, ptr %block, i64 1
  %n = load i64, ptr %pn, align 8
  %prank = getelementptr i64, ptr %block, i64 2
  %rank = load i64, ptr %prank, align 8
  %pm = getelementptr i64, ptr %block, i64 3
  %m = load i64, ptr %pm, align 8
  %data = getelementptr i64, ptr %block, i64 4
  %inner = getelementptr i64, ptr %data, i64 %ops
  %rows = getelementptr i64, ptr %inner, i64 %ops
  %dims = getelementptr i64, ptr %rows, i64 %ops
  %outer = getelementptr i64, ptr %dims, i64 %rank
  %last = sub i64 %rank, 1
  br label %row
row:
  call void %kernel(ptr %data, i64 %n, ptr %inner, i64 %m, ptr %rows)
  br label %axis
axis:
  %d = phi i64 [ %last, %row ], [ %up, %carry ]
  %over = icmp slt i64 %d, 0
  br i1 %over, label %done, label %advance
advance:
  %pi = getelementptr i64, ptr %index, i64 %d
  %i = load i64, ptr %pi, align 8
  %pd = getelementptr i64, ptr %dims, i64 %d
  %dim = load i64, ptr %pd, align 8
  %i1 = add i64 %i, 1
  %full = icmp eq i64 %i1, %dim
  %back = sub i64 0, %i
  %by = select i1 %full, i64 %back, i64 1
  %in = add i64 %i, %by
  store i64 %in, ptr %pi, align 8
  %first = mul i64 %d, %ops
  %steps = getelementptr i64, ptr %outer, i64 %first
  br label %move
move:
  %k = phi i64 [ 0, %advance ], [ %k1, %move ]
  %ps = getelementptr i64, ptr %steps, i64 %k
  %s = load i64, ptr %ps, align 8
  %pp = getelementptr i64, ptr %data, i64 %k
  %p = load i64, ptr %pp, align 8
  %shift = mul i64 %s, %by
  %q = add i64 %p, %shift
  store i64 %q, ptr %pp, align 8
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %ops
  br i1 %more, label %move, label %moved
moved:
  br i1 %full, label %carry, label %row
carry:
  %up = sub i64 %d, 1
  br label %axis
done:
  ret void
}}
"""


PAYS: Final = 50_000.0
"""Nanoseconds of work in one thread for which the team is called."""
GRAIN: Final = 4_000.0
"""Nanoseconds of the smallest piece."""
SHARES: Final = 4
"""Pieces for every thread: one that is interrupted leaves the rest to the others."""
BREATH: Final = 1 << 21
"""Elements of the longest run: the interpreter sees signals between two. Where pages are fresh, one takes 0.1 s."""
ELEMENTS: Final = 512
"""Rows are cut at multiples of this, so that pieces begin where vectors and cache lines do."""


def driver_addresses() -> tuple[int, int]:
    """Machine code ``void(kernel, block)`` of the loop over rows, and ``void(context, piece)`` of a piece of it."""
    drive, piece = engine().functions(TEXT, ("drive", "drive_piece"))
    return drive, piece


@cache
def _functions() -> tuple[Any, int]:
    drive, piece = driver_addresses()
    # A ctypes function releases the interpreter lock; the kernels touch no Python object.
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(drive), piece


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an iteration space: its extent, and the stride in bytes of every operand along it."""

    extent: int
    strides: tuple[int, ...]


def coalesced(axes: Iterable[Axis]) -> list[Axis]:
    """The same elements in the same order with as few axes as possible; no axis is left for one element.

    >>> coalesced([Axis(2, (24, 0)), Axis(1, (5, 5)), Axis(3, (8, 0))])
    [Axis(extent=6, strides=(8, 0))]
    """
    found: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        if found and all(s == t * axis.extent for s, t in zip(found[-1].strides, axis.strides)):
            found[-1] = Axis(found[-1].extent * axis.extent, axis.strides)
        else:
            found.append(axis)
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """A run of the driver but for the pointers; see `drive`."""

    kernel: int
    inner: Axis
    outer: Sequence[Axis]
    combined: Axis | None = None

    @property
    def elements(self) -> int:
        """Elements that are read of each operand, repeated ones counted."""
        rows = 1 if self.combined is None else self.combined.extent
        return self.inner.extent * rows * prod([axis.extent for axis in self.outer])


def words(pointers: Sequence[int], step: Step) -> list[int]:
    """The block of a call."""
    inner, outer = step.inner, step.outer
    rows = step.combined if step.combined is not None else Axis(1, (0,) * len(pointers))
    found = [len(pointers), inner.extent, len(outer), rows.extent, *pointers, *inner.strides, *rows.strides]
    found += [axis.extent for axis in outer]
    for axis in outer:
        found += axis.strides
    return found


def drive(
    kernel: int,
    pointers: Sequence[int],
    inner: Axis,
    outer: Sequence[Axis],
    combined: Axis | None = None,
    *,
    cost: float = 0.0,
    whole: bool = False,
) -> None:
    """Call `kernel` for every row: rows run along `inner`, `outer` counts them, `combined` is the kernel's own.

    Args:
        kernel: address of machine code.
        pointers: where the operands begin.
        inner: the axis of a row.
        outer: the other axes.
        combined: rows that the kernel combines by itself.
        cost: nanoseconds that one element takes, for the decision about more threads.
        whole: a row is one piece of work and is not cut.
    """
    step = Step(kernel, inner, outer, combined)
    if step.elements > BREATH:
        at, length, count = _best_cut(inner, outer, whole, -(-step.elements // BREATH))
        if count > 1:
            axes = [inner, *outer]
            cut = axes[at + 1]
            for start in range(0, cut.extent, length):
                axes[at + 1] = Axis(min(length, cut.extent - start), cut.strides)
                here = [p + s * start for p, s in zip(pointers, cut.strides, strict=True)]
                drive(kernel, here, axes[0], axes[1:], combined, cost=cost, whole=whole)
            return
    block = array("q", words(pointers, step))
    address = block.buffer_info()[0]
    run, piece = _functions()
    work = cost * step.elements
    helpers = team() if work > PAYS else None
    threads = 1 if helpers is None else helpers.threads
    if helpers is None or threads == 1:
        run(kernel, address)
        return
    at, length, count = _cut(inner, outer, whole, threads, work)
    ops, rank = len(pointers), len(outer)
    place, strides = (1, 4 + ops) if at < 0 else (4 + 3 * ops + at, 4 + 3 * ops + rank + at * ops)
    extent = inner.extent if at < 0 else outer[at].extent
    context = array("q", [kernel, address, len(block), place, strides, length, extent])
    helpers.run(piece, context.buffer_info()[0], count, threads)


def _cut(inner: Axis, outer: Sequence[Axis], whole: bool, threads: int, work: float) -> tuple[int, int, int]:
    """Which axis to cut (-1: the row), the length of a piece, and the number of pieces."""
    return _best_cut(inner, outer, whole, max(1, min(SHARES * threads, int(work / GRAIN))))


def _best_cut(inner: Axis, outer: Sequence[Axis], whole: bool, most: int) -> tuple[int, int, int]:
    """The cut into most pieces, but not more than `most`."""
    best = (-1, inner.extent, 1)
    for at, axis in enumerate((inner, *outer), -1):
        step = 1 if at >= 0 else inner.extent if whole else ELEMENTS
        length = -(-axis.extent // (most * step)) * step
        count = -(-axis.extent // length)
        if count > best[2]:
            best = (at, length, count)
    return best
