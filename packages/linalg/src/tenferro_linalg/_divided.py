"""Sums over divided differences of a function of eigenvalues, of any order, at equal and close eigenvalues too.

For matrices M_1, ..., M_p and eigenvalues w this computes, with matrix products and without tables of more than two
axes::

    S(M_1, ..., M_p)_il = sum_jk.. f[w_i, w_j, w_k, ..., w_l] (M_1)_ij (M_2)_jk ... (M_p)_.l

The p-th divided difference is the mean of the p-th derivative over the simplex of its points, over p! (Hermite and
Genocchi). For distant points ``f[..] = (f[without a] - f[without b]) / (b - a)`` holds instead, which loses digits as
a and b approach each other. Eigenvalues are therefore grouped. If all points are in one group, the p-th derivative is
replaced by the polynomial through its values at a few nodes, whose mean is known. Otherwise some point is the first
outside the group of those before it: the quotient of these two neighbours is an entry of a matrix, and reduces the sum
to sums with one factor less. Groups are wide; where the function is too rough for that, which the coefficients of the
polynomial show, narrow ones replace them.
"""

from functools import lru_cache
from itertools import pairwise
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_runtime.extension import Inactive, Program, Registry, Spec, primitive
from tenferro_runtime.tracing.elementwise import applied, derivative
from tenferro_tensor.catalog import reshape

NODES = 6
"""Number of nodes that define the polynomial of a derivative; even, so that none is at the centre."""

WIDE_SPAN, NARROW_SPAN = 1e-2, 5e-3
"""Largest span of a wide group relative to the largest eigenvalue; of a narrow group, to its own smallest."""

MAX_LAST_COEFFICIENT = 1e-9
"""Relative size of the last coefficient above which the polynomial of a wide group is not trusted; or of rounding."""


@primitive(family="tenferro-linalg.spectral_groups.v1", extension="linalg")
def groups_(w: Spec) -> tuple[Spec, Spec, Spec]:
    """For wide and narrow groups: the group of each eigenvalue, its position there, from -1 to 1, and the nodes."""
    shape = (*w.shape[:-1], 2, w.shape[-1])
    return w.with_(shape=shape), w.with_(shape=shape), w.with_(shape=(*shape, NODES))


@lru_cache(maxsize=1)
def node_places() -> Any:
    """Positions of the nodes between -1 and 1."""
    return np.cos((np.arange(NODES) + 0.5) * np.pi / NODES)


@lru_cache(maxsize=2)
def _to_coefficients(chebyshev: bool) -> Any:
    """The matrix that maps values at the nodes to coefficients."""
    make: Any = np.polynomial.chebyshev.chebvander if chebyshev else np.polynomial.polynomial.polyvander
    return np.linalg.inv(make(node_places(), NODES - 1)).T


def _starts(w: list[float], wide: float | None, rounding: float) -> list[int]:
    """Starts of the groups of ascending values; too wide groups are cut at their largest gap unless it is noise."""
    starts: list[int] = []
    cuts = [0, *[i + 1 for i in range(len(w) - 1) if _apart(w[i], w[i + 1], wide, rounding)], len(w)]
    stack = list(pairwise(cuts))[::-1]
    while stack:
        a, b = stack.pop()
        limit = NARROW_SPAN * min(abs(w[a]), abs(w[b - 1])) if wide is None else wide
        if b - a > 1 and w[b - 1] - w[a] > limit:
            gaps = [w[i + 1] - w[i] for i in range(a, b - 1)]
            largest = max(gaps)
            if largest > rounding:
                cut = a + gaps.index(largest) + 1
                stack += [(cut, b), (a, cut)]
                continue
        starts.append(a)
    return starts


def _apart(a: float, b: float, wide: float | None, rounding: float) -> bool:
    """Whether two neighbours can share no group, whatever the other values are."""
    return b - a > max(rounding, NARROW_SPAN * max(abs(a), abs(b)) if wide is None else wide)


def _groups_of(w: Any) -> tuple[Any, Any, Any]:
    """Groups of one spectrum on the host."""
    n = len(w)
    group, centre, radius = (np.zeros((2, n), w.dtype) for _ in range(3))
    if n:
        levels = w.tolist()
        largest = max(abs(levels[0]), abs(levels[-1]))
        rounding = n * multiplets.EPS[w.dtype] * largest
        for kind, wide in enumerate((WIDE_SPAN * largest, None)):
            starts = _starts(levels, wide, rounding)
            if len(starts) == n:
                group[kind], centre[kind] = np.arange(n), w
                continue
            for number, (a, b) in enumerate(zip(starts, [*starts[1:], n])):
                group[kind, a:b] = number
                centre[kind, a:b] = levels[a] / 2 + levels[b - 1] / 2
                radius[kind, a:b] = levels[b - 1] / 2 - levels[a] / 2
    nodes = centre[..., None] + radius[..., None] * node_places().astype(w.dtype)
    return group, (w - centre) / np.where(radius > 0, radius, 1), nodes


def _groups_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(w: Any) -> Any:
        host = la.local(w)
        if host.ndim == 1:
            return tuple([la.xp.asarray(x) for x in _groups_of(host)])
        shape = (*w.shape[:-1], 2, w.shape[-1])
        found = [np.empty((*shape, *more), w.dtype) for more in ((), (), (NODES,))]
        for index in np.ndindex(w.shape[:-1]):
            for x, of_one in zip(found, _groups_of(host[index]), strict=True):
                x[index] = of_one
        return tuple([la.xp.asarray(x) for x in found])

    return run


