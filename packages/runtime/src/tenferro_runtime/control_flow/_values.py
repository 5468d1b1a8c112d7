"""Leaves of operands and carries: whether they are traced, and whether they represent a Python number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tenferro_runtime.ir._source import here, where
from tenferro_runtime.tracing._traced import TracedTensor, innermost
from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import SCALARS, Interval, Spec, tensor
from tenferro_tensor.identity import aliased
from tenferro_tensor.operands import value
from tenferro_tensor_core import ArgumentError

_ORDER: Final = (bool, int, float, complex)


class LeafKind(NamedTuple):
    """Spec and weak type of a leaf.

    Attributes:
        spec: its spec.
        weak: class of the Python number that it represents; ``None`` for an array.
        interval: bounds of an integer.
    """

    spec: Spec
    weak: type | None
    interval: Interval | None = None


def leaf_values(leaves: Iterable[Any], tree: TreeDef, what: str) -> list[Any]:
    """Leaves as arguments of a function: numbers stay numbers, host data and sizes become values.

    Assignments in the function do not change the caller's arrays.

    Raises:
        ArgumentError: a leaf is neither an array nor a number; the message names its path.
    """
    found: list[Any] = []
    for x in leaves:
        try:
            found.append(x if x.__class__ in SCALARS else aliased(value(x)))
        except ArgumentError as cause:
            path = list(tree.paths())[len(found)]
            raise ArgumentError(
                f"{what} holds a {type(x).__name__}{path and f' at {path}'}, which is neither an array nor a number"
                f"{here()}; close over it, or register its class with register_dataclass or register_node",
                path=path,
            ) from cause
    return found


def require_functions(name: str, *functions: Any) -> None:
    """Check that all arguments are callable.

    Raises:
        ArgumentError: one is not.
    """
    for f in functions:
        if not callable(f):
            raise ArgumentError(
                f"{name} takes functions{here()}, got {f!r:.80}; wrap a constant, as in lambda *_: constant"
            )


def weak_class(x: Any) -> type | None:
    """Class of the Python number that a leaf is or represents; ``None`` for an array."""
    if x.__class__ in SCALARS:
        return type(x)
    x = innermost(x)
    return x.home.weak_class(x) if x.__class__ is TracedTensor else None


def kind_of(x: Any) -> LeafKind:
    """The kind of a leaf."""
    return LeafKind(tensor(x).spec if x.__class__ in SCALARS else x.spec, weak_class(x))


def number_kind(cls: type) -> LeafKind:
    """The kind of a Python number that is not combined with arrays."""
    return LeafKind(tensor(cls(0)).spec, cls)


def wider(a: type, b: type) -> type:
    """The wider of two classes of numbers."""
    return max(a, b, key=_ORDER.index)


def name_of(f: Any) -> str:
    """A function as errors name it, with the line where it is defined."""
    f = getattr(f, "__wrapped__", f)
    code = getattr(f, "__code__", None)
    name = getattr(f, "__name__", type(f).__name__)
    return f"{name} ({where((code, code.co_firstlineno))})" if code is not None else name
