"""`Series`: a value with the coefficients of a power series, for Taylor mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tenferro_ad._differentiated import Differentiated
from tenferro_ad._lengths import applied
from tenferro_ad.power_series._coefficients import Coefficients
from tenferro_tensor import Op, Spec
from tenferro_tensor.calls import SeriesBase
from tenferro_tensor_core import GradientError

_new = object.__new__

Collapse = Callable[[Any], Any]


class Series(Differentiated, SeriesBase):
    """A value and the higher coefficients of a power series.

    Attributes:
        value: the inner value, of a lower level: coefficient 0.
        spec: spec of the value and of every coefficient.
        level: level of the differentiation that it belongs to.
        expansion: the following three:
        coefficients: the coefficients.
        order: the order up to which all are computed, in a level of `taylor`; ``None`` in a level that solves a
            derivative rule, where coefficients are computed on demand.
        collapse: applied to the highest coefficient of every result, or ``None``; see `laplacian`.
        interpreter: ``interpreter(level, op, operands)`` runs an op on series.
    """

    __slots__ = ()
    value: Any
    spec: Spec
    level: int
    expansion: tuple[Coefficients, int | None, Collapse | None]
    interpreter: ClassVar[Callable[[int, Op, tuple[Any, ...]], Any]]

    def __init__(self) -> None:
        raise GradientError("a Series cannot be constructed: taylor and laplacian make them")

    @property
    def coefficients(self) -> Coefficients:
        return self.expansion[0]

    @property
    def order(self) -> int | None:
        return self.expansion[1]

    @property
    def collapse(self) -> Collapse | None:
        return self.expansion[2]

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return applied(op, args, lambda: Series.interpreter(self.level, op, args))

    def _apart(self) -> Series:
        first, *rest = self.coefficients.terms
        return series(
            Coefficients([first._copied(), *rest], self.coefficients.order), self.level, self.order, self.collapse
        )

    def __repr__(self) -> str:
        return f"Series({', '.join(map(repr, self.coefficients.terms))})"


def series(
    coefficients: Coefficients, level: int, order: int | None = None, collapse: Collapse | None = None
) -> Series:
    """Make a `Series`, which describes the arguments."""
    z = _new(Series)
    value = coefficients[0]
    z.value, z.spec, z.level, z.expansion = value, value.spec, level, (coefficients, order, collapse)
    return z


def coefficients_of(x: Any, level: int) -> Coefficients | None:
    """The coefficients of a value of a level; ``None`` for a constant."""
    return x.coefficients if x.__class__ is Series and x.level == level else None
