"""What type checkers know of the functions that transforms take and return. Imported under TYPE_CHECKING only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from tenferro_tensor import Array

P = ParamSpec("P")
T = TypeVar("T", bound=Any)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Aux = TypeVar("Aux")
F = TypeVar("F", bound=Callable[..., Any])

Leaf = Array | complex | np.ndarray[Any, Any] | np.number[Any]
"""An argument that is no container: its derivative is an `Array`."""

Single = TypeVar("Single", bound=Array)
"""The first argument of a function, which is an array; unknown without an annotation."""

Number = TypeVar("Number", bound=complex | np.ndarray[Any, Any] | np.number[Any] | Array)
OfNumberResult = TypeVar("OfNumberResult")
OfTreeResult = TypeVar("OfTreeResult")

OfNumber = Callable[Concatenate[float, P], R] | Callable[Concatenate[np.ndarray[Any, Any], P], R]
"""A function whose first argument is annotated as a number or an array of NumPy; its derivative is an `Array`."""


class Same(Protocol[P, R_co]):
    """A function with the arguments of another one. Its result differs from that of other overloads in its class, too:
    for a function without annotations mypy then infers Any instead of an untyped function.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Derived(Protocol[P, R_co]):
    """A function with the arguments of an `OfNumber`, whose first argument may also be an array."""

    def __call__(self, x: object, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class ByArgument(ABC, Generic[T, P, OfNumberResult, OfTreeResult]):
    """A function with the arguments of another one, whose result depends on the annotation of its first argument, T.

    Of numbers it is the one type, of arrays and containers the other. Without an annotation nothing is known.
    """

    @overload
    @abstractmethod
    def __call__(
        self: ByArgument[Single, P, OfNumberResult, OfTreeResult], x: Single, /, *args: P.args, **kwargs: P.kwargs
    ) -> OfTreeResult: ...
    @overload
    @abstractmethod
    def __call__(
        self: ByArgument[Number, P, OfNumberResult, OfTreeResult], x: Number, /, *args: P.args, **kwargs: P.kwargs
    ) -> OfNumberResult: ...
    @overload
    @abstractmethod
    def __call__(
        self: ByArgument[Number, P, OfNumberResult, OfTreeResult], x: Leaf, /, *args: P.args, **kwargs: P.kwargs
    ) -> OfNumberResult: ...
    @overload
    @abstractmethod
    def __call__(self, x: T, /, *args: P.args, **kwargs: P.kwargs) -> OfTreeResult: ...
