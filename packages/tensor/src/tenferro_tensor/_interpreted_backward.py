"""How cotangents go back: the steps of a derivative, and the loop of the backward pass.

As `_interpreted`, this is the whole mechanism in Python, and `_accelerated` is the same in C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from tenferro_tensor._interpreted import Node, picker, state

_new = object.__new__


class Steps:
    """A derivative of one op on concrete values, as calls over numbered registers: ``steps(given, saved)``.

    `given` is the cotangent of an op of one output, else a list; where that has ``None``, there is no input. Registers
    hold the inputs first, what is given and then what was saved, then constants, then the result of each call.

    Attributes:
        op: the op, which errors name.
        inputs: for each input ``None`` for a concrete tensor, `object` for any Python number, else the number that it
            has to be.
        constants: what the registers behind the inputs hold.
        calls: functions on raw arrays, with the registers of their operands.
        outputs: for each of them ``None`` for zero, the number of an input that is passed on with ``None``, or a
            register with the spec of what is in it.
        otherwise: ``otherwise(given, saved)``, called where an input is not so, or a device scope is open.
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
        for x, due in zip(values, self.inputs, strict=True):
            if due is None:
                if x.__class__ is not tensor:
                    return self.otherwise(given, saved)
                x = x._data
            elif due is not object and x is not due and not (x.__class__ is due.__class__ and repr(x) == repr(due)):
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
        cotangents: the cotangents by node, changed in place.
        release: what stands as `vjp` in nodes that have been visited; by default they stay as they are.
        failed: is given the node whose `vjp` raised an error.
    """
    todo = [(-node.seq, node) for node in cotangents if node.vjp is not None]
    heapify(todo)
    while todo:
        node = heappop(todo)[1]
        try:
            pulled = node.vjp(cotangents.pop(node), node.saved)
        except Exception:
            failed.append(node)
            raise
        for parent, c in zip(node.parents, pulled):
            if c is None:
                continue
            have = cotangents.get(parent)
            if have is not None:
                cotangents[parent] = have + c
                continue
            if not isinstance(parent, Node) or parent.seq >= node.seq:
                raise TypeError(
                    f"the graph holds {node!r}, which is not newer than its parents; leave nodes as they are"
                )
            cotangents[parent] = c
            if parent.vjp is not None:
                heappush(todo, (-parent.seq, parent))
        if release is not None:
            node.vjp, node.parents, node.saved = release, (), None
