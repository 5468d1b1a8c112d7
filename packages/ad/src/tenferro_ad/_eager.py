"""`EagerTensor`: a value that is being differentiated in reverse mode.

It wraps a value of a lower level and the node that recorded it. Constants of the differentiation are never wrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from tenferro_ad._backward import backward_pass
from tenferro_ad._differentiated import Differentiated
from tenferro_ad._node import Leaf, PickOutput
from tenferro_ad._seed import seed_of
from tenferro_tensor import Array, Op, Spec, Tensor
from tenferro_tensor.calls import Node, RecordedBase, state
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import GradientError
from tenferro_tensor_core.tracebacks import boundary

_new = object.__new__


class EagerTensor(Differentiated, RecordedBase):
    """A value whose operations are recorded for reverse-mode differentiation.

    Made by `variable`, or by `grad`, `vjp` and the other transforms; it supports all operators and array functions.

    Attributes:
        value: the inner value, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
        node: the record of the operation that produced it.

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
        raise GradientError("an EagerTensor is made by variable(x), or inside grad, vjp and the other transforms")

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return state.record(self.level, op, args)

    @property
    def is_leaf(self) -> bool:
        """Whether this is a variable, which accumulates a gradient."""
        return isinstance(self.node, Leaf)

    @property
    def grad(self) -> Array | Any:
        """The gradient accumulated by `backward`, or ``None``.

        Raises:
            GradientError: this is a computed value, not a variable.
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
        """Reset the accumulated gradient to ``None``."""
        self._leaf("zero_grad()").grad = None

    def _leaf(self, asked: str) -> Leaf:
        if isinstance(self.node, Leaf):
            return self.node
        raise GradientError(
            f"a computed {self.spec!r} has no {asked}; only a variable accumulates a gradient: "
            "make it with variable(x), or use vjp or grad for the derivative with respect to a computed value"
        )

    @boundary
    def backward(self, gradient: Any = None, retain_graph: bool = False) -> None:
        """Run the backward pass from this value, adding to the ``grad`` of the variables that it depends on.

        Args:
            gradient: cotangent with this value's shape and dtype; defaults to 1 for a single real number.
            retain_graph: keep the saved values, so that `backward` can run again. By default they are released during
                the pass.

        Raises:
            GradientError: `gradient` is missing and this is not a single real number; or it has another shape or
                dtype; or an earlier pass has released the graph.
        """
        g = seed_of(self.value, gradient, "backward()")
        for node, c in backward_pass([(self.node, g)], release=not retain_graph).items():
            if isinstance(node, Leaf):
                node.grad = c._alias() if node.grad is None else node.grad + c

    def _go_over(self, updated: Any) -> None:
        node = self.node
        if not isinstance(node, Leaf) or node.variable is None or node.variable() is not self:
            super()._go_over(updated)
        elif updated.level == 0:  # inside no_grad
            self.value = updated
        else:
            raise GradientError(
                f"elements of a variable {self.spec!r} were assigned to, but its gradient belongs to the previous "
                "value; write y = x.copy() and assign to y, or assign inside no_grad() to change the variable"
            )

    def _apart(self) -> EagerTensor:
        return wrap(self.value._copied(), self.level, self.node)

    def __repr__(self) -> str:
        if self.value.level == 0:
            return super().__repr__()
        return f"EagerTensor({self.value!r})"


def wrap(value: Any, level: int, node: Node) -> EagerTensor:
    """Wrap a value recorded by a node; the value owns its memory, because later nodes may save it."""
    if value.__class__ is Tensor and value._data.__class__ is ndarray and value._data.base is not None:
        owned(value)
    z = _new(EagerTensor)
    z.value, z.spec, z.level, z.node = value, value.spec, level, node
    return z


def watched(value: Any, level: int) -> EagerTensor:
    """Wrap a value that a transform of the given level differentiates with respect to."""
    return wrap(value, level, Node(None, (), None))


def all_watched(values: Sequence[Any], level: int) -> list[EagerTensor]:
    """`watched` of each value; inlined, since there may be thousands."""
    found = []
    for value in values:
        if value.__class__ is Tensor and value._data.__class__ is ndarray and value._data.base is not None:
            owned(value)
        z = _new(EagerTensor)
        z.value, z.spec, z.level, z.node = value, value.spec, level, Node(None, (), None)
        found.append(z)
    return found


def wrap_many(outs: tuple[Any, ...], level: int, node: Node) -> tuple[Any, ...]:
    """Wrap the outputs of a multi-output op: differentiable ones get a node that selects them."""
    count = len(outs)
    return tuple(
        [wrap(z, level, Node(PickOutput(i, count), (node,), None)) if z.spec.inexact else z for i, z in enumerate(outs)]
    )


def require_inexact(x: Any, asked: str) -> None:
    """Raise unless a value is real or complex floating point."""
    if not x.spec.inexact:
        raise GradientError(
            f"{asked} was given {x.spec!r}, but only real and complex floating-point values can be differentiated; "
            "convert it first, as in x.astype('float64')",
            spec=repr(x.spec),
        )
