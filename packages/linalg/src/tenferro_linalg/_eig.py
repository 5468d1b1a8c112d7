"""Eigenvalues and eigenvectors of general matrices.

For ``A V = V diag(w)`` with columns of norm 1, ``M = V^-1 dA V`` and ``E_ij = w_j - w_i``::

    dw = diag M        dV = V Q - V diag(Re v_j* (V Q)_j),  Q_ij = M_ij / E_ij,  Q_ii = 0
    A' = V^-* P V*     P = diag(w') + N_ij / conj(E_ij),    N = X - (V* V) Re diag X,  X = V* V'

(primes are cotangents). The phase of each vector is free, and the tangent changes it arbitrarily; a loss that depends
on it is refused. For real A the rules compute in complex arithmetic and return the real part of the derivative.
"""

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, cj, diagonal, from_diagonal, mm, re, scaled, to, total
from tenferro_linalg._apart import eig_apart_
from tenferro_linalg._nonnormal import certified, checked, condition, inverse, norm, quotient
from tenferro_linalg._operands import differentiated, matrices, require_inexact, require_square
from tenferro_linalg._pencils import pair
from tenferro_linalg._solve import solve
from tenferro_runtime.extension import General, Op, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import reduce_sum
from tenferro_tensor_core import complex_of
from tenferro_tensor_core.tracebacks import boundary


class EigResult(NamedTuple):
    """Eigendecomposition of general matrices; both parts are complex.

    Attributes:
        eigenvalues: in no particular order.
        eigenvectors: in the columns of a matrix, with norm 1.
    """

    eigenvalues: Array
    eigenvectors: Array


@boundary
def eig(x: Any, b: Any = None, /) -> EigResult:
    """Eigenvalues ``w`` and eigenvectors ``V`` of square matrices, ``A @ V = V @ diag(w)``, both complex.

    Differentiable where the loss does not depend on the phases of the vectors, which have norm 1, nor on the choice of
    vectors of equal eigenvalues. Where these do not determine the derivative, or are too few, the transforms compute it
    as a limit; `y.backward()` cannot. For Hermitian matrices use `eigh`.

    Args:
        x: matrices (..., n, n), real or complex.
        b: invertible matrices (..., n, n) of the generalised problem ``A V = B V diag(w)``; batch axes broadcast.

    Returns:
        Eigenvalues (..., n), in LAPACK's order, and eigenvectors (..., n, n) in columns, both complex.

    Raises:
        NumericalError: an entry is not finite, LAPACK does not converge, or `b` is singular.
        GaugeError: (gradient) the loss depends on the phase of a vector.
        DegenerateError: (gradient) the loss has a kink at equal eigenvalues, or they leave a bare backward pass
            undetermined.
        DefectiveError: (gradient) the vectors are linearly dependent up to rounding, and either the loss is not smooth
            there or this is a bare backward pass.

    >>> eig([[2.0, 1.0], [0.0, 3.0]]).eigenvalues
    Tensor([2.+0.j, 3.+0.j])
    """
    return EigResult(*eig_(_matrix("eig", x, b)))


@boundary
def eigvals(x: Any, b: Any = None, /) -> Array:
    """Eigenvalues of square matrices, complex, in LAPACK's order.

    The gradient exists where the loss treats equal eigenvalues equally, as the trace of a power does.

    Args:
        x: matrices (..., n, n), real or complex.
        b: invertible matrices (..., n, n) of the generalised problem, as for `eig`.

    Returns:
        Complex values (..., n).

    Raises:
        NumericalError: an entry is not finite, LAPACK does not converge, or `b` is singular.
        DegenerateError: (gradient) the loss treats equal eigenvalues differently.
        DefectiveError: (gradient) the vectors are linearly dependent up to rounding, and either the loss is not smooth
            there or this is a bare backward pass.

    >>> eigvals([[0.0, 1.0], [-1.0, 0.0]])
    Tensor([0.+1.j, 0.-1.j])
    """
    x = _matrix("eigvals", x, b)
    # A differentiated call keeps the vectors for its derivative.
    return eig_(x)[0] if differentiated(x) else eigvals_(x)


def _matrix(what: str, x: Any, b: Any) -> Any:
    """The matrix whose eigenvalues are requested."""
    if b is None:
        return matrices(what, x, square=True)
    x, b = pair(what, x, b)
    return solve(b, x)


def _specs(what: str, x: Spec) -> tuple[Spec, Spec]:
    require_inexact(what, x)
    require_square(what, x)
    vectors = x.with_(dtype=complex_of(x.dtype))
    return vectors.with_(shape=x.shape[:-1]), vectors


@primitive(family="tenferro-linalg.eig.v1", extension="linalg")
def eig_(x: Spec) -> tuple[Spec, Spec]:
    """Eigenvalues, and eigenvectors of norm 1."""
    return _specs("eig", x)


@primitive(family="tenferro-linalg.eigvals.v1", extension="linalg")
def eigvals_(x: Spec) -> Spec:
    """Eigenvalues."""
    return _specs("eigvals", x)[0]


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    (dx,), (w, v) = tangents, outs
    y = inverse(v)
    m, kappa = mm(y, to(dx, v.dtype), v), condition(y)
    m = checked(m, w, kappa, norm(m, 2), "tangent")
    dv = mm(v, quotient(m, w, kappa))
    stretch = re(reduce_sum(cj(v) * dv, axes=(v.ndim - 2,)))
    return diagonal(m), dv - scaled(v, to(stretch, v.dtype))


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    (x,), (w, v), (gw, gv) = primals, outs, cotangents
    y, vh = inverse(v), adjoint(v)
    kappa, p = condition(y), None
    if gv is not None:
        along = mm(vh, gv)
        n = along - scaled(mm(vh, v), to(re(diagonal(along)), v.dtype))
        scale = total(norm(gv, 2), None if gw is None else norm(gw, 1) * norm(w, 1))
        p = quotient(checked(n, w, kappa, scale, "cotangent"), cj(w), kappa)
    if gw is not None:
        p = total(p, from_diagonal(certified(gw, w, kappa, norm(gw, 1), gv is not None)))
    g = mm(adjoint(y), p, vh)
    return (g if x.spec.cplx else re(g),)


def _values_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (_jvp(primals, tangents, eig_(primals[0]))[0],)


def _values_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    return _vjp(primals, eig_(primals[0]), (cotangents[0], None))


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    """Eigenvectors without users are not computed."""
    return (eigvals_.op(), (0, None)) if used == (True, False) else None


def _apart(primals: Any, side: int) -> Any:
    return eig_apart_(primals[0], side=side)


def register(registry: Registry) -> None:
    """Kernels, rules and pruning of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, eig_, lambda la, ins, outs: lambda x: la.eig(la.finite("eig", x)))
    kernels(registry, eigvals_, lambda la, ins, outs: lambda x: la.eigvals(la.finite("eigvals", x)))
    registry.rule(eig_, General(jvp=_jvp, vjp=_vjp, apart=_apart))
    registry.rule(eigvals_, General(jvp=_values_jvp, vjp=_values_vjp, apart=_apart))
    registry.pruning(eig_, _prune)
