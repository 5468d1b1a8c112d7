"""Schur form ``A = Z T Z*``.

With ``M = Z* dA Z`` and L of `schur_rotation_` for ``-M``::

    Omega = L - L*,  dZ = Z Omega,  dT = triu(M + T Omega - Omega T)
    A' = Z (G - S) Z*,  G = triu(T'),  N = T* G - G T* + Z* Z',  S the adjoint rotation for strict lower(N - N*)

(primes are cotangents). In the complex form the phase of each column of Z is free; a loss that depends on one, as the
imaginary part of a diagonal entry of N shows, is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg._algebra import adjoint, mm, part, to, total
from tenferro_linalg._apart import eig_apart_
from tenferro_linalg._errors import GaugeError
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._nonnormal import norm
from tenferro_linalg._operands import common, flag, matrices, require_inexact, require_square, stacked
from tenferro_linalg.similarity._rotations import schur_rotation_, strict_lower
from tenferro_runtime.extension import Array, General, Registry, Spec, primitive
from tenferro_tensor import broadcast_shapes
from tenferro_tensor_core import complex_of
from tenferro_tensor_core.tracebacks import boundary


class SchurResult(NamedTuple):
    """Schur decomposition.

    Attributes:
        T: the triangular form.
        Z: unitary matrix with ``A = Z @ T @ Z*``.
    """

    T: Array
    Z: Array


@boundary
def schur(x: Any, /, output: str = "real") -> SchurResult:
    """Schur form ``A = Z @ T @ Z*``, with unitary Z and upper triangular T.

    Differentiable where the eigenvalues are distinct and the loss does not depend on the phases of the columns of Z.
    Eigenvalues are in LAPACK's order.

    Args:
        x: matrices (..., n, n).
        output: ``"real"`` for real T of real matrices, with a 2 by 2 block for each pair of complex eigenvalues;
            ``"complex"`` for a triangular T.

    Returns:
        T and Z, both (..., n, n), of the dtype of `x` or complex.

    Raises:
        ArgumentError: `output` is neither of the two.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        GaugeError: (gradient) the loss depends on the phase of a column of Z.
        DegenerateError: (gradient) equal eigenvalues leave a bare backward pass undetermined, or the real form has
            complex eigenvalues.

    >>> schur([[2.0, 1.0], [0.0, 3.0]]).T
    Tensor([[2., 1.],
            [0., 3.]])
    """
    flag("schur", "output", output, ("real", "complex"))
    x = matrices("schur", x, square=True)
    return SchurResult(*schur_(to(x, complex_of(x.dtype)) if output == "complex" else x))


@boundary
def rsf2csf(t: Any, z: Any, /) -> SchurResult:
    """Convert a real Schur form to the complex one.

    Args:
        t: real Schur forms (..., n, n).
        z: their unitary matrices (..., n, n); batch axes broadcast.

    Returns:
        T and Z, both (..., n, n) and complex.

    Raises:
        NumericalError: an entry is not finite, or LAPACK does not converge.
        ShapeError: the extents do not match.

    >>> rsf2csf([[2.0, 1.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]]).T.dtype
    dtype('complex128')
    """
    t, z = common(matrices("rsf2csf", t, square=True), matrices("rsf2csf", z, square=True))
    batch = broadcast_shapes(t.spec.shape[:-2], z.spec.shape[:-2])
    dtype = complex_of(t.dtype)
    triangle, turn = schur_(to(stacked(t, batch), dtype))
    return SchurResult(triangle, mm(to(stacked(z, batch), dtype), turn))


@primitive(family="tenferro-linalg.schur.v1", extension="linalg")
def schur_(x: Spec) -> tuple[Spec, Spec]:
    """T and Z; T is triangular for complex matrices, and has 2 by 2 blocks for real ones."""
    require_inexact("schur", x)
    require_square("schur", x)
    return x, x


@primitive(family="tenferro-linalg.schur_phases.v1", extension="linalg")
def schur_phases_(n: Spec, t: Spec, scale: Spec) -> Spec:
    """Return `n` after testing that its diagonal is real up to rounding."""
    return n


def _phases(xp: Any, n: Any, t: Any, scale: Any) -> tuple[Any, Any]:
    """`n`, and where its diagonal is not real."""
    size, eps = n.shape[-1], float(np.finfo(n.dtype).eps)
    rate = xp.abs(xp.diagonal(n, axis1=-2, axis2=-1).imag)
    if not size or 0 in rate.shape:
        return n, rate > 0
    values = xp.diagonal(t, axis1=-2, axis2=-1)
    gaps = xp.abs(values[..., :, None] - values[..., None, :]) + xp.where(xp.eye(size, dtype=bool), xp.inf, 0.0)
    # Cotangents of second order hold quotients by the smallest gap.
    noise = 1 + xp.abs(t).max(axis=(-2, -1)) / gaps.min(axis=(-2, -1))
    return n, rate > (64 * size * eps * noise * scale)[..., None]


def _phases_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(n: Any, t: Any, scale: Any) -> Any:
        bad = _phases(np, n, t, scale)[1]
        if bad.any():
            rate = np.abs(np.diagonal(n, axis1=-2, axis2=-1).imag)
            *batch, i = (int(k) for k in np.argwhere(bad)[0])
            where = f" of matrix {tuple(batch)} of the stack" if batch else ""
            raise GaugeError(
                f"schur: the loss depends on the phase of column {i} of Z{where}: a rotation changes it at the rate "
                f"{rate[(*batch, i)]:.3g}; use absolute values, or combinations like Z @ f(T) @ Z*",
                output="Z",
                pair=(i, i),
                batch=tuple(batch),
                gap=0.0,
            )
        return n

    return run


def _kernel(la: Any, ins: Any, outs: Any) -> Any:
    return lambda x: la.schur(la.finite("schur", x), "schur")


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    t, z = outs
    m = mm(adjoint(z), tangents[0], z)
    low = schur_rotation_(t, -strict_lower(m), turned=False)
    omega = low - adjoint(low)
    return part(m + mm(t, omega) - mm(omega, t), "upper"), mm(z, omega)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    (t, z), (gt, gz) = outs, cotangents
    n: Any = None
    scale = kept = None
    if gt is not None:
        kept, th = part(gt, "upper"), adjoint(t)
        n, scale = mm(th, kept) - mm(kept, th), norm(gt, 2) * norm(t, 2)
    if gz is not None:
        n, scale = total(n, mm(adjoint(z), gz)), total(scale, norm(gz, 2))
    if n.spec.cplx:
        n = schur_phases_(n, t, scale)
    s = schur_rotation_(t, strict_lower(n - adjoint(n)), turned=True)
    return (mm(z, total(kept, -s), adjoint(z)),)


def _apart(primals: Any, side: int) -> Any:
    return eig_apart_(primals[0], side=side)


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._degeneracy import PASSING
    from tenferro_linalg._providers import kernels

    kernels(registry, schur_, _kernel, devices=False)
    kernels(registry, schur_phases_, _phases_kernel, devices=False, blas=False)
    register_formula(registry, schur_phases_, _phases, loops=False)
    registry.rule(schur_, General(jvp=_jvp, vjp=_vjp, apart=_apart))
    registry.rule(schur_phases_, PASSING)
