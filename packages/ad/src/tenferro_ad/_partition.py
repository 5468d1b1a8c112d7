"""Splits a program for differentiation: a part that needs only operands, and a part that needs (co)tangents too.

One builder records the first part, and the derivative runs in a second builder of higher level. Every value of the
first that the second captures is a residual, an extra output of the first. So whatever a rule computes from operands
alone is computed once, in the first part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tenferro_ad._backward import backward_pass
from tenferro_ad._dual import Dual, dual
from tenferro_ad._eager import EagerTensor, watched
from tenferro_ad._rematerialization import thinned
from tenferro_runtime.extension import Builder, Program, interpret
from tenferro_runtime.ir import conditions, definitions, substitute
from tenferro_runtime.runtime import optimised_like, promised_like
from tenferro_runtime.tracing import Staged, staged
from tenferro_runtime.tracing.derived import derived
from tenferro_tensor import next_level
from tenferro_tensor_core import Dim, DimLike

SEPARATE_OUTPUTS_MAX: Final = 4
"""With at most this many differentiable outputs, each gets its own backward program as well."""


class Second(NamedTuple):
    """The part of a derivative that needs cotangents or tangents.

    Attributes:
        program: takes the cotangents or tangents, then residuals.
        residuals: indices of those residuals.
        places: index of each output among the results; the other results are zero.
    """

    program: Program
    residuals: tuple[int, ...]
    places: tuple[int, ...]


class Split(NamedTuple):
    """A program in two parts.

    Attributes:
        first: maps the operands to the outputs, then the values of data-dependent sizes, then the residuals.
        active: which outputs carry a derivative.
        seconds: second parts, by which of the outputs have a cotangent; in forward mode the key is ``()``.
        late: the data-dependent sizes.
    """

    first: Program
    active: tuple[bool, ...]
    seconds: dict[tuple[bool, ...], Second]
    late: tuple[Dim, ...] = ()


class _Residuals:
    """The values of the first part that second parts capture, without duplicates."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values: list[Any] = []
        self._at: dict[int, int] = {}

    def close(self, second: Staged) -> Second:
        taken = []
        for value in second.captured:
            if value.id not in self._at:
                self._at[value.id] = len(self.values)
                self.values.append(value)
            taken.append(self._at[value.id])
        return Second(optimised_like(second.program, self.program), tuple(taken), second.there)


def split_reverse(
    program: Program,
    need: tuple[int, ...],
    sizes: Mapping[str, DimLike] | None = None,
    *,
    whole: bool = False,
    thin: bool = True,
) -> Split:
    """Split a program into a forward part and backward parts for the operands at `need`; cached with the program.

    With `whole` there is a single backward part, for the cotangents of all active outputs. Without `thin` every value
    that the backward parts capture stays a residual. For `sizes`, see `derived`.
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
        roots = [o for o, there in zip(outs, mask) if there]

        def pulled(*cotangents: Any, roots: list[Any] = roots) -> list[Any]:
            reached = backward_pass([(o.node, g) for o, g in zip(roots, cotangents)])
            return [reached.get(ins[i].node) for i in need]

        seconds[mask] = residuals.close(staged(pulled, [o.spec for o in roots], examples=program.examples))
    plain = [o.value if there else o for o, there in zip(outs, active)]
    return _split(program, first, [*plain, *residuals.values], active, seconds, thin)


def _masks(active: tuple[bool, ...]) -> list[tuple[bool, ...]]:
    """The sets of cotangents that get a backward program: all, and each alone if they are few."""
    ones = [i for i, a in enumerate(active) if a]
    masks = [active] if ones else []
    if 1 < len(ones) <= SEPARATE_OUTPUTS_MAX:
        masks += [tuple([i == one for i in range(len(active))]) for one in ones]
    return masks


def split_forward(program: Program, need: tuple[int, ...], sizes: Mapping[str, DimLike]) -> Split:
    """Split a program into a part for values and a part for tangents of the operands at `need`; cached with it."""
    return derived(program, ("forward", need), sizes, lambda p, first: _split_forward(p, need, first), _unified)


def _split_forward(program: Program, need: tuple[int, ...], first: Builder) -> Split:
    plain: list[Any] = []

    def pushed(*tangents: Any) -> list[Any]:
        level = next_level()
        ins: list[Any] = [first.input(s) for s in program.inputs]
        for i, t in zip(need, tangents):
            ins[i] = dual(ins[i], t, level)
        outs: Any = interpret(program, ins)
        there = [o.__class__ is Dual and o.level == level for o in outs]
        plain.extend([o.value if moves else o for o, moves in zip(outs, there)])
        return [o.tangent if moves else None for o, moves in zip(outs, there)]

    second = staged(pushed, [program.inputs[i] for i in need], examples=program.examples)
    active = tuple([k in second.there for k in range(len(plain))])
    residuals = _Residuals(program)
    seconds: dict[tuple[bool, ...], Second] = {(): residuals.close(second)}
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
    """The parts with sizes unified that the derivative requires to be equal."""
    seconds = {m: s._replace(program=_with_sizes(s.program, equalities)) for m, s in split.seconds.items()}
    return split._replace(first=_with_sizes(split.first, equalities), seconds=seconds)


def _with_sizes(program: Program, sizes: Mapping[str, DimLike]) -> Program:
    return promised_like(substitute(program, sizes), program)
