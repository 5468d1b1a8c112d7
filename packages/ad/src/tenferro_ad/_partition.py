"""A program split in two by lifting: what needs only the operands, and what needs cotangents or tangents too.

The first part is recorded by one builder, and the derivative runs in a second one of higher level. Every value of the
first that the second lifts is a residual, and becomes an extra output of the first. Whatever a rule computes from
operands alone is thereby computed, once, in the first part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenferro_ad._backward import backward_pass
from tenferro_ad._dual import Dual, dual
from tenferro_ad._eager import EagerTensor, watched
from tenferro_ad._thinning import thinned
from tenferro_runtime.derived import derived
from tenferro_runtime.extension import Builder, Program, interpret
from tenferro_runtime.ir import conditions, definitions, substitute
from tenferro_runtime.runtime import optimised_like, promised_like
from tenferro_tensor import next_level
from tenferro_tensor_core import Dim, DimLike

MOST_MASKS = 4
"""Up to this number of differentiable outputs there is a backward program for each of them alone."""


class Second(NamedTuple):
    """The second part: what needs cotangents or tangents.

    Attributes:
        program: of the cotangents or tangents, then of residuals.
        residuals: which residuals, by position.
        places: positions of its outputs among the results; the others are zero.
    """

    program: Program
    residuals: tuple[int, ...]
    places: tuple[int, ...]


class Split(NamedTuple):
    """A program in two parts.

    Attributes:
        first: of the operands, to the outputs, then the values of sizes that depend on data, then the residuals.
        active: which outputs carry a derivative.
        seconds: the second part, by which cotangents (of all outputs) are there; for tangents the key is ``()``.
        late: the sizes that depend on data.
    """

    first: Program
    active: tuple[bool, ...]
    seconds: dict[tuple[bool, ...], Second]
    late: tuple[Dim, ...] = ()


class _Residuals:
    """Values of the first part that second parts have lifted; each once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values: list[Any] = []
        self._at: dict[int, int] = {}

    def close(self, builder: Builder, results: Sequence[Any]) -> Second:
        there = tuple([i for i, r in enumerate(results) if r is not None])
        program = builder.close([results[i] for i in there], examples=self.program.examples)
        taken = []
        for value, _ in builder.captured:
            if value.id not in self._at:
                self._at[value.id] = len(self.values)
                self.values.append(value)
            taken.append(self._at[value.id])
        return Second(optimised_like(program, self.program), tuple(taken), there)


def split_reverse(
    program: Program,
    need: tuple[int, ...],
    sizes: Mapping[str, DimLike] | None = None,
    *,
    whole: bool = False,
    thin: bool = True,
) -> Split:
    """A program as a forward part and backward parts, with respect to the operands at `need`; kept with it.

    With `whole` there is one backward part, for the cotangents of all outputs that carry a derivative. Without `thin`
    all that the backward parts lifted stays a residual. For `sizes`, see `derived`.
    """
    return derived(
        program,
        ("reverse", need, whole, thin),
        sizes,
        lambda p, first: _split_reverse(p, need, first, whole, thin),
        _unified,
    )


def _split_reverse(program: Program, need: tuple[int, ...], first: Builder, whole: bool, thin: bool) -> Split:
    level = next_level()
    xs = [first.input(s) for s in program.inputs]
    ins: list[Any] = [watched(x, level) if i in need else x for i, x in enumerate(xs)]
    outs: Any = interpret(program, ins)
    active = tuple([o.__class__ is EagerTensor and o.level == level for o in outs])
    residuals = _Residuals(program)
    seconds = {}
    for mask in _masks(active)[: 1 if whole else None]:
        second = Builder()
        roots = [(o.node, second.input(o.spec)) for o, there in zip(outs, mask) if there]
        reached = backward_pass(roots)
        seconds[mask] = residuals.close(second, [reached.get(ins[i].node) for i in need])
    plain = [o.value if there else o for o, there in zip(outs, active)]
    return _split(program, first, [*plain, *residuals.values], active, seconds, thin)


def _masks(active: tuple[bool, ...]) -> list[tuple[bool, ...]]:
    """All cotangents, and each alone where they are few."""
    ones = [i for i, a in enumerate(active) if a]
    masks = [active] if ones else []
    if 1 < len(ones) <= MOST_MASKS:
        masks += [tuple([i == one for i in range(len(active))]) for one in ones]
    return masks


def split_forward(program: Program, need: tuple[int, ...], sizes: Mapping[str, DimLike]) -> Split:
    """A program as a part for values and a part for tangents, with respect to the operands at `need`; kept with it."""
    return derived(program, ("forward", need), sizes, lambda p, first: _split_forward(p, need, first), _unified)


def _split_forward(program: Program, need: tuple[int, ...], first: Builder) -> Split:
    second = Builder()
    level = next_level()
    xs = [first.input(s) for s in program.inputs]
    ins = [dual(x, second.input(x.spec), level) if i in need else x for i, x in enumerate(xs)]
    outs: Any = interpret(program, ins)
    active = tuple([o.__class__ is Dual and o.level == level for o in outs])
    residuals = _Residuals(program)
    tangents = [o.tangent if there else None for o, there in zip(outs, active)]
    seconds: dict[tuple[bool, ...], Second] = {(): residuals.close(second, tangents)}
    plain = [o.value if there else o for o, there in zip(outs, active)]
    return _split(program, first, [*plain, *residuals.values], active, seconds)


def _split(
    program: Program,
    builder: Builder,
    values: list[Any],
    active: tuple[bool, ...],
    seconds: dict[tuple[bool, ...], Second],
    thin: bool = True,
) -> Split:
    first = builder.close(values, guards=conditions(program), examples=program.examples)
    count, made = len(active), definitions(first)
    if made:
        outs = first.output_ids
        first = first.with_(output_ids=(*outs[:count], *made.values(), *outs[count:]))
    late = tuple([eq.op.params["size"] for eq in first.equations if eq.results[0] in made.values()])
    pairs = [(second.program, second.residuals) for second in seconds.values()]
    lighter = optimised_like(first, program)
    if not thin:
        return Split(lighter, active, seconds, late)
    lighter, thinner = thinned(lighter, count + len(late), pairs)
    found = {mask: Second(second, taken, seconds[mask].places) for mask, (second, taken) in zip(seconds, thinner)}
    return Split(lighter, active, found, late)


def _unified(split: Split, equalities: Mapping[str, DimLike]) -> Split:
    """The parts with one name for sizes that the derivative needs to be equal."""
    seconds = {m: s._replace(program=_with_sizes(s.program, equalities)) for m, s in split.seconds.items()}
    return split._replace(first=_with_sizes(split.first, equalities), seconds=seconds)


def _with_sizes(program: Program, sizes: Mapping[str, DimLike]) -> Program:
    return promised_like(substitute(program, sizes), program)
