"""`Step`: one step from a base to a view of it, and back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor import catalog

__all__ = ["IMAGINARY", "REAL", "Step", "indexed", "permuted", "shaped"]


class Step:
    """One step from a base to its view: the call of a function.

    Attributes:
        function: the function, whose first argument is the base.
        put: ``put(base, part, *args, **named)`` is the base with the view replaced by `part`.
        args: the other arguments.
        named: keyword arguments.
        asked: the key that the user wrote, if the step is an index.
        moves: whether the function copies elements where their order in memory asks for it; then it gives no view.
    """

    __slots__ = ("args", "asked", "function", "moves", "named", "put")

    def __init__(
        self,
        function: Callable[..., Any],
        put: Callable[..., Any],
        args: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
        asked: Any = None,
        moves: bool = False,
    ) -> None:
        self.function, self.put, self.args, self.named = function, put, args, named or {}
        self.asked, self.moves = asked, moves

    def of(self, base: Any) -> Any:
        """The view of a base."""
        return self.function(base, *self.args, **self.named)

    def into(self, base: Any, part: Any) -> Any:
        """The base after its view has become `part`."""
        return self.put(base, part, *self.args, **self.named)

    def keeps_order(self) -> bool:
        """Whether the view of a base in row-major order is a run of its elements."""
        if self.asked is None:
            return self.moves
        key = self.args[0] if self.args[0].__class__ is tuple else self.args
        return all(part.__class__ is int for part in key[:-1]) and _is_run(key[-1])


def _is_run(part: Any) -> bool:
    return part is Ellipsis or part.__class__ is int or (part.__class__ is slice and part.step in (None, 1))


def indexed(key: Any, asked: Any = None) -> Step:
    """The step to the elements of a key.

    Args:
        key: the key; nobody changes the values in it.
        asked: the key that the user wrote.

    Returns:
        The step.
    """
    return Step(operator.getitem, lambda base, part, key: base.at[key].set(part), (key,), asked=asked)


def permuted(axes: tuple[int, ...]) -> Step:
    """The step to the view with permuted axes.

    Args:
        axes: the new order, from 0.

    Returns:
        The step.
    """
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return Step(lambda base: base.transpose(axes), lambda base, part: part.transpose(back))


def shaped(shape: tuple[Any, ...]) -> Step:
    """The step to the view with another shape.

    Args:
        shape: the shape.

    Returns:
        The step.
    """
    return Step(lambda base: base.reshape(shape), lambda base, part: part.reshape(base.shape), moves=True)


def _with_real(base: Any, part: Any) -> Any:
    return catalog.complex(part, catalog.imag(base)) if base.spec.cplx else part


REAL: Final = Step(catalog.real, _with_real)
"""The step to the real parts."""

IMAGINARY: Final = Step(catalog.imag, lambda base, part: catalog.complex(catalog.real(base), part))
"""The step to the imaginary parts."""
