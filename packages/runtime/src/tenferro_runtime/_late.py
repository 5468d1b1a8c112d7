"""Steps of a rendered program whose sizes depend on data: what they call is found when the sizes are known.

The value of such a size is an operand of every step that needs it, so that it lives as long as it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime._data_sizes import conditions, definitions, names_in, require
from tenferro_runtime._program import Equation, Program
from tenferro_runtime._sizes import substituted
from tenferro_tensor import Op, Spec
from tenferro_tensor_core import DimLike, Guard, evaluate

KEPT: Final = 256
"""Number of sizes for which a step keeps its kernel."""

Seen = Spec | type


class _Sizes:
    """The sizes that a step is given after its `count` operands: those that depend on data, then the others."""

    def __init__(self, count: int, late: Sequence[str], early: Sequence[str]) -> None:
        self.count, self.names = count, (*late, *early)
        self.late = count + len(late)

    def numbers(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        late = tuple(map(int, args[self.count : self.late]))
        return late + args[self.late] if len(args) > self.late else late

    def named(self, numbers: tuple[int, ...]) -> Mapping[str, DimLike]:
        return dict(zip(self.names, numbers, strict=True))


class LateKernel(_Sizes):
    """The kernel of an op, made for the sizes of the call and kept for them.

    Args:
        op: the op, with open sizes.
        seen: specs of the operands, or classes of Python scalars.
        late: names of the sizes that depend on data.
        early: names of the others, whose values come in one tuple at the end.
        find: makes the kernel of an op for concrete operands.
    """

    def __init__(
        self,
        op: Op,
        seen: tuple[Seen, ...],
        late: Sequence[str],
        early: Sequence[str],
        find: Callable[[Op, tuple[Seen, ...]], Callable[..., Any]],
    ) -> None:
        super().__init__(len(seen), late, early)
        self.op, self.seen, self.find = op, seen, find
        self.kernels: dict[tuple[int, ...], Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        numbers = self.numbers(args)
        kernel = self.kernels.get(numbers)
        if kernel is None:
            if len(self.kernels) >= KEPT:
                self.kernels.clear()
            sizes = self.named(numbers)
            seen = [
                s.with_(shape=tuple([evaluate(d, sizes) for d in s.shape])) if isinstance(s, Spec) else s  # type: ignore[arg-type]
                for s in self.seen
            ]
            kernel = self.kernels[numbers] = self.find(substituted(self.op, sizes), tuple(seen))
        return kernel(*args[: self.count])


class Definition(_Sizes):
    """The step that gives a size its value: checks bounds and assumptions, and passes the value on."""

    def __init__(self, size: DimLike, guards: Sequence[Guard], late: Sequence[str], early: Sequence[str]) -> None:
        super().__init__(1, late, early)
        self.size, self.guards = size, guards

    def __call__(self, *args: Any) -> Any:
        sizes = {**self.named(self.numbers(args)), str(self.size): int(args[0])}
        evaluate(self.size, sizes)  # type: ignore[arg-type]
        for guard in self.guards:
            require(guard, sizes)
        return args[0].astype(np.int64)


def definition(program: Program, eq: Equation, early: Sequence[str]) -> tuple[Definition, tuple[int, ...]]:
    """The step of an equation that defines a size, and the values of sizes that its conditions need."""
    known = definitions(program)
    order = list(known)
    name = str(eq.op.params["size"])
    earlier = {*order[: order.index(name)]}
    guards = []
    needed: set[str] = set()
    for guard in conditions(program):
        late = (names_in(guard.lhs) | names_in(guard.rhs)) & known.keys()
        if name in late and late <= earlier | {name}:
            guards.append(guard)
            needed |= late - {name}
    names = [n for n in order if n in needed]
    return Definition(eq.op.params["size"], guards, names, early), tuple([known[n] for n in names])
