"""The form of a step: everything that decides how it is done, without names and positions; networks repeat forms."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._layout import Strides
from tenferro_cpu.native.contraction._record import Step
from tenferro_tensor.device_model import Labels


class Form(NamedTuple):
    """The form of a product of two values.

    Attributes:
        key: for each label its extent, its strides, its index in the result, and whether the next partner of the result
            and their product have it; and whether that partner is small.
        names: the labels, in the order of the key.
    """

    key: tuple[Any, ...]
    names: Labels


class StepTemplate(NamedTuple):
    """How a step was done whose form others share.

    Attributes:
        order: the labels of its result in memory order, by their index in the form.
        strides: strides of these labels.
        nbytes: size of the result.
        step: the product.
    """

    order: tuple[int, ...]
    strides: tuple[int, ...]
    nbytes: int
    step: Step | None

    def layout(self, form: Form) -> Labels:
        """The labels of the result of a step of this form, in memory order."""
        return tuple([form.names[n] for n in self.order])


def form_of(
    extents: Sequence[int], left: Strides, right: Strides, labels: Labels, partner: Labels, after: Labels
) -> Form | None:
    """The form of a product with the given labels; `partner` are those of the result's next partner, `after` of their
    product.

    None if the result has a label twice or one that neither operand has.
    """
    names = tuple({**left, **right})
    places = dict(zip(labels, range(len(labels)), strict=True))
    if len(places) < len(labels) or not {*names}.issuperset(labels):
        return None
    key = [(extents[x], left.get(x), right.get(x), places.get(x), x in partner, x in after) for x in names]
    return Form((*key, prod([extents[x] for x in partner]) <= tuning.SMALL_PARTNER_ELEMENTS), names)


def alike(form: Form, layout: Labels, strides: Mapping[int, int], nbytes: int, step: Step | None) -> StepTemplate:
    """Data of a finished step that other steps of this form reuse."""
    return StepTemplate(tuple([form.names.index(x) for x in layout]), tuple([strides[x] for x in layout]), nbytes, step)
