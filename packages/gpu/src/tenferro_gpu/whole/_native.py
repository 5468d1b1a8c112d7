"""`KernelSequence`: a function on the devices of a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from tenferro_gpu.rendering import BLOCK, MAX_PARTS, SLOT, NestKernel, Sharing
from tenferro_gpu.whole._contract import Functions, KernelTarget
from tenferro_gpu.whole._graphs import MAX_LAUNCHES, MIN_LAUNCHES, Graphs, launches, wanted
from tenferro_gpu.whole._plan import planned
from tenferro_gpu.whole._source import source_of
from tenferro_gpu.whole._steps import HostLoop, HostStep, HostSwitch, HostWhile, KernelLaunch, LaunchSequence
from tenferro_tensor import Spec
from tenferro_tensor.device_runtimes import DeferredChecks, deferred_checks
from tenferro_tensor.loop_ir import (
    ArenaPlan,
    Buffer,
    Call,
    Literal,
    LoopFunction,
    Statement,
    Value,
    View,
    everything,
    plan_arena,
)
from tenferro_tensor_core import Dim, DimLike, UnsupportedError, evaluate
from tenferro_tensor_core.forks import new_lock

MAX_GROUPS: Final = 1 << 16
"""Maximum groups per launch; more iterations take several passes."""

MIN_PART: Final = 4 * BLOCK
"""Minimum iterations per part of a reduction."""

MAX_KERNELS: Final = 256
"""Maximum kernels of calls cached per sequence, by sizes; a full cache is cleared."""

MAX_KNOWN: Final = 256
"""Maximum values of the sizes for which a sequence caches its memory layout; a full cache is cleared."""

LINE: Final = 256
"""Alignment of temporaries in bytes."""

_Launches = dict[int, tuple[int, int]]
"""Groups and parts of launches, by index of the kernel."""


class _Layout(NamedTuple):
    """Byte offsets in the memory of a run, for values of the sizes."""

    parts: int
    slots: tuple[int, ...]
    total: int


class KernelSequence:
    """A function with compiled kernels: takes the tuple of values of its sizes, then arrays of a device.

    Methods take:
        device: number of the device.
        values, sizes: values of the sizes, as a tuple or by name.
        inputs, outputs: arrays.
        call: the call statement.

    Methods return:
        The kernel.

    Args:
        function: what to compute.
        target: the devices.
        bare: return the only output itself instead of a tuple.
        otherwise: serves calls whose sizes do not meet the requirements of the function.

    Raises:
        UnsupportedError: it has no form as kernels.
    """

    def __init__(
        self,
        function: LoopFunction,
        target: KernelTarget,
        *,
        bare: bool = False,
        otherwise: Callable[..., Any] | None = None,
    ) -> None:
        if not function.inputs:
            raise UnsupportedError("a program without inputs does not say on which device it runs")
        self.function: LoopFunction = function
        self.target: KernelTarget = target
        self.bare: bool = bare
        self.otherwise: Callable[..., Any] | None = otherwise
        for call in _calls(function.body):
            target.require_kernel(call.op)
        self.sequence: LaunchSequence = planned(function)
        kernels = self.sequence.kernels
        self.functions: Callable[[int], Functions] = target.functions(
            source_of(function, self.sequence), [k.entry for k in kernels]
        )
        self.arena: ArenaPlan = plan_arena(function)
        self._constants: dict[int, list[Any]] = {}
        self._kernels: dict[Any, Callable[..., Any]] = {}
        self._known: dict[tuple[int, ...], tuple[dict[str, int], _Layout, _Launches]] = {}
        self._lock = new_lock()
        self._graphs = Graphs(target, self._memory, self._enqueue) if wanted() else None

    def __call__(self, sizes: tuple[int, ...], *raws: Any) -> Any:
        if self.function.requires and not self.function.accepts(self._named(sizes)):
            return (self.otherwise or self._refuse)(sizes, *raws)
        results = self.target.start(lambda device, raws: self._run(device, sizes, raws), raws)
        return results[0] if self.bare else results

    def _refuse(self, sizes: tuple[int, ...], *raws: Any) -> NoReturn:
        self.function.refuse(self._named(sizes))

    def _named(self, values: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(self.function.sizes, values, strict=True))

    def _layout(self, sizes: dict[str, int]) -> _Layout:
        at = SLOT * (max(self.sequence.places.values(), default=-SLOT) // SLOT + 1)
        parts = at
        at += SLOT * MAX_PARTS * max([k.parts for k in self.sequence.kernels], default=0)
        slots = []
        for size in self.arena.slots:
            at = -(-at // LINE) * LINE
            slots.append(at)
            at += evaluate(size, sizes)
        return _Layout(parts, tuple(slots), at)

    def _constants_on(self, device: int) -> list[Any]:
        found = self._constants.get(device)
        if found is None:
            with self._lock:
                found = self._constants.get(device)
                if found is None:
                    arrays = [np.require(c, b.dtype, "C") for b, c in self.function.constants]
                    found = self._constants[device] = [self.target.uploaded(a, device) for a in arrays]
        return found

    def _run(self, device: int, values: tuple[int, ...], raws: Sequence[Any]) -> tuple[Any, ...]:
        sizes = self._named(values)
        outputs = tuple([self.target.empty(_shape(b, sizes), b.dtype) for b in self.function.outputs])
        self.into(device, values, [self.target.lying(x) for x in raws], outputs)
        return outputs

    def into(self, device: int, values: tuple[int, ...], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run it on a device, which must be current, with the given arrays."""
        if self._graphs is not None:
            count = launches(self.sequence.steps, self._sized(values)[0])
            if count is not None and MIN_LAUNCHES <= count <= MAX_LAUNCHES:
                if self._graphs.replayed(device, values, inputs, outputs):
                    return
        self._enqueue(device, values, inputs, outputs, self._memory(values))

    def _sized(self, values: tuple[int, ...]) -> tuple[dict[str, int], _Layout, _Launches]:
        known = self._known.get(values)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            sizes = self._named(values)
            known = self._known[values] = sizes, self._layout(sizes), {}
        return known

    def _memory(self, values: tuple[int, ...]) -> Any:
        """The memory of a run, beside its operands and results."""
        total = self._sized(values)[1].total
        return self.target.empty((total,), np.dtype(np.uint8)) if total else None

    def _enqueue(
        self, device: int, values: tuple[int, ...], inputs: Sequence[Any], outputs: Sequence[Any], arena: Any
    ) -> None:
        f, target = self.function, self.target
        sizes, layout, known = self._sized(values)
        given = [*zip(f.inputs, inputs), *zip([b for b, _ in f.constants], self._constants_on(device))]
        arrays = {b.number: x for b, x in (*given, *zip(f.outputs, outputs))}
        for b in f.temporaries:
            at, size = layout.slots[self.arena.slot_of[b.number]], b.dtype.itemsize * prod(_shape(b, sizes))
            memory = target.empty((0,), b.dtype) if arena is None else arena[at : at + size].view(b.dtype)
            arrays[b.number] = memory
        start = 0 if arena is None else target.address(arena)
        with deferred_checks() as checks:
            numbers = _Numbers(self, device, arena, start, start + layout.parts, checks)
            _Launcher(self, self.functions(device), sizes, arrays, numbers, known).all(self.sequence.steps)

    def kernel(self, call: Call, device: int, sizes: dict[str, int]) -> Callable[..., Any]:
        """The kernel of a call, cached for the sizes."""
        key = id(call), device, tuple(sizes.values())
        found = self._kernels.get(key)
        if found is None:
            if len(self._kernels) >= MAX_KERNELS:
                self._kernels.clear()
            op = call.op
            if op.symbolic:
                op = op.primitive.op(**{k: _filled(v, sizes) for k, v in op.params.items()})
            ins = tuple([s.with_(shape=_filled(s.shape, sizes)) for s in call.ins])
            outs = op.infer(*ins)
            made = self.target.kernel(op, ins, (outs,) if isinstance(outs, Spec) else outs, device)
            found = self._kernels[key] = made
        return found


