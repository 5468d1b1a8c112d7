"""Compiles the program of a derivative to `Steps`: calls over numbered registers.

They run with kernels on raw arrays; other values run the same program op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tenferro_runtime.extension import Program
from tenferro_runtime.ir import Replay
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.running.rendering import Step, aliases, raw_steps
from tenferro_tensor import Op, Spec
from tenferro_tensor.calls import Steps

Call = tuple[Callable[..., Any], tuple[int, ...]]
"""A function, with the registers of its operands."""


class Derivation(NamedTuple):
    """A derivative as a program.

    Attributes:
        program: the program.
        arguments: for each input of the program, the index of the corresponding input of `Steps`.
        outputs: for each output of `Steps`, the variable of the program and its spec, or ``None`` for zero.
        inputs: for each input of `Steps`, ``None`` for a concrete tensor, `object` for a Python number that is an
            input of the program, or the number itself if it is a literal of the program.
        numbers: converters of the Python numbers that are inputs of the program, by index.
    """

    program: Program
    arguments: tuple[int, ...]
    outputs: tuple[tuple[int, Spec] | None, ...]
    inputs: tuple[Any, ...]
    numbers: Mapping[int, Callable[[Any], Any]]


def make_steps(op: Op, d: Derivation, otherwise: Callable[[Any, Any], Any] | None) -> Steps:
    """The steps of a derivative; by default, values that are not concrete run the same program op by op."""
    argument = dict(zip(d.program.input_ids, d.arguments))
    passed_on = {v for v, i in argument.items() if d.inputs[i] is None}
    made = [o[0] for o in d.outputs if o is not None and o[0] not in passed_on]
    program = remove_dead_code(d.program.with_(output_ids=tuple(made)))
    steps, alias = aliases(raw_steps(program))
    constants = {v: c._data for v, c in program.constants.items()}
    held, calls, registers = _calls(steps, constants, argument, d)
    registers.update((v, registers[a]) for v, a in alias.items() if a in registers)
    outputs = tuple([
        None if o is None else (argument[o[0]], None) if o[0] in passed_on else (registers[o[0]], o[1])
        for o in d.outputs
    ])  # fmt: skip
    return Steps(op, d.inputs, held, calls, outputs, otherwise or _OpByOp(d))


def _calls(
    steps: Sequence[Step], constants: Mapping[int, Any], argument: Mapping[int, int], d: Derivation
) -> tuple[tuple[Any, ...], tuple[Call, ...], dict[int, int]]:
    """Steps of a program as constants and calls, and the registers of its variables."""
    count = len(d.inputs)
    held = [*constants.values()]
    literals: dict[tuple[int, int], int] = {}
    for n, step in enumerate(steps):
        for k, v in enumerate(step.operands):
            if not isinstance(v, int):
                literals[n, k] = count + len(held)
                held.append(v.value)
    calls: list[Call] = []

    def add(function: Callable[..., Any], *operands: int) -> int:
        calls.append((function, operands))
        return count + len(held) + len(calls) - 1

    registers = dict(argument)
    registers.update(zip(constants, range(count, count + len(held))))
    for v, i in argument.items():
        if i in d.numbers:
            registers[v] = add(d.numbers[i], i)
    for n, step in enumerate(steps):
        operands = [registers[v] if isinstance(v, int) else literals[n, k] for k, v in enumerate(step.operands)]
        result = add(step.function, *operands)
        for k, v in enumerate(step.results):
            registers[v] = add(itemgetter(k), result) if step.many else result
    return tuple(held), tuple(calls), registers


class _OpByOp:
    """Runs a derivation op by op on values of any level."""

    __slots__ = ("_replay", "derivation")

    def __init__(self, derivation: Derivation) -> None:
        self.derivation = derivation
        self._replay: tuple[Replay, tuple[int | None, ...]] | None = None

    def __call__(self, given: Any, saved: Sequence[Any]) -> tuple[Any, ...]:
        replay, outputs = self._replay or self._made()
        inputs = [*[g for g in given if g is not None], *saved] if isinstance(given, list) else [given, *saved]
        registers = replay.registers(inputs)
        return tuple([None if r is None else registers[r] for r in outputs])

    def _made(self) -> tuple[Replay, tuple[int | None, ...]]:
        d = self.derivation
        program = d.program.with_(output_ids=tuple([o[0] for o in d.outputs if o is not None]))
        replay = Replay(program, d.arguments, len(d.inputs))
        results = iter(replay.results)
        self._replay = replay, tuple([None if o is None else next(results) for o in d.outputs])
        return self._replay
