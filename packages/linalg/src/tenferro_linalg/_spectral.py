"""Functions of Hermitian matrices that expose no vectors: exact first derivatives at every spectrum.

For ``F = V diag(f(w)) V*`` and ``M = V* dH V`` (Daleckii and Krein 1965)::

    dF = V (D o M) V*,   D_ij = (f(w_j) - f(w_i)) / (w_j - w_i),   D_ij = f'((w_i + w_j) / 2) where the gap is small

The derivative f' comes from differentiation itself: f is evaluated at a matrix of points, the mean of w_i and w_j
where they are close, and the tangent of such a point is M_ij. The same evaluation at points that do not move is taken
away, so that parameters of f do not enter there. `points` and `assembled` share that convention and are used together
only. Their operands w and V are functions of the matrix: first derivatives go through the matrix itself, w and V carry
the second ones.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_linalg._algebra import (
    adjoint,
    block,
    cj,
    columns,
    diagonal,
    from_diagonal,
    im,
    mm,
    part,
    re,
    rows,
    scaled,
    sym,
    to,
    total,
)
from tenferro_linalg._eigh import eigh_
from tenferro_linalg._operands import matrices, show
from tenferro_linalg._reports import report_second_order
from tenferro_runtime.batching import inner_array
from tenferro_runtime.extension import General, Inactive, Registry, ShapeError, Spec, primitive
from tenferro_tensor.catalog import pad, reduce_sum, stop_gradient
from tenferro_tensor_core import promote


def spectral_function(x: Any, f: Callable[[Any], Any], /) -> Any:
    """``f(H) = V @ diag(f(w)) @ V*`` for Hermitian matrices and any element-wise function.

    Unlike the same product written with `eigh`, it is differentiable at equal eigenvalues, whatever the loss. Second
    derivatives exist at distinct eigenvalues; elsewhere they are a typed error.

    Args:
        x: Hermitian matrices (..., n, n); of other matrices the Hermitian part.
        f: element-wise function of real arrays, real or complex valued, made of differentiable operations.

    Raises:
        ShapeError: `f` changes the shape.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        DegenerateError: (second derivative) eigenvalues are closer than the cube root of the rounding unit.

    >>> spectral_function([[2.0, 0.0], [0.0, 9.0]], lambda w: w * w)
    Tensor([[ 4.,  0.],
            [ 0., 81.]])
    """
    x = matrices("spectral_function", x, square=True)
    w, v = eigh_(x, basis="generic")
    at = points_(x, w, v, imaginary=False)
    g = _applied(f, diagonal(at))
    if not inner_array(x).level:
        return assembled_(x, w, v, g)
    still = _applied(f, stop_gradient(at))
    moves = [_applied(f, at) - still]
    if x.spec.cplx:
        moves.append(_applied(f, points_(x, w, v, imaginary=True)) - still)
    return assembled_(x, w, v, g, *moves)


def singular_function(x: Any, f: Callable[[Any], Any], /) -> Any:
    """``U @ diag(f(S)) @ Vh`` for any matrices (..., m, n) and an odd element-wise function, as in ``s**3`` or ``sin``.

    Unlike the same product written with `svd`, it is differentiable at equal and at zero singular values, whatever
    the loss. It is computed as ``f`` of the Hermitian matrix ``[[0, A], [A*, 0]]``, whose eigenvalues are S, -S and 0.

    Args:
        x: matrices (..., m, n).
        f: element-wise function of real arrays, positive and negative ones; of any function the odd part
            ``(f(s) - f(-s)) / 2`` counts.

    Raises:
        ShapeError: `f` changes the shape.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        DegenerateError: (second derivative) as for `spectral_function`; matrices that are not square have
            the eigenvalue 0 several times.

    >>> singular_function([[2.0, 0.0], [0.0, 3.0]], lambda s: s * s * s)[1, 1].round()
    Tensor(27.)
    """
    x = matrices("singular_function", x)
    m, n = x.spec.shape[-2:]
    zero = (0,) * (x.ndim - 2)
    corner = pad(x, 0.0, low=(*zero, 0, m), high=(*zero, n, 0), interior=(0,) * x.ndim)
    # `spectral_function` takes the Hermitian part, which halves the corner and mirrors it.
    return block(spectral_function(corner * 2.0, f), row=(0, m), column=(m, m + n))


def _applied(f: Callable[[Any], Any], at: Any) -> Any:
    g = f(at)
    if g.spec.shape != at.spec.shape:
        raise ShapeError(
            f"spectral_function: f maps eigenvalues element by element, but took shape {show(at.shape)} "
            f"to {show(g.shape)}; reduce the result instead",
            shapes=(at.shape, g.shape),
        )
    return g


@primitive(family="tenferro-linalg.spectral_points.v1", extension="linalg")
def points_(x: Spec, w: Spec, v: Spec, *, imaginary: bool) -> Spec:
    """Arguments of f (..., n, n): means of close eigenvalues; elsewhere the eigenvalue of the row."""
    return x.with_(dtype=w.dtype)


@primitive(family="tenferro-linalg.spectral_assembled.v1", extension="linalg")
def assembled_(x: Spec, w: Spec, v: Spec, g: Spec, *moves: Spec) -> Spec:
    """``V diag(g) V*`` from the values of f; `moves` are zero, and carry the derivative of f between close values."""
    return x.with_(dtype=promote(x.dtype, g.dtype))


@primitive(family="tenferro-linalg.spectral_close.v1", extension="linalg")
def close_(w: Spec) -> Spec:
    """1 for pairs of close eigenvalues, the diagonal included, else 0."""
    return w.with_(shape=(*w.shape, w.shape[-1]))


@primitive(family="tenferro-linalg.spectral_slopes.v1", extension="linalg")
def slopes_(g: Spec, w: Spec, *, strict: bool) -> Spec:
    """Numerators over ``w_j - w_i``, 0 for close pairs; where `strict`, a close pair off the diagonal is an error."""
    return g


def _close(xp: Any, w: Any) -> Any:
    """Pairs whose quotient would lose more digits than the mean value theorem."""
    gaps = xp.abs(w[..., None, :] - w[..., :, None])
    if not w.shape[-1]:
        return gaps <= 0
    return gaps <= float(np.cbrt(np.finfo(w.dtype).eps)) * xp.abs(w).max(axis=-1, keepdims=True)[..., None]


def _points_kernel(la: Any, ins: Any, outs: Any, *, imaginary: bool) -> Any:
    def run(x: Any, w: Any, v: Any) -> Any:
        down, across = w[..., :, None], w[..., None, :]
        return la.xp.where(_close(la.xp, w), down / 2 + across / 2, down)

    return run


def _assembled_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return lambda x, w, v, g, *moves: (v * g[..., None, :]) @ v.conj().swapaxes(-1, -2)


def _slopes_kernel(la: Any, ins: Any, outs: Any, *, strict: bool) -> Any:
    def run(g: Any, w: Any) -> Any:
        xp = la.xp
        close = _close(xp, w)
        if strict:
            bad = close & ~xp.eye(w.shape[-1], dtype=bool)
            if bool(bad.any()):
                raise report_second_order(la, w, bad, "difference", "spectral_function")
        gaps = xp.where(close, w.dtype.type(1), w[..., None, :] - w[..., :, None])
        return xp.where(close, g.dtype.type(0), g / gaps)

    return run


def _divided(g: Any, w: Any, like: Any) -> Any:
    """D_ij of the pairs that are not close."""
    return slopes_(columns(g, like) - rows(g, like), w, strict=False)


def _points_jvp(primals: Any, tangents: Any, outs: Any, *, imaginary: bool) -> tuple[Any]:
    (_, w, v), dx = primals, tangents[0]
    if dx is None:
        return (None,)
    m = sym(mm(adjoint(v), dx, v))
    return ((im(m) if imaginary else re(m)) * close_(w),)


def _points_vjp(primals: Any, outs: Any, cotangents: Any, *, imaginary: bool) -> tuple[Any, None, None]:
    _, w, v = primals
    g = to(cotangents[0] * close_(w), v.dtype)
    return mm(v, sym(g * 1j if imaginary else g), adjoint(v)), None, None


def _assembled_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (_, w, v, g, *_), (dx, _, _, dg, *moves) = primals, tangents
    dtype = outs[0].dtype
    inner = None if dx is None else _divided(g, w, v) * sym(mm(adjoint(v), dx, v))
    move = total(*[None if m is None else to(m, dtype) * 1j if i else to(m, dtype) for i, m in enumerate(moves)])
    if move is not None:
        inner = total(inner, part(move * close_(w), "off_diagonal"))
    inner = total(inner, None if dg is None else from_diagonal(dg))
    return (None if inner is None else to(mm(v, inner, adjoint(v)), dtype),)


def _assembled_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, ...]:
    (_, w, v, g, *moves), bar = primals, cotangents[0]
    c = mm(adjoint(v), bar, v)
    pulled = mm(v, sym(cj(_divided(g, w, v)) * c), adjoint(v))
    kept = part(c * close_(w), "off_diagonal") if moves else c
    shares = [_fitting(kept * -1j if i else kept, m) for i, m in enumerate(moves)]
    return (_fitting(pulled, v), None, None, _fitting(diagonal(c), g), *shares)


def _fitting(x: Any, like: Any) -> Any:
    """A cotangent for an operand: real where that is."""
    return to(x if like.spec.cplx else re(x), like.dtype)


def _slopes_jvp(primals: Any, tangents: Any, outs: Any, *, strict: bool) -> tuple[Any]:
    (_, w), (dg, dw), q = primals, tangents, outs[0]
    moved = None if dw is None else -(q * (columns(dw, q) - rows(dw, q)))
    change = total(dg, moved)
    return (None if change is None else slopes_(change, w, strict=True),)


def _slopes_vjp(primals: Any, outs: Any, cotangents: Any, *, strict: bool) -> tuple[Any, Any]:
    w, q = primals[1], outs[0]
    g = slopes_(cotangents[0], w, strict=True)
    pull = -re(cj(q) * g)
    return g, reduce_sum(pull, axes=(pull.ndim - 2,)) - reduce_sum(pull, axes=(pull.ndim - 1,))


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this page."""
    from tenferro_linalg._providers import kernels

    kernels(registry, points_, _points_kernel, blas=False)
    kernels(registry, assembled_, _assembled_kernel)
    kernels(registry, close_, lambda la, ins, outs: lambda w: _close(la.xp, w).astype(w.dtype), blas=False)
    kernels(registry, slopes_, _slopes_kernel, blas=False)
    registry.expansion(assembled_, lambda x, w, v, g, *moves: mm(scaled(v, g), adjoint(v)), keep=True)
    registry.rule(points_, General(jvp=_points_jvp, vjp=_points_vjp))
    registry.rule(assembled_, General(jvp=_assembled_jvp, vjp=_assembled_vjp))
    registry.rule(close_, Inactive())
    registry.rule(slopes_, General(jvp=_slopes_jvp, vjp=_slopes_vjp))
