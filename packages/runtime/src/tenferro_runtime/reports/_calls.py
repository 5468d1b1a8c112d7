"""Reports of calls: `Dispatch`, which device ran each operation and why; `Transfers`, what they moved."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import Tabular, TextTable
from tenferro_tensor.markup import readable
from tenferro_tensor.transfers import Move
from tenferro_tensor_core.forks import new_lock


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

    _heading = "Devices of operations"

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


@dataclass(frozen=True, slots=True)
class TransferRow:
    """The transfers of one line in one direction.

    Attributes:
        line: the user's line, empty where it is unknown.
        source: the memory that was read.
        target: the memory that was written.
        count: number of transfers.
        nbytes: their bytes together.
    """

    line: str
    source: str
    target: str
    count: int
    nbytes: int


class Transfers(Tabular):
    """A log of transfers between memories; prints as a table, most bytes first. Made by `tr.transfers`."""

    _heading = "Transfers between memories"

    def __init__(self) -> None:
        self._lock = new_lock()
        self._rows: dict[tuple[str, str, str], tuple[int, int]] = {}

    def add(self, move: Move) -> None:
        """Append a transfer to the log.

        Args:
            move: the transfer.
        """
        key = (move.line, str(move.source), str(move.target))
        with self._lock:
            count, nbytes = self._rows.get(key, (0, 0))
            self._rows[key] = count + 1, nbytes + (move.nbytes or 0)

    @property
    def rows(self) -> tuple[TransferRow, ...]:
        """One row for each line and direction, most bytes first."""
        with self._lock:
            rows = [TransferRow(*key, *sums) for key, sums in self._rows.items()]
        return tuple(sorted(rows, key=lambda row: -row.nbytes))

    @property
    def count(self) -> int:
        """Number of transfers."""
        return sum(row.count for row in self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all transfers."""
        return sum(row.nbytes for row in self.rows)

    def _table(self) -> TextTable:
        rows = [
            (readable(row.nbytes, "B"), str(row.count), row.source, row.target, row.line or "?") for row in self.rows
        ]
        total = f"{self.count} transfer{'s' * (self.count != 1)}, {readable(self.nbytes, 'B')}"
        return TextTable(("bytes", "count", "from", "to", "line"), rows, frozenset({0, 1}), total)
