"""Products of lengths keep their derivatives where the length is 0.

The derivatives of a length (a magnitude, `hypot`, a Euclidean norm, the square root of a sum of squares) are defined as
0 where it is 0, at every order. The square of a length is smooth there nevertheless, but the product rule cannot find
its second derivative in those of its factors. A product of two multiples of one length r is therefore recorded as::

    select(eq(r * r, 0), s, r * r)

where `s` is the square written without a root, such as ``sum(v * v)``. Both are 0 wherever `s` is selected, so that
values keep their bits; elsewhere derivatives are those of the product.

First derivatives are right without this. It is done for power series, and while values are recorded that are themselves
differentiated, batched or traced; eager first derivatives cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from weakref import ref

from tenferro_ad._differentiated import Differentiated
from tenferro_runtime.extension import General, Slopes
from tenferro_tensor import REGISTRY, SCALARS, Array, Op, Tensor, catalog
from tenferro_tensor.calls import Node
from tenferro_tensor.identity import aliased, identity

_MOVING: Final = frozenset((catalog.reshape, catalog.broadcast_in_dim, catalog.transpose, catalog.slice_))
"""Operations that only rearrange elements."""

_PRODUCTS: Final = frozenset((catalog.mul, catalog.pow, catalog.dot_general))
_CARRYING: Final = frozenset((*_MOVING, catalog.mul, catalog.div, catalog.neg, catalog.add, catalog.reduce_sum))
"""Operations whose result may be a length or a sum of squares because an operand is."""


class _KnownLength(NamedTuple):
    """A value known to be a length or a sum of squares.

    Attributes:
        inner: weak reference to the inner value.
        link: the number of its node, or a weak reference to its tangent or coefficients.
        root: what it is a length of; ``None`` for a sum of squares.
        square: returns the square of the length that it is a multiple of.
        factor: returns the other factor, ``None`` for 1.
    """

    inner: Any
    link: Any
    root: Any = None
    square: Callable[[], Any] | None = None
    factor: Callable[[], Any] | None = None


_known: Final[dict[tuple[int, int], _KnownLength]] = {}
"""By the id of the inner value and the level, which aliases share; an entry is removed with the inner value."""


def nested(lower: list[Any]) -> bool:
    """Whether derivatives of these inner values may be taken: they are not all concrete."""
    return any(a.__class__ is not Tensor and a.__class__ not in SCALARS for a in lower)


def applied(op: Op, operands: tuple[Any, ...], plain: Callable[[], Any]) -> Any:
    """Apply an op; squares of lengths have their derivatives at 0, and results that are lengths are remembered.

    Args:
        op: the op.
        operands: its operands.
        plain: applies the op as it is.

    Returns:
        The result.
    """
    found = _product(op, operands, plain)
    if found is None:
        found = plain()
        _note(op, operands, found)
    return found


def _product(op: Op, operands: tuple[Any, ...], plain: Callable[[], Any]) -> Any:
    """The product of two multiples of one length, or an even power of one, with its derivatives.

    Args:
        op: the op.
        operands: its operands.
        plain: applies the op as it is.

    Returns:
        The product, or ``None`` for every other op.
    """
    a: _KnownLength | None
    b: _KnownLength | None
    if op.primitive is catalog.pow:
        x, k = operands
        a = _find(x) if k.__class__ in (int, float) and k > 0 and k % 2 == 0 else None
        if a is None or a.root is None:
            return None
        b, half = a, int(k) // 2
    elif op.primitive is catalog.mul:
        a, b = map(_find, operands)
        if a is None or b is None or a.root is None or a.root != b.root:
            return None
        half = 1
    else:
        return None
    assert a.square is not None
    smooth = a.square()
    if smooth is None:
        return None
    found = plain()
    at_zero = catalog.eq(found, 0)
    for factor in (a.factor, b.factor):
        smooth = smooth if factor is None else smooth * factor()
    return catalog.select(at_zero, smooth if half == 1 else smooth**half, found)


def _note(op: Op, operands: tuple[Any, ...], result: Any) -> None:
    """Remember that the result of an op is a length or a sum of squares, if it is."""
    primitive = op.primitive
    if primitive is catalog.sqrt:
        (x,) = operands
        known = _find(x)
        if known is not None and known.root is None:
            _remember(result, (primitive, identity(x)), _kept(x))
    elif primitive in _PRODUCTS and _is_square(op, operands):
        _remember(result)
    elif primitive in _CARRYING:
        _carry(op, operands, result)
    else:
        rule = REGISTRY.find("rule", primitive)
        square = rule.square if rule.__class__ in (Slopes, General) else None
        if square is not None:
            kept = [aliased(a) if isinstance(a, Array) else a for a in operands]
            root = (op, *[a if a.__class__ in SCALARS else identity(a) for a in operands])
            _remember(result, root, lambda: square(*kept, **op.params))


def _kept(x: Any) -> Callable[[], Any]:
    held = aliased(x)
    return lambda: held


def _is_square(op: Op, operands: tuple[Any, ...]) -> bool:
    x, y = operands
    if op.primitive is catalog.pow:
        return y.__class__ in (int, float) and y > 0 and y % 2 == 0 and not x.spec.cplx
    if not isinstance(x, Array) or not isinstance(y, Array) or x.spec.cplx or identity(x) != identity(y):
        return False
    if op.primitive is catalog.mul:
        return True
    (left, right), (batch, other) = op.params["contract"], op.params["batch"]
    return left == right and batch == other and len(left) + len(batch) == x.spec.ndim


def _carry(op: Op, operands: tuple[Any, ...], result: Any) -> None:
    """Sums and multiples of sums of squares, and multiples of lengths, rearranged or not."""
    primitive = op.primitive
    known = [_find(a) for a in operands]
    first = known[0]
    if primitive is catalog.add:
        if all(a is not None and a.root is None for a in known):
            _remember(result)
    elif primitive is catalog.reduce_sum:
        if first is not None and first.root is None:
            _remember(result)
    elif primitive in _MOVING:
        if first is not None:
            square, factor = (None if f is None else _applied(op, f) for f in (first.square, first.factor))
            _remember(result, None if first.root is None else (op, first.root), square, factor)
    elif primitive is catalog.neg:
        if first is not None and first.root is not None:
            _remember(result, first.root, first.square, _scaled(first.factor, lambda: -1.0))
    elif primitive is catalog.mul and first is None and known[1] is not None:
        _multiply(result, known[1], _as_factor(operands[0]))
    elif first is not None and known[1] is None:
        other = _as_factor(operands[1])
        _multiply(result, first, other if primitive is catalog.mul else lambda: 1.0 / other())


def _multiply(result: Any, known: _KnownLength, other: Callable[[], Any]) -> None:
    if known.root is None or result.spec.cplx:
        return _remember(result) if known.root is None and not result.spec.cplx else None
    return _remember(result, known.root, known.square, _scaled(known.factor, other))


def _as_factor(x: Any) -> Callable[[], Any]:
    return (lambda: x) if x.__class__ in SCALARS else _kept(x)


def _scaled(factor: Callable[[], Any] | None, other: Callable[[], Any]) -> Callable[[], Any]:
    return other if factor is None else lambda: factor() * other()


def _applied(op: Op, f: Callable[[], Any]) -> Callable[[], Any]:
    def applied() -> Any:
        x = f()
        return x if x.__class__ in SCALARS else op(x)

    return applied


def _remember(
    x: Any, root: Any = None, square: Callable[[], Any] | None = None, factor: Callable[[], Any] | None = None
) -> None:
    if not isinstance(x, Differentiated):
        return
    key = id(x.value), x.level
    inner = ref(x.value, lambda _: _known.pop(key, None))
    _known[key] = _KnownLength(inner, _stamp(x._link), root, square, factor)


def _find(x: Any) -> _KnownLength | None:
    if not isinstance(x, Differentiated):
        return None
    known = _known.get((id(x.value), x.level))
    same = known is not None and known.inner() is x.value and known.link == _stamp(x._link)
    return known if same else None


def _stamp(link: Any) -> Any:
    """Identifies a link without keeping it alive."""
    if isinstance(link, Node):
        return link.seq
    return _SameValue(link[0] if link.__class__ is tuple else link)


class _SameValue:
    """A weak reference that is equal to others of the same object while that lives."""

    __slots__ = ("to",)

    def __init__(self, x: Any) -> None:
        self.to = ref(x)

    def __eq__(self, other: object) -> bool:
        return other.__class__ is _SameValue and self.to() is not None and self.to() is other.to()

    __hash__ = None  # type: ignore[assignment]
