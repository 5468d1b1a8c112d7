"""``placement="auto"``: assigns steps that may run on any CPU pool to pools if that pays, and reports the reasons.

List scheduling: steps are placed in order of their longest path to the end, each where it would finish first. Steps
whose operands or scope name a device stay there. A pool with too little work gets none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenferro_runtime.costs._storage import Storage
from tenferro_runtime.ir._call import name_of
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.placement._cost import CostModel
from tenferro_runtime.reports._table import Report
from tenferro_tensor import HOST, ComputeDevice, catalog
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.markup import aligned


class PlacedStep(NamedTuple):
    """The placement of one step.

    Attributes:
        name: name of the primitive.
        device: the device.
        seconds: its time by the cost model.
        start: its start, in seconds from the start of the run.
        fixed: whether operands or a scope name the device.
        where: line of user code.
    """

    name: str
    device: ComputeDevice
    seconds: float
    start: float
    fixed: bool
    where: str


@dataclass(frozen=True, slots=True, repr=False)
class Placement(Report):
    """The placement of a program's steps, and its reason; prints as a table.

    Attributes:
        steps: the steps, in the order of the program.
        sequential: seconds of all steps one after the other, by the cost model.
        planned: seconds with the steps on their pools.
        why: the reason in one sentence.
    """

    steps: tuple[PlacedStep, ...]
    sequential: float
    planned: float
    why: str

    @property
    def devices(self) -> tuple[ComputeDevice, ...]:
        """The device of each step."""
        return tuple([step.device for step in self.steps])

    def __repr__(self) -> str:
        return f"<Placement: {self.why}>"

    @property
    def _heading(self) -> str:
        return repr(self)[1:-1]

    def __str__(self) -> str:
        rows = [("step", "device", "start", "time", "line")]
        rows += [
            (s.name, f"{s.device}{' (requested)' if s.fixed else ''}", _us(s.start), _us(s.seconds), s.where)
            for s in self.steps
        ]
        return f"{aligned(rows)}\n{self.why}"


def place(
    program: Program, devices: Sequence[ComputeDevice], pools: Sequence[ComputeDevice], model: CostModel
) -> Placement:
    """Place the steps of a program without symbolic sizes.

    Args:
        program: the program, after fusion.
        devices: the device of each equation that a single operation would choose.
        pools: the CPU devices, the calling thread first.
        model: the cost model.
    """
    scheduler = _Scheduler(program, devices, model)
    alone = scheduler.schedule([HOST.device])
    sequential = sum([s.seconds for s in alone.steps])
    if not any(scheduler.free):
        return alone.told(sequential, "every step names its device")
    if len(pools) < 2:
        return alone.told(sequential, "there is one CPU pool; open another one with tenferro_cpu.CpuPool()")
    for count in range(len(pools), 1, -1):
        found = scheduler.schedule(pools[:count])
        short = found.short(model)
        if short is None and found.length < (1.0 - model.gain) * alone.length:
            used = ", ".join(sorted({str(s.device) for s in found.steps}))
            return found.told(sequential, f"on {used} it takes {_us(found.length)} instead of {_us(alone.length)}")
    return alone.told(
        sequential,
        f"kept in the calling thread: {_us(sequential)} of work "
        + (short or f"would take {_us(found.length)} on {count} pools, which saves less than {model.gain:.0%}"),
    )


class _Schedule(NamedTuple):
    steps: tuple[PlacedStep, ...]
    length: float

    def told(self, sequential: float, why: str) -> Placement:
        return Placement(self.steps, sequential, self.length, why)

    def short(self, model: CostModel) -> str | None:
        """The reason why a pool would get too little work, or an empty text."""
        for device in sorted({s.device for s in self.steps if not s.fixed} - {HOST.device}, key=str):
            times = [s.seconds for s in self.steps if s.device is device and s.seconds]
            if sum(times) < model.least:
                return f"leaves {_us(sum(times))} for {device}, and a pool must get {_us(model.least)}"
            if sum(times) < model.long * len(times):
                return f"assigns {device} steps of {_us(sum(times) / len(times))}, and they must have {_us(model.long)}"
        return None


class _Scheduler:
    def __init__(self, program: Program, devices: Sequence[ComputeDevice], model: CostModel) -> None:
        self.program, self.devices, self.model = program, devices, model
        storage = Storage(program)
        self.seconds = [model.seconds(program, eq, storage) for eq in program.equations]
        scoped = scoped_device() is not None
        self.free = [
            not scoped and d is HOST.device and _unnamed(program, eq)
            for eq, d in zip(program.equations, devices, strict=True)
        ]
        maker = {v: i for i, eq in enumerate(program.equations) for v in eq.results}
        self.before = [sorted({maker[v] for v in eq.variables if v in maker}) for eq in program.equations]
        self.rank = self._ranks()

    def _ranks(self) -> list[float]:
        """The longest path from the start of each equation to the end, in seconds."""
        rank = list(self.seconds)
        for i in range(len(rank) - 1, -1, -1):
            for j in self.before[i]:
                rank[j] = max(rank[j], self.seconds[j] + rank[i])
        return rank

    def schedule(self, pools: Sequence[ComputeDevice]) -> _Schedule:
        idle: dict[ComputeDevice, float] = {}
        starts: dict[int, float] = {}
        where: dict[int, ComputeDevice] = {}
        # Ranks decrease along dependences; for equal ranks, as with views, the program's order decides.
        for i in sorted(range(len(self.seconds)), key=lambda i: (-self.rank[i], i)):
            options = pools if self.free[i] else [self.devices[i]]
            if not self.seconds[i] and self.before[i] and self.free[i]:
                options = [where[self.before[i][0]]]  # a view costs nothing on the device of its operand
            best = min([(self._start(i, d, idle, starts, where), n) for n, d in enumerate(options)])
            starts[i], where[i] = best[0], options[best[1]]
            idle[where[i]] = starts[i] + self.seconds[i]
        ends = [starts[i] + s + (self.model.join if where[i].index else 0.0) for i, s in enumerate(self.seconds)]
        steps = [
            PlacedStep(name_of(eq), where[i], self.seconds[i], starts[i], not self.free[i], eq.where)
            for i, eq in enumerate(self.program.equations)
        ]
        return _Schedule(tuple(steps), max(ends, default=0.0))

    def _start(
        self,
        i: int,
        device: ComputeDevice,
        idle: dict[ComputeDevice, float],
        starts: dict[int, float],
        where: dict[int, ComputeDevice],
    ) -> float:
        start = idle.get(device, 0.0 if device is HOST.device else self.model.handover)
        for j in self.before[i]:
            start = max(start, starts[j] + self.seconds[j] + (0.0 if where[j] is device else self.model.join))
        return start


def _unnamed(program: Program, eq: Equation) -> bool:
    """Whether no operand or result names a device, and no data move."""
    places = [program.specs[v].place for v in (*eq.variables, *eq.results)]
    return eq.op.primitive is not catalog.transfer and all(p is HOST for p in places)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"
