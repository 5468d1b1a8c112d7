"""Rules of reading and writing at computed positions.

Reading and adding are transposes of each other, except that reading clamps positions out of bounds while writing drops
them; the rules clamp or mask accordingly.

For ``scatter`` with mode ``"set"`` and overlapping windows, the derivative goes to the update that was written last,
found by scattering the updates' indices in the same way. With ``"min"`` and ``"max"``, all elements that attain the
extremum share equally. With ``"mul"``, the product of the other factors is formed without division, so it is exact at
zeros.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from tenferro_ad._zeros import full, zeros_like
from tenferro_ad.rules._along import take
from tenferro_ad.rules._conjugate import conjugate
from tenferro_ad.rules._constants import falses_like, positions
from tenferro_ad.rules._scans import recurrence, shifted
from tenferro_runtime.extension import General, Linear
from tenferro_tensor import Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, int64

_NOWHERE: Final = -(2**62)
"""An index that no element has."""

SORT_MIN_RATIO: Final = 16
"""Sort the updates, instead of reading the whole array, if the array is at least this many times larger."""

SORT_OVERHEAD: Final = 4096
"""Fixed cost of sorting, in elements; also the largest number of updates sorted if the array has a symbolic size."""

# -- reading -----------------------------------------------------------------------------------------------------------


def _last_starts(spec: Spec, sizes: tuple[DimLike, ...], axes: tuple[int, ...]) -> Any:
    """The largest start indices along `axes` for which a window is in bounds, as a vector."""
    lasts = [spec.shape[axis] - sizes[axis] for axis in axes]
    entries = [c.reshape(c.dim_value(size=last, place=spec.place), shape=(1,)) for last in lasts]
    return c.concatenate(*entries, axis=0) if len(entries) > 1 else entries[0]


def _like_rows(vector: Any, indices: Any) -> Any:
    """A vector repeated for each index vector."""
    return c.broadcast_in_dim(vector, shape=indices.spec.shape, dims=(indices.ndim - 1,))


def _gather_transpose(
    g: Any,
    indices: Any,
    x_spec: Spec,
    offset_dims: Any,
    collapsed_dims: Any,
    start_index_map: Any,
    slice_sizes: Any,
) -> Any:
    starts = c.convert(indices, dtype=int64)
    if start_index_map:
        last = _last_starts(x_spec, slice_sizes, start_index_map)
        starts = c.minimum(c.maximum(starts, 0), _like_rows(last, indices))
    return c.scatter(
        full(x_spec, 0),
        starts,
        g,
        update_window_dims=offset_dims,
        inserted_dims=collapsed_dims,
        scatter_dims=start_index_map,
        mode="add",
    )


# -- writing -----------------------------------------------------------------------------------------------------------


class _Writes:
    """The positions that a scatter writes, as windows for reading, and which of them are in bounds."""

    def __init__(self, x: Any, indices: Any, updates: Any, params: Any) -> None:
        self.x, self.indices, self.updates, self.params = x, indices, updates, params
        window = params["update_window_dims"]
        extents = iter([updates.spec.shape[a] for a in window])
        self.sizes = tuple([1 if d in params["inserted_dims"] else next(extents) for d in range(x.ndim)])

    def read(self, v: Any) -> Any:
        """The element of `v` at the position of each update; arbitrary where the window was dropped."""
        p = self.params
        return c.gather(
            v,
            self.indices,
            offset_dims=p["update_window_dims"],
            collapsed_dims=p["inserted_dims"],
            start_index_map=p["scatter_dims"],
            slice_sizes=self.sizes,
        )

    def write(self, into: Any, updates: Any, mode: str) -> Any:
        """The same scatter with other arrays."""
        return c.scatter(into, self.indices, updates, **{**self.params, "mode": mode})

    def inside(self) -> Any:
        """Which updates were not dropped."""
        axes = self.params["scatter_dims"]
        indices, updates = self.indices, self.updates
        if not axes:
            return c.bitwise_not(falses_like(updates))
        starts = c.convert(indices, dtype=int64)
        last = _like_rows(_last_starts(self.x.spec, self.sizes, axes), indices)
        fits = c.bitwise_and(c.ge(starts, 0), c.le(starts, last))
        batch = tuple([i for i in range(updates.ndim) if i not in self.params["update_window_dims"]])
        return c.broadcast_in_dim(c.reduce_all(fits, axes=(indices.ndim - 1,)), shape=updates.spec.shape, dims=batch)

    def winners(self) -> Any:
        """The updates that survive in the result of a scatter with mode ``"set"``."""
        if all(n == 1 for n in self.indices.spec.shape[:-1]):
            return self.inside()
        if _is_small_part(self.updates.spec.size, self.x.spec.size):
            return self._winners_among()
        numbers = _numbered(self.updates)
        nothing = full(self.x.spec.with_(dtype=int64), -1)
        return c.eq(self.read(self.write(nothing, numbers, "set")), numbers)

    def _winners_among(self) -> Any:
        """`winners` by sorting the updates by position, at a cost independent of the array's size."""
        window = self.params["update_window_dims"]
        axes = (*[a for a in range(self.updates.ndim) if a not in window], *window)
        numbers = _numbered(c.transpose(self.updates, permutation=axes))
        spec = Spec((numbers.spec.size,), int64, numbers.spec.place)
        place = c.reshape(c.transpose(self.places(), permutation=axes), shape=spec.shape)
        order = c.argsort(place, axis=0, descending=False)
        sorted_place = take(place, order, 0)
        starts = c.ne(sorted_place, shifted(sorted_place, 0, 1, _NOWHERE))
        group = c.cumsum(c.convert(starts, dtype=int64), axis=0, reverse=False) - 1
        group = take(group, c.argsort(order, axis=0, descending=False), 0)
        numbers = c.reshape(numbers, shape=spec.shape)
        last = c.scatter(
            full(spec, -1), c.reshape(group, shape=(*spec.shape, 1)), numbers,
            update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode="set",
        )  # fmt: skip
        won = c.reshape(c.eq(take(last, group, 0), numbers), shape=tuple([self.updates.spec.shape[a] for a in axes]))
        back = tuple([axes.index(a) for a in range(len(axes))])
        return c.bitwise_and(c.transpose(won, permutation=back), self.inside())

    def places(self) -> Any:
        """The flat index that each update is written to; dropped updates get distinct negative numbers."""
        p, shape, updates = self.params, self.x.spec.shape, self.updates.spec
        batch = tuple([a for a in range(updates.ndim) if a not in p["update_window_dims"]])
        at = full(Spec(updates.shape, int64, updates.place), 0)
        starts = c.convert(self.indices, dtype=int64)
        for k, d in enumerate(p["scatter_dims"]):
            start = c.slice_(
                starts, start=(*[0] * len(batch), k), limit=(*starts.spec.shape[:-1], k + 1), stride=(1,) * starts.ndim
            )
            start = c.reshape(start, shape=starts.spec.shape[:-1]) * _row_size(self.x.spec, d)
            at = at + c.broadcast_in_dim(start, shape=updates.shape, dims=batch)
        kept = [d for d in range(len(shape)) if d not in p["inserted_dims"]]
        for a, d in zip(p["update_window_dims"], kept, strict=True):
            at = at + positions(updates.with_(dtype=int64), a) * _row_size(self.x.spec, d)
        return c.select(self.inside(), at, -1 - _numbered(self.updates))

    def others(self) -> Any:
        """For each update, the product of all other updates at the same position; 1 for dropped updates.

        With updates sorted by position, the products before and after an update in its group are linear recurrences.
        """
        u = self.updates
        flat = (u.spec.size,)
        place = c.reshape(self.places(), shape=flat)
        order = c.argsort(place, axis=0, descending=False)
        place, u = take(place, order, 0), take(c.reshape(u, shape=flat), order, 0)
        together = c.eq(place, shifted(place, 0, 1, _NOWHERE))
        product = _grouped(u, together, reverse=False) * _grouped(u, shifted(together, 0, -1, False), reverse=True)
        product = take(product, c.argsort(order, axis=0, descending=False), 0)
        return c.reshape(product, shape=self.updates.spec.shape)

    def attaining(self, out: Any) -> Any:
        """The elements of `x` and the updates that attain the extremum, and their number at each position."""
        kept = c.eq(self.x, out)
        written = c.bitwise_and(c.eq(self.updates, self.read(out)), self.inside())
        dtype = self.x.spec.dtype
        count = self.write(c.convert(kept, dtype=dtype), c.convert(written, dtype=dtype), "add")
        return kept, written, c.maximum(count, 1)


