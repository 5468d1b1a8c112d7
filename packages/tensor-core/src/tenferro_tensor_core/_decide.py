"""Comparisons of sizes that hold, or fail, for all values within the bounds."""

from collections.abc import Callable
from math import gcd
from typing import Final, NoReturn

from ._dims import DimLike, nonnegative
from ._errors import ArgumentError
from ._normal_form import normal_form
from ._poly import samples

COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def decide(a: DimLike, op: str, b: DimLike) -> bool | None:
    """Decide `a op b` for all values within the bounds.

    Args:
        a: left size.
        op: one of == != < <= > >=.
        b: right size.

    Returns:
        True or False if that holds for all values, None if it depends on them or is not proved.

    Raises:
        ArgumentError: `op` is not a comparison.

    See also:
        `ask`, which also decides by example sizes.

    >>> from tenferro_tensor_core import dim, dim_min
    >>> n, m = dim("n", max=64), dim("m")
    >>> decide(n, "<=", 100), decide(dim_min(n, m), "<=", m), decide(n, "==", m)
    (True, True, None)
    """
    if isinstance(a, int) and isinstance(b, int):
        return COMPARISONS[op](a, b) if op in COMPARISONS else _unknown_op(op)
    match op:
        case "==" | "!=":
            equal = _equal(a - b)
            return equal if equal is None or op == "==" else not equal
        case ">=":
            return _sign_known(a - b)
        case "<=":
            return _sign_known(b - a)
        case ">" | "<":
            reverse = _sign_known(b - a if op == ">" else a - b)
            return None if reverse is None else not reverse
    return _unknown_op(op)


def always(a: DimLike, op: str, b: DimLike) -> bool:
    """Whether `a op b` is proved for all values within the bounds.

    That is, `decide` returns True. It does not try to refute the comparison, which is often the harder proof.

    Args:
        a: left size.
        op: one of == != < <= > >=.
        b: right size.

    Returns:
        The answer.

    Raises:
        ArgumentError: `op` is not a comparison.

    >>> from tenferro_tensor_core import dim, dim_min
    >>> n, m = dim("n", max=64), dim("m")
    >>> always(n, "<=", 100), always(dim_min(n, m), "<=", m), always(n, "==", m)
    (True, True, False)
    """
    match op:
        case ">=":
            return nonnegative(a - b)
        case "<=":
            return nonnegative(b - a)
        case ">":
            return nonnegative(a - b - 1)
        case "<":
            return nonnegative(b - a - 1)
    return decide(a, op, b) is True


def _unknown_op(op: str) -> NoReturn:
    raise ArgumentError(f"{op!r} is not a comparison of sizes; use one of {', '.join(COMPARISONS)}", op=op)


def _sign_known(d: DimLike) -> bool | None:
    """Whether d >= 0 holds always (True), never (False), or is undecided (None)."""
    return True if nonnegative(d) else False if nonnegative(-d - 1) else None


def _equal(d: DimLike) -> bool | None:
    if isinstance(d, int):
        return d == 0
    if nonnegative(d - 1) or nonnegative(-d - 1):
        return False
    p = dict(d.terms)
    if p.get((), 0) % gcd(*(c for m, c in d.terms if m)):
        return False
    values = {x for x in samples(p) if x is not None}
    if len(values) > 1:
        return None
    known = normal_form(p)
    if not any(known):
        return not known
    return True if nonnegative(d) and nonnegative(-d) else None
