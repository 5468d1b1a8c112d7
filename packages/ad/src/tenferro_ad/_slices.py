"""Reverse mode of small slices of large values, whose cotangents are added in `Parts`."""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad._apply import CallSite
from tenferro_ad._derivative import Run
from tenferro_ad._parts import Parts, Place
from tenferro_ad._vjp import Vjp
from tenferro_tensor import Spec, Tensor, catalog
from tenferro_tensor.calls import state

LARGE_MIN_ELEMENTS: Final = 4096
"""Least size of a value whose slices are small by comparison."""

SMALL_MAX_SHARE: Final = 4
"""A slice is small if the value is at least this many times as large."""


class SliceVjp(Vjp):
    """The `vjp` of a small slice of a large value in main memory."""

    __slots__ = ("place",)

    def __init__(self, site: CallSite, key: tuple[Any, ...]) -> None:
        super().__init__(site, key)
        p = site.op.params
        self.place: Place = tuple(map(slice, p["start"], p["limit"], p["stride"]))

    def __call__(self, given: Any, saved: Any) -> Any:
        if given.__class__ is not Tensor or given.spec is not self.site.outs[0] or state.open_scopes:
            return super().__call__(given, saved)
        return (Parts(self.site.specs[0], self.place, given, self.padded),)

    def padded(self, g: Tensor) -> Tensor:
        """The cotangent of the value, if this is its only slice."""
        (found,) = super().__call__(g, ())
        return found  # type: ignore[no-any-return]

    def _lead(self, head: Run) -> None:
        """Stay the function that nodes call: what is traced is for a single slice."""
        self.head = head


def is_small_slice(site: CallSite) -> bool:
    """Whether an op is a small slice of a large value in main memory."""
    if site.op.primitive is not catalog.slice_:
        return False
    x, count = site.specs[0], site.outs[0].size
    if not isinstance(x, Spec) or x.place is not state.host or x.dtype.kind not in "fc":
        return False
    if not isinstance(x.size, int) or not isinstance(count, int):
        return False
    return x.size >= LARGE_MIN_ELEMENTS and x.size >= SMALL_MAX_SHARE * count