def _is_small_part(part: Any, whole: Any) -> bool:
    """Whether sorting a part costs less than reading the whole; symbolic sizes count as large."""
    if not isinstance(part, int):
        return False
    return part <= SORT_OVERHEAD if not isinstance(whole, int) else SORT_MIN_RATIO * part + SORT_OVERHEAD <= whole


def _row_size(spec: Spec, axis: int) -> Any:
    """The row-major stride of an axis, in elements."""
    n = prod(spec.shape[axis + 1 :])
    return n if isinstance(n, int) else c.dim_value(size=n, place=spec.place)


def _numbered(x: Any) -> Any:
    """The flat row-major indices of the elements."""
    flat = Spec((x.spec.size,), int64, x.spec.place)
    return c.reshape(positions(flat, 0), shape=x.spec.shape)


def _grouped(u: Any, together: Any, reverse: bool) -> Any:
    """For each element, the product of the elements before it (after it, if `reverse`) in its group."""
    before = c.select(together, shifted(u, 0, -1 if reverse else 1, 0), 0)
    return recurrence(before, c.convert(c.bitwise_not(together), dtype=u.spec.dtype), 0, reverse)


def _scatter_jvp(primals: Any, tangents: Any, outs: Any, **params: Any) -> Any:
    (x, indices, updates), (t, _, u), mode = primals, tangents, params["mode"]
    if t is None and u is None:
        return (None,)
    at = _Writes(x, indices, updates, params)
    t, u = (zeros_like(v) if d is None else d for v, d in ((x, t), (updates, u)))
    if mode == "add":
        return (at.write(t, u, "add"),)
    if mode == "set":
        return (at.write(at.write(t, zeros_like(u), "set"), c.select(at.winners(), u, 0), "add"),)
    if mode == "mul":
        return (at.write(t, updates, "mul") + x * at.write(zeros_like(x), u * at.others(), "add"),)
    kept, written, count = at.attaining(outs[0])
    return (at.write(c.select(kept, t, 0), c.select(written, u, 0), "add") / count,)


