"""LU decomposition with row exchanges, of tall, square and wide matrices.

At a fixed order of the rows, with ``A[order] = L U``, ``G = L^-1 dA[order]`` and the first k = min(m, n) columns
``G_1``, ``U_1``::

    X = strict lower(G_1 U_1^-1)        dL = L X        dU = G - X U

and for the rows below k ``dL_2 = (dA_2 - L_2 dU_1) U_1^-1``. The last column of X is zero, so the last pivot may vanish
unless there are rows below it.
"""

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from tenferro_linalg._algebra import adjoint, block, cj, identity_like_, mm, part
from tenferro_linalg._errors import RankError
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._masks import mask_of, mask_on
from tenferro_linalg._operands import common, flag, inexact, matrices, require_inexact, show, stacked
from tenferro_linalg._solve import solve_triangular_
from tenferro_runtime.extension import General, Inactive, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor.catalog import (
    add,
    argsort,
    broadcast_in_dim,
    concatenate,
    convert,
    eq,
    iota,
    mul,
    reshape,
    stop_gradient,
)
from tenferro_tensor.functions import take
from tenferro_tensor_core import DimLike, decide, dim_min, int64, require_equal
from tenferro_tensor_core.tracebacks import boundary


class LUResult(NamedTuple):
    """LU decomposition.

    Attributes:
        P: permutation matrix.
        L: unit lower triangular (or trapezoidal) factor.
        U: upper triangular (or trapezoidal) factor.
    """

    P: Array
    L: Array
    U: Array


class LUFactors(NamedTuple):
    """Packed LU factors.

    Attributes:
        lu: L without its diagonal and U in one matrix.
        piv: the row that each row was exchanged with, in turn.
    """

    lu: Array
    piv: Array


@overload
def lu(x: Any, /, *, permute_l: Literal[False] = ..., p_indices: bool = ...) -> LUResult: ...
@overload
def lu(x: Any, /, *, permute_l: Literal[True], p_indices: bool = ...) -> tuple[Array, Array]: ...
@boundary
def lu(x: Any, /, *, permute_l: bool = False, p_indices: bool = False) -> LUResult | tuple[Array, Array]:
    """LU decomposition ``A = P @ L @ U``.

    Derivatives are taken at a fixed order of the rows, which changes where two candidates for a pivot tie.

    Args:
        x: matrices (..., m, n).
        permute_l: return ``(P @ L, U)``.
        p_indices: return the vector ``p`` (..., m) with ``A = L[p] @ U`` instead of P.

    Returns:
        Permutation matrix P (..., m, m), unit lower triangular L (..., m, k) and upper triangular U (..., k, n) with
        k = min(m, n).

    Raises:
        NumericalError: an entry is not finite.
        RankError: (derivative) a pivot before the last one, or above further rows, is zero.

    See also: `lu_factor`.

    >>> p, l, u = lu([[1.0, 2.0], [4.0, 2.0]])
    >>> l, u
    (Tensor([[1.  , 0.  ],
            [0.25, 1.  ]]), Tensor([[4. , 2. ],
            [0. , 1.5]]))
    """
    x = matrices("lu", x)
    if not permute_l and not p_indices:
        return LUResult(*plu_(x))
    packed, _, order = lu_(x)
    lower, upper = _lower(packed), _upper(packed)
    back = argsort(order, axis=order.ndim - 1, descending=False)
    return (taken(lower, back), upper) if permute_l else LUResult(back, lower, upper)


@boundary
def lu_factor(x: Any, /) -> LUFactors:
    """LU factors in LAPACK's packed form, for `lu_solve`.

    Args:
        x: matrices (..., m, n).

    Returns:
        ``lu`` (..., m, n), with L below the diagonal and U on and above it; ``piv`` (..., min(m, n)), int64: row i was
        exchanged with row ``piv[i]``, one after the other.

    Raises:
        NumericalError: an entry is not finite.
        RankError: (derivative) a pivot before the last one, or above further rows, is zero.

    >>> lu_factor([[1.0, 2.0], [4.0, 2.0]]).piv
    Tensor([1, 1])
    """
    packed, pivots, _ = lu_(matrices("lu_factor", x))
    return LUFactors(packed, pivots)


