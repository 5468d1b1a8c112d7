"""The backward pass: derivatives of single ops as `Steps`, and the loop over nodes.

As for `_interpreted`, `_accelerated` is the same in C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from tenferro_tensor._interpreted import Node, picker, state

_new = object.__new__


class Steps:
    """The derivative of one op on concrete values, as calls over numbered registers: ``steps(given, saved)``.

    `given` is the cotangent of an op with one output, else a list, whose ``None`` items provide no input. Registers
    hold the inputs (`given`, then `saved`), then constants, then the result of each call.

    Attributes:
        op: the op, for error texts.
        inputs: for each input ``None`` for a concrete tensor, `object` for any Python number, else the exact number.
        constants: values of the registers after the inputs.
        calls: functions on raw arrays, with the registers of their operands.
        outputs: for each of them ``None`` for zero, the index of a forwarded input with ``None``, or a register with
            its spec.
        otherwise: ``otherwise(given, saved)``, called if an input differs or a device scope is open.
    """

    __slots__ = ("_getters", "calls", "constants", "inputs", "op", "otherwise", "outputs")

    def __init__(
        self,
        op: Any,
        inputs: tuple[Any, ...],
        constants: tuple[Any, ...],
        calls: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...],
        outputs: tuple[tuple[int, Any] | None, ...],
        otherwise: Callable[[Any, Any], Any],
    ) -> None:
        self.op, self.inputs, self.constants, self.calls = op, inputs, constants, calls
        self.outputs, self.otherwise = outputs, otherwise
        self._getters = [(function, picker(operands)) for function, operands in calls]

    def __call__(self, given: Any, saved: Sequence[Any]) -> Any:
        values = [*[g for g in given if g is not None], *saved] if isinstance(given, list) else [given, *saved]
        tensor = state.tensor
        registers: list[Any] = []
        for x, want in zip(values, self.inputs, strict=True):
            if want is None:
                if x.__class__ is not tensor:
                    return self.otherwise(given, saved)
                x = x._data
            elif want is not object and x is not want and not (x.__class__ is want.__class__ and repr(x) == repr(want)):
                return self.otherwise(given, saved)
            registers.append(x)
        if state.open_scopes:
            return self.otherwise(given, saved)
        registers += self.constants
        for function, operands in self._getters:
            registers.append(function(*operands(registers)))
        found: list[Any] = []
        for output in self.outputs:
            if output is None:
                found.append(None)
                continue
            register, spec = output
            if spec is None:
                found.append(values[register])
                continue
            z = _new(tensor)
            z._data, z.spec = registers[register], spec
            found.append(z)
        return tuple(found)


def backward(cotangents: dict[Any, Any], release: Callable[[Any, Any], Any] | None, failed: list[Any], /) -> None:
    """Replace cotangents of nodes by those of the leaves below them, newest nodes first.

    Args:
        cotangents: cotangents by node, modified in place.
        release: replaces `vjp` in visited nodes; by default they are kept.
        failed: list to which the node whose `vjp` raised an error is appended.
    """
    todo = [(-node.seq, node) for node in cotangents if node.vjp is not None]
    heapify(todo)
    while todo:
        node = heappop(todo)[1]
        try:
            g = cotangents.pop(node)
            found = node.vjp(g.whole() if g.__class__ is state.parts else g, node.saved)
        except Exception:
            failed.append(node)
            raise
        for parent, c in zip(node.parents, found):
            if c is None:
                continue
            have = cotangents.get(parent)
            if have is not None:
                cotangents[parent] = have + c
                continue
            if not isinstance(parent, Node) or parent.seq >= node.seq:
                raise TypeError(
                    f"the graph contains {node!r}, which is not newer than its parents; do not modify nodes"
                )
            cotangents[parent] = c
            if parent.vjp is not None:
                heappush(todo, (-parent.seq, parent))
        if release is not None:
            node.vjp, node.parents, node.saved = release, (), None
