"""`Node`: what reverse mode remembers of one operation, and no more.

A node points to the nodes of its differentiated operands and to nothing that points back: there is no list of the
tape, so a branch that nobody can reach any more is freed at once, without the cycle collector.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NoReturn

from tenferro_tensor import Tensor
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import GradientError

places = count()
"""The order of recording."""

next_seq = places.__next__
"""Draw the next place in the order of recording, which is also an order of dependence."""

Pull = Callable[[Any, Any], "tuple[Any, ...]"]
"""``pull(g, saved)``: the cotangent of the output to one cotangent, or ``None``, for each parent."""

_new = object.__new__


class Node:
    """One recorded operation.

    Attributes:
        seq: place in the order of recording; every parent has a smaller one.
        pull: carries a cotangent to the parents; `leaf`, `pick` and `released` mark the other kinds of node.
        parents: nodes of the operands that are differentiated.
        saved: what `pull` needs of operands and outputs.
    """

    __slots__ = ("parents", "pull", "saved", "seq")
    seq: int
    pull: Pull
    parents: tuple[Node, ...]
    saved: Any


class Leaf(Node):
    """The node of a `variable`, which keeps the gradient that sweeps bring.

    Attributes:
        grad: sum of what all sweeps have brought, or ``None``.
    """

    __slots__ = ("grad",)
    grad: Any


class SourcedNode(Node):
    """A node that knows the user's line; made only while sources are recorded.

    Attributes:
        where: file and line, as in ``model.py:12``.
    """

    __slots__ = ("where",)
    where: str


def leaf(g: Any, saved: Any) -> NoReturn:
    """Marks a node where differentiation starts; a sweep leaves its cotangent there."""
    raise AssertionError("a leaf is not pulled through")


def pick(g: Any, saved: tuple[int, int]) -> NoReturn:
    """Marks the node of one output of an operation of several: ``saved`` is (index, number of outputs)."""
    raise AssertionError("a selector is handled by the sweep")


def released(g: Any, saved: Any) -> NoReturn:
    """Stands in a node whose saved values an earlier sweep has let go."""
    raise GradientError(
        "this graph was swept already and its saved values are released; call the first backward() with "
        "retain_graph=True to sweep it again, or compute the value anew"
    )


def make_node(pull: Pull, parents: tuple[Node, ...], saved: Any) -> Node:
    """A node at the next place in the order; tensors that it saves own their memory from here on."""
    for x in saved or ():
        if x.__class__ is Tensor:
            owned(x)
    n = _new(Node)
    n.seq, n.pull, n.parents, n.saved = next_seq(), pull, parents, saved
    return n


def make_leaf() -> Node:
    """The node of a value where a transform starts."""
    return make_node(leaf, (), None)


def make_variable_leaf() -> Leaf:
    """The node of a `variable`."""
    n = _new(Leaf)
    n.seq, n.pull, n.parents, n.saved, n.grad = next_seq(), leaf, (), None, None
    return n
