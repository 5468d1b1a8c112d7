"""Eigenvalues and eigenvectors of real symmetric tridiagonal matrices, given by two diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg._algebra import block, diagonal, from_diagonal, swap
from tenferro_linalg._eigh import EighResult, eigh, values_jvp, values_vjp
from tenferro_linalg._operands import common, inexact, show, stacked
from tenferro_runtime.extension import ArgumentError, General, NumericalError, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor.catalog import pad, reshape
from tenferro_tensor_core import ask
from tenferro_tensor_core.tracebacks import boundary


@boundary
def eigh_tridiagonal(d: Any, e: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric tridiagonal matrices.

    Args:
        d: real diagonals (..., n).
        e: real off-diagonals (..., n - 1); batch axes broadcast.

    Returns:
        Eigenvalues (..., n), ascending, and orthonormal eigenvectors (..., n, n) in columns, with the derivatives of
        `eigh`.

    Raises:
        ArgumentError: a diagonal is complex.
        ShapeError: the extents do not match.
        NumericalError: an entry is not finite.
        GaugeError: (gradient) the loss depends on an arbitrary choice of vectors.
        DegenerateError: (gradient) the loss has a kink at equal eigenvalues.

    >>> eigh_tridiagonal([2.0, 2.0], [1.0]).eigenvalues
    Tensor([1., 3.])
    """
    return eigh(_dense(*_diagonals("eigh_tridiagonal", d, e)))


@boundary
def eigvalsh_tridiagonal(d: Any, e: Any, /) -> Array:
    """Eigenvalues of symmetric tridiagonal matrices, ascending, in O(n^2) operations.

    Args:
        d: real diagonals (..., n).
        e: real off-diagonals (..., n - 1); batch axes broadcast.

    Returns:
        Real values (..., n) of the promoted dtype.

    Raises:
        ArgumentError: a diagonal is complex.
        ShapeError: the extents do not match.
        NumericalError: an entry is not finite.
        DegenerateError: (gradient) the loss has a kink at equal eigenvalues.

    >>> eigvalsh_tridiagonal([2.0, 2.0], [1.0])
    Tensor([1., 3.])
    """
    return eigvalsh_tridiagonal_(*_diagonals("eigvalsh_tridiagonal", d, e))


def _diagonals(what: str, d: Any, e: Any) -> tuple[Any, Any]:
    d, e = common(inexact(d), inexact(e))
    if d.spec.cplx:
        raise ArgumentError(f"{what} takes real diagonals, got {d.dtype.name}; the dense matrix may be complex in eigh")
    if not d.ndim or not e.ndim or not ask(d.spec.shape[-1], "==", e.spec.shape[-1] + 1):
        raise ShapeError(
            f"{what} takes diagonals (..., n) and off-diagonals (..., n - 1), "
            f"got shapes {show(d.spec.shape)} and {show(e.spec.shape)}",
            shapes=(d.spec.shape, e.spec.shape),
        )
    batch = broadcast_shapes(d.spec.shape[:-1], e.spec.shape[:-1])
    return _over(d, batch), _over(e, batch)


def _over(v: Any, batch: tuple[Any, ...]) -> Any:
    """Broadcast vectors over batch axes."""
    wide = stacked(reshape(v, shape=(*v.spec.shape, 1)), batch)
    return reshape(wide, shape=wide.spec.shape[:-1])


def _dense(d: Any, e: Any) -> Any:
    zero = (0,) * (d.ndim - 1)
    below = pad(from_diagonal(e), 0.0, low=(*zero, 1, 0), high=(*zero, 0, 1), interior=(0,) * (d.ndim + 1))
    return from_diagonal(d) + below + swap(below)


@primitive(family="tenferro-linalg.eigvalsh_tridiagonal.v1", extension="linalg")
def eigvalsh_tridiagonal_(d: Spec, e: Spec) -> Spec:
    """Eigenvalues from the diagonal and the off-diagonal."""
    return d


def _kernel(la: Any, ins: Any, outs: Any) -> Any:
    sterf = la.lapack("sterf", outs[0].dtype)

    def run(d: Any, e: Any) -> Any:
        out = np.empty_like(la.finite("eigvalsh_tridiagonal", d))
        la.finite("eigvalsh_tridiagonal", e)
        for index in np.ndindex(d.shape[:-1]):
            if d.shape[-1] == 1:
                out[index] = d[index]
                continue
            out[index], info = sterf(d[index], e[index])
            if info:
                raise NumericalError(f"eigvalsh_tridiagonal: matrix {index} did not converge; rescale it", index=index)
        return out

    return run


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    d, e = primals
    change = _dense(*[x * 0.0 if t is None else t for x, t in zip(primals, tangents)])
    return values_jvp((_dense(d, e),), (change,), outs)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any]:
    (g,) = values_vjp((_dense(*primals),), outs, cotangents)
    n = g.spec.shape[-1]
    below = diagonal(block(g, row=(1, n), column=(0, n - 1)))
    return diagonal(g), below * 2.0


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, eigvalsh_tridiagonal_, _kernel, devices=False)
    registry.rule(eigvalsh_tridiagonal_, General(jvp=_jvp, vjp=_vjp))
