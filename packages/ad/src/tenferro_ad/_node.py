"""Kinds of `Node`, the reverse-mode record of one operation.

A node refers to the nodes of its differentiated operands, and nothing refers back: there is no tape, so an unreachable
branch of the graph is freed at once, without the cycle collector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn
from weakref import ReferenceType

from tenferro_tensor import Array, Tensor
from tenferro_tensor.calls import Node
from tenferro_tensor.identity import aliased
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import GradientError

Vjp = Callable[[Any, Any], Any]
"""``vjp(g, saved)`` maps the cotangent of the output to one cotangent for each parent, ``None`` for zero."""


class Leaf(Node):
    """The node of a `variable`, which accumulates the gradient.

    Attributes:
        grad: sum of the cotangents of all backward passes, or ``None``.
        variable: weak reference to the variable itself, as opposed to copies and aliases of it.
    """

    __slots__ = ("grad", "variable")
    grad: Any
    variable: ReferenceType[Any] | None


class SourcedNode(Node):
    """A node that stores the user's source line; made only inside `record_sources`.

    Attributes:
        where: file and line, as in ``model.py:12``.
    """

    __slots__ = ("where",)
    where: str


class OutputCotangents(list[Any]):
    """Cotangents of the outputs of a multi-output op, ``None`` for zero; addition is elementwise."""

    def __add__(self, other: Any) -> OutputCotangents:
        return OutputCotangents([a if b is None else b if a is None else a + b for a, b in zip(self, other)])


class PickOutput:
    """The `vjp` of one output of a multi-output op: passes its cotangent to the op's node.

    Attributes:
        index: which output.
        count: number of outputs.
    """

    __slots__ = ("count", "index")

    def __init__(self, index: int, count: int) -> None:
        self.index, self.count = index, count

    def __call__(self, g: Any, saved: None) -> tuple[OutputCotangents]:
        found = OutputCotangents([None] * self.count)
        found[self.index] = g
        return (found,)


def released(g: Any, saved: Any) -> NoReturn:
    """The `vjp` of a node whose saved values an earlier backward pass has released."""
    raise GradientError(
        "an earlier backward pass has released the saved values of this graph; call the first backward() with "
        "retain_graph=True, or compute the value again"
    )


def owned_all(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values for a node to save: protected from assignment, and owning their memory if concrete."""
    return tuple([aliased(owned(x) if x.__class__ is Tensor else x) if isinstance(x, Array) else x for x in values])


def make_node(vjp: Vjp, parents: tuple[Node, ...], saved: tuple[Any, ...]) -> Node:
    """A node that saves values, next in the recording order."""
    return Node(vjp, parents, owned_all(saved))


def make_variable_leaf() -> Leaf:
    """The node of a `variable`."""
    n = Leaf(None, (), None)
    n.grad = n.variable = None
    return n
