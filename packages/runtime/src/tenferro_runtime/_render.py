"""A program as straight-line Python.

One renderer, two renderings: ``raw`` calls specialised kernels on raw arrays, ``value`` calls ops on values of any
level. Local names are registers, reused as soon as a value is dead, so that memory is freed as the program runs; long
programs become a row of functions, because CPython compiles one long function in more than linear time. Generated
text holds names of our own making only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final
from typing import Literal as Choice

from tenferro_runtime._program import Equation, Literal, Operand, Program
from tenferro_runtime._steps import Step, aliases, raw_steps, value_steps
from tenferro_tensor_core import ArgumentError

CHUNK: Final = 200
"""Number of steps in one rendered function."""


def render(program: Program, mode: Choice["raw", "value"], *, bare: bool = False) -> Callable[..., Any]:
    """The program as a function of its inputs, in order, that returns the tuple of its outputs.

    Args:
        program: a program; for ``raw``, one whose sizes are all numbers.
        mode: ``"raw"`` for raw arrays in and out, ``"value"`` for values of any level.
        bare: return the only output itself instead of a tuple of one.
    """
    if mode == "raw":
        if program.symbolic:
            raise ArgumentError("kernels need numbers as sizes; give the sizes of the program values first")
        steps, alias = aliases(raw_steps(program))
        constants = {v: c.data for v, c in program.constants.items()}
    else:
        steps, alias = value_steps(program), {}
        constants = dict(program.constants)
    if bare and len(program.output_ids) != 1:
        raise ArgumentError(f"bare=True needs a program of one output, this one has {len(program.output_ids)}")
    outputs = tuple([alias.get(v, v) for v in program.output_ids])
    return _Writer(program.input_ids, constants, steps, outputs, bare).function()


class _Writer:
    """Turns steps into functions; registers are numbered per function."""

    def __init__(
        self,
        inputs: tuple[int, ...],
        constants: dict[int, Any],
        steps: list[Step],
        outputs: tuple[int, ...],
        bare: bool,
    ) -> None:
        self.inputs, self.steps, self.outputs, self.bare = inputs, steps, outputs, bare
        self.fixed = {v: f"c{v}" for v in constants}
        self.lines: dict[tuple[str, int], Equation] = {}
        self.globals: dict[str, Any] = {
            "__name__": "tenferro_runtime.rendered",
            "__equations__": self.lines,
            **{f"c{v}": c for v, c in constants.items()},
        }
        self.callees: dict[int, str] = {}
        self.last: dict[int, float] = dict.fromkeys(inputs, -1)
        for i, step in enumerate(steps):
            self.last.update(dict.fromkeys(step.results, i))
            self.last.update((v, i) for v in step.operands if v.__class__ is int)
        self.last.update(dict.fromkeys(outputs, math.inf))

    def function(self) -> Callable[..., Any]:
        live = self.inputs
        parts: list[Callable[..., Any]] = []
        for start in range(0, max(len(self.steps), 1), CHUNK):
            stop = min(start + CHUNK, len(self.steps))
            final = stop == len(self.steps)
            live, part = self._chunk(f"part{len(parts)}", live, start, stop, final)
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        names = [f"x{i}" for i in range(len(self.inputs))]
        call = f"part0({', '.join(names)})"
        for i in range(1, len(parts)):
            call = f"part{i}(*{call})"
        return self._define("program", f"def program({', '.join(names)}):\n    return {call}\n")

    def _define(self, name: str, text: str) -> Callable[..., Any]:
        exec(compile(text, "<tenferro program>", "exec"), self.globals)
        function: Callable[..., Any] = self.globals[name]
        return function

    def _chunk(
        self, name: str, live: tuple[int, ...], start: int, stop: int, final: bool
    ) -> tuple[tuple[int, ...], Callable[..., Any]]:
        """Write steps ``start`` to ``stop`` as a function of the live variables; returns those live after it."""
        register: dict[int, str] = {}
        free: list[int] = []
        count = 0
        names = []
        for v in live:  # an input given twice cannot occur: variables are defined once
            register[v] = f"r{count}"
            names.append(f"r{count}")
            count += 1
        for v in [v for v in register if self.last[v] < start]:
            heappush(free, int(register.pop(v)[1:]))
        body = [f"def {name}({', '.join(names)}):"]
        for i in range(start, stop):
            step = self.steps[i]
            right = [self._operand(v, register) for v in step.operands]
            for u in step.operands:
                if u.__class__ is int and self.last.get(u) == i and u in register:
                    heappush(free, int(register.pop(u)[1:]))
            left = []
            for v in step.results:
                if free:
                    n = heappop(free)
                else:
                    n, count = count, count + 1
                register[v] = f"r{n}"
                left.append(f"r{n}")
            for v in step.results:
                if self.last[v] == i:
                    heappush(free, int(register.pop(v)[1:]))
            comma = "," if step.many and len(left) == 1 else ""
            target = f"{', '.join(left)}{comma} = " if left else ""
            self.lines[name, len(body) + 1] = step.equation
            body.append(f"    {target}{self._callee(step.function)}({', '.join(right)})")
        after = self.outputs if final else tuple(register)
        values = [self._operand(v, register) for v in after]
        body.append(f"    return {values[0] if final and self.bare else '(' + ''.join(f'{x}, ' for x in values) + ')'}")
        return after, self._define(name, "\n".join(body))

    def _operand(self, v: Operand, register: dict[int, str]) -> str:
        if isinstance(v, Literal):
            value = v.value
            if value.__class__ in (int, bool) or (value.__class__ is float and math.isfinite(value.real)):
                return repr(value)
            name = f"l{len(self.globals)}"
            self.globals[name] = value
            return name
        return self.fixed.get(v) or register[v]

    def _callee(self, function: Callable[..., Any]) -> str:
        name = self.callees.get(id(function))
        if name is None:
            name = self.callees[id(function)] = f"k{len(self.callees)}"
            self.globals[name] = function
        return name


def explain_failure(error: BaseException) -> None:
    """Add to an error raised inside a rendered program which equation failed, and the line that it came from."""
    trace = error.__traceback__
    while trace is not None:
        lines = trace.tb_frame.f_globals.get("__equations__")
        if lines is not None:
            eq = lines.get((trace.tb_frame.f_code.co_name, trace.tb_lineno))
            if eq is not None:
                note = f"in {eq}" + (f", traced at {eq.where}" if eq.where else "")
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
        trace = trace.tb_next
