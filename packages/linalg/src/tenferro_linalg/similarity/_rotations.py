"""Derivatives of the unitary factors of similarity transformations: linear maps of a perturbation, and their adjoints.

In the basis of the form, the perturbation M rotates the factor by a skew-Hermitian Omega, such that the form keeps its
zeros in ``M + T Omega - Omega T``. For the Schur form, ``Omega = L - L*`` with strictly lower L, and::

    strict lower(T L - L T) = K,  K = -strict lower(M)        adjoint: strict lower(T* S - S T*) = K

is solved column by column. For the Hessenberg form, whose first column is fixed and whose subdiagonal stays real, each
column of ``Omega H - H Omega = M`` below the diagonal determines the next one of Omega. Both maps are closed under
differentiation: their derivatives apply them, or their adjoints, to other matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, mm, part, total
from tenferro_linalg._errors import DegenerateError
from tenferro_runtime.extension import General, Registry, Spec, primitive


@primitive(family="tenferro-linalg.schur_rotation.v1", extension="linalg")
def schur_rotation_(t: Spec, k: Spec, *, turned: bool) -> Spec:
    """L with ``strict lower(t L - L t) = k``, or for ``t*`` if `turned`; only the strictly lower part of k is used."""
    return k


@primitive(family="tenferro-linalg.hessenberg_rotation.v1", extension="linalg")
def hessenberg_rotation_(h: Spec, m: Spec, *, turned: bool) -> Spec:
    """Omega for the perturbation m of the Hessenberg form h; if `turned`, the adjoint of that map at m."""
    return m


def _schur_kernel(la: Any, ins: Any, outs: Any, *, turned: bool) -> Any:
    dtype = outs[0].dtype
    trtrs, eps = la.lapack("trtrs", dtype), float(np.finfo(dtype).eps)

    def run(t: Any, k: Any) -> Any:
        out = np.zeros_like(k)
        for index in np.ndindex(k.shape[:-2]) if k.size else ():
            _require_distinct(t[index], index, eps)
            _schur_columns(trtrs, t[index], k[index], out[index], turned)
        return out

    return run


def _schur_columns(trtrs: Any, t: Any, k: Any, out: Any, turned: bool) -> None:
    n = len(t)
    identity = np.eye(n, dtype=t.dtype)
    for j in reversed(range(n - 1)) if turned else range(n - 1):
        below = slice(j + 1, n)
        known = out[below, below] @ t[j, below].conj() if turned else out[below, :j] @ t[:j, j]
        matrix = t[below, below] - t[j, j] * identity[below, below]
        out[below, j] = trtrs(matrix, k[below, j] + known, trans=2 if turned else 0)[0]


def _require_distinct(t: Any, index: tuple[int, ...], eps: float) -> None:
    """Raise where the rotation is undetermined: at equal eigenvalues, and at blocks of complex ones."""
    n, values = len(t), np.diagonal(t)
    where = f" of matrix {index} of the stack" if index else ""
    blocks = np.flatnonzero(np.diagonal(t, -1))
    if len(blocks):
        i = int(blocks[0])
        raise DegenerateError(
            f"schur: the real form{where} has complex eigenvalues in rows {i} and {i + 1}, and its derivatives are "
            'not available there; use output="complex"',
            output="T and Z",
            pair=(i, i + 1),
            batch=index,
            gap=float(abs(t[i + 1, i])),
        )
    gaps = np.abs(values[:, None] - values) + np.where(np.eye(n, dtype=bool), np.inf, 0)
    if n > 1 and gaps.min() <= 8 * n * eps * np.abs(t).max():
        i, j = (int(p) for p in np.unravel_index(int(gaps.argmin()), gaps.shape))
        raise DegenerateError(
            f"schur: the eigenvalues T[{i}, {i}] = {values[i]:.6g} and T[{j}, {j}] = {values[j]:.6g} "
            f"(gap {gaps[i, j]:.1e}){where} are equal and leave Z undetermined; grad, vjp and jvp evaluate the "
            "function at nearby points instead, a bare backward pass cannot; or use a function of the matrix (expm, "
            "funm, inv)",
            output="Z",
            pair=(i, j),
            batch=index,
            gap=float(gaps[i, j]),
            beside=True,
        )


def _hessenberg_kernel(la: Any, ins: Any, outs: Any, *, turned: bool) -> Any:
    eps = float(np.finfo(outs[0].dtype).eps)

    def run(h: Any, m: Any) -> Any:
        out = np.zeros_like(m)
        for index in np.ndindex(m.shape[:-2]) if m.size else ():
            _require_unreduced(h[index], index, eps)
            (_hessenberg_adjoint if turned else _hessenberg_columns)(h[index], m[index], out[index])
        return out

    return run


def _hessenberg_columns(h: Any, m: Any, omega: Any) -> None:
    for j in range(_steps(h)):
        below = slice(j + 1, len(h))
        column = m[below, j] + h[below] @ omega[:, j] - omega[below, : j + 1] @ h[: j + 1, j]
        _keep_phase(column)
        column /= h[j + 1, j].real
        omega[j + 1, below] = -column.conj()
        omega[below, j + 1] = column


def _hessenberg_adjoint(h: Any, g: Any, out: Any) -> None:
    g = g.copy()
    for j in reversed(range(_steps(h))):
        below = slice(j + 1, len(h))
        column = g[below, j + 1].copy()
        column[1:] -= g[j + 1, j + 2 :].conj()
        column /= h[j + 1, j].real
        _keep_phase(column)
        out[below, j] = column
        g[:, j] += h[below].conj().T @ column
        g[below, : j + 1] -= np.outer(column, h[: j + 1, j].conj())


def _steps(h: Any) -> int:
    """Columns that determine the next one; the last one only has a phase to fix."""
    return max(len(h) - (1 if h.dtype.kind == "c" else 2), 0)


def _keep_phase(column: Any) -> None:
    """Omega is imaginary on the diagonal, which keeps the subdiagonal of the form real."""
    column[0] = 1j * column[0].imag if column.dtype.kind == "c" else 0


def _require_unreduced(h: Any, index: tuple[int, ...], eps: float) -> None:
    below = np.abs(np.diagonal(h, -1))[: _steps(h)]
    bad = below <= 8 * len(h) * eps * np.abs(h).max()
    if bad.any():
        j = int(np.flatnonzero(bad)[0])
        where = f" of matrix {index} of the stack" if index else ""
        raise DegenerateError(
            f"hessenberg: H[{j + 1}, {j}] = {below[j]:.3g}{where} is zero and leaves the later columns of Q "
            "undetermined; use a function of the matrix instead",
            output="Q",
            pair=(j + 1, j),
            batch=index,
            gap=float(below[j]),
        )


def _commutator(x: Any, y: Any) -> Any:
    return mm(x, y) - mm(y, x)


def _schur_jvp(primals: Any, tangents: Any, outs: Any, *, turned: bool) -> tuple[Any]:
    (t, _), (dt, dk), (x,) = primals, tangents, outs
    moved = None if dt is None else -_commutator(adjoint(dt) if turned else dt, x)
    return (schur_rotation_(t, total(dk, moved), turned=turned),)


def _schur_vjp(primals: Any, outs: Any, cotangents: Any, *, turned: bool) -> tuple[Any, Any]:
    (t, _), (x,) = primals, outs
    s = schur_rotation_(t, cotangents[0], turned=not turned)
    by = -_commutator(s, adjoint(x))
    return adjoint(by) if turned else by, s


def _hessenberg_jvp(primals: Any, tangents: Any, outs: Any, *, turned: bool) -> tuple[Any]:
    (h, _), (dh, dm), (x,) = primals, tangents, outs
    moved = None if dh is None else _commutator(adjoint(dh) if turned else dh, x)
    return (hessenberg_rotation_(h, total(dm, moved), turned=turned),)


def _hessenberg_vjp(primals: Any, outs: Any, cotangents: Any, *, turned: bool) -> tuple[Any, Any]:
    (h, _), (x,) = primals, outs
    other = hessenberg_rotation_(h, cotangents[0], turned=not turned)
    omega, kept = (other, x) if turned else (x, other)
    return _commutator(omega, kept), other


def strict_lower(x: Any) -> Any:
    """The part below the diagonal."""
    return part(x, "strict_lower")


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, schur_rotation_, _schur_kernel, devices=False)
    kernels(registry, hessenberg_rotation_, _hessenberg_kernel, devices=False)
    registry.rule(schur_rotation_, General(jvp=_schur_jvp, vjp=_schur_vjp))
    registry.rule(hessenberg_rotation_, General(jvp=_hessenberg_jvp, vjp=_hessenberg_vjp))
