"""Analytic functions of general matrices, with exact derivatives of any order.

The rules are those of `tenferro_linalg.functions._terms`; the function is represented by its values at points around
the eigenvalues, which `tenferro_linalg.functions._parlett` chooses and converts to terms. The points are constants of
differentiation: derivatives by the matrix go through the matrix itself, those by captured values through these values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, cj, re, to, total
from tenferro_linalg._operands import matrices, require_inexact, require_square
from tenferro_linalg.functions._parlett import POINTS, RADII, points_of, term_of
from tenferro_runtime.batching import all_with_lanes, lane_by_lane
from tenferro_runtime.extension import General, Inactive, Program, Registry, Spec, primitive
from tenferro_runtime.tracing.elementwise import along_captured, applied, recorded
from tenferro_tensor import Array
from tenferro_tensor.catalog import reduce_sum, reshape, stop_gradient
from tenferro_tensor_core import real_of
from tenferro_tensor_core.tracebacks import boundary

COMPLEX = np.dtype(np.complex128)


@boundary
def funm(x: Any, f: Callable[[Any], Any], /) -> Array:
    """Analytic function ``f(A)`` of square matrices, by the blocked Schur-Parlett algorithm (Davies and Higham 2003).

    The function must be analytic around the eigenvalues. Differentiable to any order, at defective matrices too, with
    respect to the matrix and to the scalars that `f` uses. For Hermitian matrices use `spectral_function`, which does
    not require an analytic function.

    Args:
        x: matrices (..., n, n).
        f: element-wise function of complex arrays, made of differentiable operations; real on the real axis where real
            matrices are to have real results.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, the function is not analytic around an eigenvalue, or it maps a real
            matrix to a complex one.
        ShapeError: `f` changes the shape.

    >>> import tenferro_runtime as tr
    >>> funm([[0.0, 1.0], [0.0, 0.0]], tr.exp).round()
    Tensor([[1., 1.],
            [0., 1.]])
    """
    x = matrices("funm", x, square=True)
    known = funm_points_(stop_gradient(x))
    program, captured = recorded(f, known[-1].spec, "funm")
    return _term(x, tuple(known), program, captured, ())


def _term(x: Any, known: tuple[Any, ...], program: Program, captured: tuple[Any, ...], factors: Any) -> Any:
    *rest, points = known
    with np.errstate(all="ignore"):  # circles that meet poles are discarded later
        flat = applied(program, reshape(points, shape=(points.spec.size,)), *[stop_gradient(c) for c in captured])
    values = to(reshape(flat, shape=points.spec.shape), COMPLEX)
    return funm_term_(
        x, *rest, points, values, *captured, *factors, program=program, order=len(factors), captured=len(captured)
    )


@primitive(family="tenferro-linalg.funm_points.v1", extension="linalg")
def funm_points_(x: Spec) -> tuple[Spec, Spec, Spec, Spec, Spec]:
    """Schur factors T and Z, cluster index of each eigenvalue, radii around the clusters, and points there."""
    require_inexact("funm", x)
    require_square("funm", x)
    wide, vector = x.with_(dtype=COMPLEX), x.shape[:-1]
    real = real_of(COMPLEX)
    return (
        wide,
        wide,
        x.with_(shape=vector, dtype=real),
        x.with_(shape=(*vector, RADII), dtype=real),
        x.with_(shape=(*vector, 1 + RADII * POINTS), dtype=COMPLEX),
    )


@primitive(family="tenferro-linalg.funm_term.v1", extension="linalg")
def funm_term_(
    x: Spec,
    t: Spec,
    z: Spec,
    label: Spec,
    radius: Spec,
    points: Spec,
    values: Spec,
    *more: Spec,
    program: Program,
    order: int,
    captured: int,
    sizes: tuple[()] = (),
) -> Spec:
    """The term of `order` factors; `more` are the captured values of f, and the factors.

    `program` is f, of a vector and the captured values. It has its own symbolic sizes, so `sizes` is empty. Derivatives
    go through x, the captured values and the factors.
    """
    cplx = x.cplx or any(e.cplx for e in more[captured:])
    return x.with_(dtype=np.promote_types(x.dtype, np.complex64)) if cplx else x


SCHUR_OPERANDS = 5
"""Number of constants between the matrix and the values of the function."""


def _jvp(
    primals: Any, tangents: Any, outs: Any, *, program: Program, order: int, captured: int, sizes: Any
) -> tuple[Any]:
    x, known, given, factors = _parts(primals, captured)
    dx, _, dgiven, dfactors = _parts(tangents, captured)
    found = []
    if dx is not None:
        found += [_term(x, known, program, given, (*factors[:k], dx, *factors[k:])) for k in range(order + 1)]
    if any(d is not None for d in dgiven):
        moved = tuple([c * 0.0 if d is None else d for c, d in zip(given, dgiven) if c.spec.inexact])
        found.append(_term(x, known, along_captured(program), (*given, *moved), factors))
    for k, e in enumerate(dfactors):
        if e is not None:
            found.append(_term(x, known, program, given, (*factors[:k], e, *factors[k + 1 :])))
    change = total(*found)
    return (None if change is None else to(change, outs[0].dtype),)


def _vjp(
    primals: Any, outs: Any, cotangents: Any, *, program: Program, order: int, captured: int, **_: Any
) -> tuple[Any, ...]:
    x, known, given, factors = _parts(primals, captured)
    g = cotangents[0]
    back = adjoint(g)

    def turned(*chain: Any) -> Any:
        return adjoint(_term(x, known, program, given, chain))

    by_x = total(*[turned(*factors[k:], back, *factors[:k]) for k in range(order + 1)])
    by_factors = [_fitting(turned(*factors[k + 1 :], back, *factors[:k]), e) for k, e in enumerate(factors)]
    by_captured = [_by_captured(g, x, known, program, given, factors, k) for k in range(captured)]
    return (_fitting(by_x, x), *[None] * (SCHUR_OPERANDS + 1), *by_captured, *by_factors)


def _parts(operands: Any, captured: int) -> tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The matrix, its Schur data, captured values and factors; values of the function are recomputed."""
    x, *rest = operands
    more = rest[SCHUR_OPERANDS + 1 :]
    return x, tuple(rest[:SCHUR_OPERANDS]), tuple(more[:captured]), tuple(more[captured:])


