"""Least squares of any rank.

For ``x = Y b`` with ``Y = pinv(A)``, ``r = b - A x`` and ``t = Y* x`` (Golub and Pereyra 1973, in product form)::

    dx = Y (db - dA x) + Y Y* dA* r + (1 - Y A) dA* t

Exact at full rank; below it, this is the derivative along matrices of the same rank. Each product with Y is the
primitive again, whose derivatives go through A rather than Y.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint as adjoint_of
from tenferro_linalg._algebra import mm, scaled, to, total
from tenferro_linalg._operands import basis, common, differentiated, inexact, matrices, require_inexact, show, stacked
from tenferro_linalg._pinv import cut_of, limit, pinv_, pinv_ranked_
from tenferro_linalg._pinv import pseudo_inverse as raw_inverse
from tenferro_linalg._small import SMALL_MAX_SIZE
from tenferro_linalg._svd import svd_, svdvals_
from tenferro_runtime.extension import Array, General, Registry, ShapeError, Spec, primitive
from tenferro_tensor import broadcast_shapes
from tenferro_tensor.catalog import convert, gt, reduce_max, reduce_sum, reshape, select, stop_gradient
from tenferro_tensor.functions import abs2
from tenferro_tensor.operands import number
from tenferro_tensor_core import ask, dim_max, dim_min, finfo, int64, real_of, require_equal
from tenferro_tensor_core.tracebacks import boundary


class LstsqResult(NamedTuple):
    """Least-squares solution.

    Attributes:
        x: the solution.
        residuals: sums of squares of the residuals.
        rank: number of singular values above the cutoff.
        s: all singular values, descending.
    """

    x: Array
    residuals: Array
    rank: Array
    s: Array


@boundary
def lstsq(a: Any, /, b: Any, rcond: float | Any | None = None) -> LstsqResult:
    """Least-squares solution: the shortest X that minimises the norm of ``A @ X - B``, for any shape and rank.

    Args:
        a: matrices A (..., m, n).
        b: right-hand sides: one vector (m,), or matrices (..., m, k).
        rcond: singular values up to `rcond` times the largest count as zero; a number, or an array that broadcasts with
            the batch axes; by default max(m, n) times the machine epsilon. Below full rank a derivative requires an
            explicit value: it is the derivative at constant rank (Golub and Pereyra 1973).

    Returns:
        ``x`` (..., n) or (..., n, k); ``residuals`` of each column (..., k), for one vector (..., 1), never empty,
        while NumPy's are empty below full rank and for m <= n; ``rank`` (...), int64; ``s`` (..., min(m, n)),
        descending.

    Raises:
        NumericalError: an entry is not finite, or LAPACK does not converge.
        RankError: (derivative) a matrix loses rank and `rcond` was not given, or a singular value lies within a factor
            of 10 of the cutoff.
        ShapeError: the extents do not match.

    See also: `lsqr` and `lsmr` for operators.

    >>> lstsq([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [1.0, 3.0, 5.0]).x.round(6)
    Tensor([2., 1.])
    """
    a, b = common(matrices("lstsq", a), inexact(b))
    if b.ndim == 0:
        raise ShapeError("lstsq: the right-hand side is 0-d; pass a vector (m,) or matrices (..., m, k)", shape=())
    vector = b.ndim == 1
    b = reshape(b, shape=(*b.spec.shape, 1)) if vector else b
    require_equal(
        a.spec.shape[-2],
        b.spec.shape[-2],
        f"lstsq: matrices of shape {show(a.spec.shape)} and right sides of other length",
    )
    a, cut = cut_of("lstsq", a, "rcond", rcond)
    x, residuals, rank, s = _solution(a, *cut, b) if differentiated(a) or differentiated(b) else solution_(a, *cut, b)
    return LstsqResult(reshape(x, shape=x.spec.shape[:-1]) if vector else x, residuals, rank, s)


@primitive(family="tenferro-linalg.least_squares_solution.v1", extension="linalg")
def solution_(a: Spec, *more: Spec) -> tuple[Spec, Spec, Spec, Spec]:
    """The fields of `LstsqResult`, where `more` are the cutoffs, if given, and matrices b."""
    require_inexact("lstsq", a, more[-1])
    (*batch, m, n), columns = a.shape, more[-1].shape[-1]
    real = a.with_(shape=(*batch, dim_min(m, n)), dtype=real_of(a.dtype))
    both = broadcast_shapes(a.shape[:-2], more[-1].shape[:-2])
    ask(real.shape[-1], "==", 0)  # a derivative of a program must ask nothing that the program has not asked
    return (
        a.with_(shape=(*both, n, columns)),
        real.with_(shape=(*both, columns)),
        a.with_(shape=tuple(batch), dtype=int64),
        real,
    )


def _solution(a: Any, *more: Any) -> tuple[Any, Any, Any, Any]:
    """The solution, and what is known about it."""
    *cut, b = more
    batch = broadcast_shapes(a.spec.shape[:-2], b.spec.shape[:-2])
    wide, b, cuts = stacked(a, batch), stacked(b, batch), [_repeated(c, batch, ()) for c in cut]
    if differentiated(a) or small(a):  # the derivative of the values needs the vectors
        u, s, vh = svd_(a, full=False, basis=basis(a), cut=None)
        inside = above(a, s, cut)
        y, values = pseudo_inverse(u, s, vh, inside), _repeated(s, batch, s.spec.shape[-1:])
        x = lstsq_(wide, stop_gradient(stacked(y, batch)), stop_gradient(values), *cuts, b, adjoint=False)
    else:
        s = svdvals_(a)
        inside = above(a, s, cut)
        x = least_squares_(wide, *cuts, b)
    rank = reduce_sum(convert(inside, dtype=int64), axes=(s.ndim - 1,))
    return x, reduce_sum(abs2(b - mm(wide, x)), axes=(x.ndim - 2,)), rank, s


def small(a: Any) -> bool:
    """Whether there is machine code for the singular vectors."""
    return all(ask(n, "<=", SMALL_MAX_SIZE) for n in a.spec.shape[-2:])


def pseudo_inverse(u: Any, s: Any, vh: Any, inside: Any) -> Any:
    """Pseudo-inverse from the singular values `inside` the cutoff."""
    inverse = select(inside, 1.0 / select(inside, s, 1.0), 0.0)
    return mm(scaled(adjoint_of(vh), to(inverse, u.dtype)), adjoint_of(u))


def above(a: Any, s: Any, cut: Sequence[Any]) -> Any:
    """Which singular values exceed the cutoff."""
    if ask(s.spec.shape[-1], "==", 0):
        return gt(s, 0.0)
    factor = cut[0] if cut else number(dim_max(*a.spec.shape[-2:]), a.spec.place) * finfo(s.dtype).eps
    limit = reduce_max(s, axes=(s.ndim - 1,)) * factor
    return gt(s, reshape(limit, shape=(*limit.spec.shape, 1)))


def _repeated(v: Any, batch: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
    """Broadcast vectors or numbers over all batch axes."""
    wide = stacked(reshape(v, shape=(*v.spec.shape, *(1,) * (2 - len(rest)))), batch)
    return reshape(wide, shape=(*batch, *rest))


@primitive(family="tenferro-linalg.lstsq.v1", extension="linalg")
def lstsq_(a: Spec, y: Spec, *more: Spec, adjoint: bool) -> Spec:
    """``pinv(a) @ b`` or ``pinv(a)* @ b`` from the pseudo-inverse `y`.

    `more` are the singular values, which only derivatives need, if they are known; the cutoffs, if given; and b.
    """
    require_inexact("lstsq", a, more[-1])
    *batch, m, n = a.shape
    return more[-1].with_(shape=(*batch, m if adjoint else n, more[-1].shape[-1]))


@primitive(family="tenferro-linalg.least_squares.v1", extension="linalg")
def least_squares_(a: Spec, *more: Spec) -> Spec:
    """``pinv(a) @ b``, where `more` are the cutoffs, if given, and b."""
    require_inexact("lstsq", a, more[-1])
    *batch, _, n = a.shape
    return more[-1].with_(shape=(*batch, n, more[-1].shape[-1]))


def _by_inverse(a: Any, *more: Any) -> Any:
    *cut, b = more
    return lstsq_(a, stop_gradient(pinv_(a, *cut)), *cut, b, adjoint=False)


def _least_squares_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(a: Any, *more: Any) -> Any:
        *cut, b = more
        a = la.finite("lstsq", a)
        found = la.full_rank_solution(a, b, limit(a, tuple(cut)))
        return raw_inverse(la, a, tuple(cut)) @ b if found is None else found

    return run


def _kernel(la: Any, ins: Any, outs: Any, *, adjoint: bool) -> Any:
    if adjoint:
        return lambda a, y, *more: y.conj().swapaxes(-1, -2) @ more[-1]
    return lambda a, y, *more: y @ more[-1]


def _product(a: Any, y: Any, *more: Any, adjoint: bool) -> Any:
    return mm(adjoint_of(y) if adjoint else y, more[-1])


def _ranked(a: Any, y: Any, more: list[Any]) -> tuple[Any, list[Any]]:
    """The pseudo-inverse after the test of the rank; and the singular values, with the cutoffs."""
    if not more or more[0].ndim < a.ndim - 1:  # only cutoffs
        more = [svdvals_(stop_gradient(a)), *more]
    return pinv_ranked_(y, *more, what="lstsq"), more


def _jvp(primals: Any, tangents: Any, outs: Any, *, adjoint: bool) -> tuple[Any]:
    (a, y, *more, b), da, db, x = primals, tangents[0], tangents[-1], outs[0]

    def inverse(v: Any) -> Any:
        return None if v is None else lstsq_(a, y, *more, v, adjoint=adjoint)

    def turned(v: Any) -> Any:
        return lstsq_(a, y, *more, v, adjoint=not adjoint)

    if da is None:
        return (inverse(db),)
    y, more = _ranked(a, y, more)
    a_, da_ = (adjoint_of(a), adjoint_of(da)) if adjoint else (a, da)
    dh = adjoint_of(da_)
    lifted = mm(dh, turned(x))
    down = mm(dh, b - mm(a_, x))
    return (total(inverse(total(db, -mm(da_, x), turned(down), -mm(a_, lifted))), lifted),)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, adjoint: bool) -> tuple[Any, ...]:
    (a, y, *more, b), g, x = primals, cotangents[0], outs[0]
    y, more = _ranked(a, y, more)

    def solved(v: Any, turned: bool) -> Any:
        return lstsq_(a, y, *more, v, adjoint=turned)

    a_ = adjoint_of(a) if adjoint else a
    gb = solved(g, not adjoint)
    r = b - mm(a_, x)
    t = solved(x, not adjoint)
    rest = g - mm(adjoint_of(a_), gb)
    by_a = -mm(gb, adjoint_of(x)) + mm(r, adjoint_of(solved(gb, adjoint))) + mm(t, adjoint_of(rest))
    return (adjoint_of(by_a) if adjoint else by_a, *[None] * (len(primals) - 2), gb)


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, lstsq_, _kernel)
    kernels(registry, least_squares_, _least_squares_kernel)
    registry.expansion(lstsq_, _product, keep=True)
    registry.expansion(least_squares_, _by_inverse, keep=True)
    registry.expansion(solution_, _solution)
    registry.rule(lstsq_, General(jvp=_jvp, vjp=_vjp))
