"""What type checkers know of the functions that transforms take and return. Imported under TYPE_CHECKING only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from tenferro_tensor import Array

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Aux = TypeVar("Aux")
F = TypeVar("F", bound=Callable[..., Any])

Leaf = Array | complex | np.ndarray[Any, Any] | np.number[Any]
"""An argument that is no container: its derivative is an `Array`."""

OfLeaf = (
    Callable[Concatenate[Array, P], R]
    | Callable[Concatenate[float, P], R]
    | Callable[Concatenate[np.ndarray[Any, Any], P], R]
)
"""A function whose first argument is no container, or has no annotation."""


class Same(Protocol[P, R_co]):
    """A function with the arguments of another one. Its result differs from that of other overloads in its class, too:
    for a function without annotations mypy then infers Any instead of an untyped function.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Derived(Protocol[P, R_co]):
    """A function with the arguments of an `OfLeaf`, whose first argument may be any of them."""

    def __call__(self, x: object, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