class _OrderData(NamedTuple):
    """Data of the divided differences of one order.

    Attributes:
        inside: whether two eigenvalues are in one group (..., n, n).
        rates: 1 over the difference of two eigenvalues in different groups, otherwise 0.
        place: position of each eigenvalue in its group (..., n).
        coefficients: coefficients of the polynomial of the derivative there (..., n, NODES).
        single: whether no two eigenvalues are known to share a group.
    """

    inside: Any
    rates: Any
    place: Any
    coefficients: Any
    single: bool


def _level(xp: Any, w: Any, group: Any, place: Any, values: Any, traced: bool) -> _OrderData:
    sizes = xp.abs(values[..., 0, :, :] @ xp.asarray(_to_coefficients(True)))
    rough = max(MAX_LAST_COEFFICIENT, 16 * multiplets.EPS[w.dtype])
    wide = sizes[..., -1] <= rough * sizes.max(axis=-1)
    # Indices of wide and of narrow groups must not collide.
    number = xp.where(wide, group[..., 0, :], -1 - group[..., 1, :])
    inside = number[..., :, None] == number[..., None, :]
    gaps = xp.where(inside, w.dtype.type(1), w[..., :, None] - w[..., None, :])
    chosen = xp.where(wide[..., None], values[..., 0, :, :], values[..., 1, :, :])
    coefficients = chosen @ xp.asarray(_to_coefficients(False).astype(w.dtype))
    own = xp.where(wide, place[..., 0, :], place[..., 1, :])
    single = not traced and int(inside.sum()) == w.size
    return _OrderData(inside, xp.where(inside, w.dtype.type(0), 1 / gaps), own, coefficients, single)


class SpectralSums:
    """Sums over divided differences of one function at one stack of spectra.

    Args:
        xp: the array library.
        w: eigenvalues (..., n).
        values: values of the function there.
        group, place: results of `groups_`.
        derivatives: values of the derivatives at the nodes, starting with order one.
        traced: whether the arrays are traced, so that no branch can depend on their values.
    """

    def __init__(
        self, xp: Any, w: Any, values: Any, group: Any, place: Any, derivatives: Any, traced: bool = False
    ) -> None:
        self.xp = xp
        self.levels = [_level(xp, w, group, place, d, traced) for d in derivatives]
        first = self.levels[0]
        quotients = first.rates * (values[..., :, None] - values[..., None, :])
        self.table = quotients + self._within(first, [first.inside.astype(w.dtype)])
        """The divided differences of order one."""

    def of(self, factors: list[Any]) -> Any:
        """The sum for given factors."""
        level, p = self.levels[len(factors) - 1], len(factors)
        if p == 1:
            return self.table * factors[0]
        inside = [m * level.inside for m in factors]
        out = self._within(level, inside)
        for k in range(p):
            rated = factors[k] * level.rates  # the first step out of a group
            if k == 0:
                out = out - rated @ self.of(factors[1:])
            else:
                out = out - self.of([*inside[: k - 1], inside[k - 1] @ rated, *factors[k + 1 :]])
            if k == p - 1:
                out = out + self.of(inside[:k]) @ rated
            else:
                out = out + self.of([*inside[:k], rated @ factors[k + 1], *factors[k + 2 :]])
        return out

    def _within(self, level: _OrderData, factors: list[Any]) -> Any:
        """The part with all points in one group: the m-th term has all products of m positions along the path."""
        place, p = level.place[..., None, :], len(factors)
        if level.single:
            out = factors[0] * (level.coefficients[..., :, 0, None] / factorial(p))
            for factor in factors[1:]:
                out = out * factor
            return out
        powers = [self.xp.ones_like(level.place)[..., :, None]]
        for _ in range(1, NODES):
            powers.append(powers[-1] * level.place[..., :, None])
        terms = [factors[0] * power for power in powers]
        for m in range(1, NODES):
            terms[m] = terms[m] + terms[m - 1] * place
        for factor in factors[1:]:
            terms = [term @ factor for term in terms]
            for m in range(1, NODES):
                terms[m] = terms[m] + terms[m - 1] * place
        out = 0
        for m, term in enumerate(terms):
            weight = factorial(m) / factorial(m + p)
            out = out + term * (level.coefficients[..., :, m, None] * weight)
        return out


def _at(program: Program, points: Any, captured: tuple[Any, ...]) -> Any:
    """The function at points of any shape; its program takes vectors."""
    if points.ndim == 1:
        return applied(program, points, *captured)
    values = applied(program, reshape(points, shape=(points.spec.size,)), *captured)
    return reshape(values, shape=points.spec.shape)


def data(w: Any, program: Program, captured: tuple[Any, ...], order: int) -> tuple[Any, ...]:
    """The operands of sums of an order besides the factors: values of the function and of its derivatives.

    Args:
        w: eigenvalues (..., n), ascending.
        program: the function of a vector and of its captured values.
        captured: these values.
        order: the order.
    """
    values = _at(program, w, captured)
    if not order:
        return (values,)
    group, place, nodes = groups_(w)
    return values, group, place, *[_at(derivative(program, k), nodes, captured) for k in range(1, order + 1)]


def register(registry: Registry) -> None:
    """Kernels and rules of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, groups_, _groups_kernel, blas=False)
    registry.rule(groups_, Inactive())
