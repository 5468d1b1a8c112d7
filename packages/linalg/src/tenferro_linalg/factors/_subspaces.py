"""The range and the null space of a matrix, and the angles between two ranges.

At constant rank, for bases Q of the range and Z of the null space and ``Y = pinv(A)``, up to rotations of the bases::

    dQ = (1 - Q Q*) dA Y Q        dZ = -Y dA Z
"""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, block, mm
from tenferro_linalg._bases import generic_svd
from tenferro_linalg._degeneracy import PASSING, cotangent_scale, unrotated
from tenferro_linalg._errors import RankError
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._operands import matrices, show
from tenferro_linalg._pinv import cut_of, pinv_ranked_
from tenferro_linalg._qr import qr, qr_prefix_
from tenferro_linalg._svd import svd_, svdvals
from tenferro_linalg.factors._lstsq import above, lstsq_, pseudo_inverse
from tenferro_runtime.batching import inner_array
from tenferro_runtime.extension import (
    ArgumentError,
    General,
    Inactive,
    Registry,
    ShapeError,
    Spec,
    TracedTensor,
    primitive,
)
from tenferro_tensor import Array
from tenferro_tensor.catalog import (
    acos,
    asin,
    clamp,
    convert,
    ge,
    reduce_sum,
    reshape,
    reverse,
    select,
    stop_gradient,
)
from tenferro_tensor.functions import truncate
from tenferro_tensor.operands import number
from tenferro_tensor_core import DimLike, ask, decide, dim_max, int64, require_equal
from tenferro_tensor_core.tracebacks import boundary


@boundary
def orth(x: Any, /, rcond: float | Any | None = None) -> Array:
    """Orthonormal basis of the range of matrices, in columns.

    Derivatives exist at constant rank, for quantities that do not depend on the choice of the basis, such as ``Q @
    Q*``.

    Args:
        x: matrices (..., m, n), all of a stack with the same rank.
        rcond: singular values up to `rcond` times the largest count as zero; by default max(m, n) times the machine
            epsilon. Below full rank a derivative requires an explicit value.

    Returns:
        Q (..., m, rank); the last extent is data-dependent in a trace.

    Raises:
        ArgumentError: the matrices of a stack have different ranks.
        GaugeError: (gradient) the loss depends on the choice of the basis.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        RankError: (derivative) a matrix loses rank and `rcond` was not given, or a singular value lies within a factor
            of 10 of the cutoff.

    >>> abs(orth([[3.0, 0.0], [4.0, 0.0]])).round(6)
    Tensor([[0.6],
            [0.8]])
    """
    return _basis("orth", x, rcond)


@boundary
def null_space(x: Any, /, rcond: float | Any | None = None) -> Array:
    """Orthonormal basis of the null space of matrices, in columns.

    Derivatives exist at constant rank, for quantities that do not depend on the choice of the basis, such as ``Z @
    Z*``.

    Args:
        x: matrices (..., m, n), all of a stack with the same rank.
        rcond: singular values up to `rcond` times the largest count as zero; by default max(m, n) times the machine
            epsilon. Below full rank a derivative requires an explicit value.

    Returns:
        Z (..., n, n - rank); the last extent is data-dependent in a trace.

    Raises:
        ArgumentError: the matrices of a stack have different ranks.
        GaugeError: (gradient) the loss depends on the choice of the basis.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        RankError: (derivative) a matrix loses rank and `rcond` was not given, or a singular value lies within a factor
            of 10 of the cutoff.

    >>> abs(null_space([[0.0, 2.0]]))
    Tensor([[1.],
            [0.]])
    """
    return _basis("null_space", x, rcond)


def _basis(what: str, x: Any, rcond: Any) -> Any:
    x, cut = cut_of(what, matrices(what, x), "rcond", rcond)
    fixed = stop_gradient(x)
    u, s, vh = frame_(fixed, full=what == "null_space", what=what)
    inside = above(fixed, s, cut)
    rank = _rank(what, inside)
    if what == "orth":
        q = truncate(u, rank, axis=u.ndim - 1)
    else:
        backward = reverse(adjoint(vh), axes=(vh.ndim - 1,))
        q = truncate(backward, number(x.spec.shape[-1], x.spec.place) - rank, axis=vh.ndim - 1)
    if not x.level:
        return q
    k = s.spec.shape[-1]
    y = pseudo_inverse(block(u, column=(0, k)), s, block(vh, row=(0, k)), inside)
    return basis_(x, q, y, s, *cut, what=what)


@primitive(family="tenferro-linalg.frame.v1", extension="linalg")
def frame_(x: Spec, *, full: bool, what: str) -> tuple[Spec, Spec, Spec]:
    """U, S, Vh as constants, which do not move when derivatives are taken as limits nearby."""
    return svd_.infer(x, full=full, basis="generic", cut=None)  # type: ignore[return-value]


def _frame_kernel(la: Any, ins: Any, outs: Any, *, full: bool, what: str) -> Any:
    def run(x: Any) -> Any:
        return generic_svd(la, *la.svd(la.finite(what, x), full))

    return run


@primitive(family="tenferro-linalg.basis.v1", extension="linalg")
def basis_(a: Spec, q: Spec, y: Spec, s: Spec, *cut: Spec, what: str) -> Spec:
    """Return `q`, a basis of the range or the null space of `a`, whose pseudo-inverse is `y`."""
    return q


