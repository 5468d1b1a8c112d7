"""`TracedTensor`: a value that represents a variable of a program being recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

import numpy as np

from tenferro_runtime.ir._source import here, where
from tenferro_runtime.tracing._bounds import interval_of, linear_form
from tenferro_runtime.tracing._staging import stage_above
from tenferro_tensor import Array, Interval, LinearForm, Op, Spec
from tenferro_tensor.calls import TracedBase
from tenferro_tensor.identity import aliased
from tenferro_tensor_core import DimLike, TracingError

R = TypeVar("R")


class OwningBuilder(Protocol):
    """The methods of a builder that its traced values use."""

    level: int
    source: Any

    def bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Record an op."""

    def bind_alike(self, op: Op, operands: tuple[Any, ...]) -> Any:
        """Record an op on values of this builder."""

    def origin(self, v: int) -> str:
        """The origin of a variable, as a clause of messages."""

    def require_open(self, value: Any) -> None:
        """Check that the program is still being recorded."""


class TracedTensor(TracedBase, Array):
    """A variable of a program that is being recorded: it has a spec, but no elements yet.

    Attributes:
        spec: shape, dtype and place.
        home: the builder that records the program.
        id: the variable.
        level: level of the trace.
    """

    __slots__ = ()
    opaque: ClassVar[bool] = True
    spec: Spec
    level: int
    home: Any
    id: int

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return self.home.bind_alike(op, args) if len(args) == 1 else self.home.bind(op, args)

    def _operate(self, op: Any, x: Any, y: Any) -> Any:
        if x.__class__ is TracedTensor is y.__class__ and x.home is y.home and isinstance(op, Op):
            return self.home.bind_alike(op, (x, y))  # of one trace: of one spec, they need no normalisation
        return super()._operate(op, x, y)

    def _copied(self) -> Any:
        return copied_into_stage(self, self._alias)

    def _go_over(self, updated: Any) -> None:
        require_own_stage(self, updated)
        super()._go_over(updated)

    def _origin(self) -> str:
        return self.home.origin(self.id)  # type: ignore[no-any-return]

    def _number_class(self) -> type | None:
        return self.home.weak_class(self)  # type: ignore[no-any-return]

    def _interval(self) -> Interval:
        return interval_of(self.home, self.id)

    def _linear_form(self) -> LinearForm:
        return linear_form(self.home, self.id)

    def _as_extent(self, most: DimLike | None) -> DimLike:
        return self.home.define_size(self, most)  # type: ignore[no-any-return]

    def _no_value(self, asked: str, fix: str) -> NoReturn:
        self.home.require_open(self)
        source = where(self.home.source)
        raise TracingError(
            f"{asked}{here()}: this {self.spec!r} is a variable of a program that is being recorded"
            f"{f' by the call at {source}' if source else ''}, and has no elements before the program runs; {fix}",
            spec=repr(self.spec),
        )

    def _concrete(self) -> np.ndarray[Any, Any]:
        self._no_value(
            "the elements were requested",
            "compute with tenferro functions instead of NumPy's, or return the value and look at it outside",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._no_value(
            "conversion to a NumPy array was requested",
            "compute with tenferro functions instead of NumPy's, or return the value and convert it outside",
        )

    def __format__(self, spec: str) -> str:
        if spec:
            self._no_value("formatting was requested", "return the value and format it outside")
        return repr(self)

    def __bool__(self) -> bool:
        self._no_value(
            "a truth value was requested (by if, while, and, or, not, assert)",
            "use tr.where() to choose between values, tr.cond() or tr.while_loop() to branch or loop on them, or pass "
            "what decides as a static argument (static_argnames=)",
        )

    def __int__(self) -> int:
        self._no_value("int() was requested", "use astype(), or pass the number as a static argument")

    def __float__(self) -> float:
        self._no_value("float() was requested", "use astype(), or pass the number as a static argument")

    def __complex__(self) -> complex:
        self._no_value("complex() was requested", "use astype(), or pass the number as a static argument")

    def __index__(self) -> int:
        self._no_value(
            "an integer was requested (by range(), indexing a list, or a shape)",
            "index an array of tenferro, take its first elements with truncate(), loop with fori_loop(), or pass the "
            "number as a static argument (static_argnames=)",
        )

    def item(self) -> NoReturn:
        """Not available: a traced value has no elements."""
        self._no_value("item() was requested", "return the value and look at it outside")

    def tolist(self) -> NoReturn:
        """Not available: a traced value has no elements."""
        self._no_value("tolist() was requested", "return the value and look at it outside")

    def __repr__(self) -> str:
        return f"TracedTensor({self.spec!r}, v{self.id})"

    def __reduce__(self) -> NoReturn:
        self._no_value("pickling was requested", "return the value and save it outside")


def copied_into_stage(x: Any, copy: Callable[[], R]) -> R:
    """A copy of a value; in a branch or body that is being recorded, a value of that branch or body.

    Args:
        x: the value, perhaps from outside.
        copy: makes the copy where nothing is being recorded, or `x` belongs to it.

    Returns:
        The copy.
    """
    stage = stage_above(x.level)
    return copy() if stage is None else aliased(stage.lift(x))


def require_own_stage(x: Any, updated: Any) -> None:
    """Check that a value does not become that of a branch or body which is recorded inside its scope.

    Args:
        x: the value that is assigned to.
        updated: its value after the assignment.

    Raises:
        TracingError: it would.
    """
    inner = innermost(updated)
    if inner.__class__ is TracedTensor and inner.level > x.level and inner.home is not getattr(x, "home", None):
        raise TracingError(
            f"the elements of a {x.spec!r} from outside were assigned to{here()}, in a function that is "
            "recorded by itself, as a branch or the body of a loop is: the array outside would not change; write "
            "x = x.copy() first, return the value from the function, or make it part of the carry of the loop",
            spec=repr(x.spec),
        )


def innermost(x: Any) -> Any:
    """The innermost value of a differentiated one: concrete, traced, or a batch of lanes."""
    while getattr(x, "level", 0) and not x.opaque:
        x = x.value
    return x


def is_traced(x: Any) -> bool:
    """Whether a leaf is a traced value, which has no elements.

    Args:
        x: the leaf.

    Returns:
        True if it is.
    """
    return getattr(innermost(x), "opaque", False)
