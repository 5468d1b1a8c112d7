"""`Profile`: the times of a program's steps, and a trace file for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from tenferro_runtime.reports._cost import StepCost
from tenferro_runtime.reports._memory import MemoryTimeline
from tenferro_runtime.reports._table import Tabular, TextTable
from tenferro_runtime.reports._walk import Visit, walk
from tenferro_tensor.markup import Markup, card, details, element, page, readable

NO_MEMORY: Final = MemoryTimeline((), ())
"""The timeline of a program without steps."""

POINTING: Final = """
for (const part of document.querySelectorAll("[data-line]"))
  for (const [event, others] of [["mouseenter", 0.12], ["mouseleave", ""]])
    part.addEventListener(event, () => {
      for (const area of document.querySelectorAll("path[data-line]"))
        area.style.opacity = area.dataset.line === part.dataset.line ? "" : others;
    });
"""
"""Highlights the memory of the source line under the pointer."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of one step.

    Attributes:
        cost: estimated cost of the step.
        ms: median time in milliseconds.
        share: fraction of the time of all steps.
        runs: start and duration of each run, in nanoseconds from the start of the profile; for a nested step, from an
            arbitrary moment.
        bodies: times of the programs that the step runs: of a loop, a branch or a call.
    """

    cost: StepCost
    ms: float
    share: float
    runs: tuple[tuple[int, int], ...]
    bodies: tuple[BodyTime, ...] = ()

    @property
    def rate(self) -> float | None:
        """Operations per second."""
        return None if self.cost.flops is None or not self.ms else float(self.cost.flops) / self.ms * 1e3  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class BodyTime:
    """Times of a program that a step runs, measured step by step in some of its runs.

    Attributes:
        title: its role in the step: ``"body"``, ``"condition"``, ``"branch 0"``, ``"program"``.
        times: how often it ran.
        steps: its steps, with the time of one run.
    """

    title: str
    times: int
    steps: tuple[StepTime, ...]

    @property
    def ms(self) -> float:
        """Time of all steps in one run, in milliseconds; a loop is faster, because it does not stop between steps."""
        return sum([s.ms for s in self.steps])


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Tabular):
    """Times of a program's steps; prints as a table, slowest first, with the steps of a body in order below their loop.

    Attributes:
        steps: the steps, in order of execution.
        ms: median time of a whole replay in milliseconds; less than the sum of the steps where these are short, because
            a replay does not stop between them.
        repeat: number of measured runs.
        form: how the replay runs a program with loops or branches, as of `Explanation`; the steps are measured one by
            one in any case.
        memory: the bytes alive at each step by line of code, where the steps run one by one.
        native_bytes: bytes that the native function allocates at once, ``None`` where there is none.
    """

    _heading = "Times of a program's steps"

    steps: tuple[StepTime, ...]
    ms: float
    repeat: int
    form: str = ""
    memory: MemoryTimeline = NO_MEMORY
    native_bytes: int | None = None

    def _walk(self) -> list[Visit]:
        return list(walk(sorted(self.steps, key=lambda s: -s.ms)))

    def _table(self) -> TextTable:
        head = ("step", "primitive", "result", "ms each", "ms in all", "share", "rate", "kernel", "line")
        total = sum(s.ms for s in self.steps)
        inside = any(s.bodies for s in self.steps)
        foot = (
            f"{len(self.steps)} steps, {total:.4f} ms one by one, {self.ms:.4f} ms replayed; "
            f"medians of {self.repeat} runs"
            + ("\nwhat is inside of a step was measured step by step, in the first iterations of a loop" * inside)
            + (f"; the replay {self.form}" if self.form else "")
        )
        return TextTable(head, [_row(v) for v in self._walk()], frozenset({0, 3, 4, 5, 6}), foot)

    def _parts(self) -> Sequence[Markup]:
        """The memory over the steps, and the steps with the share of each."""
        shares = [None if v.bodies else v.step.share for v in self._walk()]
        native = readable(self.native_bytes, "B")
        said = (
            f"As one native function, the program allocates {native} at once." if self.native_bytes is not None else ""
        )
        memory = details("Memory by line of code", self.memory.chart(), element("div", said), open_=True)
        return memory, details("Steps, slowest first", self._table().html(shares), open_=True)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a page with the times of the steps and the memory over time by line of code.

        It needs no other file. Pointing at a line of code shows its memory alone, pointing at a step its name.

        Args:
            path: the file.
        """
        title = f"Profile of a program of {len(self.steps)} steps"
        body = card(element("h1", title), *self._parts())
        Path(path).write_text(page(title, body, script=POINTING), encoding="utf-8")

    def to_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the runs in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

        Args:
            path: the file.
        """
        devices = sorted({s.cost.device for s in self.steps})
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "tid": i, "name": "thread_name", "args": {"name": device}}
            for i, device in enumerate(devices)
        ]
        for s in self.steps:
            c = s.cost
            facts = {
                "step": c.index, "operands": ", ".join(map(str, c.inputs)), "results": ", ".join(map(str, c.outputs)),
                "flops": c.flops, "bytes": c.bytes, "kernel": c.kernel, "line": c.where,
            }  # fmt: skip
            events += [
                {
                    "ph": "X", "pid": 1, "tid": devices.index(c.device), "name": c.primitive, "cat": "step",
                    "ts": start / 1e3, "dur": length / 1e3, "args": facts,
                }
                for start, length in s.runs
            ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}), encoding="utf-8")


def _row(v: Visit) -> tuple[str, ...]:
    """The time of one run and of all runs of a step, or of the program of a heading."""
    s = v.step
    if s is None:
        body = v.bodies[-1]
        often = "once" if body.times == 1 else f"{body.times} times"
        each = f"{body.ms:.4f}", f"{body.ms * v.times:.4f}"
        return "", f"{v.indent}{body.title}, {often}:", "", *each, *[""] * 4
    return (
        v.number, v.indent + s.cost.primitive, ", ".join(map(str, s.cost.outputs)), f"{s.ms:.4f}",
        f"{s.ms * v.times:.4f}", f"{s.share:.1%}", readable(s.rate, "flop/s") if s.rate else "", s.cost.kernel,
        s.cost.where,
    )  # fmt: skip
