"""Hermitian eigenvalues and eigenvectors.

For ``H = V diag(w) V*``, with ``M = V* dH V``::

    dw = Re diag M        dV = V Om,  Om_ij = M_ij / (w_j - w_i),  Om_ii = 0
    H' = V P V*           P = diag(w') + a_ij / (w_j - w_i),  a = skew(V* V')

(primes are cotangents). Values and derivatives depend only on the Hermitian part of the operand.
"""

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, diagonal, from_diagonal, mm, part, re, skew, sym, to, total
from tenferro_linalg._apart import eigh_apart_
from tenferro_linalg._bases import adapted_eigh, follows, generic_eigh, hermitian
from tenferro_linalg._degeneracy import certified, checked, cotangent_scale, quotient
from tenferro_linalg._operands import (
    basis,
    differentiated,
    flag,
    in_generic_basis,
    matrices,
    require_inexact,
    require_square,
)
from tenferro_linalg._pencils import hermitian_pencil
from tenferro_linalg._small import small_first
from tenferro_runtime.extension import General, GradientError, Op, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.functions import tril, triu
from tenferro_tensor_core import real_of
from tenferro_tensor_core.tracebacks import boundary


class EighResult(NamedTuple):
    """Eigendecomposition of Hermitian matrices.

    Attributes:
        eigenvalues: real, ascending.
        eigenvectors: in the columns of a matrix.
    """

    eigenvalues: Array
    eigenvectors: Array


@boundary
def eigh(x: Any, b: Any = None, /, *, type: int = 1, UPLO: str | None = None) -> EighResult:
    """Eigenvalues ``w`` and eigenvectors ``V`` of Hermitian matrices, ``H = V @ diag(w) @ V*``.

    Differentiable where the loss does not depend on phases, nor on the choice of vectors of equal eigenvalues. Where
    these do not determine the derivative, the transforms compute it as a limit; `y.backward()` cannot. In forward mode
    the vectors of equal eigenvalues are those that diagonalise the perturbation. Among the vectors of equal
    eigenvalues, plain calls return LAPACK's choice; recorded or traced calls return a fixed rotation of it, which
    exposes a loss that depends on the choice.

    Args:
        x: Hermitian matrices (..., n, n); of other matrices, the Hermitian part is decomposed.
        b: Hermitian positive definite matrices (..., n, n) of the generalised problem; batch axes broadcast. A string
            is `UPLO`.
        type: the generalised problem: 1 for ``A V = B V diag(w)``, 2 for ``A B V = V diag(w)``, 3 for
            ``B A V = V diag(w)``.
        UPLO: ``"L"`` or ``"U"`` reads only that triangle of `x`.

    Returns:
        Real eigenvalues (..., n), ascending, and orthonormal eigenvectors (..., n, n) in columns, of the dtype of `x`;
        with `b`, ``V* B V = I``, and ``V* B^-1 V = I`` for type 3.

    Raises:
        NumericalError: an entry is not finite, LAPACK does not converge, or `b` is not positive definite.
        GaugeError: (gradient) the loss depends on an arbitrary choice of vectors.
        DegenerateError: (gradient) the loss has a kink at equal eigenvalues, or they leave a bare backward pass
            undetermined.

    See also: `eigvalsh`, `eig`, `eigh_trunc`, `eigsh`.

    >>> eigh([[2.0, 1.0], [1.0, 2.0]]).eigenvalues
    Tensor([1., 3.])
    """
    b, UPLO = (None, b) if isinstance(b, str) else (b, UPLO)  # NumPy's place of the triangle
    x = x if UPLO is None else _of_triangle("eigh", x, UPLO)
    if b is not None:
        pencil = hermitian_pencil("eigh", x, b, type)
        w, y = eigh_(pencil.matrix, basis=basis(pencil.matrix))
        return EighResult(w, pencil.vectors(y))
    x = matrices("eigh", x, square=True)
    return EighResult(*eigh_(x, basis=basis(x)))


@boundary
def eigvalsh(x: Any, b: Any = None, /, *, type: int = 1, UPLO: str | None = None) -> Array:
    """Eigenvalues of Hermitian matrices, ascending.

    The gradient exists where the loss treats equal eigenvalues equally, as the trace of a power does.

    Args:
        x: Hermitian matrices (..., n, n); of other matrices, the Hermitian part is decomposed.
        b: Hermitian positive definite matrices of the generalised problem, as for `eigh`. A string is `UPLO`.
        type: the generalised problem, as for `eigh`.
        UPLO: ``"L"`` or ``"U"`` reads only that triangle of `x`.

    Returns:
        Real values (..., n) of the precision of `x`.

    Raises:
        NumericalError: an entry is not finite, LAPACK does not converge, or `b` is not positive definite.
        DegenerateError: (gradient) the loss has a kink at equal eigenvalues.

    >>> eigvalsh([[2.0, 1.0], [1.0, 2.0]])
    Tensor([1., 3.])
    """
    b, UPLO = (None, b) if isinstance(b, str) else (b, UPLO)
    x = x if UPLO is None else _of_triangle("eigvalsh", x, UPLO)
    x = matrices("eigvalsh", x, square=True) if b is None else hermitian_pencil("eigvalsh", x, b, type).matrix
    # A differentiated call keeps the vectors for its derivative.
    return eigh_(x, basis="generic")[0] if differentiated(x) else eigvalsh_(x)


