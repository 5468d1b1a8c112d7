"""Hessenberg form ``A = Q H Q*``.

With ``M = Q* dA Q`` and Omega of `hessenberg_rotation_` for M::

    dQ = Q Omega,  dH = M + H Omega - Omega H
    A' = Q (G + S) Q*,  G = H' where H may differ from zero,  S the adjoint rotation for H* G - G H* + Q* Q'

(primes are cotangents). The first column of Q is that of the identity, and the subdiagonal of H is real, so the form is
unique while no entry of the subdiagonal vanishes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg._algebra import adjoint, mm, total
from tenferro_linalg._operands import matrices, require_inexact, require_square
from tenferro_linalg.similarity._rotations import hessenberg_rotation_
from tenferro_runtime.extension import Array, General, Registry, Spec, primitive
from tenferro_tensor.catalog import iota, le, select
from tenferro_tensor_core import int64
from tenferro_tensor_core.tracebacks import boundary


class HessenbergResult(NamedTuple):
    """Hessenberg decomposition.

    Attributes:
        H: matrix with zeros below the first subdiagonal.
        Q: unitary matrix with ``A = Q @ H @ Q*``.
    """

    H: Array
    Q: Array


@boundary
def hessenberg(x: Any, /) -> HessenbergResult:
    """Hessenberg form ``A = Q @ H @ Q*``, with unitary Q and zeros below the subdiagonal of H.

    Differentiable where no entry of the subdiagonal vanishes (for real matrices, the last one may).

    Args:
        x: matrices (..., n, n).

    Returns:
        H and Q, both (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite.
        DegenerateError: (gradient) an entry of the subdiagonal is zero.

    >>> hessenberg([[1.0, 2.0], [3.0, 4.0]]).H
    Tensor([[1., 2.],
            [3., 4.]])
    """
    return HessenbergResult(*hessenberg_(matrices("hessenberg", x, square=True)))


@primitive(family="tenferro-linalg.hessenberg.v1", extension="linalg")
def hessenberg_(x: Spec) -> tuple[Spec, Spec]:
    """H and Q."""
    require_inexact("hessenberg", x)
    require_square("hessenberg", x)
    return x, x


def _kernel(la: Any, ins: Any, outs: Any) -> Any:
    dtype = outs[0].dtype
    gehrd = la.lapack("gehrd", dtype)
    make_q = la.lapack("unghr" if dtype.kind == "c" else "orghr", dtype)

    def run(x: Any) -> Any:
        la.finite("hessenberg", x)
        h, q = np.empty_like(x), np.empty_like(x)
        n = x.shape[-1]
        for index in np.ndindex(x.shape[:-2]) if x.size else ():
            if n == 1:
                h[index], q[index] = x[index], 1
                continue
            reflectors, tau, _ = gehrd(x[index], lwork=32 * n)
            h[index] = np.triu(reflectors, -1)
            q[index] = make_q(reflectors, tau, lwork=32 * n)[0]
        return h, q

    return run


def _form(x: Any) -> Any:
    """Zero the entries of `x` below the subdiagonal."""
    spec: Spec = x.spec
    rows, columns = (iota(shape=spec.shape, dtype=int64, axis=spec.ndim - k, place=spec.place) for k in (2, 1))
    return select(le(rows, columns + 1), x, 0)


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    h, q = outs
    m = mm(adjoint(q), tangents[0], q)
    omega = hessenberg_rotation_(h, m, turned=False)
    return _form(m + mm(h, omega) - mm(omega, h)), mm(q, omega)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    (h, q), (gh, gq) = outs, cotangents
    n: Any = None
    kept = None
    if gh is not None:
        kept, hh = _form(gh), adjoint(h)
        n = mm(hh, kept) - mm(kept, hh)
    if gq is not None:
        n = total(n, mm(adjoint(q), gq))
    s = hessenberg_rotation_(h, n, turned=True)
    return (mm(q, total(kept, s), adjoint(q)),)


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, hessenberg_, _kernel, devices=False)
    registry.rule(hessenberg_, General(jvp=_jvp, vjp=_vjp))