@boundary
def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, /, trans: int = 0) -> Array:
    """Solve ``op(A) @ X = B`` from the LU factors of A.

    Args:
        lu_and_piv: the result of `lu_factor` for square matrices (..., n, n).
        b: right-hand sides: one vector (n,), or matrices (..., n, k).
        trans: 0 for A, 1 for its transpose, 2 for its adjoint.

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), batch axes broadcast together.

    Raises:
        ArgumentError: `trans` is none of the three.
        NumericalError: a pivot is exactly zero.
        ShapeError: the extents do not match.

    >>> lu_solve(lu_factor([[2.0, 0.0], [0.0, 4.0]]), [2.0, 2.0])
    Tensor([1. , 0.5])
    """
    flag("lu_solve", "trans", trans, (0, 1, 2))
    packed, pivots = lu_and_piv
    packed, b = common(matrices("lu_solve", packed, square=True), inexact(b))
    if b.ndim == 0:
        raise ShapeError("lu_solve: the right-hand side is 0-d; pass a vector (n,) or matrices (..., n, k)", shape=())
    vector = b.ndim == 1
    b = reshape(b, shape=(*b.spec.shape, 1)) if vector else b
    n = packed.spec.shape[-1]
    require_equal(
        n, b.spec.shape[-2], f"lu_solve: factors of shape {show(packed.spec.shape)} and right sides of other length"
    )
    batch = broadcast_shapes(packed.spec.shape[:-2], b.spec.shape[:-2])
    order = permutation_(pivots if hasattr(pivots, "level") else np.asarray(pivots, np.int64), rows=n)
    order = broadcast_in_dim(
        order, shape=(*batch, n), dims=tuple(range(len(batch) + 1 - order.ndim, len(batch) + 1))
    ) if order.spec.shape != (*batch, n) else order  # fmt: skip
    packed, b = stacked(packed, batch), stacked(b, batch)
    if trans == 1:
        b = cj(b)
    if trans:
        y = solve_triangular_(packed, b, lower=False, unit=False, adjoint=True)
        y = solve_triangular_(packed, y, lower=True, unit=True, adjoint=True)
        x = taken(y, argsort(order, axis=order.ndim - 1, descending=False))
    else:
        y = solve_triangular_(packed, taken(b, order), lower=True, unit=True, adjoint=False)
        x = solve_triangular_(packed, y, lower=False, unit=False, adjoint=False)
    if trans == 1:
        x = cj(x)
    return reshape(x, shape=x.spec.shape[:-1]) if vector else x


def taken(x: Any, order: Any) -> Any:
    """Permute the rows of each matrix: ``x[..., order, :]``, with one `order` for each matrix."""
    if order.spec.shape[-1] == x.spec.shape[-2]:
        return rows_taken_(x, order, back=False)
    return _rows(x, order, back=False)


@primitive(family="tenferro-linalg.rows_taken.v1", extension="linalg")
def rows_taken_(x: Spec, order: Spec, *, back: bool) -> Spec:
    """Permute all rows; `back` inverts the permutation, ``out[..., order, :] = x``."""
    return x


def _rows(x: Any, order: Any, *, back: bool) -> Any:
    if back:
        order = argsort(order, axis=order.ndim - 1, descending=False)
    *batch, m, n = x.spec.shape
    if not batch:
        return take(x, order, axis=0)
    count: DimLike = 1
    for d in batch:
        count = count * d
    rows = order.spec.shape[-1]
    flat = reshape(order, shape=(count, rows))
    first = iota(shape=(count, rows), dtype=int64, axis=0, place=x.spec.place)
    at = reshape(add(flat, mul(first, m)), shape=(count * rows,))
    return reshape(take(reshape(x, shape=(count * m, n)), at, axis=0), shape=(*batch, rows, n))


@primitive(family="tenferro-linalg.lu.v1", extension="linalg")
def lu_(x: Spec) -> tuple[Spec, Spec, Spec]:
    """L without its diagonal and U packed in one matrix, the row exchanges, and the resulting order of the rows."""
    require_inexact("lu", x)
    *batch, m, n = x.shape
    return x, x.with_(shape=(*batch, dim_min(m, n)), dtype=int64), x.with_(shape=(*batch, m), dtype=int64)


