"""Einsum notation, parsed into labels.

There are three notations: a string with or without ``->``, and operands interleaved with label lists. A label is any
hashable object; in a string it is one character. Parentheses around terms set the contraction order. The axes of an
ellipsis become labels numbered from the right, so that other modules see plain labels only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tenferro_tensor_core import ArgumentError, DimLike, ShapeError, likely, require_equal

Labels = tuple[Hashable, ...]

_MARKS: Final = frozenset(",.->() \t\n\r")
"""Characters of a string that are not labels."""

_FIRST: Final = 0x10000
"""Code point of the first canonical label, after all `_MARKS`."""

_BLANKS: Final = dict.fromkeys(map(ord, "\t\n\r"), " ")
"""Whitespace, for long subscripts over several lines. Unicode's other spaces are labels, since enumerated symbols
include them."""


@dataclass(frozen=True, slots=True)
class Dots:
    """The label of one axis of an ellipsis; the last such axis has number 0."""

    number: int

    def __str__(self) -> str:
        return f"...[{-1 - self.number}]"


@dataclass(frozen=True, slots=True)
class Contraction:
    """The labels of the operands' axes and of the result's axes.

    Labels missing in the output are summed. A label may occur several times in one operand (a diagonal), in any number
    of operands (a hyperedge), and several times in the output (an embedded diagonal).

    Attributes:
        inputs: labels of each operand.
        output: labels of the result.
        groups: operand numbers in nested tuples, where inner groups are contracted first; ``None`` for any order.
    """

    inputs: tuple[Labels, ...]
    output: Labels
    groups: Any = None

    def __str__(self) -> str:
        def term(labels: Labels) -> str:
            return " ".join(map(str, labels))

        return f"{', '.join(map(term, self.inputs))} -> {term(self.output)}"


def parse(subscripts: str, ndims: Sequence[int]) -> Contraction:
    """Parse a subscripts string for operands with given numbers of axes.

    Raises:
        ArgumentError: the string is malformed, or does not fit the operands.

    >>> print(parse("ij,jk", (2, 2)))
    i j, j k -> i k
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(f"einsum takes a subscripts string first, got a {type(subscripts).__name__}")
    left, arrow, right = subscripts.translate(_BLANKS).partition("->")
    if any(c in "->()" for c in right) or "-" in left or ">" in left:
        raise ArgumentError(
            f"einsum subscripts {subscripts!r} may hold one '->', and besides labels only ',', '...' and, before '->', "
            "parentheses around terms that are contracted first",
            subscripts=subscripts,
        )
    plain, groups = grouped(left, subscripts) if "(" in left or ")" in left else (left, None)
    terms: list[Any] = plain.replace(" ", "").split(",")
    output: Any = right.replace(" ", "") if arrow else None
    if "." in subscripts or (output and "," in output):
        terms = [_characters(t, subscripts) for t in terms]
        output = None if output is None else _characters(output, subscripts)
    return build(terms, output, ndims, groups)


def grouped(left: str, subscripts: str) -> tuple[str, Any]:
    """Terms without their parentheses, and the nesting of operand numbers that these define."""
    open_: list[list[Any]] = [[]]
    starts: list[int] = []
    terms: list[str] = [""]
    closed = False  # whether a group has just ended, so that only ',' or ')' may follow
    for at, c in enumerate(left):
        wrong = ""
        if c == "(":
            wrong = "stands inside of a term" if terms[-1].strip() or closed else ""
            starts.append(at)
            open_.append([])
        elif c in "),":
            if not closed:
                open_[-1].append(len(terms) - 1)
            closed = c == ")"
            if c == ",":
                terms.append("")
            elif not starts:
                wrong = "closes nothing"
            else:
                starts.pop()
                group = tuple(open_.pop())
                open_[-1].append(group)
        elif c != " ":
            wrong = "follows ')' without ','" if closed else ""
            terms[-1] += c
        if wrong:
            raise ArgumentError(
                f"einsum subscripts {subscripts!r}: {c!r} at position {at} {wrong}; parentheses enclose whole terms, "
                "as in '(ij,jk),kl->il'",
                subscripts=subscripts,
                position=at,
            )
    if starts:
        raise ArgumentError(
            f"einsum subscripts {subscripts!r}: '(' at position {starts[-1]} is not closed",
            subscripts=subscripts,
            position=starts[-1],
        )
    if not closed:
        open_[-1].append(len(terms) - 1)
    return ",".join(terms), tuple(open_[-1])


def _characters(term: str, subscripts: str) -> list[Any]:
    head, dots, tail = term.partition("...")
    if "." in head or "." in tail:
        raise ArgumentError(
            f"einsum subscripts {subscripts!r}: term {term!r} may hold one ellipsis of exactly three dots",
            subscripts=subscripts,
        )
    if "," in term:
        raise ArgumentError(
            f"einsum subscripts {subscripts!r}: the output is one term without ','", subscripts=subscripts
        )
    return [*head, ..., *tail] if dots else list(head)


