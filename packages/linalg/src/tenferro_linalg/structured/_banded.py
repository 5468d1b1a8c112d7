"""Banded equations.

A matrix with `lower` diagonals below the main one and `upper` above is stored by diagonals, as in LAPACK:
``ab[upper + i - j, j] = A[i, j]``. For ``A X = B``: ``dX = A^-1 (dB - dA X)``, ``B' = A^-* X'``, and the cotangent of
``ab`` has the entries of ``-B' X*`` on these diagonals.
"""

from typing import Any

from tenferro_linalg._algebra import block, cj, re, to
from tenferro_linalg._operands import common, inexact, integer, matrices, require_inexact, show
from tenferro_linalg.structured._right_sides import paired, single
from tenferro_runtime.extension import ArgumentError, General, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import broadcast_in_dim, concatenate, pad, reduce_sum, reshape
from tenferro_tensor_core import ask
from tenferro_tensor_core.tracebacks import boundary


@boundary
def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any, /) -> Array:
    """Solve ``A @ X = B`` for banded matrices.

    Args:
        l_and_u: numbers of diagonals below and above the main one.
        ab: diagonals (..., l + u + 1, n), ``ab[u + i - j, j] = A[i, j]``; entries outside the matrix are not read.
        b: right-hand sides: one vector (n,), or matrices (..., n, k).

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), of the promoted dtype.

    Raises:
        ArgumentError: a number of diagonals is negative.
        NumericalError: a matrix is singular, or an entry is not finite.
        ShapeError: the extents do not match.
        UnsupportedError: the data are on an accelerator.

    >>> solve_banded((1, 0), [[2.0, 4.0], [1.0, 0.0]], [2.0, 3.0])
    Tensor([1. , 0.5])
    """
    lower, upper = (integer("solve_banded", name, d) for name, d in zip(("l", "u"), l_and_u, strict=True))
    if lower < 0 or upper < 0:
        raise ArgumentError(f"solve_banded: there are no {lower} diagonals below and {upper} above", l_and_u=l_and_u)
    ab, b = common(matrices("solve_banded", ab), inexact(b))
    if not ask(ab.spec.shape[-2], "==", lower + upper + 1):
        raise ShapeError(
            f"solve_banded: (l, u) = ({lower}, {upper}) needs {lower + upper + 1} diagonals, got shape "
            f"{show(ab.spec.shape)}",
            shape=ab.spec.shape,
        )
    ab, b, vector = paired("solve_banded", ab, b, ab.spec.shape[-1])
    return single(banded_solve_(_inside(ab, lower, upper), b, lower=lower, upper=upper, positive=False), vector)


@boundary
def solveh_banded(ab: Any, b: Any, /, *, lower: bool = False) -> Array:
    """Solve ``A @ X = B`` for Hermitian positive definite banded matrices.

    Args:
        ab: diagonals (..., u + 1, n) of the upper triangle, ``ab[u + i - j, j] = A[i, j]``, or of the lower one,
            ``ab[i - j, j] = A[i, j]``; only the real part of the main diagonal is used.
        b: right-hand sides: one vector (n,), or matrices (..., n, k).
        lower: which triangle `ab` holds.

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), of the promoted dtype.

    Raises:
        NumericalError: a matrix is not positive definite, or an entry is not finite.
        ShapeError: the extents do not match.
        UnsupportedError: the data are on an accelerator.

    >>> solveh_banded([[0.0, 0.0], [2.0, 4.0]], [2.0, 2.0])
    Tensor([1. , 0.5])
    """
    ab, b = common(matrices("solveh_banded", ab), inexact(b))
    width = ab.spec.shape[-2] - 1
    if not isinstance(width, int) or width < 0:
        raise ShapeError(
            f"solveh_banded needs a known number of diagonals, at least one, got shape {show(ab.spec.shape)}",
            shape=ab.spec.shape,
        )
    ab = _inside(ab, width if lower else 0, 0 if lower else width)
    main = to(re(_row(ab, 0 if lower else width)), ab.dtype)
    given = [_row(ab, k if lower else width - k) for k in range(1, width + 1)]
    below = given if lower else [cj(_shifted(d, -k - 1)) for k, d in enumerate(given)]
    above = [cj(_shifted(d, k + 1)) for k, d in enumerate(given)] if lower else given
    whole = concatenate(*above[::-1], main, *below, axis=ab.ndim - 2) if width else main
    whole, b, vector = paired("solveh_banded", whole, b, ab.spec.shape[-1])
    return single(banded_solve_(whole, b, lower=width, upper=width, positive=True), vector)