@primitive(family="tenferro-linalg.plu.v1", extension="linalg")
def plu_(x: Spec) -> tuple[Spec, Spec, Spec]:
    """The permutation matrix, L and U."""
    require_inexact("lu", x)
    *batch, m, n = x.shape
    k = dim_min(m, n)
    return x.with_(shape=(*batch, m, m)), x.with_(shape=(*batch, m, k)), x.with_(shape=(*batch, k, n))


def _plu(x: Any) -> tuple[Any, Any, Any]:
    packed, _, order = lu_(x)
    m = x.spec.shape[-2]
    shape = (*x.spec.shape[:-2], m, m)
    places = iota(shape=shape, dtype=int64, axis=len(shape) - 2, place=x.spec.place)
    *lead, columns = range(len(shape) - 1)
    found = eq(places, broadcast_in_dim(order, shape=shape, dims=(*lead, columns + 1)))
    return convert(found, dtype=x.spec.dtype), _lower(packed), _upper(packed)


@primitive(family="tenferro-linalg.permutation.v1", extension="linalg")
def permutation_(pivots: Spec, *, rows: DimLike) -> Spec:
    """The order of `rows` rows after the exchanges `pivots`."""
    return pivots.with_(shape=(*pivots.shape[:-1], rows))


@primitive(family="tenferro-linalg.lu_pivoted.v1", extension="linalg")
def lu_pivoted_(packed: Spec, *, rows: DimLike, columns: DimLike) -> Spec:
    """The leading square part of the factors, after testing that the pivots that a derivative divides by are not zero.

    The last pivot counts only if there are more rows than columns; otherwise it is replaced by 1 if it is zero.
    """
    return packed


def _lower(packed: Any) -> Any:
    k = dim_min(*packed.spec.shape[-2:])
    low = block(part(packed, "strict_lower"), column=(0, k))
    return low + identity_like_(low)


def _upper(packed: Any) -> Any:
    return block(part(packed, "upper"), row=(0, dim_min(*packed.spec.shape[-2:])))


def _rows_kernel(la: Any, ins: Any, outs: Any, *, back: bool) -> Any:
    def run(x: Any, order: Any) -> Any:
        if not back:
            return x[order] if x.ndim == 2 else la.xp.take_along_axis(x, order[..., None], -2)
        if x.ndim > 2:
            return la.xp.take_along_axis(x, la.xp.argsort(order, axis=-1)[..., None], -2)
        out = la.xp.empty(x.shape, x.dtype)
        out[order] = x
        return out

    return run


def _permutation(la: Any, pivots: Any, rows: int) -> Any:
    """Apply the exchanges one by one, to all matrices of a stack together."""
    pivots = la.local(pivots)
    order = np.empty((*pivots.shape[:-1], rows), np.int64)
    for index in np.ndindex(pivots.shape[:-1]):
        line = list(range(rows))
        for i, j in enumerate(pivots[index].tolist()):
            line[i], line[j] = line[j], line[i]
        order[index] = line
    return la.xp.asarray(order)


def _factors(la: Any) -> Any:
    """Packed factors of raw matrices, the exchanges, and the order of the rows."""
    routine = la.routine("lu")

    def run(x: Any) -> Any:
        if routine is not None and (found := routine(x, 0)) is not None:
            return found
        packed, pivots = la.lu(la.finite("lu", x))
        return packed, pivots, _permutation(la, pivots, x.shape[-2])

    return run


def _lu_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return _factors(la)


def _plu_kernel(la: Any, ins: Any, outs: Any) -> Any:
    xp, dtype, factors = la.xp, ins[0].dtype, _factors(la)

    def run(x: Any) -> Any:
        packed, _, order = factors(x)
        m, n = x.shape[-2:]
        k = min(m, n)
        below, on, above = (
            mask_of(keep, *shape) if xp is np else mask_on(xp, keep, *shape)
            for keep, shape in (("strict_lower", (m, k)), ("diagonal", (m, k)), ("upper", (k, n)))
        )
        lower = xp.where(below, packed[..., :k], on)
        upper = xp.where(above, packed[..., :k, :], dtype.type(0))
        return (xp.arange(m)[:, None] == order[..., None, :]).astype(dtype), lower, upper

    return run


