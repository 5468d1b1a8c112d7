"""Toeplitz and circulant equations, in O(n^2) and O(n log n) operations.

A Toeplitz matrix is represented by its diagonals v, ``T[i, j] = v[n - 1 + j - i]``; its adjoint has them conjugated and
reversed. With the diagonal sums of ``-B' X*`` as the cotangent of v, the rules are those of `solve`. Products with
circulant matrices are circular convolutions, a bilinear primitive whose derivatives are convolutions again.
"""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, block, cj, mm, swap
from tenferro_linalg._operands import common, inexact, require_inexact, show
from tenferro_linalg.structured._matrices import by_diagonals
from tenferro_linalg.structured._right_sides import paired, single
from tenferro_runtime.extension import General, NumericalError, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import concatenate, pad, reduce_sum, reshape, reverse, slice_
from tenferro_tensor_core import ask, real_of
from tenferro_tensor_core.tracebacks import boundary


@boundary
def solve_toeplitz(c_or_cr: Any, b: Any, /) -> Array:
    """Solve ``T @ X = B`` for Toeplitz matrices, by Levinson's recursion in O(n^2) operations (Levinson 1947).

    Where the recursion breaks down or its residual is large, the matrix is factored by LU instead.

    Args:
        c_or_cr: the first column c (..., n), with its conjugate as the first row; or a tuple ``(c, r)`` with the first
            row, whose first entry is not read.
        b: right-hand sides: one vector (n,), or matrices (..., n, k).

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), of the promoted dtype.

    Raises:
        NumericalError: a matrix is singular, or an entry is not finite.
        ShapeError: the extents do not match.

    >>> solve_toeplitz([2.0, 1.0], [3.0, 3.0])
    Tensor([1., 1.])
    """
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c = inexact(c)
    r = cj(c) if r is None else inexact(r)
    c, r, b = common(c, r, inexact(b))
    n = _length("solve_toeplitz", c, r)
    batch = c.spec.shape[:-1]
    if ask(n, "==", 0):
        _, b, vector = paired("solve_toeplitz", reshape(c, shape=(*batch, 1, n)), b, n)
        return single(b + 0, vector)
    zero = (0,) * len(batch)
    row = slice_(r, start=(*zero, 1), limit=(*batch, n), stride=(1,) * r.ndim)
    v = concatenate(reverse(c, axes=(c.ndim - 1,)), row, axis=c.ndim - 1)
    v = reshape(v, shape=(*batch, 1, n + n - 1))
    v, b, vector = paired("solve_toeplitz", v, b, n)
    return single(toeplitz_solve_(v, b), vector)


@boundary
def solve_circulant(c: Any, b: Any, /) -> Array:
    """Solve ``C @ X = B`` for circulant matrices ``C[i, j] = c[(i - j) mod n]``, by Fourier transforms.

    Args:
        c: the first column (..., n).
        b: right-hand sides: one vector (n,), or matrices (..., n, k).

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), of the promoted dtype.

    Raises:
        NumericalError: a matrix is singular to working precision, or an entry is not finite.
        ShapeError: the extents do not match.

    >>> solve_circulant([2.0, 0.0], [2.0, 4.0])
    Tensor([1., 2.])
    """
    c, b = common(inexact(c), inexact(b))
    n = _length("solve_circulant", c, c)
    c, b, vector = paired("solve_circulant", reshape(c, shape=(*c.spec.shape[:-1], 1, n)), b, n)
    return single(circulant_solve_(c, b), vector)


def _length(what: str, c: Any, r: Any) -> Any:
    if c.ndim < 1 or c.spec.shape != r.spec.shape:
        raise ShapeError(
            f"{what} takes a first column and a first row of the same shape (..., n), got {show(c.spec.shape)} and "
            f"{show(r.spec.shape)}",
            shapes=(c.spec.shape, r.spec.shape),
        )
    return c.spec.shape[-1]


@primitive(family="tenferro-linalg.toeplitz_solve.v1", extension="linalg")
def toeplitz_solve_(v: Spec, b: Spec) -> Spec:
    """Solution of Toeplitz equations; `v` (..., 1, 2 n - 1) holds the diagonals."""
    require_inexact("solve_toeplitz", v, b)
    return b


@primitive(family="tenferro-linalg.circulant_solve.v1", extension="linalg")
def circulant_solve_(c: Spec, b: Spec) -> Spec:
    """Solution of circulant equations; `c` (..., 1, n) is the first column."""
    require_inexact("solve_circulant", c, b)
    return b


@primitive(family="tenferro-linalg.circulant_product.v1", extension="linalg")
def circulant_product_(c: Spec, x: Spec) -> Spec:
    """Products of circulant matrices, given by their first columns (..., 1, n), with matrices."""
    require_inexact("solve_circulant", c, x)
    return x


def _toeplitz_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return lambda v, b: la.toeplitz_solve(la.finite("solve_toeplitz", v)[..., 0, :], b)


def _spectrum(la: Any, c: Any) -> Any:
    return la.xp.fft.fft(c[..., 0, :], axis=-1)[..., None]


def _inverted(la: Any, f: Any, dtype: Any) -> Any:
    out = la.xp.fft.ifft(f, axis=-2)
    return (out if dtype.kind == "c" else out.real).astype(dtype)


