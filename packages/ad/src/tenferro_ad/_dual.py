"""`Dual`: a value with its tangent, for forward mode; nothing is remembered.

The tangent may be of any level below the dual's own: of a higher level than the value, too, which is how `linearize`
traces only the tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad import _modes
from tenferro_ad._differentiated import Differentiated
from tenferro_ad._push_plan import push_plan
from tenferro_runtime.tracing import stage_above
from tenferro_tensor import SCALARS, Op, Primitive
from tenferro_tensor._plan import device_of
from tenferro_tensor._tensor import materialised
from tenferro_tensor_core import AmbiguousPlacementError, GradientError

_new = object.__new__


class Dual(Differentiated):
    """A value and its tangent in forward mode.

    Attributes:
        value: the value inside, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
        tangent: the tangent, of the same spec.
    """

    __slots__ = ("__weakref__", "level", "spec", "tangent", "value")
    tangent: Any

    def __init__(self) -> None:
        raise GradientError("a Dual is made inside of jvp and the other forward transforms only")

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        lower, need, duals = self._split(args)
        if _modes.slow:
            if _modes.silent(self.level):
                return op(*lower)
            inner = stage_above(self.level)
            if inner is not None:
                return inner.bind(op, args)
        return push(op, self.level, lower, tuple(need), [d.tangent for d in duals])

    def _copied(self) -> Dual:
        return dual(self.value._copied(), self.tangent, self.level)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, tangent={self.tangent!r})"


def dual(value: Any, tangent: Any, level: int) -> Dual:
    """A value with a tangent."""
    z = _new(Dual)
    z.value, z.spec, z.level, z.tangent = value, value.spec, level, tangent
    return z


PUSHES: Final[dict[Primitive, Callable[..., Any]]] = {}
"""Primitives that are pushed through in their own way: those whose metadata is a program."""


def push(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    """Run an op on the values inside its operands, and push their tangents through it."""
    if not op.primitive.elementwise:
        lower = list(materialised(op, tuple(lower)))
    hook = PUSHES.get(op.primitive)
    if hook is not None:
        return hook(op, level, lower, need, tangents)
    try:
        plan = push_plan(op, need, tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lower]))
    except AmbiguousPlacementError:
        device_of(op, [a for a in lower if a.__class__ not in SCALARS])  # the same error, with the values' lines
        raise
    site = plan.site
    if not site.active:
        return op(*lower)
    outs, pushed = plan.run(lower, tangents)
    results = [z if t is None or not z.spec.inexact else dual(z, t, level) for z, t in zip(outs, pushed)]
    return tuple(results) if site.many else results[0]
