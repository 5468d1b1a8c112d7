"""Renders the steps of each thread of a plan as straight-line Python.

Generated text contains numbers and generated names only. The arguments of a rendered function are the state of a run: V
the values, E the events, T the timelines of the threads, S the streams and R the devices of the queues, and X the
failures, empty until the run fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tenferro_runtime._generated_code import defined
from tenferro_runtime.ir._program import Equation, Literal, Operand
from tenferro_runtime.placement._moves import Kind
from tenferro_runtime.placement._plan import ExecutionPlan
from tenferro_runtime.placement._step import Step, by_handle, kept_by_host
from tenferro_runtime.placement._sync import Wait, wait_between
from tenferro_runtime.placement._timeline import CancelledError
from tenferro_runtime.running.rendering._render import CHUNK
from tenferro_tensor import HOST, get_backend
from tenferro_tensor.results import arrived
from tenferro_tensor.transfers import book_raw

Part = Callable[..., None]


def parts(plan: ExecutionPlan, thread: int, slots: dict[int, int]) -> list[Part]:
    """The functions that a thread calls in order.

    Args:
        plan: the plan.
        thread: number of the thread.
        slots: index of each variable in the values.
    """
    numbers = plan.of_thread(thread)
    return [_Part(plan, slots, numbers[n : n + CHUNK]).function() for n in range(0, len(numbers), CHUNK)]


def halt() -> None:
    """Replaces a step after another step has failed."""
    raise CancelledError("another step of the plan has failed")


def begin(runtime: Any, stream: Any, raws: tuple[Any, ...]) -> None:
    """Let a compute stream wait for the streams that still compute the inputs of the run."""
    for other in {id(s): s for s in map(runtime.stream_of, raws) if s is not None and s is not stream}.values():
        stream.wait(other.record())


def release(stream: Any, values: list[Any], slots: tuple[int, ...]) -> None:
    """Release values, some of which may be the same array."""
    for raw in {id(values[n]): values[n] for n in slots}.values():
        stream.release(raw)
    for n in slots:
        values[n] = None


class _Part:
    """Renders some steps of one thread."""

    def __init__(self, plan: ExecutionPlan, slots: dict[int, int], numbers: tuple[int, ...]) -> None:
        self.plan, self.slots, self.numbers = plan, slots, numbers
        self.equations: dict[tuple[str, int], Equation] = {}
        self.names: dict[int, str] = {}
        self.globals: dict[str, Any] = {
            "__name__": "tenferro_runtime.rendered",
            "__equations__": self.equations,
            "halt": halt,
            "begin": begin,
            "book": book_raw,
            "release": release,
        }
        self.lines = ["def part(V, E, T, S, R, X):"]

    def function(self) -> Part:
        for i in self.numbers:
            self._step(i, self.plan.steps[i])
        if len(self.lines) == 1:
            self.lines.append("    pass")
        function: Part = defined("part", self.lines, self.globals, "plan")
        return function

    def _step(self, i: int, step: Step) -> None:
        lines = [line for d in step.waits for line in self._wait(step, d)]
        done = self._done(step)
        if done:
            lines = ["if X: halt()", *lines, *self._booking(step), done]
        self.lines += [f"    {line}" for line in lines]
        if done and step.action.task is not None and step.action.task.equation is not None:
            self.equations["part", len(self.lines)] = step.action.task.equation
        if step.event:
            self.lines.append(f"    E[{i}] = S[{step.queue}].record()")
        if step.signal:
            self.lines.append(f"    T[{step.thread}].signal({step.at})")
        self.lines += [f"    {line}" for line in self._frees(step)]

    def _wait(self, step: Step, d: int) -> list[str]:
        other = self.plan.steps[d]
        how = wait_between(other.action.queue, step.action.queue)
        lines = []
        if how.by_timeline:
            lines.append(f"if T[{other.thread}].value < {other.at}: T[{other.thread}].wait({other.at})")
        if how.by_event and not by_handle(step.action, other.action):
            lines.append(f"S[{step.queue}].wait(E[{d}])" if how is Wait.EVENT else f"E[{d}].synchronize()")
        return lines

    def _booking(self, step: Step) -> list[str]:
        """The call that logs a transfer, at the step where its data leave their memory."""
        action = step.action
        if action.task is None or action.kind not in (Kind.UPLOAD, Kind.DOWNLOAD, Kind.PEER):
            return []
        (v,) = action.reads
        if self.plan.homes[v] is None:  # through main memory: logged at the download
            return []
        spaces = [self.plan.specs[u].place.memory_space for u in (*action.task.reads, *action.task.results)]
        line = "" if action.task.equation is None else action.task.equation.where
        return [f"book({', '.join(map(self._constant, (*spaces, line)))}, {self._operand(v)})"]

    def _done(self, step: Step) -> str:
        action, q = step.action, step.queue
        given = [self._operand(v) for v in action.operands]
        made = [f"V[{self.slots[v]}]" for v in action.results]
        match action.kind:
            case Kind.BEGIN:
                return f"begin(R[{q}].runtime, S[{q}], ({''.join(f'{name}, ' for name in made)}))"
            case Kind.CALL:
                return f"{self._target(action, made)}{self._callee(step)}({', '.join(given)})"
            case Kind.LAUNCH:
                assert action.task is not None
                target = f"{', '.join(made)}, = " if not action.task.many or len(made) != 1 else f"({made[0]},), = "
                outs = self._constant(tuple([self.plan.specs[v] for v in action.results]))
                return f"{target}S[{q}].launch({self._callee(step)}, ({''.join(f'{g}, ' for g in given)}), {outs})"
            case Kind.UPLOAD:
                return f"{made[0]} = {self._arrived(step)}(R[{q}].device.upload({given[0]}, S[{q}]))"
            case Kind.DOWNLOAD:
                return f"{made[0]} = R[{q}].device.download({given[0]}, S[{q}])"
            case Kind.ARRIVE:
                return f"{made[0]} = {self._arrived(step)}({given[0]}.result())"
            case Kind.PEER:
                return f"{made[0]} = {self._arrived(step)}(R[{q}].runtime.copy_peer({given[0]}, None, S[{q}]))"
            case Kind.END:
                return ""

    def _arrived(self, step: Step) -> str:
        """The check of transferred data; see `arrived`."""
        task, (v,) = step.action.task, step.action.results
        assert task is not None, "transfers are tasks"
        spaces = [self.plan.specs[u].place.memory_space for u in (*task.reads, *task.results)]
        kind = next(space.kind for space in spaces if space.kind != HOST.memory_space.kind)
        return self._constant(partial(arrived, spec=self.plan.specs[v], carrier=get_backend(kind)))

    @staticmethod
    def _target(action: Any, made: list[str]) -> str:
        if not made:
            return ""
        return f"({''.join(f'{name}, ' for name in made)}) = " if action.task.many else f"{made[0]} = "

    def _frees(self, step: Step) -> list[str]:
        host = [v for v in step.frees if kept_by_host(self.plan.homes[v])]
        rest = [v for v in step.frees if not kept_by_host(self.plan.homes[v])]
        lines = [f"{' = '.join([f'V[{self.slots[v]}]' for v in host])} = None"] if host else []
        if rest:
            lines.append(f"release(S[{step.queue}], V, ({''.join(f'{self.slots[v]}, ' for v in rest)}))")
        return lines

    def _operand(self, v: Operand) -> str:
        return self._constant(v.value) if isinstance(v, Literal) else f"V[{self.slots[v]}]"

    def _callee(self, step: Step) -> str:
        assert step.action.task is not None
        return self._constant(step.action.task.run)

    def _constant(self, value: Any) -> str:
        name = self.names.get(id(value))
        if name is None:
            name = f"k{len(self.names)}"
            self.names[id(value)], self.globals[name] = name, value
        return name