class _Numbers(NamedTuple):
    """The numbers that kernels pass to each other, in the memory of a run."""

    owner: KernelSequence
    device: int
    arena: Any
    start: int
    parts: int
    checks: DeferredChecks

    def read(self, value: Value) -> Any:
        """Read a number once it is computed; what it was computed from has passed its checks."""
        if isinstance(value, Literal):
            return value.value
        self.checks.settle()
        at = self.owner.sequence.places[value.number]
        size = value.dtype.itemsize
        return self.owner.target.downloaded(self.arena[at : at + size], self.device).view(value.dtype)[0]


class _Launcher:
    """One run: launches kernels in order."""

    def __init__(
        self,
        owner: KernelSequence,
        functions: Functions,
        sizes: dict[str, int],
        arrays: dict[int, Any],
        numbers: _Numbers,
        launches: _Launches,
    ) -> None:
        self.owner, self.functions, self.sizes = owner, functions, sizes
        self.kernels, self.arrays, self.numbers = owner.sequence.kernels, arrays, numbers
        self.addresses = {n: owner.target.address(x) for n, x in arrays.items()}
        self.values, self.launches = tuple(sizes.values()), launches
        self.counters: dict[int, int] = {}

    def all(self, steps: Sequence[HostStep]) -> None:
        """Run steps in order."""
        for step in steps:
            match step:
                case KernelLaunch():
                    self.launch(step)
                case HostLoop(index, extent, body, swaps):
                    for i in range(evaluate(extent, self.sizes)):
                        self.counters[index.number] = i
                        self.all(body)
                        self.swap(swaps)
                case HostWhile():
                    self.repeat(step)
                case Call():
                    self.call(step)
                case HostSwitch(index, cases):
                    self.all(cases[min(max(int(self.value(index)), 0), len(cases) - 1)])

    def repeat(self, step: HostWhile) -> None:
        """A loop with a condition."""
        most, i = None if step.most is None else evaluate(step.most, self.sizes), 0
        while most is None or i < most:
            self.counters[step.index.number] = i
            self.all(step.test)
            if not self.value(step.condition):
                return
            self.all(step.body)
            self.swap(step.swaps)
            i += 1

    def swap(self, pairs: Sequence[tuple[Buffer, Buffer]]) -> None:
        """Exchange the memory of buffers."""
        for a, b in pairs:
            for to in (self.addresses, self.arrays):
                to[a.number], to[b.number] = to[b.number], to[a.number]

    def value(self, value: Value) -> Any:
        """A number that a decision of the host depends on."""
        if not isinstance(value, Literal) and value.number in self.counters:
            return self.counters[value.number]
        return self.numbers.read(value)

    def call(self, step: Call) -> None:
        """Run the kernel of an op and store its results."""
        self.numbers.checks.note = lambda: _origin(step)
        try:
            found = self.owner.kernel(step, self.numbers.device, self.sizes)(*map(self.view, step.operands))
            for view, x in zip(step.results, found if isinstance(found, tuple | list) else (found,), strict=True):
                self.view(view)[...] = x
        except Exception as error:
            if not getattr(error, "__notes__", ()):  # a check of an earlier call has that of its call
                error.add_note(_origin(step))
            raise

    def view(self, view: View) -> Any:
        """Part of a buffer as an array."""
        registers = {reg.number: int(self.value(reg)) for reg, _ in view.at.terms}
        shape, strides = _filled(view.shape, self.sizes), _filled(view.strides, self.sizes)
        at = view.at.evaluate(registers, self.sizes)
        return self.owner.target.viewed(self.arrays[view.buffer.number].reshape(-1), at, shape, strides)

    def launch(self, step: KernelLaunch) -> None:
        """Launch a kernel on the current stream."""
        kernel = self.kernels[step.kernel]
        args = [self.addresses[b.number] for b in kernel.buffers]
        args += self.values
        args += [self.counters[reg.number] for reg in kernel.counters]
        if kernel.takes_numbers:
            args.append(self.numbers.start)
        groups, parts = self.launches.get(step.kernel) or self.sized(step)
        if parts:
            args += [self.numbers.parts, parts]
        self.functions[step.kernel]((groups,), (BLOCK,), tuple(args))

    def sized(self, step: KernelLaunch) -> tuple[int, int]:
        """The groups of a launch and the parts of its loop; cached for the sizes."""
        kernel, rows = self.kernels[step.kernel], self.count(step.rows)
        groups, parts = _groups(kernel, rows), 0
        if kernel.takes_parts:
            parts = max(1, min(MAX_PARTS // max(rows, 1), self.count(step.parts) // MIN_PART))
            groups = groups * parts if kernel.sharing is Sharing.PARTS else groups
        self.launches[step.kernel] = groups, parts
        return groups, parts

    def count(self, extents: Sequence[DimLike]) -> int:
        """Iterations of nested loops."""
        return prod([evaluate(n, self.sizes) for n in extents])


def _origin(call: Call) -> str:
    return f"in {call.op}" + (f", traced at {call.where}" if call.where else "")


def _groups(kernel: NestKernel, rows: int) -> int:
    """Groups of a launch, at least one, which passes numbers to other kernels."""
    if kernel.sharing is Sharing.ONE:
        return 1
    wanted = -(-rows // BLOCK) if kernel.sharing is Sharing.ITEMS else rows
    return max(1, min(wanted, MAX_GROUPS))


def _calls(statements: Sequence[Statement]) -> list[Call]:
    return [s for s in everything(statements) if isinstance(s, Call)]


def _filled(value: Any, sizes: dict[str, int]) -> Any:
    """A parameter with its symbolic sizes replaced by values."""
    if value.__class__ is tuple:
        return tuple([_filled(v, sizes) for v in value])
    return evaluate(value, sizes) if isinstance(value, Dim) else value


def _shape(buffer: Buffer, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple([evaluate(n, sizes) for n in buffer.shape])
