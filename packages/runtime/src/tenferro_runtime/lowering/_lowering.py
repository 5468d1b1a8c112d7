"""`Lowering`: lowers equations in order, each by the rule of its primitive.

An equation that writes part of an array writes to the memory of its operand where the law of `ir._reuse` allows that:
the program owns that memory (allocated in this body, or carried between iterations of the enclosing loop) and the
operand is dead after the equation. Before the first store, every other live value, and every value that the equation
reads, whose elements are read from that memory is written elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.ir._reuse import may_overwrite
from tenferro_runtime.ir._source import where
from tenferro_runtime.lowering._values import (
    Formula,
    Lowered,
    Numbers,
    Stored,
    copied,
    is_small,
    kept,
    numbers,
    write,
)
from tenferro_runtime.lowering._writer import LoopWriter
from tenferro_tensor import Op, Primitive, Spec, Tensor
from tenferro_tensor.checked import is_checked, poison
from tenferro_tensor.loop_ir import INDEX, Buffer, Role
from tenferro_tensor.loop_ir import Literal as Number
from tenferro_tensor_core import Guard, UnsupportedError

RECOMPUTE_MAX_COST: Final = 12
"""Largest cost of an element that each of several readers computes again."""

FORMULA_MAX_COST: Final = 150
"""Largest cost of a formula; more expensive elements are computed once."""

Rule = Callable[["Step"], Lowered | Sequence[Lowered]]
RULES: Final[dict[Primitive, Rule]] = {}
"""Rules by primitive; element-wise primitives share one, and primitives without a rule call their kernels."""


def rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Register the rule of primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(primitives, function))
        return function

    return register


class Body:
    """The values of one program, or of the body of a loop or branch, while it is lowered.

    Attributes:
        values: by variable.
        left: number of remaining readers of each.
        first: number of the first buffer allocated inside.
        own: numbers of outside buffers that may be written to.
    """

    program: Program
    first: int
    own: frozenset[int]

    def __init__(self, program: Program, inputs: Sequence[Lowered], first: int, own: frozenset[int]) -> None:
        self.program, self.first, self.own = program, first, own
        self.values: dict[int, Lowered] = dict(zip(program.input_ids, inputs, strict=True))
        self.left: dict[int, int] = {}
        for eq in program.equations:
            for v in eq.variables:
                self.left[v] = self.left.get(v, 0) + 1
        for v in program.output_ids:
            self.left[v] = self.left.get(v, 0) + 1

    def owns(self, buffer: Buffer) -> bool:
        """Whether a buffer may be overwritten once it has no readers."""
        return buffer.number in self.own or (buffer.role is Role.TEMPORARY and buffer.number >= self.first)


class Lowering:
    """The state of lowering one program: its statements and constants.

    Args:
        fallback: lowers primitives without a rule.
        kind: kind of the target device.

    Attributes:
        guards: guards on symbolic sizes, which bodies of loops and branches share.
        examples: example sizes.
        exact: whether results must have the bits of single steps.
    """

    kind: str
    on_host: bool
    w: LoopWriter

    def __init__(self, fallback: Rule, kind: str = "cpu") -> None:
        self.kind, self.on_host = kind, kind == "cpu"
        self.w = LoopWriter()
        self.guards: tuple[Guard, ...] = ()
        self.examples: Mapping[str, int] = {}
        self.exact = False
        self.fallback = fallback
        self.constants: list[tuple[Buffer, np.ndarray[Any, Any]]] = []
        self._constants: dict[int, tuple[Tensor, Lowered]] = {}

    def run(self, program: Program, inputs: Sequence[Lowered], own: frozenset[int] = frozenset()) -> list[Lowered]:
        """Lower a program for given inputs; it may write to the buffers `own`."""
        body = Body(program, inputs, self.w.next_buffer, own)
        for v, c in program.constants.items():
            body.values[v] = self.constant(c)
        for eq in program.equations:
            for v in eq.variables:
                body.left[v] -= 1
            outer, self.w.source = self.w.source, eq.source or self.w.source
            self._lower(Step(self, body, eq))
            self.w.source = outer
            for v in eq.variables:
                if not body.left[v]:
                    body.values.pop(v, None)
        return [body.values[v] for v in program.output_ids]

    def _lower(self, step: Step) -> None:
        found = RULES.get(step.op.primitive, self.fallback)(step)
        results = (found,) if isinstance(found, Lowered) else found
        for v, x in zip(step.eq.results, results, strict=True):
            if isinstance(x, Formula) and x.source is None:
                x.source = self.w.source
            readers = step.body.left.get(v, 0)
            if is_small(x.shape) or x.cost > FORMULA_MAX_COST or (readers > 1 and x.cost > RECOMPUTE_MAX_COST):
                x = kept(self.w, x)
            if readers:
                step.body.values[v] = x

    def constant(self, held: Tensor) -> Lowered:
        """A constant of the program: numbers, an arithmetic progression, one repeated number, or memory."""
        found = self._constants.get(id(held))
        if found is None:
            array = np.asarray(held if held.spec.place.on_host else held.to_device("cpu:0"))
            known: Lowered
            if is_small(array.shape):
                known = Numbers(array.shape, array.dtype, [Number(x.item(), array.dtype) for x in array.reshape(-1)])
            else:
                known = _regular(array) or self._held(array)
            found = self._constants[id(held)] = held, known  # which lives on: no other object may have its identity
        return found[1]

    def _held(self, array: np.ndarray[Any, Any]) -> Stored:
        buffer = self.w.buffer(array.dtype, array.shape, Role.CONSTANT)
        self.constants.append((buffer, np.ascontiguousarray(array)))
        return Stored.whole_of(buffer)


def _regular(array: np.ndarray[Any, Any]) -> Formula | None:
    """A constant whose elements are known without memory."""
    first = array.reshape(-1)[0]
    if array.tobytes() == np.full_like(array, first).tobytes():
        value = Number(first.item(), array.dtype)
        return Formula(array.shape, array.dtype, lambda w, index: value)
    if array.ndim == 1 and array.dtype == INDEX:
        by = int(array[1]) - int(array[0])
        if (np.diff(array) == by).all():
            return Formula(array.shape, array.dtype, lambda w, index: w.position(index[0] * by + int(first)))
    return None


class Step:
    """One equation with its operands: the argument of a lowering rule.

    Attributes:
        w: the writer of statements.
        outs: specs of the results.
    """

    lowering: Lowering
    body: Body
    eq: Equation
    w: LoopWriter
    params: Mapping[str, Any]

    def __init__(self, lowering: Lowering, body: Body, eq: Equation) -> None:
        self.lowering, self.body, self.eq, self.w = lowering, body, eq, lowering.w
        self.op: Op = eq.op
        self.params = eq.op.params
        self.outs: tuple[Spec, ...] = tuple([body.program.specs[v] for v in eq.results])

    @property
    def out(self) -> Spec:
        """The spec of the only result."""
        return self.outs[0]

    def dtype(self, k: int) -> np.dtype[Any]:
        """The dtype of an operand; a Python number has that of the array operands.

        Args:
            k: position of the operand.

        Returns:
            The dtype.
        """
        v = self.eq.operands[k]
        if not isinstance(v, Literal):
            return self.body.values[v].dtype
        if k == self.op.primitive.chooser:
            return np.dtype(np.bool_)
        beside = [o for i, o in enumerate(self.eq.operands) if i != self.op.primitive.chooser and o.__class__ is int]
        return self.body.values[beside[0]].dtype if beside else np.asarray(v.value).dtype

    def operand(self, k: int, dtype: np.dtype[Any] | None = None) -> Lowered:
        """An operand; a Python number becomes a 0-d array.

        Args:
            k: position of the operand.
            dtype: dtype to convert to; by default none.

        Returns:
            The array.
        """
        v = self.eq.operands[k]
        if isinstance(v, Literal):
            dtype = dtype or self.dtype(k)
            return Numbers((), dtype, [Number(dtype.type(v.value).item(), dtype)])
        return self.body.values[v]

    @property
    def operands(self) -> list[Lowered]:
        """All operands."""
        return [self.operand(k) for k in range(len(self.eq.operands))]

    def replace(self, k: int, x: Lowered) -> None:
        """Let later readers of an operand read another array with the same elements.

        Args:
            k: position of the operand.
            x: the array.
        """
        v = self.eq.operands[k]
        if v.__class__ is int:
            self.body.values[v] = x

    def overwritable(self, k: int) -> bool:
        """Whether the rule of writing in place lets this equation overwrite an operand.

        Args:
            k: position of the operand.

        Returns:
            True if it does.
        """
        v = self.eq.operands[k]
        x = None if isinstance(v, Literal) else self.body.values[v]
        if not isinstance(x, Stored) or not x.whole or v.__class__ is not int:
            return False
        dead, owned = not self.body.left[v], self.body.owns(x.buffer)
        return may_overwrite(self.eq, v, owned=owned, dead=dead, shared=False)  # `target` copies other readers

    def target(self, k: int) -> Stored:
        """Writable memory with the elements of an operand: its own, or a copy.

        Args:
            k: position of the operand.

        Returns:
            The array.
        """
        x = self.operand(k)
        if not self.overwritable(k):
            return copied(self.w, x)
        assert isinstance(x, Stored)
        v: Any = self.eq.operands[k]
        self._save_readers(x.buffer, v)
        if not is_checked():
            return Stored.whole_of(x.buffer, x.shape)
        moved = self.body.values[v] = copied(self.w, x)
        number = poison(x.dtype).item()
        write(self.w, Formula(x.shape, x.dtype, lambda w, index: Number(number, x.dtype)), x)
        return moved

    def _save_readers(self, buffer: Buffer, but: int) -> None:
        """Copy values that read a buffer which is about to be overwritten."""
        values = self.body.values
        for v, x in list(values.items()):
            if v != but and buffer.number in x.reads and (self.body.left.get(v) or v in self.eq.operands):
                values[v] = numbers(self.w, x) if is_small(x.shape) else copied(self.w, x)

    def unsupported(self, why: str) -> UnsupportedError:
        """An error that names the equation and the user's line.

        Args:
            why: the reason.

        Returns:
            The error.
        """
        name, line = self.op.primitive.name, where(self.w.source)
        return UnsupportedError(
            f"{name}{f' at {line}' if line else ''} is not lowered to loops: {why}", primitive=name, where=line
        )
