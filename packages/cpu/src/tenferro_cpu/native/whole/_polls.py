"""Polls at back edges, so that an interrupt ends a long run.

A loop takes from ``context->countdown`` about one unit for each statement that an iteration runs, and asks
``context->poll`` when nothing is left.
"""

from __future__ import annotations

from typing import Final

from tenferro_cpu.native.builder import Int, Pointer
from tenferro_cpu.native.whole._calls import COUNTDOWN, POLL, leave_with
from tenferro_cpu.native.whole._frame import Frame
from tenferro_tensor.loop_ir import For, Order, Statement, Switch, While
from tenferro_tensor_core import DimLike

SHORT: Final = 1 << 16
"""Work of the longest loop that runs to its end without a poll."""

SPACING: Final = 1 << 10
"""Least work between two looks at the countdown."""


def work(statements: tuple[Statement, ...]) -> DimLike:
    """Statements that a sequence runs; loops that poll by themselves count once."""
    total: DimLike = 0
    for s in statements:
        total = total + 1
        if isinstance(s, For) and not polls(s):
            total = total + work(s.body) * s.extent
        elif isinstance(s, Switch):
            most: DimLike = 0
            for case in s.cases:
                most = most + work(case.body)
            total = total + most
    return total


def polls(s: For | While) -> bool:
    """Whether a loop looks at the countdown."""
    if isinstance(s, While):
        return True
    if s.order is not Order.GIVEN:
        return False
    total = work(s.body) * s.extent
    return not isinstance(total, int) or total > SHORT


def write_poll(frame: Frame, s: For | While, index: Int) -> None:
    """At the end of an iteration: count down, and leave the function where the poll says so."""
    if not polls(s):
        return
    b, amount = frame.block, work(s.body)
    every = 1
    if isinstance(amount, int):
        while every * amount < SPACING:
            every *= 2
    after = b.new_label("polled")
    if every > 1:
        due = b.new_label("due")
        b.branch((index & (every - 1)).equals(every - 1).name, due, after, rarely=True)
        b.begin(due)
    context = Pointer(b, "%context")
    left = context.element("i8", COUNTDOWN).load_int() - frame.size(amount * every)
    context.element("i8", COUNTDOWN).store("i64", left.name, 8)
    spent = b.new_label("spent")
    b.branch((left < 1).name, spent, after, rarely=True)
    b.begin(spent)
    function = context.element("i8", POLL).load_pointer()
    leave_with(frame, Int(b, b.raw(f"call i64 {function.name}(ptr %context)")))
    b.jump(after)
    b.begin(after)
