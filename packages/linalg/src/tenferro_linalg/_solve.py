"""Linear equations: solve, triangular solve, inverse.

For ``A X = B``: ``dX = A^-1 (dB - dA X)``, ``B' = A^-* X'``, ``A' = -B' X*``; for ``Y = A^-1``: ``dY = -Y dA Y``,
``A' = -Y* Y' Y*`` (primes are cotangents). Derivatives reuse the factors of the forward solution.
"""

from typing import Any

from tenferro_linalg._algebra import adjoint, cj, mm, part, total
from tenferro_linalg._operands import (
    common,
    flag,
    inexact,
    matrices,
    require_inexact,
    require_square,
    show,
    stacked,
)
from tenferro_linalg._small import ADJOINT, LOWER, UNIT, small_first
from tenferro_runtime.batching import inner_array
from tenferro_runtime.extension import General, Inactive, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor.catalog import reshape
from tenferro_tensor.contractible import is_contractible
from tenferro_tensor_core import DTypeError, ask, int64, require_equal
from tenferro_tensor_core.tracebacks import boundary


@boundary
def solve(x1: Any, x2: Any, /) -> Array:
    """Solve ``A @ X = B`` for square, non-singular matrices.

    Args:
        x1: matrices A (..., n, n), real or complex; or a `SparseArray`, which is passed to `spsolve`.
        x2: right-hand sides B: one vector (n,), or matrices (..., n, k).

    Returns:
        X (..., n) with the batch axes of `x1` for a vector; otherwise (..., n, k), batch axes broadcast together. Its
        dtype is the promoted dtype of the operands.

    Raises:
        NumericalError: A is singular (a pivot is exactly zero) or has an entry that is not finite.
        ShapeError: the extents do not match.

    See also: `spsolve`, `solve_triangular`, `lu_solve`, `cho_solve`, `lstsq`.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    Tensor([1. , 0.5])
    """
    try:
        a, b, vector = _operands("solve", x1, x2)
    except DTypeError:
        if not is_contractible(x1):
            raise
        from tenferro_linalg.sparse import spsolve  # imported on first use, as everything sparse

        return spsolve(x1, x2)
    if inner_array(a).level or inner_array(b).level:  # the derivative needs the factors again
        lu, pivots = lu_factor_(a)
        x = lu_solve_(a, lu, pivots, b, adjoint=False)
    else:
        x = solve_(a, b)
    return reshape(x, shape=x.spec.shape[:-1]) if vector else x


@boundary
def solve_triangular(
    x1: Any, x2: Any, /, *, lower: bool = False, trans: str = "N", unit_diagonal: bool = False
) -> Array:
    """Solve ``op(A) @ X = B`` for triangular matrices.

    Args:
        x1: matrices A (..., n, n); the opposite triangle is not read.
        x2: right-hand sides B: one vector (n,), or matrices (..., n, k).
        lower: whether A is lower triangular.
        trans: ``"N"`` for A, ``"T"`` for its transpose, ``"C"`` for its adjoint.
        unit_diagonal: assume ones on the diagonal and do not read it.

    Returns:
        X (..., n) with the batch axes of `x1` for a vector; otherwise (..., n, k), batch axes broadcast together. Its
        dtype is the promoted dtype of the operands.

    Raises:
        ArgumentError: `trans` is not one of the three.
        NumericalError: a diagonal entry is exactly zero.
        ShapeError: the extents do not match.

    >>> solve_triangular([[2.0, 1.0], [0.0, 4.0]], [4.0, 4.0])
    Tensor([1.5, 1. ])
    """
    flag("solve_triangular", "trans", trans, ("N", "T", "C"))
    a, b, vector = _operands("solve_triangular", x1, x2)
    if trans == "T":
        a = cj(a)
    x = solve_triangular_(a, b, lower=bool(lower), unit=bool(unit_diagonal), adjoint=trans != "N")
    return reshape(x, shape=x.spec.shape[:-1]) if vector else x


