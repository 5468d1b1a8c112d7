"""`Step`: one step from a base to a view of it, and back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog

__all__ = ["IMAGINARY", "REAL", "Step", "indexed", "permuted", "shaped"]


class Step:
    """One step from a base to its view: the call of a function.

    Attributes:
        function: the function, whose first argument is the base.
        put: ``put(base, part, *args, **named)`` is the base with the view replaced by `part`.
        args: the other arguments.
        named: keyword arguments.
        raw: the function on raw arrays. It copies no elements: if NumPy's function would, it raises a `ValueError`.
        asked: the key that the user wrote, if the step is an index.
        above: the steps to the view that it was written for.
        moves: whether the function copies elements where their order in memory asks for it; then it gives no view.
        contiguous: whether it also copies elements that do not follow each other in memory.
    """

    __slots__ = ("above", "args", "asked", "contiguous", "function", "moves", "named", "put", "raw")

    def __init__(
        self,
        function: Callable[..., Any],
        put: Callable[..., Any],
        raw: Callable[..., Any],
        args: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
        asked: Any = None,
        above: tuple[Step, ...] = (),
        moves: bool = False,
        contiguous: bool = False,
    ) -> None:
        self.function: Callable[..., Any] = function
        self.put: Callable[..., Any] = put
        self.raw: Callable[..., Any] = raw
        self.args: tuple[Any, ...] = args
        self.named: dict[str, Any] = named or {}
        self.asked: Any = asked
        self.above: tuple[Step, ...] = above
        self.moves: bool = moves
        self.contiguous: bool = contiguous

    def of(self, base: Any) -> Any:
        """The view of a base."""
        return self.function(base, *self.args, **self.named)

    def into(self, base: Any, part: Any) -> Any:
        """The base after its view has become `part`."""
        return self.put(base, part, *self.args, **self.named)


def indexed(key: Any, asked: Any = None, above: tuple[Step, ...] = ()) -> Step:
    """The step to the elements of a key.

    Args:
        key: the key; nobody changes the values in it.
        asked: the key that the user wrote.
        above: the steps to the view that it was written for.

    Returns:
        The step.
    """
    return Step(operator.getitem, _with_item, _item, (key,), asked=asked, above=above)


def _with_item(base: Any, part: Any, key: Any) -> Any:
    return base.at[key].set(part)


def _item(raw: Any, key: Any) -> Any:
    if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
        raise ValueError("picked elements are copied")
    return raw[key]


def permuted(axes: tuple[int, ...]) -> Step:
    """The step to the view with permuted axes.

    Args:
        axes: the new order, from 0.

    Returns:
        The step.
    """
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    move = operator.methodcaller("transpose", axes)
    return Step(move, lambda base, part: part.transpose(back), move)


def shaped(shape: tuple[Any, ...]) -> Step:
    """The step to the view with another shape.

    Args:
        shape: the shape.

    Returns:
        The step.
    """
    return Step(
        lambda base: base.reshape(shape),
        lambda base, part: part.reshape(base.shape),
        lambda raw: np.reshape(raw, shape, copy=False),
        moves=True,
    )


def _with_real(base: Any, part: Any) -> Any:
    return catalog.complex(part, catalog.imag(base)) if base.spec.cplx else part


REAL: Final = Step(catalog.real, _with_real, np.real)
"""The step to the real parts."""

IMAGINARY: Final = Step(catalog.imag, lambda base, part: catalog.complex(catalog.real(base), part), np.imag)
"""The step to the imaginary parts."""
