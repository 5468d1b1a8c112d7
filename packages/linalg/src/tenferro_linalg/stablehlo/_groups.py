"""Groups of close eigenvalues for functions of Hermitian matrices, and the sums that use them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg import _divided
from tenferro_linalg import _multiplets as multiplets


def groups(library: Any, w: Any) -> Any:
    """For wide and narrow groups: the group of each eigenvalue, its position there, and the nodes."""
    xp = library("numpy")
    found = [_of_width(library, w, wide) for wide in (True, False)]
    return tuple(xp.stack(parts, axis=w.ndim - 1) for parts in zip(*found, strict=True))


def _of_width(library: Any, w: Any, wide: bool) -> tuple[Any, Any, Any]:
    xp, n = library("numpy"), w.shape[-1]
    if n:
        cuts = _cuts(library, w, wide)
        number = xp.concatenate([xp.zeros_like(w[..., :1]), xp.cumsum(cuts, axis=-1).astype(w.dtype)], axis=-1)
        first, last = _ends(library, w, cuts)
    else:
        number = first = last = w
    centre, radius = first / 2 + last / 2, last / 2 - first / 2
    nodes = centre[..., None] + radius[..., None] * xp.asarray(_divided.node_places().astype(w.dtype))
    return number, (w - centre) / xp.where(radius > 0, radius, 1), nodes


def _ends(library: Any, w: Any, cuts: Any) -> tuple[Any, Any]:
    """The smallest and the largest member of the group of each ascending value."""
    xp, lax = library("numpy"), library("lax")
    edge = xp.ones((*w.shape[:-1], 1), bool)
    axis = w.ndim - 1
    first = lax.cummax(xp.where(xp.concatenate([edge, cuts], axis=-1), w, -xp.inf), axis=axis)
    last = lax.cummin(xp.where(xp.concatenate([cuts, edge], axis=-1), w, xp.inf), axis=axis, reverse=True)
    return first, last


def _cuts(library: Any, w: Any, wide: bool) -> Any:
    """The neighbours between which a group ends: too wide groups are cut at their largest gap unless it is noise."""
    xp, lax = library("numpy"), library("lax")
    gaps = w[..., 1:] - w[..., :-1]
    largest = xp.abs(w).max(axis=-1, keepdims=True)
    noise = w.shape[-1] * multiplets.EPS[w.dtype] * largest

    def limit(a: Any, b: Any) -> Any:
        small = xp.broadcast_to(_divided.WIDE_SPAN * largest, a.shape)
        return small if wide else _divided.NARROW_SPAN * xp.minimum(xp.abs(a), xp.abs(b))

    far = (
        _divided.WIDE_SPAN * largest
        if wide
        else _divided.NARROW_SPAN * xp.maximum(xp.abs(w[..., 1:]), xp.abs(w[..., :-1]))
    )
    start = gaps > xp.maximum(noise, far)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        cuts, _ = state
        first, last = _ends(library, w, cuts)
        open_ = (last - first > limit(first, last))[..., 1:] & ~cuts
        # The largest gap in the group of each pair of neighbours; the ends exclude gaps of other groups.
        inside = (first[..., 1:, None] == first[..., None, 1:]) & ~cuts[..., None, :]
        widest = xp.where(inside, gaps[..., None, :], -xp.inf)
        places = xp.arange(gaps.shape[-1])
        chosen = open_ & (widest.argmax(axis=-1) == places) & (gaps > noise)
        return cuts | chosen, chosen.any()

    if not gaps.shape[-1]:
        return start
    return lax.while_loop(lambda state: state[1], step, (start, xp.asarray(True)))[0]


def spectral_term(library: Any, x: Any, w: Any, v: Any, values: Any, *more: Any, order: int, captured: int) -> Any:
    """The term of an order of the derivative of a function of a matrix."""
    xp = library("numpy")
    vh = v.conj().swapaxes(-1, -2)
    group, place, *derivatives = more[: 2 + order]
    sums = _divided.SpectralSums(xp, w, values, group, place, derivatives, traced=True)
    inner = sums.of([vh @ e @ v for e in more[2 + order + captured :]])
    found = [x.dtype, values.dtype, *[e.dtype for e in more[len(more) - order :]]]
    return (v @ inner @ vh).astype(np.result_type(*found))
