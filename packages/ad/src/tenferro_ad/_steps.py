"""`Steps`: a rule that has been traced, as calls over numbered registers; and how a program becomes one.

Registers hold the inputs first, then constants, then the result of each call. The same calls run with kernels on raw
arrays, and with ops on values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tenferro_runtime.extension import Program
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.rendering import Step, aliases, raw_steps, value_steps
from tenferro_tensor import Op, Spec, Tensor
from tenferro_tensor.calls import state

Output = tuple[int, Spec | None] | None
"""A register with the spec of what is in it, or the number of an input that is passed on, or ``None`` for zero."""

_new = object.__new__


class Calls(NamedTuple):
    """Calls over registers.

    Attributes:
        constants: what the registers behind the inputs hold.
        calls: functions, with the registers of their operands; each result goes into the next register.
    """

    constants: tuple[Any, ...]
    calls: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...]


class Steps:
    """A derivative of one op on concrete values, ``steps(given, saved)``.

    `given` is the cotangent of an op of one output, else a list; where that has ``None``, there is no input.

    Attributes:
        op: the op, which errors name.
        tensors: for each input whether it is a concrete tensor; others are Python numbers.
        kernels: the calls, on raw arrays.
        outputs: what is returned.
        otherwise: ``otherwise(given, saved)``, called where an input is not concrete or a device scope is open.
    """

    __slots__ = ("_calls", "kernels", "op", "otherwise", "outputs", "tensors")

    def __init__(
        self,
        op: Op,
        tensors: tuple[bool, ...],
        kernels: Calls,
        outputs: tuple[Output, ...],
        otherwise: Callable[[Any, Any], Any],
    ) -> None:
        self.op, self.tensors, self.kernels, self.outputs, self.otherwise = op, tensors, kernels, outputs, otherwise
        self._calls = [(function, _getter(operands)) for function, operands in kernels.calls]

    def __call__(self, given: Any, saved: Sequence[Any]) -> tuple[Any, ...]:
        inputs = inputs_of(given, saved)
        registers: list[Any] = []
        for x, tensor in zip(inputs, self.tensors, strict=True):
            if not tensor:
                registers.append(x)
            elif x.__class__ is Tensor:
                registers.append(x._data)
            else:
                return self.otherwise(given, saved)  # type: ignore[no-any-return]
        if state.open_scopes:
            return self.otherwise(given, saved)  # type: ignore[no-any-return]
        registers += self.kernels.constants
        for function, operands in self._calls:
            registers.append(function(*operands(registers)))
        found: list[Any] = []
        for output in self.outputs:
            if output is None:
                found.append(None)
                continue
            register, spec = output
            if spec is None:
                found.append(inputs[register])
                continue
            z = _new(Tensor)
            z._data, z.spec = registers[register], spec
            found.append(z)
        return tuple(found)


def inputs_of(given: Any, saved: Sequence[Any]) -> list[Any]:
    """The inputs of steps: what is given, without ``None``, and what was saved."""
    if isinstance(given, list):
        return [*[g for g in given if g is not None], *saved]
    return [given, *saved]


def _getter(operands: tuple[int, ...]) -> Callable[[list[Any]], Any]:
    """The function that picks operands from registers as a sequence."""
    if len(operands) > 1:
        return itemgetter(*operands)
    start = operands[0] if operands else 0
    return itemgetter(slice(start, start + len(operands)))


class Derivation(NamedTuple):
    """A derivative as a program.

    Attributes:
        program: the program.
        arguments: for each of its inputs, the number of the input of `Steps` that it stands for.
        outputs: for each output of `Steps`, the variable of the program and its spec, or ``None`` for zero.
        tensors: for each input of `Steps` whether it is a concrete tensor; others are Python numbers.
        numbers: for inputs that are Python numbers and arguments of the program, what converts them.
    """

    program: Program
    arguments: tuple[int, ...]
    outputs: tuple[tuple[int, Spec] | None, ...]
    tensors: tuple[bool, ...]
    numbers: Mapping[int, Callable[[Any], Any]]


def make_steps(op: Op, d: Derivation, otherwise: Callable[[Any, Any], Any] | None) -> Steps:
    """The steps of a derivative; by default values that are not concrete go through the same program, op by op."""
    argument = dict(zip(d.program.input_ids, d.arguments))
    passed_on = {v for v, i in argument.items() if d.tensors[i]}
    made = [o[0] for o in d.outputs if o is not None and o[0] not in passed_on]
    program = remove_dead_code(d.program.with_(output_ids=tuple(made)))
    steps, alias = aliases(raw_steps(program))
    constants = {v: c._data for v, c in program.constants.items()}
    kernels, registers = _calls(steps, constants, argument, d)
    registers.update((v, registers[a]) for v, a in alias.items() if a in registers)
    outputs = tuple([
        None if o is None else (argument[o[0]], None) if o[0] in passed_on else (registers[o[0]], o[1])
        for o in d.outputs
    ])  # fmt: skip
    return Steps(op, d.tensors, kernels, outputs, otherwise or _OpByOp(d))


def _calls(
    steps: Sequence[Step], constants: Mapping[int, Any], argument: Mapping[int, int], d: Derivation
) -> tuple[Calls, dict[int, int]]:
    """Steps of a program as calls, and the registers of its variables."""
    count = len(d.tensors)
    held = [*constants.values()]
    literals: dict[tuple[int, int], int] = {}
    for n, step in enumerate(steps):
        for k, v in enumerate(step.operands):
            if not isinstance(v, int):
                literals[n, k] = count + len(held)
                held.append(v.value)
    calls: list[tuple[Callable[..., Any], tuple[int, ...]]] = []

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
    return Calls(tuple(held), tuple(calls)), registers


class _OpByOp:
    """A derivation on values of any level: its ops, one after the other; `interpret` with everything looked up."""

    __slots__ = ("_made", "derivation")

    def __init__(self, derivation: Derivation) -> None:
        self.derivation = derivation
        self._made: tuple[Calls, tuple[int | None, ...]] | None = None

    def __call__(self, given: Any, saved: Sequence[Any]) -> tuple[Any, ...]:
        if self._made is None:
            self._made = self._make()
        (constants, calls), outputs = self._made
        registers = [*inputs_of(given, saved), *constants]
        for function, operands in calls:
            registers.append(function(*[registers[i] for i in operands]))
        return tuple([None if r is None else registers[r] for r in outputs])

    def _make(self) -> tuple[Calls, tuple[int | None, ...]]:
        d = self.derivation
        argument = dict(zip(d.program.input_ids, d.arguments))
        calls, registers = _calls(value_steps(d.program), d.program.constants, argument, d)
        return calls, tuple([None if o is None else registers[o[0]] for o in d.outputs])
