"""A program as straight-line Python.

One renderer, two modes: ``raw`` calls specialized kernels on raw arrays, ``value`` calls ops on values of any level.
Local names are registers, reused as soon as a value is dead, so that memory is freed as the program runs. Long programs
become several functions, because CPython compiles a long function in more than linear time. Generated text contains
generated names only. If a result reuses the memory of an operand (`_overwriting`), the kernel receives that array after
the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple
from typing import Literal as Choice

from tenferro_runtime._counters import COUNTERS
from tenferro_runtime._generated_code import defined
from tenferro_runtime.ir._bind import Binder, Binding
from tenferro_runtime.ir._data_sizes import decided
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.ir._replay import Replay
from tenferro_runtime.ir._sizes import filled, variables
from tenferro_runtime.running.rendering._checked import poisoning
from tenferro_runtime.running.rendering._overwriting import EXACT, overwriting
from tenferro_runtime.running.rendering._step import Step
from tenferro_runtime.running.rendering._steps import aliases, raw_steps
from tenferro_tensor.checked import is_checked
from tenferro_tensor_core import ArgumentError

CHUNK: Final = 200
"""Largest number of steps in one rendered function."""


def render(
    program: Program, mode: Choice["raw", "value"], *, bare: bool = False, donated: tuple[int, ...] = ()
) -> Callable[..., Any]:
    """Render a program as a function of its inputs that returns the tuple of its outputs.

    Args:
        program: the program; for ``raw``, one without symbolic sizes.
        mode: ``"raw"`` for raw arrays in and out, ``"value"`` for values of any level.
        bare: return the only output itself instead of a tuple.
        donated: positions of inputs that may be overwritten if they are contiguous and writable.

    Returns:
        The function.

    Raises:
        ArgumentError: the program has symbolic sizes, or `bare` is given for several outputs.
    """
    if mode == "raw" and program.symbolic:
        raise ArgumentError("kernels need numbers as sizes; render_open returns a function for all sizes")
    if bare and len(program.output_ids) != 1:
        raise ArgumentError(f"bare=True needs a program of one output, this one has {len(program.output_ids)}")
    if mode == "value":
        replay = Replay(program)
        return (lambda *values: replay(values)[0]) if bare else (lambda *values: replay(values))
    steps, alias = aliases(raw_steps(program))
    constants = {v: c._data for v, c in program.constants.items()}
    outputs = tuple([alias.get(v, v) for v in program.output_ids])
    victims = overwriting(program, donated)
    if victims and is_checked():
        steps, victims = poisoning(program, steps, victims), {}
    return _Writer(
        program.input_ids, constants, steps, outputs, bare, victims=victims, exact=_exact(program)
    ).function()


def _exact(program: Program) -> bool:
    return bool(program.memo.get(EXACT))


class Direct(NamedTuple):
    """A program that consists of one step, whose result is the output.

    Attributes:
        kernel: the function that the step calls.
        order: positions of the operands in the inputs followed by `extras`, as bytes.
        extras: constants and numbers among the operands.
        equation: the equation of the step.
    """

    kernel: Callable[..., Any]
    order: bytes
    extras: tuple[Any, ...]
    equation: Equation


class Rendered(NamedTuple):
    """A program over raw arrays, for all sizes.

    Attributes:
        run: ``run(Z, *raws)`` returns the tuple of outputs, or the only output.
        bind: ``bind(*sizes)`` returns Z.
        direct: the only step of the program, if calling that step is enough.
    """

    run: Callable[..., Any]
    bind: Callable[..., Binding]
    direct: Direct | None


def render_open(
    program: Program, *, bare: bool = False, names: tuple[str, ...] | None = None, donated: tuple[int, ...] = ()
) -> Rendered:
    """Render a program as a function for all sizes, and the function that prepares it for given sizes.

    Args:
        program: any program.
        bare: return the only output itself instead of a tuple.
        names: names of the sizes; by default those of the program's symbolic sizes.
        donated: positions of inputs that may be overwritten if they are contiguous and writable.

    Returns:
        The two functions.
    """
    binder = Binder(variables(program) if names is None else names, filled)
    with decided(program):
        steps, alias = aliases(raw_steps(program, binder))
    constants = {v: c._data for v, c in program.constants.items()}
    outputs = tuple([alias.get(v, v) for v in program.output_ids])
    bind = binder.function(program.outputs)
    victims = overwriting(program, donated)
    alone = bare and not victims
    if victims and is_checked():
        steps, victims = poisoning(program, steps, victims), {}
    exact = _exact(program)
    run = _Writer(
        program.input_ids, constants, steps, outputs, bare, lead=["Z"], victims=victims, exact=exact
    ).function()
    return Rendered(run, bind, _direct(program.input_ids, constants, steps, outputs) if alone else None)


MAX_DIRECT_OPERANDS: Final = 16
"""Largest number of operands of a step that is called directly."""


def _direct(
    inputs: tuple[int, ...], constants: dict[int, Any], steps: list[Step], outputs: tuple[int, ...]
) -> Direct | None:
    if len(steps) != 1:
        return None
    (step,) = steps
    if (
        step.many
        or step.sizes
        or step.entry is not None
        or step.results != outputs
        or len(step.operands) > MAX_DIRECT_OPERANDS
        or len(inputs) + MAX_DIRECT_OPERANDS > 255
    ):
        return None
    order: list[int] = []
    extras: list[Any] = []
    for v in step.operands:
        if v.__class__ is int and v in inputs:
            order.append(inputs.index(v))
        else:
            order.append(len(inputs) + len(extras))
            extras.append(v.value if isinstance(v, Literal) else constants[v])
    return Direct(step.function, bytes(order), tuple(extras), step.equation)


class _Registers:
    """Local names of one function, assigned to variables and released when these are dead.

    A name holds a dead value until it is reused. Names of parameters are reused last: the caller holds their values, so
    that reusing their names frees no memory.
    """

    def __init__(self, variables: tuple[int, ...] = ()) -> None:
        self.of: dict[int, str] = {v: f"r{i}" for i, v in enumerate(variables)}
        self._parameters = frozenset(variables)
        self._count = len(variables)
        self._free: list[tuple[bool, int]] = []

    def take(self, v: int) -> str:
        if self._free:
            _, n = heappop(self._free)
        else:
            n, self._count = self._count, self._count + 1
        name = self.of[v] = f"r{n}"
        return name

    def give_back(self, v: int) -> str | None:
        name = self.of.pop(v, None)
        if name is not None:
            heappush(self._free, (v in self._parameters, int(name[1:])))
        return name


class _Writer:
    """Renders steps as one function, or as several parts and a function that calls them in order.

    A part takes the variables that it reads and returns those of its results that are read later; other values do not
    pass through it.
    """

    def __init__(
        self,
        inputs: tuple[int, ...],
        constants: dict[int, Any],
        steps: list[Step],
        outputs: tuple[int, ...],
        bare: bool,
        *,
        lead: Sequence[str] = (),
        victims: Mapping[int, int] | None = None,
        exact: bool = False,
    ) -> None:
        COUNTERS.renders += 1
        self.inputs, self.steps, self.outputs, self.bare = inputs, steps, outputs, bare
        self.lead, self.victims, self.exact = lead, victims or {}, exact
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
            for v in step.results:
                self.last[v] = i
            for u in step.reads:
                self.last[u] = i
        self.last.update(dict.fromkeys(outputs, math.inf))

    def function(self) -> Callable[..., Any]:
        registers = _Registers(self.inputs)
        head = f"def program({', '.join([*self.lead, *registers.of.values()])}):"
        if len(self.steps) <= CHUNK:
            body = self._steps("program", 0, len(self.steps), registers)
        else:
            for v in self.inputs:
                if self.last[v] < 0:
                    registers.give_back(v)
            body = []
            for start in range(0, len(self.steps), CHUNK):
                body += self._part(start, min(start + CHUNK, len(self.steps)), registers)
        values = [self._operand(v, registers) for v in self.outputs]
        body.append(f"    return {values[0] if self.bare else _tuple(values)}")
        return self._define("program", [head, *body])

    def _part(self, start: int, stop: int, outer: _Registers) -> list[str]:
        """Define the steps from `start` to `stop` as a function; return the lines that call it."""
        name = f"part{start // CHUNK}"
        steps = self.steps[start:stop]
        made = {v for step in steps for v in step.results}
        read = {u: None for step in steps for u in step.reads if u not in self.fixed}
        takes = tuple([u for u in read if u not in made])
        gives = [v for step in steps for v in step.results if self.last[v] >= stop]
        inner = _Registers(takes)
        head = f"def {name}({', '.join([*self.lead, *inner.of.values()])}):"
        body = self._steps(name, start, stop, inner)
        body.append(f"    return {_tuple([inner.of[v] for v in gives])}")
        self._define(name, [head, *body])
        arguments = ", ".join([*self.lead, *[outer.of[u] for u in takes]])
        dead = {outer.give_back(u) for u in takes if self.last[u] < stop}
        targets = [outer.take(v) for v in gives]
        lines = [f"    {_tuple(targets) + ' = ' if targets else ''}{name}({arguments})"]
        left = sorted(n for n in dead - {*targets} if n is not None)
        if left:
            lines.append(f"    del {', '.join(left)}")
        return lines

    def _memory(self, step: Step, v: int, of: Mapping[int, str]) -> str:
        """The array that a result is written into, or None.

        In an exact program the result must have the layout of a new one, by which later sums are rounded: that of the
        only operand, or rows.
        """
        if v not in self.victims:
            return "None"
        name = of[self.victims[v]]
        eq = step.equation
        follows = eq.op.primitive.elementwise and len({*eq.variables}) == 1
        return name if follows or not self.exact else f"{name} if {name}.flags.c_contiguous else None"

    def _steps(self, name: str, start: int, stop: int, registers: _Registers) -> list[str]:
        """One line for each step, from `start` to `stop`."""
        last, of = self.last, registers.of
        body: list[str] = []
        for v in [v for v in of if last[v] < start]:
            registers.give_back(v)
        for i in range(start, stop):
            step = self.steps[i]
            arguments = [self._operand(v, registers) for v in step.operands]
            if any(v in self.victims for v in step.results):
                arguments += [self._memory(step, v, of) for v in step.results]
            sizes = [of[e] if e.__class__ is int else f"Z[{e.at}]" for e in step.sizes]  # type: ignore[union-attr]
            right = step.text.format(*arguments) or f"{self._callee(step)}({', '.join([*arguments, *sizes])})"
            for u in step.reads:
                if last.get(u) == i:
                    registers.give_back(u)
            left = [registers.take(v) for v in step.results]
            for v in step.results:
                if last[v] == i:
                    registers.give_back(v)
            target = _tuple(left) if step.many else "".join(left)
            self.lines[name, len(body) + 2] = step.equation
            body.append(f"    {target + ' = ' if left else ''}{right}")
        return body

    def _define(self, name: str, lines: list[str]) -> Callable[..., Any]:
        return defined(name, lines, self.globals, "program")

    def _operand(self, v: Operand, registers: _Registers) -> str:
        if isinstance(v, Literal):
            value = v.value
            if value.__class__ in (int, bool) or (value.__class__ is float and math.isfinite(value.real)):
                return repr(value)
            name = f"l{len(self.globals)}"
            self.globals[name] = value
            return name
        return self.fixed.get(v) or registers.of[v]

    def _callee(self, step: Step) -> str:
        if step.entry is not None:
            return f"Z[{step.entry.at}]"
        function = step.function
        name = self.callees.get(id(function))
        if name is None:
            name = self.callees[id(function)] = f"k{len(self.callees)}"
            self.globals[name] = function
        return name


def _tuple(names: list[str]) -> str:
    return f"({''.join([f'{name}, ' for name in names])})"


def explain_failure(error: BaseException) -> None:
    """Add a note to an error from a rendered program: the equation that failed, and its line in the user's code."""
    trace = error.__traceback__
    while trace is not None:
        lines = trace.tb_frame.f_globals.get("__equations__")
        if lines is not None:
            eq = lines.get((trace.tb_frame.f_code.co_name, trace.tb_lineno))
            if eq is not None:
                blame(error, eq)
        trace = trace.tb_next


def blame(error: BaseException, eq: Equation) -> None:
    """Add a note to an error: the equation that failed, and its line in the user's code."""
    note = f"in {eq}" + (f", traced at {eq.where}" if eq.where else "")
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
