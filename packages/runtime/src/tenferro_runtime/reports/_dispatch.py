"""`Dispatch`: which device ran each operation of a call, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import Tabular, TextTable


@dataclass(frozen=True, slots=True)
class DispatchStep:
    """One operation.

    Attributes:
        index: its number.
        primitive: its name.
        device: the device that ran it.
        rule: the rule that chose the device.
        operands: dtype, shape and place of each operand.
        line: the user's line, empty if it is unknown.
    """

    index: int
    primitive: str
    device: str
    rule: str
    operands: tuple[str, ...]
    line: str


@dataclass(frozen=True, slots=True, repr=False)
class Dispatch(Tabular):
    """The operations of one call in order; prints as a table.

    Attributes:
        steps: the operations.
    """

    steps: tuple[DispatchStep, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that ran something, by name."""
        return tuple(sorted({s.device for s in self.steps}))

    def _table(self) -> TextTable:
        head = ("step", "primitive", "device", "chosen by", "operands", "line")
        rows = [
            (str(s.index), s.primitive, s.device, s.rule, "; ".join(s.operands), s.line.rpartition("/")[2])
            for s in self.steps
        ]
        many = f"{len(self.steps)} operation{'s' * (len(self.steps) != 1)} on {', '.join(self.devices) or 'no device'}"
        return TextTable(head, rows, frozenset({0}), many)

    def _heading(self) -> str:
        return "Devices of operations"
