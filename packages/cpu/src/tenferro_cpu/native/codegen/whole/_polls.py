"""Polls at back edges, so that an interrupt ends a long run.

Loops subtract their work (`work`) from ``context->countdown`` and call ``context->poll`` when it is used up. Loops
inside an outlined nest do not: the nest does, after each chunk.
"""

from __future__ import annotations

from typing import Final

from tenferro_cpu.native.codegen.builder import Int, Pointer
from tenferro_cpu.native.codegen.whole._calls import COUNTDOWN, POLL, leave_with
from tenferro_cpu.native.codegen.whole._frame import Frame
from tenferro_cpu.native.codegen.whole._work import whole_work, work
from tenferro_tensor.loop_ir import For, While

UNPOLLED_MAX_WORK: Final = 1 << 16
"""Maximum work of a loop that runs to its end without a poll."""

POLL_MIN_WORK: Final = 1 << 10
"""Minimum work between two updates of the countdown."""


def write_poll(frame: Frame, s: For | While, index: Int) -> None:
    """At the end of an iteration, count down, and leave the function if the poll requests it."""
    if isinstance(s, For):
        total = whole_work(s)
        if isinstance(total, int) and total <= UNPOLLED_MAX_WORK:
            return
    amount, every = work(s.body) + 1, 1
    if isinstance(amount, int):
        while every * amount < POLL_MIN_WORK:
            every *= 2
    b = frame.block
    after = b.new_label("polled")
    if every > 1:
        due = b.new_label("due")
        b.branch((index.plus(1) & (every - 1)).equals(0).name, due, after, rarely=True)
        b.begin(due)
    count_down(frame, frame.size(amount * every))
    b.jump(after)
    b.begin(after)


def count_down(frame: Frame, amount: Int) -> None:
    """Subtract work from the countdown, and poll if it is used up."""
    b = frame.block
    context = Pointer(b, "%context").element("i8", COUNTDOWN)
    left = context.load_int() - amount
    context.store("i64", left.name, 8)
    spent, on = b.new_label("spent"), b.new_label("unspent")
    b.branch((left < 1).name, spent, on, rarely=True)
    b.begin(spent)
    function = Pointer(b, "%context").element("i8", POLL).load_pointer()
    leave_with(frame, Int(b, b.raw(f"call i64 {function.name}(ptr %context)")))
    b.jump(on)
    b.begin(on)
