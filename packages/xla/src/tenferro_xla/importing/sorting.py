"""Sorts: the comparator is decomposed into lexicographic keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import tenferro_runtime as tr
from tenferro_runtime.extension import catalog
from tenferro_tensor_core import uint8
from tenferro_xla.importing._bodies import Expression, apply, arguments_of, compare, expression_of, returned, swapped
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, out_spec, unknown
from tenferro_xla.importing._values import Value, arrays, as_array
from tenferro_xla.importing.structure import integer


class SortKey(NamedTuple):
    """One key of a lexicographic order.

    Attributes:
        of: the key as an expression of the left operands.
        descending: whether large keys come first.
        nan_first: whether NaN precedes all numbers; otherwise it follows them.
    """

    of: Expression
    descending: bool
    nan_first: bool = False


def _sort(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    body, axis = op.regions[0].blocks[0], integer(op, "dimension")
    values = arrays(xs)
    found: dict[Expression, Any] = {}
    keys = _keys(expression_of(returned(body)[0], body, found))
    if keys is None:
        raise unknown(op, "its comparator is not a lexicographic comparison of keys")
    keys = _whole(keys)
    match keys:
        case [SortKey(("arg", i), descending, False)]:
            if len(values) == 1:
                return (catalog.sort(values[0], axis=axis, descending=descending),)
            order = catalog.argsort(values[i // 2], axis=axis, descending=descending)
        case _:
            inner = ValueScope(scope)
            for i, argument in enumerate(body.arguments):
                inner[argument] = values[i // 2]
            order = _order([(_key_array(reader, found, k, inner), k) for k in keys], axis)
    return [_in_order(op.operands[i], x, order, axis) for i, x in enumerate(values)]


def _keys(e: Expression) -> list[SortKey] | None:
    """Return the keys of a comparator; ``None`` for other expressions."""
    match e:
        case ("stablehlo.compare", how, x, y):
            key = _key(str(how), x, y)
            return None if key is None else [key]
        case ("stablehlo.select", "", ("stablehlo.compare", "EQ" | "EQ total", x, y), rest, ahead):
            return _then(ahead, rest, (x, y))
        case ("stablehlo.or", "", p, q):
            for ahead, both in ((p, q), (q, p)):
                match both:
                    case ("stablehlo.and", "", r, s):
                        for test, rest in ((r, s), (s, r)):
                            if test == apply("not", swapped(ahead)):
                                return _then(ahead, rest, None)
                            match test:
                                case ("stablehlo.compare", "EQ" | "EQ total", x, y):
                                    made = _then(ahead, rest, (x, y))
                                    if made is not None:
                                        return made
    return None


def _then(ahead: Expression, rest: Expression, equal: tuple[Expression, Expression] | None) -> list[SortKey] | None:
    first, later = _keys(ahead), _keys(rest)
    if first is None or later is None or len(first) != 1:
        return None
    if equal is not None and _plain(first[0].of) not in map(_plain, equal):
        return None
    return [*first, *later]


def _key(how: str, x: Expression, y: Expression) -> SortKey | None:
    which, _, total = how.partition(" ")
    if which not in ("LT", "GT") or swapped(x) != y:
        return None
    sides = {i % 2 for i in arguments_of(x)}
    if len(sides) != 1:
        return None
    left, descending = (x, which == "GT") if sides == {0} else (y, which == "LT")
    if total and _plain(left) == left:
        return None  # the total order places -0 before 0
    return SortKey(_plain(left), descending, bool(total) and descending)


def _plain(e: Expression) -> Expression:
    """Return a key without the canonicalization of zeros and NaN."""
    match e:
        case ("stablehlo.select", "", ("stablehlo.compare", "NE", x, again), ("constant", "nan"), rest) if x == again:
            return x if _plain(rest) == x else e
        case ("stablehlo.select", "", ("stablehlo.compare", "EQ", x, ("constant", zero)), ("constant", again), rest):
            return x if rest == x and zero == again == "0.0" else e
    return e


def _whole(keys: list[SortKey]) -> list[SortKey]:
    """Merge the keys of one value: NaN tests with the value, and the parts of complex numbers."""
    if len(keys) == 4:
        last = keys[-1].of
        x = last[2] if last[0] == "stablehlo.imag" else None
        parts = [apply("real", x), apply("imag", x)] if x is not None else []
        if parts and [k.of for k in keys] == [*[compare("NE", p, p) for p in parts], *parts]:
            if not (keys[0].descending or keys[1].descending) and keys[2].descending == keys[3].descending:
                return [SortKey(x, keys[3].descending)]
    made: list[SortKey] = []
    for key in keys:
        if made and made[-1] == SortKey(compare("NE", key.of, key.of), False) and not key.nan_first:
            made.pop()
        made.append(key)
    return made


def _key_array(reader: ModuleReader, found: dict[Expression, Any], key: SortKey, scope: ValueScope) -> Any:
    """Return the array of a key."""

    def value_of(v: Any) -> Value:
        op = getattr(v.owner, "operation", v.owner)
        if not hasattr(op, "operands"):
            return scope[v]
        return reader.apply(op, [value_of(o) for o in op.operands], scope)[0]

    return as_array(value_of(found[key.of]))


def _order(keys: list[tuple[Any, SortKey]], axis: int) -> Any:
    """Return the permutation that sorts by several keys, by stable sorts from the last key to the first."""
    steps: list[tuple[Any, bool]] = []
    for array, key in keys:
        if key.nan_first and array.spec.inexact:
            steps.append((catalog.convert(catalog.is_nan(array), dtype=uint8), True))
        steps.append((catalog.convert(array, dtype=uint8) if array.spec.dtype.kind == "b" else array, key.descending))
    order = None
    for array, descending in reversed(steps):
        seen = array if order is None else tr.take_along_axis(array, order, axis=axis)
        further = catalog.argsort(seen, axis=axis, descending=descending)
        order = further if order is None else tr.take_along_axis(order, further, axis=axis)
    return order


def _in_order(operand: Any, x: Any, order: Any, axis: int) -> Any:
    op = getattr(operand.owner, "operation", operand.owner)
    if getattr(op, "name", None) == "stablehlo.iota" and integer(op, "iota_dimension") == axis:
        return order if x.spec.dtype == order.spec.dtype else catalog.convert(order, dtype=x.spec.dtype)
    return tr.take_along_axis(x, order, axis=axis)


def _top_k(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    x = as_array(xs[0])
    k = integer(op, "k") if "k" in op.attributes else out_spec(op).shape[-1]
    found = tr.top_k(x, k)
    return found.values, catalog.convert(found.indices, dtype=out_spec(op, 1).dtype)


SORTING: Final[dict[str, Handler]] = {"stablehlo.sort": _sort, "chlo.top_k": _top_k}
"""Sorts and the largest elements."""
