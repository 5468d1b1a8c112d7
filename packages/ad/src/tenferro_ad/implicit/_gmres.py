"""Restarted GMRES on pytrees, written with traceable loops; matrix-free.

Saad and Schultz, SIAM J. Sci. Stat. Comput. 7, 856 (1986), with Gram-Schmidt orthogonalization done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import tenferro_runtime as tr
from tenferro_ad.implicit._real_space import Parts, RealSpace, added, dot, norm, scaled
from tenferro_runtime.trees import flatten
from tenferro_tensor import Tensor
from tenferro_tensor_core import DimLike, ask, finfo, likely

MAX_FULL: Final = 256
"""Up to this number of real unknowns GMRES runs without restarts, so its last step is exact up to rounding."""

RESTART: Final = 30
"""Number of basis vectors between restarts for more unknowns."""

MAX_CYCLES: Final = 200
"""Maximum number of cycles."""

MIN_REDUCTION: Final = 0.95
"""Stop after a cycle that does not reduce the residual below this multiple of the previous one."""


class _Cycle(NamedTuple):
    """The state of one cycle after k steps.

    Attributes:
        k: number of steps.
        vector: the latest of k + 1 orthonormal vectors.
        basis: these vectors, as rows.
        rotation: product of the Givens rotations that make the Hessenberg matrix triangular.
        triangle: columns of the triangular matrix, as rows.
        first: norm of the initial residual.
        residual: norm of the residual.
        growth: largest norm of the image of a unit vector so far.
    """

    k: Any
    vector: Parts
    basis: Parts
    rotation: Any
    triangle: Any
    first: Any
    residual: Any
    growth: Any


class _Iterate(NamedTuple):
    x: Parts
    residual: Parts
    norm: Any
    before: Any
    growth: Any
    cycles: Any


def gmres(g: Callable[[Any], Any], y: Any) -> Any:
    """Solve ``g(x) == y`` for a linear function of pytrees of arrays, up to rounding.

    The elements of the result are NaN if no solution is found: g is singular, or there are more than `MAX_FULL`
    unknowns and the restarts make no progress.

    >>> gmres(lambda x: {"a": x["a"] + x["b"], "b": 4 * x["b"]}, {"a": 1.0, "b": 2.0})
    {'a': Tensor(0.5), 'b': Tensor(0.5)}
    """
    space = RealSpace(y)
    if space.dimension == 0:
        return y
    b = space.parts(y)
    if space.dimension == 1:
        slope = space.parts(g(space.tree_of([tr.ones_like(p) for p in b])))
        return space.tree_of([p / q for p, q in zip(b, slope, strict=True)])
    scale = space.norm(b)
    eps = finfo(space.dtype).eps
    n = space.dimension
    steps = n if likely(n, "<=", MAX_FULL) and ask(n, "<=", MAX_FULL) else RESTART

    def apply(v: Parts) -> Parts:
        return space.parts(g(space.tree_of(v)))

    def reachable(now: _Iterate) -> Any:
        return now.growth * space.norm(now.x) + scale

    def unfinished(now: _Iterate) -> Any:
        moving = (now.norm < MIN_REDUCTION * now.before) & (now.cycles < MAX_CYCLES)
        return moving & (now.norm > 4 * eps * reachable(now))

    def improved(now: _Iterate) -> _Iterate:
        done = _cycle(space, apply, now, steps, eps * scale)
        x = added(now.x, 1.0, _on_elements(_combined, _compiled_combined, done))
        residual = added(b, -1.0, apply(x))
        left = space.norm(residual)
        return _Iterate(x, residual, left, now.norm, tr.maximum(now.growth, done.growth), now.cycles + 1)

    first = _Iterate(scaled(0.0, b), b, scale, scale * 2, tr.zeros_like(scale), tr.asarray(0))
    last = tr.while_loop(unfinished, improved, first)
    solved = last.norm <= eps**0.5 * reachable(last)
    return space.tree_of([tr.where(solved, p, tr.astype(float("nan"), p.dtype)) for p in last.x])


def _cycle(space: RealSpace, apply: Callable[[Parts], Parts], now: _Iterate, steps: DimLike, enough: Any) -> _Cycle:
    """Extend an orthonormal basis from the residual until the equation is solved in its span."""
    vector = scaled(1 / now.norm, now.residual)
    start = [tr.zeros((steps + 1, *p.shape), dtype=p.dtype).at[0].set(p) for p in vector]
    eye = tr.eye(steps + 1, dtype=space.dtype)
    empty = tr.zeros((steps, steps + 1), dtype=space.dtype)
    first = _Cycle(tr.asarray(0), vector, start, eye, empty, now.norm, now.norm, now.growth)

    def step(c: _Cycle) -> _Cycle:
        return _on_elements(_extended, _compiled_extended, c, apply(c.vector))  # type: ignore[no-any-return]

    return tr.while_loop(lambda c: (c.k < steps) & (c.residual > enough), step, first)


def _on_elements(f: Callable[..., Any], compiled: Callable[..., Any], *args: Any) -> Any:
    """Call the compiled function on concrete values, and the plain one in a trace."""
    return (compiled if all(x.__class__ is Tensor for x in flatten(args)[0]) else f)(*args)


def _extended(c: _Cycle, w: Parts) -> _Cycle:
    """The next step; w is the image of the latest vector."""
    dtype = c.rotation.dtype
    size = norm(w, dtype)
    h = dot(c.basis, w, dtype)
    w = [p - tr.astype(h, p.dtype) @ v for p, v in zip(w, c.basis, strict=True)]
    again = dot(c.basis, w, dtype)
    w = [p - tr.astype(again, p.dtype) @ v for p, v in zip(w, c.basis, strict=True)]
    length = norm(w, dtype)
    length = tr.where(length > finfo(dtype).eps * size, length, 0.0)  # smaller lengths are rounding errors
    vector = scaled(tr.where(length > 0, 1 / tr.where(length > 0, length, 1.0), 0.0), w)
    basis = [v.at[c.k + 1].set(p) for v, p in zip(c.basis, vector, strict=True)]
    rotation, column = _rotated(c.rotation, c.rotation @ (h + again).at[c.k + 1].set(length), c.k)
    residual = tr.where(length > 0, c.first * tr.abs(rotation[c.k + 1, 0]), 0.0)
    triangle = c.triangle.at[c.k].set(column)
    return _Cycle(c.k + 1, vector, basis, rotation, triangle, c.first, residual, tr.maximum(c.growth, size))


def _rotated(rotation: Any, column: Any, k: Any) -> tuple[Any, Any]:
    """Apply the Givens rotation that zeroes the element of the column below position k."""
    a, b = column[k], column[k + 1]
    length = tr.hypot(a, b)
    some = length > 0
    c, s = tr.where(some, a / tr.where(some, length, 1.0), 1.0), tr.where(some, b / tr.where(some, length, 1.0), 0.0)
    upper, lower = rotation[k], rotation[k + 1]
    turned = rotation.at[k].set(c * upper + s * lower).at[k + 1].set(c * lower - s * upper)
    return turned, column.at[k].set(length).at[k + 1].set(0.0)


def _combined(c: _Cycle) -> Parts:
    """The combination of basis vectors with the least residual, by back substitution."""
    steps, dtype = c.triangle.shape[0], c.rotation.dtype
    rhs = c.first * c.rotation[:, 0]
    rows = tr.matrix_transpose(c.triangle)
    least = finfo(dtype).eps * tr.sqrt(tr.sum(c.triangle**2))

    def solve(j: Any, z: Any) -> Any:
        i = steps - 1 - j
        pivot = rows[i, i]
        there = (i < c.k) & (tr.abs(pivot) > least)
        value = (rhs[i] - rows[i] @ z) / tr.where(there, pivot, 1.0)
        return z.at[i].set(tr.where(there, value, 0.0))

    z = tr.fori_loop(0, steps, solve, tr.zeros((steps,), dtype=dtype))
    return [tr.astype(z, p.dtype) @ p[:steps] for p in c.basis]


_compiled_extended: Final = tr.compile(_extended)
_compiled_combined: Final = tr.compile(_combined)
