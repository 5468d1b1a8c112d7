"""Comparison, classification and selection, element by element."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import DTypeError, bool_

__all__ = [
    "eq",
    "ge",
    "gt",
    "is_finite",
    "is_inf",
    "is_nan",
    "le",
    "lt",
    "ne",
    "select",
    "signbit",
]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive(elementwise=True)
def eq(x: Spec, y: Spec) -> Spec:
    """Whether the operands are equal."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True)
def ne(x: Spec, y: Spec) -> Spec:
    """Whether the operands differ."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True, domain="real")
def lt(x: Spec, y: Spec) -> Spec:
    """Whether `x` is less than `y`."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True, domain="real")
def le(x: Spec, y: Spec) -> Spec:
    """Whether `x` is at most `y`."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True, domain="real")
def gt(x: Spec, y: Spec) -> Spec:
    """Whether `x` is greater than `y`."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True, domain="real")
def ge(x: Spec, y: Spec) -> Spec:
    """Whether `x` is at least `y`."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True)
def is_finite(x: Spec) -> Spec:
    """Whether `x` is neither infinite nor NaN."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True)
def is_nan(x: Spec) -> Spec:
    """Whether `x` is NaN."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True)
def is_inf(x: Spec) -> Spec:
    """Whether `x` is infinite."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True, domain="floating")
def signbit(x: Spec) -> Spec:
    """Whether the sign bit of `x` is set, including that of -0.0 and NaN."""
    return x.with_(dtype=bool_)


@primitive(elementwise=True, chooser=0, widens=False)
def select(pred: Spec, x: Spec, y: Spec) -> Spec:
    """`x` where `pred` is true, `y` elsewhere."""
    if pred.dtype != bool_:
        raise DTypeError(
            f"select needs a boolean condition, got {pred!r}; compare it with 0 first", dtype=str(pred.dtype)
        )
    return x
