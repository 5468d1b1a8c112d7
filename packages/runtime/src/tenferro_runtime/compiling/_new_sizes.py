"""The fast path for new sizes of a known kind of arguments, which skips everything that depends on the kind only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.compiling._variants import Variant
from tenferro_runtime.running._execute import preparing
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.calls import ProgramEntry


class NewSizes:
    """Prepares a form for tensors with the ranks, dtypes and places of an earlier call.

    Args:
        number: number of the form among those of its function.
        form: the form, whose inputs are exactly the arguments.
        specs: specs of the earlier arguments.
        fresh: returns whether the data that the function reads are up to date; ``None`` if it reads none.
    """

    __slots__ = ("_fit", "_kinds", "_prepare", "form", "fresh", "number")

    def __init__(self, number: int, form: Variant, specs: tuple[Spec, ...], fresh: Callable[[], bool] | None) -> None:
        self.number, self.form, self.fresh = number, form, fresh
        self._fit, self._prepare = form.fit, preparing(form.program, bare=form.bare)
        self._kinds = tuple([(spec.ndim, spec.dtype, spec.place) for spec in specs])

    def __call__(self, values: tuple[Any, ...]) -> ProgramEntry | None:
        """The entry for these arguments; ``None`` if they are of another kind or a guard does not hold."""
        specs, shapes = [], []
        for value, (ndim, dtype, place) in zip(values, self._kinds):
            if value.__class__ is not Tensor:
                return None
            spec = value.spec
            if spec.ndim != ndim or spec.dtype is not dtype or spec.place is not place:
                return None
            specs.append(spec)
            shapes.append(spec.shape)
        sizes = self._fit(shapes)
        if sizes is None or (self.fresh is not None and not self.fresh()):
            return None
        return self.form.hit(self._prepare(sizes), tuple(specs), self.fresh)