def _scatter_vjp(primals: Any, outs: Any, cotangents: Any, **params: Any) -> Any:
    (x, indices, updates), (g,), mode = primals, cotangents, params["mode"]
    at = _Writes(x, indices, updates, params)
    if mode == "add":
        return g, None, c.select(at.inside(), at.read(g), 0)
    if mode == "set":
        # Read before write, so that the write may take the memory of the cotangent.
        to_updates = c.select(at.winners(), at.read(g), 0)
        return at.write(g, zeros_like(updates), "set"), None, to_updates
    if mode == "mul":
        to_updates = c.select(at.inside(), at.read(g * conjugate(x)), 0) * conjugate(at.others())
        return at.write(g, conjugate(updates), "mul"), None, to_updates
    kept, written, count = at.attaining(outs[0])
    shared = g / count
    return c.select(kept, shared, 0), None, c.select(written, at.read(shared), 0)


RULES: Final[dict[Primitive, Any]] = {
    c.gather: Linear(x=_gather_transpose),
    c.scatter: General(jvp=_scatter_jvp, vjp=_scatter_vjp),
    c.dynamic_slice: Linear(x=lambda g, x_spec, starts: c.dynamic_update_slice(full(x_spec, 0), g, *starts)),
    c.dynamic_update_slice: Linear(
        joint=True,
        x=lambda g, update_spec, starts: c.dynamic_update_slice(g, full(update_spec, 0), *starts),
        update=lambda g, update_spec, starts: c.dynamic_slice(g, *starts, sizes=update_spec.shape),
    ),
}
