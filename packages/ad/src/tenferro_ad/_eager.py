"""`EagerTensor`: a value that is being differentiated in reverse mode.

It wraps a value of a lower level and the node that recorded it. A value that no derivative passes through is never
wrapped: a constant of the differentiation is an ordinary value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from tenferro_ad._backward import backward_pass
from tenferro_ad._differentiated import Differentiated
from tenferro_ad._node import Leaf, PickOutput
from tenferro_ad._seed import seed_of
from tenferro_tensor import Op, Spec, Tensor
from tenferro_tensor.calls import Node, RecordedBase, state
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import GradientError

_new = object.__new__


class EagerTensor(Differentiated, RecordedBase):
    """A value whose operations are recorded, for `backward` or an enclosing transform to sweep.

    Attributes:
        value: the value inside, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
        node: the record of the operation that made it.

    >>> from tenferro_ad import variable
    >>> x = variable([1.0, 2.0, 3.0])
    >>> (x * x).sum().backward()
    >>> x.grad
    Tensor([2., 4., 6.])
    """

    __slots__ = ()
    value: Any
    spec: Spec
    level: int
    node: Node

    def __init__(self) -> None:
        raise GradientError("an EagerTensor is made by variable(x), or inside of grad, vjp and the other transforms")

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return state.record(self.level, op, args)

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by `variable`, and so keeps a gradient."""
        return isinstance(self.node, Leaf)

    @property
    def grad(self) -> Any:
        """Sum of the gradients that `backward` has brought to this variable, or ``None``.

        Raises:
            GradientError: this is a computed value, which keeps no gradient.
        """
        return self._leaf("grad").grad

    @grad.setter
    def grad(self, value: Any) -> None:
        node = self._leaf("grad")
        if value is not None and getattr(value, "spec", None) is not self.spec:
            raise GradientError(
                f"the gradient of a variable {self.spec!r} cannot be set to {getattr(value, 'spec', value)!r}; "
                "give a value of the same shape and dtype, or None"
            )
        node.grad = None if value is None else owned(value)._alias()

    def zero_grad(self) -> None:
        """Forget the gradient gathered so far."""
        self._leaf("zero_grad()").grad = None

    def _leaf(self, asked: str) -> Leaf:
        if isinstance(self.node, Leaf):
            return self.node
        raise GradientError(
            f"{asked} was asked of a computed {self.spec!r}; only a variable keeps a gradient: "
            "make it with variable(x), or use vjp or grad for the derivative with respect to a computed value"
        )

    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Carry a cotangent from this value to the variables that it depends on, adding to their ``grad``.

        Args:
            gradient: the cotangent, of this value's shape and dtype; may be left out for a real number, where it is 1.
            retain_graph: keep the saved values, so that the same graph can be swept again. By default they are let
                go while the sweep runs.

        Raises:
            GradientError: there is no gradient given and this is not a single real number; or the gradient has
                another shape or dtype; or the graph was swept before and is released.
        """
        g = seed_of(self.value, gradient, "backward()")
        for node, c in backward_pass([(self.node, g)], release=not retain_graph).items():
            if isinstance(node, Leaf):
                node.grad = c._alias() if node.grad is None else node.grad + c

    def _go_over(self, updated: Any) -> None:
        node = self.node
        if not isinstance(node, Leaf) or node.variable is None or node.variable() is not self:
            super()._go_over(updated)
        elif updated.level == 0:  # nothing is recorded now
            self.value = updated
        else:
            raise GradientError(
                f"the elements of a variable {self.spec!r} were assigned to, and its gradient is that of the value "
                "before; write y = x.copy() and assign to y, or assign in a scope of no_grad() to change the variable"
            )

    def _copied(self) -> EagerTensor:
        return wrap(self.value._copied(), self.level, self.node)

    def __repr__(self) -> str:
        if self.value.level == 0:
            return super().__repr__()
        return f"EagerTensor({self.value!r})"


def wrap(value: Any, level: int, node: Node) -> EagerTensor:
    """A value recorded by a node; the value owns its memory, since nodes to come may keep it."""
    if value.__class__ is Tensor and value._data.__class__ is ndarray and value._data.base is not None:
        owned(value)
    z = _new(EagerTensor)
    z.value, z.spec, z.level, z.node = value, value.spec, level, node
    return z


def watched(value: Any, level: int) -> EagerTensor:
    """A value with respect to which a transform of the given level differentiates."""
    return wrap(value, level, Node(None, (), None))


def all_watched(values: Sequence[Any], level: int) -> list[EagerTensor]:
    """`watched` of each, lent to the function that is differentiated; unrolled: there may be thousands."""
    found = []
    for value in values:
        if value.__class__ is Tensor and value._data.__class__ is ndarray and value._data.base is not None:
            owned(value)
        z = _new(EagerTensor)
        z.value, z.spec, z.level, z.node = value, value.spec, level, Node(None, (), None)
        z.lent = True
        found.append(z)
    return found


def wrap_many(outs: tuple[Any, ...], level: int, node: Node) -> tuple[Any, ...]:
    """The outputs of an operation of several: differentiable ones get a node that selects them."""
    count = len(outs)
    return tuple(
        [wrap(z, level, Node(PickOutput(i, count), (node,), None)) if z.spec.inexact else z for i, z in enumerate(outs)]
    )


def require_inexact(x: Any, asked: str) -> None:
    """Integers and booleans carry no derivative."""
    if not x.spec.inexact:
        raise GradientError(
            f"{asked} was given {x.spec!r}, but only real and complex floating-point values can be differentiated; "
            "convert it first, as in x.astype('float64')",
            spec=repr(x.spec),
        )