def _circulant_kernel(la: Any, ins: Any, outs: Any) -> Any:
    dtype = outs[0].dtype
    eps = float(np.finfo(real_of(dtype)).eps)

    def run(c: Any, b: Any) -> Any:
        if 0 in b.shape:
            return la.xp.zeros(b.shape, dtype)
        values = _spectrum(la, la.finite("solve_circulant", c))
        size = la.xp.abs(values)[..., 0]
        small = la.local(size <= c.shape[-1] * eps * size.max(axis=-1, keepdims=True))
        if small.any():
            *batch, i = (int(j) for j in np.argwhere(small)[0])
            where = f"matrix {tuple(batch)} of the stack" if batch else "the matrix"
            raise NumericalError(
                f"solve_circulant: {where} is singular: its eigenvalue {i} is "
                f"{float(la.local(size)[(*batch, i)]):.1e}; use lstsq, or regularise the matrix",
                index=tuple(batch),
            )
        return _inverted(la, la.xp.fft.fft(b, axis=-2) / values, dtype)

    return run


def _product_kernel(la: Any, ins: Any, outs: Any) -> Any:
    dtype = outs[0].dtype

    def run(c: Any, x: Any) -> Any:
        if 0 in x.shape:
            return la.xp.zeros(x.shape, dtype)
        return _inverted(la, la.xp.fft.fft(x, axis=-2) * _spectrum(la, c), dtype)

    return run


def _turned(v: Any) -> Any:
    """The diagonals of the adjoint."""
    return reverse(cj(v), axes=(v.ndim - 1,))


def _diagonal_sums(y: Any, x: Any) -> Any:
    """Sums of the entries of ``y @ x*`` along the diagonals, (..., 1, 2 n - 1)."""
    m = reverse(mm(y, adjoint(x)), axes=(x.ndim - 2,))
    *batch, n = m.spec.shape[:-1]
    zero = (0,) * len(batch)
    wide = pad(m, 0.0, low=(0,) * m.ndim, high=(*zero, 0, n), interior=(0,) * m.ndim)
    # Rows of 2 n entries read as rows of 2 n - 1: row i moves by i places.
    flat = reshape(wide, shape=(*batch, 1, n * (n + n)))
    skewed = reshape(block(flat, column=(0, n * (n + n - 1))), shape=(*batch, n, n + n - 1))
    sums = reduce_sum(skewed, axes=(skewed.ndim - 2,))
    return reshape(sums, shape=(*batch, 1, n + n - 1))


def _toeplitz_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (v, _), (dv, right), (x,) = primals, tangents, outs
    if dv is not None:
        n = x.spec.shape[-2]
        dv = reshape(dv, shape=(*dv.spec.shape[:-2], dv.spec.shape[-1]))
        moved = -mm(by_diagonals(dv, n, n), x)
        right = moved if right is None else right + moved
    return (toeplitz_solve_(v, right),)


def _toeplitz_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any]:
    gb = toeplitz_solve_(_turned(primals[0]), cotangents[0])
    return -_diagonal_sums(gb, outs[0]), gb


def _mirrored(c: Any) -> Any:
    """The first column of the adjoint of a circulant matrix: ``conj(c[-i mod n])``."""
    n = c.spec.shape[-1]
    back = reverse(cj(c), axes=(c.ndim - 1,))
    return concatenate(block(back, column=(n - 1, n)), block(back, column=(0, n - 1)), axis=c.ndim - 1)


def _correlated(x: Any, g: Any) -> Any:
    """The cotangent of c for ``C(c) @ x`` with the cotangent g: the sum of circular correlations of columns."""
    *batch, n, k = x.spec.shape
    columns = reshape(swap(x), shape=(*batch, k, 1, n))
    each = circulant_product_(_mirrored(columns), reshape(swap(g), shape=(*batch, k, n, 1)))
    return reshape(reduce_sum(each, axes=(len(batch),)), shape=(*batch, 1, n))


def _circulant_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (c, _), (dc, right), (x,) = primals, tangents, outs
    if dc is not None:
        moved = -circulant_product_(dc, x)
        right = moved if right is None else right + moved
    return (circulant_solve_(c, right),)


def _circulant_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any]:
    gb = circulant_solve_(_mirrored(primals[0]), cotangents[0])
    return -_correlated(outs[0], gb), gb


def _product_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (c, x), (dc, dx) = primals, tangents
    terms = [circulant_product_(*pair) for pair in ((dc, x), (c, dx)) if None not in pair]
    return (terms[0] + terms[1] if len(terms) > 1 else terms[0],)


def _product_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any]:
    (c, x), (g,) = primals, cotangents
    return _correlated(x, g), circulant_product_(_mirrored(c), g)


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, toeplitz_solve_, _toeplitz_kernel)
    kernels(registry, circulant_solve_, _circulant_kernel)
    kernels(registry, circulant_product_, _product_kernel)
    registry.rule(toeplitz_solve_, General(jvp=_toeplitz_jvp, vjp=_toeplitz_vjp))
    registry.rule(circulant_solve_, General(jvp=_circulant_jvp, vjp=_circulant_vjp))
    registry.rule(circulant_product_, General(jvp=_product_jvp, vjp=_product_vjp))
