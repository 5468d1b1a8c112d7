"""Histograms in one and several dimensions, counts, and the bins that numbers fall into.

A bin includes its lower edge but not its upper one; the last bin includes both. Numbers outside all bins, and NaN, are
not counted. Results are differentiable with respect to the weights, densities also with respect to the edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _statistic_forms
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed, listed_beside
from tenferro_tensor.functions.counting import counted_into
from tenferro_tensor.functions.creation import linspace
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.reductions import max as _max
from tenferro_tensor.functions.reductions import min as _min
from tenferro_tensor.functions.scans import diff
from tenferro_tensor.operands import alike, converted, empty_extent, host_elements, own, require_concrete
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, ask, bool_, computing_type, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def __dir__() -> list[str]:
    return __all__.copy()


def histogram_bin_edges(x: Any, /, bins: Any = 10, range: tuple[Any, Any] | None = None, weights: Any = None) -> Array:
    """Edges of the bins of `histogram`.

    Args:
        x: real array of any shape.
        bins: number of bins of equal width; or their ascending edges; or the name of one of NumPy's rules, such as
            ``"auto"`` or ``"fd"``, for known elements.
        range: lower edge of the first and upper edge of the last bin; by default the extremes of `x`.
        weights: must be None if `bins` is a name, otherwise ignored.

    Returns:
        Vector of edges, one more than bins.

    Raises:
        ArgumentError: there are no bins, or the edges or the range do not ascend.
        TracingError: `bins` is a name, but the elements are unknown while tracing.

    >>> tr.histogram_bin_edges(tr.asarray([0.0, 1.0, 4.0]), 2)
    Tensor([0., 2., 4.])
    """
    return _edges("histogram_bin_edges", _numbers("histogram_bin_edges", x), bins, range, weights)


@direct(_statistic_forms.histogram, ANY_SIZE)
def histogram(
    x: Any,
    /,
    bins: Any = 10,
    range: tuple[Any, Any] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Array, Array]:
    """Number of elements, or sum of weights, in each bin.

    Args:
        x: real array of any shape.
        bins: number of bins, their edges, or a rule, as for `histogram_bin_edges`.
        range: lower edge of the first and upper edge of the last bin.
        density: divide by the total and by the widths, so that the integral is 1.
        weights: array of the shape of `x`.

    Returns:
        A tuple of the counts (int64, or the dtype of the weights) and the edges.

    Raises:
        ArgumentError: there are no bins, or the edges or the range do not ascend.
        ShapeError: the shape of the weights differs.
        DTypeError: `x` is complex.

    See also:
        `bincount`, for integers; `histogram2d` and `histogramdd`.

    >>> counts, edges = tr.histogram(tr.asarray([0.0, 1.0, 4.0]), 2)
    >>> counts, edges
    (Tensor([2, 1]), Tensor([0., 2., 4.]))
    """
    x = _numbers("histogram", x)
    edges = _edges("histogram", x, bins, range, weights)
    counts = _filled([ravel(x)], [edges], _each(weights, x.spec.shape))
    return (_density(counts, [edges]) if density else counts), edges


def histogram2d(
    x: Any,
    /,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Array, Array, Array]:
    """Number of points, or sum of weights, in each cell of a grid.

    Args:
        x: vector of first coordinates.
        y: vector of second coordinates.
        bins: number of bins along both axes, the edges along both axes, or a pair of these.
        range: a pair of ranges, or None.
        density: divide by the total and by the areas, so that the integral is 1.
        weights: vector of the length of `x`.

    Returns:
        A tuple of the counts, floating point, and the edges along both axes.

    Raises:
        ArgumentError: there are no bins, or the edges or the range do not ascend.
        ShapeError: the shape of the weights differs.
        DTypeError: `x` is complex.

    >>> counts, _, _ = tr.histogram2d(tr.asarray([0.0, 1.0, 1.0]), tr.asarray([0.0, 0.0, 2.0]), 2)
    >>> counts
    Tensor([[1., 0.],
            [1., 1.]])
    """
    if (isinstance(bins, (tuple, list)) or getattr(bins, "ndim", False)) and len(bins) != 2:
        bins = [bins, bins]
    counts, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return counts, first, second


def histogramdd(
    sample: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    """Number of points, or sum of weights, in each cell of a grid with any number of axes.

    Args:
        sample: array of shape (points, axes), or a list of vectors of coordinates.
        bins: number of bins along every axis, or a sequence of numbers or edges, one for each axis.
        range: a sequence of ranges, or None.
        density: divide by the total and by the volumes, so that the integral is 1.
        weights: one for each point.

    Returns:
        A tuple of the counts, floating point, and the list of edges along each axis.

    Raises:
        ArgumentError: there are no bins, or the edges or the range do not ascend.
        ShapeError: the shape of the weights differs.
        DTypeError: `x` is complex.

    >>> counts, edges = tr.histogramdd(tr.asarray([[0.0, 0.0], [1.0, 2.0]]), 2)
    >>> counts
    Tensor([[1., 0.],
            [0., 1.]])
    """
    if isinstance(sample, (tuple, list)):
        points = [_numbers("histogramdd", v) for v in sample]
    else:
        sample = _numbers("histogramdd", sample)
        if sample.spec.ndim != 2 or not isinstance(sample.spec.shape[1], int):
            raise ShapeError(f"histogramdd takes a matrix with a point in each row, got {sample.spec!r}")
        points = [sample[:, i] for i in _count(sample.spec.shape[1])]
    if any(v.spec.ndim != 1 or not ask(v.spec.shape[0], "==", points[0].spec.shape[0]) for v in points):
        raise ShapeError(f"histogramdd needs coordinates of one length, got {[v.spec for v in points]!r}")
    each = list(bins) if isinstance(bins, (tuple, list)) else [bins] * len(points)
    ranges = [None] * len(points) if range is None else list(range)
    if len(each) != len(points) or len(ranges) != len(points):
        raise ArgumentError(f"histogramdd needs bins, and ranges if any, for each of {len(points)} axes")
    edges = [_edges("histogramdd", v, b, r, None) for v, b, r in zip(points, each, ranges, strict=True)]
    counts = _filled(points, edges, _each(weights, points[0].spec.shape))
    counts = floating(counts)
    return (_density(counts, edges) if density else counts), edges


_count = range


def _numbers(name: str, x: Any) -> Any:
    x = listed(x)
    if x.spec.cplx:
        raise DTypeError(f"{name} orders its elements and takes real numbers, got {x.spec!r}; take real(x) first")
    return converted(x, int64) if x.spec.dtype is bool_ else x


def _each(weights: Any, shape: tuple[Any, ...]) -> Any:
    """The weights as a vector."""
    if weights is None:
        return None
    weights = listed(weights)
    if len(weights.spec.shape) != len(shape) or not all(map(_same, weights.spec.shape, shape)):
        raise ShapeError(f"a histogram needs weights of the shape of its numbers, {shape}, got {weights.spec!r}")
    return ravel(weights)


def _same(a: Any, b: Any) -> bool:
    return ask(a, "==", b)


def _edges(name: str, x: Any, bins: Any, range: Any, weights: Any) -> Any:
    if isinstance(bins, str):
        if weights is not None:
            raise ArgumentError(f"{name} has no rule for bins of weighted numbers; pass their number or edges")
        require_concrete(x, name, "pass the number of bins, or their edges")
        wide = converted(x, computing_type(x.spec.dtype))
        edges = own(np.histogram_bin_edges(wide._concrete(), bins, range), x.spec.place)
        return converted(edges, x.spec.dtype) if x.spec.narrow else edges
    if isinstance(bins, (list, tuple)):
        bins = listed_beside(bins, x)
    if getattr(bins, "ndim", 0):
        edges = listed(bins)
        known = host_elements(edges)
        if edges.spec.ndim != 1 or (known is not None and (known[:-1] > known[1:]).any()):
            raise ArgumentError(f"{name} needs the edges of bins as a vector in ascending order, got {edges.spec!r}")
        return edges._alias()
    try:
        n = bins.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(f"{name} takes a number of bins, their edges or the name of a rule, got {bins!r}") from None
    if n < 1:
        raise ArgumentError(f"{name} needs at least one bin, got {n}", bins=n)
    first, last = _ends(name, x, range)
    dtype = floating(x).spec.dtype
    low, high = (None if (v := host_elements(end)) is None else float(v) for end in (first, last))
    if low is not None and high is not None:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ArgumentError(f"{name} cannot divide the range from {low} to {high} into bins; pass a finite range")
        if low > high:
            raise ArgumentError(f"{name} needs a range that ascends, got one from {low} to {high}")
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        if getattr(first, "level", 0) == 0 and getattr(last, "level", 0) == 0:
            return own(np.linspace(low, high, n + 1, dtype=dtype), x.spec.place)
    first, last = (converted(listed(v), dtype) for v in (first, last))
    half = catalog.select(catalog.eq(first, last), 0.5, 0.0)
    device = None if x.spec.place.on_host else x.spec.place.device
    return linspace(catalog.sub(first, half), catalog.add(last, half), n + 1, dtype=dtype, device=device)


def _ends(name: str, x: Any, range: Any) -> tuple[Any, Any]:
    if range is not None:
        first, last = range
        return first, last
    if any(empty_extent(d) for d in x.spec.shape):
        return 0.0, 1.0
    return _min(x), _max(x)


def _filled(points: Sequence[Any], edges: Sequence[Any], weights: Any) -> Any:
    """The number of points in each cell of a grid, or the sum of their weights."""
    index: Any = 0
    inside: Any = True
    cells = 1
    for x, e in zip(points, edges, strict=True):
        n = e.spec.shape[0] - 1
        x, e = alike(catalog.stop_gradient(x), catalog.stop_gradient(e))
        at = catalog.searchsorted(e, x, side="right") - 1
        at = catalog.select(catalog.eq(x, e[-1]), n - 1, at)
        inside = catalog.bitwise_and(inside, catalog.bitwise_and(catalog.ge(at, 0), catalog.lt(at, n)))
        index = index * n + at
        cells = cells * n
    flat = counted_into(catalog.select(inside, index, cells), cells, weights)
    return catalog.reshape(flat, shape=tuple([e.spec.shape[0] - 1 for e in edges]))


def _density(counts: Any, edges: Sequence[Any]) -> Any:
    counts = floating(counts)
    out = catalog.div(counts, catalog.reduce_sum(counts, axes=tuple(_count(counts.spec.ndim))))
    for axis, e in enumerate(edges):
        width = floating(diff(e))
        shape = tuple([width.spec.shape[0] if a == axis else 1 for a in _count(len(edges))])
        out = catalog.div(out, catalog.reshape(width, shape=shape))
    return out
