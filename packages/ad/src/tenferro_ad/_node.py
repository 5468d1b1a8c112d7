"""Kinds of `Node`: what reverse mode remembers of one operation, and no more.

A node points to the nodes of its differentiated operands and to nothing that points back: there is no list of the
tape, so a branch that nobody can reach any more is freed at once, without the cycle collector.
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
"""``vjp(g, saved)``: from the cotangent of the output, one cotangent, or ``None`` for zero, for each parent."""


class Leaf(Node):
    """The node of a `variable`, which keeps the gradient that backward passes bring.

    Attributes:
        grad: sum of what all backward passes have brought, or ``None``.
        variable: reference to the variable itself, which copies and aliases of it are not.
    """

    __slots__ = ("grad", "variable")
    grad: Any
    variable: ReferenceType[Any] | None


class SourcedNode(Node):
    """A node that knows the user's line; made only while sources are recorded.

    Attributes:
        where: file and line, as in ``model.py:12``.
    """

    __slots__ = ("where",)
    where: str


class OutputCotangents(list[Any]):
    """Cotangents of the outputs of one operation of several, ``None`` where zero; they are added one by one."""

    def __add__(self, other: Any) -> OutputCotangents:
        return OutputCotangents([a if b is None else b if a is None else a + b for a, b in zip(self, other)])


class PickOutput:
    """The `vjp` of one output of an operation of several: hands its cotangent on to the operation's node.

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
    """Stands in a node whose saved values an earlier backward pass has let go."""
    raise GradientError(
        "this graph was swept already and its saved values are released; call the first backward() with "
        "retain_graph=True to sweep it again, or compute the value anew"
    )


def owned_all(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values that a node saves: nobody assigns to them, and the concrete ones own their memory from here on."""
    return tuple([aliased(owned(x) if x.__class__ is Tensor else x) if isinstance(x, Array) else x for x in values])


def make_node(vjp: Vjp, parents: tuple[Node, ...], saved: tuple[Any, ...]) -> Node:
    """A node at the next place in the order."""
    return Node(vjp, parents, owned_all(saved))


def make_variable_leaf() -> Leaf:
    """The node of a `variable`."""
    n = Leaf(None, (), None)
    n.grad = n.variable = None
    return n