def _basis_jvp(primals: Any, tangents: Any, outs: Any, *, what: str) -> tuple[Any]:
    (a, _, y, s, *cut), da, (q,) = primals, tangents[0], outs
    if da is None:
        return (None,)
    y = pinv_ranked_(y, s, *cut, what=what)
    if what == "null_space":
        return (-lstsq_(a, y, s, *cut, mm(da, q), adjoint=False),)
    t = mm(da, lstsq_(a, y, s, *cut, q, adjoint=False))
    return (t - mm(q, mm(adjoint(q), t)),)


def _basis_vjp(primals: Any, outs: Any, cotangents: Any, *, what: str) -> tuple[Any, ...]:
    (a, _, y, s, *cut), (g,), (q,) = primals, cotangents, outs
    y = pinv_ranked_(y, s, *cut, what=what)
    g = unrotated(g, q, cotangent_scale(s, g), what, dim_max(*a.spec.shape[-2:]))
    if what == "null_space":
        out = -mm(lstsq_(a, y, s, *cut, g, adjoint=True), adjoint(q))
    else:
        out = mm(g - mm(q, mm(adjoint(q), g)), adjoint(lstsq_(a, y, s, *cut, q, adjoint=False)))
    return (out, *[None] * (3 + len(cut)))


@boundary
def subspace_angles(a: Any, b: Any, /) -> Array:
    """Principal angles between the ranges of two matrices, descending (Knyazev and Argentati 2002).

    Small angles are computed from their sines and large ones from their cosines, so both are accurate.

    Args:
        a: matrices (..., m, n) of full column rank.
        b: matrices (..., m, k) of full column rank.

    Returns:
        Angles (..., min(n, k)) in radians.

    Raises:
        DegenerateError: (gradient) equal angles, or a zero angle, create a kink.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        RankError: a column depends on those before it; take `orth` of the matrix.
        ShapeError: the extents m differ.

    >>> subspace_angles([[1.0], [0.0]], [[1.0], [1.0]]).round(6)
    Tensor([0.785398])
    """
    a, b = matrices("subspace_angles", a), matrices("subspace_angles", b)
    require_equal(
        a.spec.shape[-2],
        b.spec.shape[-2],
        f"subspace_angles: matrices of shapes {show(a.spec.shape)} and {show(b.spec.shape)} have columns of different "
        "length",
    )
    qa, qb = _range(a), _range(b)
    if ask(qa.spec.shape[-1], "<", qb.spec.shape[-1]):
        qa, qb = qb, qa
    inner = mm(adjoint(qa), qb)
    cosines, sines = svdvals(inner), svdvals(qb - mm(qa, inner))
    cosines = reverse(cosines, axes=(cosines.ndim - 1,))
    small = ge(cosines * cosines, 0.5)
    by_sine = asin(clamp(0.0, select(small, sines, 0.0), 1.0))
    by_cosine = acos(clamp(-1.0, select(small, 0.0, cosines), 1.0))
    return select(small, by_sine, by_cosine)


def _range(x: Any) -> Any:
    """Orthonormal basis of the range of matrices of full column rank."""
    size = dim_max(*x.spec.shape[-2:])
    q, r = qr(x)
    return independent_(q, qr_prefix_(r, size=size), columns=x.spec.shape[-1])


@primitive(family="tenferro-linalg.independent.v1", extension="linalg")
def independent_(q: Spec, prefix: Spec, *, columns: DimLike) -> Spec:
    """Return `q` after testing that all columns are independent, i.e. that all flags `prefix` are 1."""
    return q


def _independent(xp: Any, q: Any, prefix: Any, *, columns: DimLike) -> tuple[Any, Any]:
    return q, prefix == 0 if decide(columns, "<=", prefix.spec.shape[-1]) else xp.asarray(True)


def _independent_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    def run(q: Any, prefix: Any, columns: int) -> Any:
        missing = la.local(prefix) == 0
        if missing.any() or columns > prefix.shape[-1]:
            *batch, i = (int(j) for j in np.argwhere(missing)[0]) if missing.any() else (prefix.shape[-1],)
            of = f" of matrix {tuple(batch)} of the stack" if batch else ""
            raise RankError(
                f"subspace_angles: column {i}{of} depends on the columns before it; take orth of the matrix first",
                column=i,
                batch=tuple(batch),
            )
        return q

    return run


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, independent_, _independent_kernel, sizes=lambda ins, outs, *, columns: (columns,), blas=False)
    register_formula(registry, independent_, _independent)
    registry.rule(independent_, PASSING)
    kernels(registry, frame_, _frame_kernel)
    registry.rule(frame_, Inactive())
    kernels(registry, basis_, lambda la, ins, outs, *, what: lambda a, q, *_: q, blas=False)
    registry.expansion(basis_, lambda a, q, *_, what: q, keep=True)
    registry.rule(basis_, General(jvp=_basis_jvp, vjp=_basis_vjp))


def _rank(what: str, inside: Any) -> Any:
    """The common rank of all matrices of a stack, a 0-d integer."""
    ranks = reduce_sum(convert(inside, dtype=int64), axes=(inside.ndim - 1,))
    if not ranks.ndim:
        return ranks
    flat = reshape(ranks, shape=(ranks.spec.size,))
    if isinstance(inner_array(flat), TracedTensor):
        raise ShapeError(
            f"{what}: the rank of a stack is not a single number in a trace; process one matrix at a time",
            shape=inside.spec.shape,
        )
    found = flat.numpy() if not flat.level else flat._concrete()
    first, last = (int(found.min()), int(found.max())) if found.size else (0, 0)
    if first != last:
        raise ArgumentError(
            f"{what}: the matrices of the stack have ranks from {first} to {last}; process them one by one, or pass "
            "another rcond",
            ranks=(first, last),
        )
    return first
