"""Gradients of transfers: logged under the line of the forward transfer, and refused before a backward pass starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenferro_ad._attribution import Blamed
from tenferro_ad._backward import CHECKS
from tenferro_ad._eager import wrap
from tenferro_ad._node import make_node
from tenferro_ad._record import RECORDERS
from tenferro_runtime.ir import Source, inner_programs, moves_of, user_line, where
from tenferro_runtime.tracing import recording
from tenferro_tensor import Op, Spec, catalog
from tenferro_tensor.calls import Node
from tenferro_tensor.transfers import Move, blaming, require_allowed


class TransferPull:
    """The vjp of a transfer: moves a cotangent to the operand's memory.

    Attributes:
        op: the transfer.
        spec: spec of its operand.
        source: the user's line.
    """

    __slots__ = ("op", "source", "spec")

    def __init__(self, op: Op, spec: Spec, source: Source) -> None:
        self.op, self.spec, self.source = op, spec, source

    @property
    def where(self) -> str:
        """The line as text."""
        return where(self.source)

    def __call__(self, g: Any, saved: Any) -> tuple[Any, ...]:
        builder = recording(g)  # may differ from the forward transfer's builder: a gradient can be a separate program
        if builder is not None:
            return Blamed(self._back, builder, self.source)(g, saved)  # type: ignore[no-any-return]
        with blaming(self.where):
            return self._back(g, saved)

    def _back(self, g: Any, _: Any) -> tuple[Any, ...]:
        return (catalog.transfer(g, place=self.spec.place),)

    def moves(self) -> list[Move]:
        """The moves between memories."""
        source, target = self.op.params["place"].memory_space, self.spec.place.memory_space
        nbytes = None if self.spec.symbolic else self.spec.size * self.spec.dtype.itemsize
        return [] if source is target else [Move(nbytes, source, target, self.where)]  # type: ignore[arg-type]


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    (x,) = lower
    out = op(x)
    if not out.spec.inexact:
        return out
    builder = recording(out)
    source = user_line() if builder is None else builder.blame or user_line()
    return wrap(out, level, make_node(TransferPull(op, x.spec, source), parents, ()))


def _require_none(nodes: Iterable[Node]) -> None:
    """Raise if a backward pass through these nodes would make a forbidden transfer."""
    for node in nodes:
        pull: Any = node.vjp
        if isinstance(pull, TransferPull):
            require_allowed(pull.moves(), " by the gradient of that line")
        else:
            op = getattr(pull, "op", None)
            for program in [] if op is None else inner_programs(op.params):
                back = [Move(m.nbytes, m.target, m.source, m.line) for m in moves_of(program)]
                require_allowed(back, " by the gradient of that line")


RECORDERS[catalog.transfer] = _record
CHECKS.append(_require_none)