@boundary
def inv(x: Any, /) -> Array:
    """Inverse of square, non-singular matrices.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: a matrix is singular (a pivot is exactly zero) or has an entry that is not finite.
        ShapeError: the matrices are not square.

    See also: `pinv`; `solve` is faster and more accurate than a product with the inverse.

    >>> inv([[2.0, 0.0], [0.0, 4.0]])
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return inv_(matrices("inv", x, square=True), what="inv")


def _operands(what: str, x1: Any, x2: Any) -> tuple[Any, Any, bool]:
    """Matrices with common dtype and batch axes, and whether the right-hand side was one vector."""
    a, b = common(matrices(what, x1, square=True), inexact(x2))
    if b.ndim == 0:
        raise ShapeError(f"{what}: the right-hand side is 0-d; pass a vector (n,) or matrices (..., n, k)", shape=())
    vector = b.ndim == 1
    if vector:
        b = reshape(b, shape=(*b.spec.shape, 1))
    require_equal(
        a.spec.shape[-1],
        b.spec.shape[-2],
        f"{what}: matrices of shape {show(a.spec.shape)} do not match the rows of the right-hand side",
    )
    batch = broadcast_shapes(a.spec.shape[:-2], b.spec.shape[:-2])
    return stacked(a, batch), stacked(b, batch), vector


def _solution(what: str, a: Spec, b: Spec) -> Spec:
    require_inexact(what, a, b)
    require_square(what, a)
    if a.shape[:-2] != b.shape[:-2] or not ask(a.shape[-1], "==", b.shape[-2]):
        raise ShapeError(
            f"{what} needs matrices and right-hand sides of matching shape, got {a!r} and {b!r}; broadcast the batch "
            "axes first",
            shapes=(a.shape, b.shape),
        )
    return b


@primitive(family="tenferro-linalg.solve.v1", extension="linalg")
def solve_(a: Spec, b: Spec) -> Spec:
    """Solution of ``a @ x = b``."""
    return _solution("solve", a, b)


@primitive(family="tenferro-linalg.lu_factor.v1", extension="linalg")
def lu_factor_(a: Spec) -> tuple[Spec, Spec]:
    """Opaque factors for `lu_solve`, and pivots."""
    require_inexact("solve", a)
    require_square("solve", a)
    return a, a.with_(shape=a.shape[:-1], dtype=int64)


@primitive(family="tenferro-linalg.lu_solve.v1", extension="linalg")
def lu_solve_(a: Spec, lu: Spec, pivots: Spec, b: Spec, *, adjoint: bool) -> Spec:
    """Solution of ``a @ x = b`` or ``a* @ x = b`` with the factors of `a`."""
    return _solution("solve", a, b)


@primitive(family="tenferro-linalg.solve_triangular.v1", extension="linalg")
def solve_triangular_(a: Spec, b: Spec, *, lower: bool, unit: bool, adjoint: bool) -> Spec:
    """Solution of ``a @ x = b`` or ``a* @ x = b`` for triangular `a`."""
    return _solution("solve_triangular", a, b)


@primitive(family="tenferro-linalg.inv.v1", extension="linalg")
def inv_(x: Spec, *, what: str) -> Spec:
    """Inverse; `what` names the caller in errors."""
    require_inexact("inv", x)
    require_square("inv", x)
    return x


def _change(da: Any, db: Any, x: Any, adjoint_: bool) -> Any:
    """Right side of the equation for dX: ``dB - dA X``."""
    if da is None:
        return db
    return total(-mm(adjoint(da) if adjoint_ else da, x), db)


def _lu_jvp(primals: Any, tangents: Any, outs: Any, *, adjoint: bool) -> tuple[Any]:
    a, lu, pivots, _ = primals
    return (lu_solve_(a, lu, pivots, _change(tangents[0], tangents[3], outs[0], adjoint), adjoint=adjoint),)


def _lu_vjp(primals: Any, outs: Any, cotangents: Any, *, adjoint: bool) -> tuple[Any, ...]:
    a, lu, pivots, _ = primals
    gb = lu_solve_(a, lu, pivots, cotangents[0], adjoint=not adjoint)
    return _matrix_cotangent(gb, outs[0], adjoint), None, None, gb


def _matrix_cotangent(gb: Any, x: Any, adjoint_: bool) -> Any:
    return mm(x, -adjoint(gb)) if adjoint_ else mm(-gb, adjoint(x))


def _solve_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (solve_(primals[0], _change(tangents[0], tangents[1], outs[0], False)),)


def _solve_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any]:
    gb = solve_(adjoint(primals[0]), cotangents[0])
    return _matrix_cotangent(gb, outs[0], False), gb


def _triangle(a: Any, lower: bool, unit: bool) -> Any:
    """The part of the matrix that a triangular solve reads."""
    kept = part(a, "lower" if lower else "upper")
    return part(kept, "off_diagonal") if unit else kept


def _triangular_jvp(primals: Any, tangents: Any, outs: Any, *, lower: bool, unit: bool, adjoint: bool) -> tuple[Any]:
    da = None if tangents[0] is None else _triangle(tangents[0], lower, unit)
    right = _change(da, tangents[1], outs[0], adjoint)
    return (solve_triangular_(primals[0], right, lower=lower, unit=unit, adjoint=adjoint),)


def _triangular_vjp(
    primals: Any, outs: Any, cotangents: Any, *, lower: bool, unit: bool, adjoint: bool
) -> tuple[Any, Any]:
    gb = solve_triangular_(primals[0], cotangents[0], lower=lower, unit=unit, adjoint=not adjoint)
    return _triangle(_matrix_cotangent(gb, outs[0], adjoint), lower, unit), gb


def _inv_jvp(primals: Any, tangents: Any, outs: Any, **_: Any) -> tuple[Any]:
    return (-mm(outs[0], tangents[0], outs[0]),)


def _inv_vjp(primals: Any, outs: Any, cotangents: Any, **_: Any) -> tuple[Any]:
    y = adjoint(outs[0])
    return (-mm(y, cotangents[0], y),)


def _triangular_kernel(la: Any, ins: Any, outs: Any, *, lower: bool, unit: bool, adjoint: bool) -> Any:
    flags = ADJOINT * adjoint | LOWER * lower | UNIT * unit
    return small_first(la, "solve_triangular", ins, lambda a, b: la.solve_triangular(a, b, lower, unit, adjoint), flags)


def _solve_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return small_first(la, "solve", ins, lambda a, b: la.solve(la.finite("solve", a), b))


def _lu_solve_kernel(la: Any, ins: Any, outs: Any, *, adjoint: bool) -> Any:
    return small_first(
        la, "solve", ins, lambda *raws: la.lu_solve(*raws, adjoint), ADJOINT * adjoint, slice(0, None, 3)
    )


def _inv_kernel(la: Any, ins: Any, outs: Any, *, what: str) -> Any:
    return small_first(la, "inv", ins, lambda x: la.inv(la.finite(what, x), what))


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, solve_, _solve_kernel)
    kernels(registry, lu_factor_, lambda la, ins, outs: lambda a: la.lu_factor(la.finite("solve", a)))
    kernels(registry, lu_solve_, _lu_solve_kernel)
    kernels(registry, solve_triangular_, _triangular_kernel)
    kernels(registry, inv_, _inv_kernel)
    registry.rule(solve_, General(jvp=_solve_jvp, vjp=_solve_vjp))
    # The solution also takes the matrix itself; derivatives go there rather than through the factors.
    registry.rule(lu_factor_, Inactive())
    registry.rule(lu_solve_, General(jvp=_lu_jvp, vjp=_lu_vjp))
    registry.rule(solve_triangular_, General(jvp=_triangular_jvp, vjp=_triangular_vjp))
    registry.rule(inv_, General(jvp=_inv_jvp, vjp=_inv_vjp))
