"""Bodies of reductions, scatters and sorts as expressions, to recognize known functions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_xla.importing._types import constant_of
from tenferro_xla.importing._values import Splat

Expression = Any
"""``("arg", i)``, ``("constant", text)``, or the name of an operation, its kind, and its operands."""

COMMUTATIVE: Final = frozenset(
    f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
)


def arg(i: int) -> Expression:
    """Return the expression of argument `i` of the body."""
    return ("arg", i)


def compare(direction: str, x: Expression, y: Expression, total: bool = False) -> Expression:
    """Return the expression of a comparison."""
    return ("stablehlo.compare", f"{direction} total" if total else direction, x, y)


def apply(name: str, *xs: Expression) -> Expression:
    """Return the expression of an operation without attributes; commutative operands are sorted."""
    full = f"stablehlo.{name}"
    return (full, "", *(sorted(xs, key=repr) if full in COMMUTATIVE else xs))


def returned(block: Any) -> list[Any]:
    """Return the values that a block returns."""
    return list(list(block.operations)[-1].operation.operands)


def expression_of(value: Any, block: Any, found: dict[Expression, Any] | None = None) -> Expression:
    """Return a value of a body as an expression of its arguments.

    Args:
        value: the value.
        block: the body.
        found: if given, receives the value of each expression.
    """
    made = _expression(value, block, found)
    if found is not None:
        found.setdefault(made, value)
    return made


def _expression(value: Any, block: Any, found: dict[Expression, Any] | None) -> Expression:
    for i, argument in enumerate(block.arguments):
        if value == argument:
            return arg(i)
    op = _owner(value)
    if op is None:
        return ("outside", str(value))
    xs = [expression_of(v, block, found) for v in op.operands]
    if op.name == "stablehlo.constant":
        constant = constant_of(op)
        return ("constant", repr(constant.number) if isinstance(constant, Splat) else str(op).partition("=")[2])
    if op.name == "stablehlo.compare":
        from tenferro_xla.importing.elementwise import direction, in_total_order

        return compare(direction(op), xs[0], xs[1], in_total_order(op))
    if op.name in COMMUTATIVE:
        xs.sort(key=repr)
    kind = str(value.type) if op.name in ("stablehlo.convert", "stablehlo.bitcast_convert") else ""
    return (op.name, kind, *xs)


def _owner(value: Any) -> Any:
    """Return the operation that defines a value; ``None`` for an argument."""
    owner = value.owner
    return getattr(owner, "operation", owner) if hasattr(owner, "operands") or hasattr(owner, "operation") else None


def monoid_of(block: Any, dtype: np.dtype[Any]) -> str | None:
    """Return the operation that combines the two arguments of a body, without its dialect; ``None`` for other bodies.

    For booleans, ``or`` and ``add`` are ``maximum``; ``and`` and ``multiply`` are ``minimum``.
    """
    results = returned(block)
    if len(results) != 1:
        return None
    match expression_of(results[0], block):
        case (name, "", ("arg", 0), ("arg", 1)) if name in COMMUTATIVE:
            short = str(name).removeprefix("stablehlo.")
            if dtype.kind == "b":
                short = {"or": "maximum", "and": "minimum", "add": "maximum", "multiply": "minimum"}.get(short, short)
            return short
    return None


def returned_argument(block: Any) -> int | None:
    """Return the index of the argument that a body returns; ``None`` if it returns something else."""
    results = returned(block)
    for i, argument in enumerate(block.arguments):
        if len(results) == 1 and results[0] == argument:
            return i
    return None


def swapped(e: Expression) -> Expression:
    """Return an expression with arguments 2i and 2i + 1 exchanged."""
    if e[0] == "arg":
        return arg(e[1] ^ 1)
    if e[0] in ("constant", "outside"):
        return e
    xs = [swapped(x) for x in e[2:]]
    if e[0] in COMMUTATIVE:
        xs.sort(key=repr)
    return (e[0], e[1], *xs)


def arguments_of(e: Expression) -> set[int]:
    """Return the indices of the arguments in an expression."""
    if e[0] == "arg":
        return {e[1]}
    return set().union(*[arguments_of(x) for x in e[2:]]) if e[0] not in ("constant", "outside") else set()


def winner(block: Any) -> str | None:
    """Return ``"argmax"`` or ``"argmin"`` if a body of values and indices keeps the first extremum, else ``None``."""
    results = returned(block)
    if len(results) != 2 or len(block.arguments) != 4:
        return None
    seen = tuple([expression_of(v, block) for v in results])
    a, ia, b, ib = (arg(i) for i in range(4))
    for name, which in (("argmax", "GT"), ("argmin", "LT")):
        better, earlier = compare(which, a, b), compare("LT", ia, ib)
        # The form of JAX: a NaN of the left operand wins.
        left = apply("or", better, compare("NE", a, a))
        first = apply("or", left, apply("and", compare("EQ", a, b), earlier))
        jax = (apply("select", left, a, b), apply("select", first, ia, ib))
        # The forms of tenferro, without and with a test for NaN.
        plain = apply("or", better, apply("and", compare("EQ", a, b), earlier))
        na, nb = compare("NE", a, a), compare("NE", b, b)
        ahead = apply("or", better, apply("and", na, apply("not", nb)))
        equal = apply("or", compare("EQ", a, b), apply("and", na, nb))
        full = apply("or", ahead, apply("and", equal, earlier))
        own = [(apply("select", f, a, b), apply("select", f, ia, ib)) for f in (plain, full)]
        if seen in (jax, *own):
            return name
    return None
