"""`LoopFunction`: a whole program as loop nests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from tenferro_tensor.loop_ir._metadata import content, extent
from tenferro_tensor.loop_ir._nodes import Buffer, Call, Statement
from tenferro_tensor.loop_ir._text import INDENT, Note, declared, lines
from tenferro_tensor_core import DimLike, ShapeError, evaluate


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on the sizes of a call: ``holds >= 0`` if all extents `when` are positive."""

    holds: DimLike
    when: tuple[DimLike, ...] = ()

    def __str__(self) -> str:
        where = f" where {' and '.join([f'{extent(n)} > 0' for n in self.when])}" if self.when else ""
        return f"requires {extent(self.holds)} >= 0{where}"

    def met(self, sizes: Mapping[str, int]) -> bool:
        """Whether sizes meet the condition.

        Args:
            sizes: values of the sizes by name.

        Returns:
            The answer.
        """
        return evaluate(self.holds, sizes) >= 0 or any(evaluate(n, sizes) <= 0 for n in self.when)


@dataclass(frozen=True, slots=True)
class LoopFunction:
    """A whole program as loop nests.

    Attributes:
        sizes: names of the symbolic sizes, in the order of their values in a call.
        inputs: inputs in order.
        outputs: outputs in order; an output that is also an input reuses the memory of a donated argument.
        constants: constants with their contents.
        temporaries: buffers of the arena.
        body: statements.
        requires: conditions on the sizes under which all accesses are inside their buffers; a call checks them first.
        clamps: numbers of registers that keep positions inside. They never act in a function without faults, and
            independence of iterations is judged as if they did not.
        where: the user's source line that a register was written for, by number; empty if it is unknown.
        examples: sizes at which it is needed first; a native form may refuse others. Empty if it must serve all sizes.

    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.loop_ir import Affine, For, Let, Load, Order, Reg, Role, Store
    >>> from tenferro_tensor_core import dim
    >>> f8, i8, n = np.dtype("float64"), np.dtype("int64"), dim("n")
    >>> x, y = Buffer(0, f8, (n,), Role.INPUT), Buffer(1, f8, (n,), Role.OUTPUT)
    >>> i, a, b = Reg(0, i8), Reg(1, f8), Reg(2, f8)
    >>> last = Affine(n - 1) - i
    >>> body = (Load(a, x, Affine.of(i)), Let(b, mul.op(), (a, a)), Store(y, last, b))
    >>> print(LoopFunction(("n",), (x,), (y,), (), (), (For(i, n, body, order=Order.ANY),)))
    function(n)
      input b0: float64[n]
      output b1: float64[n]
      for r0 < n parallel:
        r1: float64 = b0[r0]
        r2: float64 = mul(r1, r1)
        b1[r0*-1 + n - 1] = r2
    """

    sizes: tuple[str, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    constants: tuple[tuple[Buffer, np.ndarray[Any, Any]], ...]
    temporaries: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    requires: tuple[Requirement, ...] = ()
    clamps: frozenset[int] = frozenset()
    where: Callable[[int], str] = field(default=lambda number: "", compare=False, repr=False)
    examples: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return show(self)

    def accepts(self, sizes: Mapping[str, int]) -> bool:
        """Whether sizes meet all requirements.

        Args:
            sizes: values of the sizes by name.

        Returns:
            The answer.
        """
        return all(requirement.met(sizes) for requirement in self.requires)

    def refuse(self, sizes: Mapping[str, int]) -> NoReturn:
        """Raise an error for sizes that a call must not run at.

        Args:
            sizes: values of the sizes by name.

        Raises:
            ShapeError: always; it names the requirement.
        """
        unmet = next(requirement for requirement in self.requires if not requirement.met(sizes))
        raise ShapeError(f"the compiled program {unmet}, and the sizes are {dict(sizes)}", sizes=dict(sizes))


def show(function: LoopFunction, *, where: bool = True, note: Note | None = None) -> str:
    """The complete text of a function: equal functions have equal text in every process.

    Args:
        function: the function.
        where: whether to show the user's source lines of calls, which do not affect the computation.
        note: returns a note for each statement, which replaces the source lines.

    Returns:
        The text.
    """
    return "\n".join(_lines(function, note or (_where if where else _nothing)))


def _where(s: Statement) -> str:
    return s.where if isinstance(s, Call) else ""


def _nothing(s: Statement) -> str:
    return ""


def _lines(function: LoopFunction, note: Note) -> Iterator[str]:
    yield f"function({', '.join(function.sizes)})"
    yield from _declarations(function.inputs)
    for buffer, array in function.constants:
        yield f"{INDENT}{declared(buffer)} = {content(array)}"
    yield from _declarations(function.outputs)
    yield from _declarations(function.temporaries)
    yield from [f"{INDENT}{requirement}" for requirement in function.requires]
    yield from lines(function.body, note)


def _declarations(buffers: Iterable[Buffer]) -> list[str]:
    return [f"{INDENT}{declared(buffer)}" for buffer in buffers]