def _of_triangle(what: str, x: Any, triangle: str) -> Any:
    """The Hermitian matrices whose lower or upper triangle is that of `x`."""
    flag(what, "UPLO", triangle, ("L", "U"))
    x = matrices(what, x, square=True)
    inner, strict = (tril(x), tril(x, k=-1)) if triangle == "L" else (triu(x), triu(x, k=1))
    return inner + adjoint(strict)  # the Hermitian part drops imaginary parts of the diagonal


def _specs(what: str, x: Spec) -> tuple[Spec, Spec]:
    require_inexact(what, x)
    require_square(what, x)
    return x.with_(shape=x.shape[:-1], dtype=real_of(x.dtype)), x


@primitive(family="tenferro-linalg.eigh.v1", extension="linalg")
def eigh_(x: Spec, *, basis: str) -> tuple[Spec, Spec]:
    """Eigenvalues and eigenvectors of the Hermitian part; `basis` of equal values ``"plain"`` or ``"generic"``."""
    return _specs("eigh", x)


@primitive(family="tenferro-linalg.eigvalsh.v1", extension="linalg")
def eigvalsh_(x: Spec) -> Spec:
    """Eigenvalues of the Hermitian part."""
    return _specs("eigvalsh", x)[0]


@primitive(family="tenferro-linalg.eigh_adapted.v1", extension="linalg")
def eigh_adapted_(x: Spec, dx: Spec) -> tuple[Spec, Spec]:
    """Eigenvalues and eigenvectors; the basis of equal values diagonalises the perturbation `dx`."""
    return _specs("eigh", x)


def _eigh_kernel(la: Any, ins: Any, outs: Any, *, basis: str = "plain") -> Any:
    plain = small_first(la, "eigh", ins, lambda x: tuple(la.eigh(hermitian(la.finite("eigh", x)))))
    if basis == "plain":
        return plain

    def generic(x: Any) -> Any:
        w, v = plain(x)
        return w, generic_eigh(la, w, v)

    return generic


def _adapted_kernel(la: Any, ins: Any, outs: Any) -> Any:
    plain = _eigh_kernel(la, ins, outs)

    def adapted(x: Any, dx: Any) -> Any:
        w, v = plain(x)
        return w, adapted_eigh(la, w, v, dx)

    return adapted


def _jvp(primals: Any, tangents: Any, outs: Any, **_: Any) -> tuple[Any, Any]:
    (dx,), (w, v) = tangents, outs
    n = dx.shape[-1]
    m = sym(mm(adjoint(v), dx, v))
    m = checked(m, w, cotangent_scale(w, m), "difference", "tangent", "eigh", n)
    om = quotient(part(m, "off_diagonal"), w, "difference", "eigh", n)
    return re(diagonal(m)), mm(v, om)


def _forward(primals: Any, tangents: Any, **_: Any) -> tuple[Any, Any]:
    outs = eigh_adapted_(*primals, *tangents) if follows(*primals, *tangents) else eigh_(*primals, basis="generic")
    return outs, _jvp(primals, tangents, outs)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, basis: str = "generic") -> tuple[Any]:
    (w, v), (gw, gv) = outs, cotangents
    if basis != "generic":
        raise GradientError(
            "eigh in a plain basis is not differentiable in reverse; call eigh on the differentiated value itself"
        )
    n, p = v.shape[-1], None
    if gv is not None:
        a = skew(mm(adjoint(v), gv))
        a = checked(a, w, cotangent_scale(w, gv, gw), "difference", "cotangent", "eigh", n)
        p = quotient(a, w, "difference", "eigh", n)
    if gw is not None:
        p = total(p, to(from_diagonal(certified(gw, w, (gv,), "eigh", n)), v.dtype))
    return (mm(v, p, adjoint(v)),)


def values_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (_jvp(primals, tangents, eigh_(primals[0], basis="generic"))[0],)


def _values_forward(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (w, _), (dw, _) = _forward(primals, tangents)
    return (w,), (dw,)


def values_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    return _vjp(primals, eigh_(primals[0], basis="generic"), (cotangents[0], None))


def _adapted_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    """In second order the basis itself must not move: defined only without equal values."""
    if tangents[0] is None:
        return None, None
    return _jvp(primals, tangents[:1], outs)


def _adapted_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, None]:
    return (*_vjp(primals, outs, cotangents), None)


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    """Eigenvectors without users are not computed."""
    return (eigvalsh_.op(), (0, None)) if used == (True, False) else None


def _apart(primals: Any, side: int, **_: Any) -> Any:
    return eigh_apart_(primals[0], side=side)


def register(registry: Registry) -> None:
    """Kernels, rules and pruning of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, eigh_, _eigh_kernel)
    kernels(
        registry,
        eigvalsh_,
        lambda la, ins, outs: small_first(
            la, "eigvalsh", ins, lambda x: la.eigvalsh(hermitian(la.finite("eigvalsh", x)))
        ),
    )
    kernels(registry, eigh_adapted_, _adapted_kernel)
    registry.rule(eigh_, General(jvp=_jvp, vjp=_vjp, forward=_forward, apart=_apart, recorded=in_generic_basis))
    registry.rule(eigvalsh_, General(jvp=values_jvp, vjp=values_vjp, forward=_values_forward, apart=_apart))
    registry.rule(eigh_adapted_, General(jvp=_adapted_jvp, vjp=_adapted_vjp, apart=_apart))
    registry.pruning(eigh_, _prune)