def _by_captured(
    g: Any, x: Any, known: tuple[Any, ...], program: Program, given: tuple[Any, ...], factors: Any, k: int
) -> Any:
    """The cotangent of a captured scalar: inner product of the result's cotangent with the term of f's derivative."""
    if not given[k].spec.inexact:
        return None
    along = along_captured(program)

    def rate(unit: complex) -> Any:
        units = tuple([c * 0.0 + (unit if i == k else 0.0) for i, c in enumerate(given) if c.spec.inexact])
        moved = _term(x, known, along, (*given, *units), factors)
        return reduce_sum(re(cj(g) * moved), axes=tuple(range(g.ndim)))

    found = to(rate(1.0), given[k].dtype)
    return found + to(rate(1j), given[k].dtype) * 1j if given[k].spec.cplx else found


def _fitting(x: Any, like: Any) -> Any:
    """A cotangent for an operand: its real part if the operand is real."""
    return to(x if like.spec.cplx else re(x), like.dtype)


def _lanes(size: Any, values: Any, batched: tuple[bool, ...], /, **metadata: Any) -> Any:
    """Matrices of all lanes form one stack; lanes that differ in captured values run one by one."""
    op = funm_term_.op(**metadata)
    captured = slice(SCHUR_OPERANDS + 2, SCHUR_OPERANDS + 2 + metadata["captured"])
    if any(batched[captured]):
        return lane_by_lane(op, size, values, batched)
    stacked = all_with_lanes(size, values, batched)
    stacked[captured] = values[captured]
    return op(*stacked)


def _term_kernel(la: Any, ins: Any, outs: Any, *, captured: int, **_: Any) -> Any:
    dtype = outs[0].dtype

    def run(x: Any, t: Any, z: Any, label: Any, radius: Any, points: Any, values: Any, *more: Any) -> Any:
        with np.errstate(all="ignore"):
            return term_of(la, t, z, label, radius, points, values, more[captured:], dtype)

    return run


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, funm_points_, lambda la, ins, outs: lambda x: points_of(la, x), devices=False)
    kernels(registry, funm_term_, _term_kernel, devices=False)
    registry.rule(funm_points_, Inactive())
    registry.rule(funm_term_, General(jvp=_jvp, vjp=_vjp))
    registry.batching(funm_term_, _lanes)