def build(
    terms: Sequence[Sequence[Any]], output: Sequence[Any] | None, ndims: Sequence[int], groups: Any = None
) -> Contraction:
    """Fit label lists, which may contain `Ellipsis`, to operands with given numbers of axes."""
    if len(terms) != len(ndims):
        raise ArgumentError(
            f"einsum has {len(terms)} term(s) for {len(ndims)} operand(s); give one term per operand",
            terms=len(terms),
            operands=len(ndims),
        )
    inputs = tuple(map(tuple, terms))
    dots: Labels = ()
    known: set[Any] = set().union(*inputs)
    if ... in known or [*map(len, inputs)] != [*ndims]:
        inputs = tuple([_fitted(i, term, ndim) for i, (term, ndim) in enumerate(zip(inputs, ndims, strict=True))])
        known = set().union(*inputs)
        dots = tuple([Dots(n) for n in sorted([x.number for x in known if isinstance(x, Dots)], reverse=True)])
    if output is None:
        count = Counter(x for labels in inputs for x in labels)
        once = [x for x, n in count.items() if n == 1 and not isinstance(x, Dots)]
        return Contraction(inputs, dots + _ordered(once), groups)
    if not dots and known.issuperset(output):
        return Contraction(inputs, tuple(output), groups)
    if sum(x is ... for x in output) > 1:
        raise ArgumentError("einsum: the output has more than one ellipsis; one stands for all broadcast axes")
    if dots and ... not in output and any(x is ... for term in terms for x in term):
        raise ArgumentError(
            "einsum: the operands' ellipsis covers axes but the output has none; "
            "add '...' to the output, or sum the axes under labels of their own"
        )
    result = tuple(y for x in output for y in (dots if x is ... else (x,)))
    for x in result:
        if x not in known:
            raise ArgumentError(
                f"einsum: output label {x!r} is on no operand; operands have {sorted(map(str, known))}", label=str(x)
            )
    return Contraction(inputs, result, groups)


def _fitted(i: int, term: Sequence[Any], ndim: int) -> Labels:
    if sum(x is ... for x in term) > 1:
        raise ArgumentError(f"einsum: term {i} has more than one ellipsis", operand=i)
    spelled = len(term) - (... in term)
    if spelled > ndim or (spelled < ndim and ... not in term):
        shown = "".join("..." if x is ... else str(x) for x in term)
        raise ShapeError(
            f"einsum: operand {i} has {ndim} axes but its term {shown!r} has {spelled} label(s)"
            + ("" if ... in term else "; add '...' for the others"),
            operand=i,
        )
    covered = tuple(Dots(k) for k in reversed(range(ndim - spelled)))
    return tuple(y for x in term for y in (covered if x is ... else (x,)))


def _ordered(labels: list[Any]) -> Labels:
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(labels)  # unorderable labels stay in order of first occurrence


def canonical(subscripts: Any) -> Any:
    """The subscripts with labels renumbered by occurrence; ``None`` if the labels themselves matter.

    They do without an output, because then labels are sorted.

    >>> canonical("kj,ji->ki") == canonical("ab,bc->ac"), canonical("kj,ji")
    (True, None)
    """
    if isinstance(subscripts, str):
        if "->" not in subscripts:
            return None
        letters = [c for c in dict.fromkeys(subscripts) if c not in _MARKS]
        return subscripts.translate({ord(c): _FIRST + n for n, c in enumerate(letters)})
    terms, output = subscripts
    if output is None:
        return None
    number: dict[Any, int] = {}
    found = tuple([tuple([number.setdefault(x, len(number)) for x in labels]) for labels in (*terms, output)])
    return None if ... in number else (found[:-1], found[-1])


def interleaved(args: Sequence[Any]) -> tuple[list[Any], list[list[Any]], list[Any] | None]:
    """Split ``x, [labels], y, [labels], ..., [output]`` into operands, terms and output."""
    if len(args) % 2 and (len(args) == 1 or not isinstance(args[-1], (list, tuple))):
        raise ArgumentError(
            'einsum takes subscripts as a string, einsum("ij,jk->ik", x, y), or each operand followed by a list of its '
            f"labels and finally those of the output; got {len(args)} arguments, the last of type "
            f"{type(args[-1]).__name__}"
        )
    output = list(args[-1]) if len(args) % 2 else None
    pairs = args[: len(args) - len(args) % 2]
    terms = pairs[1::2]
    for i, term in enumerate(terms):
        if not isinstance(term, (list, tuple)):
            raise ArgumentError(
                f"einsum: operand {i} must be followed by a list of its labels, not by a {type(term).__name__}",
                operand=i,
            )
    return list(pairs[0::2]), [list(t) for t in terms], output


def extents(c: Contraction, shapes: Sequence[tuple[DimLike, ...]]) -> dict[Hashable, DimLike]:
    """The extent of each label; extents of 1 broadcast.

    Raises:
        ShapeError: two operands disagree; the message names the label and both axes.
    """
    known: dict[Hashable, DimLike] = {}
    seen: dict[Hashable, tuple[int, int]] = {}
    for i, (labels, shape) in enumerate(zip(c.inputs, shapes, strict=True)):
        for axis, (x, d) in enumerate(zip(labels, shape, strict=True)):
            have = known.get(x, 1)
            if have == 1:
                known[x], seen[x] = d, (i, axis)
            elif d == 1 or d is have or d == have:
                continue
            elif likely(have, "==", d):
                require_equal(have, d, f"einsum: label {str(x)!r}")
            elif likely(d, "==", 1):
                require_equal(d, 1, f"einsum: label {str(x)!r}")
            elif likely(have, "==", 1):
                require_equal(have, 1, f"einsum: label {str(x)!r}")
                known[x], seen[x] = d, (i, axis)
            else:
                j, other = seen[x]
                raise ShapeError(
                    f"einsum: label {str(x)!r} has extent {have} on axis {other} of operand {j} "
                    f"but {d} on axis {axis} of operand {i}; extents of a label must agree or be 1",
                    label=str(x),
                    operands=(j, i),
                )
    return known
