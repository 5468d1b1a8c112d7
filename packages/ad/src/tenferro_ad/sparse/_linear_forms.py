"""Arithmetic of affine forms over labels, with steps and offsets that may be symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping

from tenferro_runtime.extension import IndexForm
from tenferro_tensor_core import DimLike, decide


def label(k: int) -> IndexForm:
    """The form that consists of one label."""
    return IndexForm(0, ((k, 1),))


def plus(a: IndexForm, b: IndexForm, factor: DimLike = 1) -> IndexForm:
    """``a + factor * b``."""
    if not b.terms:
        return IndexForm(a.offset + factor * b.offset, a.terms)
    terms = dict(a.terms)
    for k, step in b.terms:
        terms[k] = terms.get(k, 0) + factor * step
    return IndexForm(a.offset + factor * b.offset, tuple(sorted([(k, s) for k, s in terms.items() if not is_zero(s)])))


def is_zero(d: DimLike) -> bool:
    """Whether a size is the number 0."""
    return d.__class__ is int and d == 0


def replaced(form: IndexForm, k: int, by: IndexForm) -> IndexForm:
    """The form with another form substituted for a label."""
    step = dict(form.terms).get(k)
    if step is None:
        return form
    rest = IndexForm(form.offset, tuple([t for t in form.terms if t[0] != k]))
    return plus(rest, by, step)


def renumbered(form: IndexForm, numbers: Mapping[int, int]) -> IndexForm:
    """The form with its labels renumbered."""
    return IndexForm(form.offset, tuple(sorted([(numbers[k], s) for k, s in form.terms])))


def bounds(form: IndexForm, extents: Mapping[int, DimLike]) -> tuple[DimLike, DimLike] | None:
    """Minimum and maximum over positive extents, or ``None`` if the sign of a step is unknown."""
    low = high = form.offset
    for k, step in form.terms:
        span = step * (extents[k] - 1)
        if decide(step, ">=", 0):
            high = high + span
        elif decide(step, "<=", 0):
            low = low + span
        else:
            return None
    return low, high


def never_negative(form: IndexForm, extents: Mapping[int, DimLike]) -> bool:
    """Whether a form is at least 0 for all values of the labels."""
    known = bounds(form, extents)
    return known is not None and decide(known[0], ">=", 0) is True


def always_negative(form: IndexForm, extents: Mapping[int, DimLike]) -> bool:
    """Whether a form is less than 0 for all values of the labels."""
    known = bounds(form, extents)
    return known is not None and decide(known[1], "<", 0) is True