def _pivoted_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    def run(packed: Any, rows: int, columns: int) -> Any:
        zero = la.local(la.xp.diagonal(packed, axis1=-2, axis2=-1) == 0)
        if not zero.any():
            return packed
        needed = zero if rows > columns else zero[..., :-1]
        if needed.any():
            *batch, i = (int(j) for j in np.argwhere(needed)[0])
            of = f" of matrix {tuple(batch)} of the stack" if batch else ""
            raise RankError(
                f"lu: pivot {i}{of} is exactly zero, and L has no derivative there; use a function of the matrix that "
                "needs no factors (det, pinv, lstsq), or regularise the matrix",
                pivot=i,
                batch=tuple(batch),
            )
        packed = packed.copy()
        packed[..., -1, -1] = la.xp.where(la.xp.asarray(zero[..., -1]), 1, packed[..., -1, -1])
        return packed

    return run


def _pivoted(xp: Any, packed: Any, *, rows: DimLike, columns: DimLike) -> tuple[Any, Any]:
    """The factors with a last pivot of 1 if it is zero, and whether a pivot that a derivative divides by is zero."""
    zero = xp.diagonal(packed, axis1=-2, axis2=-1) == 0
    place = xp.arange(packed.shape[-1])
    last = place == packed.shape[-1] - 1
    corner = last[:, None] & last & (packed == 0)
    return xp.where(corner, packed.dtype.type(1), packed), zero if decide(rows, ">", columns) else zero & ~last


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, None, None]:
    (da,), (packed, _, order) = tangents, outs
    m, n = da.spec.shape[-2:]
    k = dim_min(m, n)
    da = taken(da, stop_gradient(order))
    core = block(packed, row=(0, k), column=(0, k))
    safe = lu_pivoted_(core, rows=m, columns=n)

    def over(x: Any) -> Any:  # x U_1^-1
        return adjoint(solve_triangular_(safe, adjoint(x), lower=False, unit=False, adjoint=True))

    g = solve_triangular_(core, block(da, row=(0, k)), lower=True, unit=True, adjoint=False)
    x = part(over(block(g, column=(0, k))), "strict_lower")
    du = part(g - mm(x, _upper(packed)), "upper")
    low = part(core, "strict_lower")
    changed = block(du, column=(0, k)) + part(mm(low, x) + x, "strict_lower")
    if n != k:
        changed = concatenate(changed, block(du, column=(k, n)), axis=du.ndim - 1)
    if m != k:
        # With more rows than columns, k = n; otherwise no rows are below.
        below = block(da, row=(k, m))
        rest = mm(block(packed, row=(k, m), column=(0, k)), block(du, column=(0, k)))
        down = over(block(below, column=(0, k)) - rest)
        if n != k:
            zero = block(below, column=(k, n)) * 0.0
            down = concatenate(down, zero, axis=down.ndim - 1)
        changed = concatenate(changed, down, axis=changed.ndim - 2)
    return changed, None, None


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, lu_, _lu_kernel)
    kernels(registry, plu_, _plu_kernel)
    registry.expansion(plu_, _plu, keep=True)
    kernels(registry, rows_taken_, _rows_kernel, blas=False)
    registry.expansion(rows_taken_, _rows, keep=True)
    registry.rule(
        rows_taken_,
        General(
            jvp=lambda primals, tangents, outs, back: (rows_taken_(tangents[0], primals[1], back=back),),
            vjp=lambda primals, outs, cotangents, back: (rows_taken_(cotangents[0], primals[1], back=not back), None),
        ),
    )
    kernels(
        registry,
        permutation_,
        lambda la, ins, outs, **_: lambda pivots, rows: _permutation(la, pivots, rows),
        sizes=lambda ins, outs, *, rows: (rows,),
        blas=False,
    )
    kernels(
        registry, lu_pivoted_, _pivoted_kernel, sizes=lambda ins, outs, *, rows, columns: (rows, columns), blas=False
    )
    register_formula(registry, lu_pivoted_, _pivoted)
    registry.rule(lu_, General(jvp=_jvp))
    registry.rule(permutation_, Inactive())
    registry.rule(
        lu_pivoted_,
        General(
            jvp=lambda primals, tangents, outs, **_: tangents,
            vjp=lambda primals, outs, cotangents, **_: cotangents,
        ),
    )