@primitive(family="tenferro-linalg.banded_solve.v1", extension="linalg")
def banded_solve_(ab: Spec, b: Spec, *, lower: int, upper: int, positive: bool) -> Spec:
    """Solution of banded equations; `positive` means Hermitian positive definite, with both triangles given."""
    require_inexact("solve_banded", ab, b)
    return b


def _row(x: Any, i: int) -> Any:
    return block(x, row=(i, i + 1))


def _shifted(x: Any, s: int) -> Any:
    """Entries shifted by `s` along the last axis, filled with zeros."""
    if not s:
        return x
    n = x.spec.shape[-1]
    zero = (0,) * (x.ndim - 1)
    wide = pad(x, 0.0, low=(*zero, max(s, 0)), high=(*zero, max(-s, 0)), interior=(0,) * x.ndim)
    return block(wide, column=(0, n) if s > 0 else (-s, n - s))


def _inside(ab: Any, lower: int, upper: int) -> Any:
    """Zero the entries of the diagonals outside the matrix."""
    rows = []
    for d in range(lower + upper + 1):
        s = d - upper  # row minus column
        rows.append(_shifted(_shifted(_row(ab, d), s), -s))
    return concatenate(*rows, axis=ab.ndim - 2) if len(rows) > 1 else rows[0]


def _turned(x: Any, s: int) -> Any:
    """Rows (..., n, k) shifted by `s`."""
    if not s:
        return x
    n = x.spec.shape[-2]
    zero = (0,) * (x.ndim - 2)
    wide = pad(x, 0.0, low=(*zero, max(s, 0), 0), high=(*zero, max(-s, 0), 0), interior=(0,) * x.ndim)
    return block(wide, row=(0, n) if s > 0 else (-s, n - s))


def _column(ab: Any, d: int, like: Any) -> Any:
    row = _row(ab, d)
    flat = reshape(row, shape=(*row.spec.shape[:-2], row.spec.shape[-1]))
    return broadcast_in_dim(flat, shape=like.spec.shape, dims=tuple(range(flat.ndim)))


def _times(ab: Any, x: Any, lower: int, upper: int) -> Any:
    """``A @ x``."""
    return sum([_turned(_column(ab, d, x) * x, d - upper) for d in range(lower + upper + 1)])


def _diagonals(y: Any, x: Any, lower: int, upper: int) -> Any:
    """The diagonals of ``y @ x*``."""
    rows = []
    for d in range(lower + upper + 1):
        row = reduce_sum(_turned(y, upper - d) * cj(x), axes=(x.ndim - 1,))
        rows.append(reshape(row, shape=(*row.spec.shape[:-1], 1, row.spec.shape[-1])))
    return concatenate(*rows, axis=x.ndim - 2) if len(rows) > 1 else rows[0]


def _adjoint(ab: Any, lower: int, upper: int) -> Any:
    """The diagonals of the adjoint, with `upper` of them below the main one and `lower` above."""
    rows = [_shifted(cj(_row(ab, lower + upper - d)), lower - d) for d in range(lower + upper + 1)]
    return concatenate(*rows, axis=ab.ndim - 2) if len(rows) > 1 else rows[0]


def _kernel(la: Any, ins: Any, outs: Any, *, lower: int, upper: int, positive: bool) -> Any:
    what = "solveh_banded" if positive else "solve_banded"
    return lambda ab, b: la.banded_solve(la.finite(what, ab), b, lower, upper, positive)


def _jvp(primals: Any, tangents: Any, outs: Any, *, lower: int, upper: int, positive: bool) -> tuple[Any]:
    (ab, _), (dab, right), (x,) = primals, tangents, outs
    if dab is not None:
        moved = -_times(dab, x, lower, upper)
        right = moved if right is None else right + moved
    return (banded_solve_(ab, right, lower=lower, upper=upper, positive=positive),)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, lower: int, upper: int, positive: bool) -> tuple[Any, Any]:
    ab, x, g = primals[0], outs[0], cotangents[0]
    if positive:
        gb = banded_solve_(ab, g, lower=lower, upper=upper, positive=True)
    else:
        gb = banded_solve_(_adjoint(ab, lower, upper), g, lower=upper, upper=lower, positive=False)
    return -_diagonals(gb, x, lower, upper), gb


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, banded_solve_, _kernel)
    registry.rule(banded_solve_, General(jvp=_jvp, vjp=_vjp))
