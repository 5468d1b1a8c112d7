"""Division by gaps that may vanish: the tests that decide, and the masked quotient.

Derivatives of decompositions divide numerators by gaps ``v_j - v_i`` between values (or ``v_i + v_j``, or ``v_j``).
Where a gap vanishes the quotient is meaningful only if its numerator vanishes too, and even then the value 0 is
correct only under a condition on the loss. Tests and quotient are primitives whose kernels inspect the numbers, so the
rules trace, render and nest, and the tests run at every replay.

Four tests, for rotations of the vectors of equal values that leave the decomposition valid:

- `checked`: numerators of vanishing gaps vanish. For a cotangent this means that the loss does not depend on the
  choice (otherwise `GaugeError`), for a tangent that the basis already diagonalises the perturbation.
- `certified`: the cotangents of equal values are equal. In a *generic* basis of each multiplet this holds, almost
  surely, only if the gradient restricted to the multiplet is a multiple of the identity; dropping the pair is then
  exact. Without this test the dropped gradient of some losses (``tr(B sin H)`` at equal eigenvalues) is silently wrong.
  If only values are used the criterion is exact in every basis.
- `unrotated`: a basis of a null space enters only through its projector.
- `unsigned`: at a single zero value of a real square matrix the signs of both null vectors are free, independently of
  each other. No derivative sees a sign, so a loss that uses both vectors is refused.

The tolerances are scale-free, and were measured on thousands of invariant and dependent losses: no false alarm, and
no dependent loss missed above a relative strength of 1e-10.
"""

from functools import partial
from typing import Any

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_linalg._algebra import cj, columns, re, rows
from tenferro_linalg._fallible import Namespace, register_formula, unless
from tenferro_linalg._reports import (
    report_certificate,
    report_frame,
    report_numerator,
    report_second_order,
    report_signs,
)
from tenferro_runtime.extension import General, Inactive, Registry, Spec, primitive
from tenferro_tensor.catalog import reduce_sum
from tenferro_tensor_core import DimLike

TOLERANCE = 64
"""Multiple of ``n eps`` times the scale of the cotangents up to which a quantity counts as zero."""


@primitive(family="tenferro-linalg.cotangent_scale.v1", extension="linalg")
def cotangent_scale_(values: Spec, *others: Spec) -> Spec:
    """Size of cotangents: Frobenius norms of matrices, and 2-norms of vectors times the largest value."""
    return values.with_(shape=values.shape[:-1])


@primitive(family="tenferro-linalg.checked.v1", extension="linalg")
def checked_(
    numerator: Spec, values: Spec, scale: Spec, *, kind: str, role: str, what: str, size: DimLike, cut: DimLike | None
) -> Spec:
    """Return `numerator` after testing that it vanishes where the gap of kind `kind` vanishes."""
    return numerator


@primitive(family="tenferro-linalg.quotient.v1", extension="linalg")
def quotient_(numerator: Spec, values: Spec, *, kind: str, what: str, size: DimLike, strict: bool) -> Spec:
    """`numerator` divided by its gaps; where a gap vanishes, 0, or an error if `strict`."""
    return numerator


@primitive(family="tenferro-linalg.certified.v1", extension="linalg")
def certified_(cotangent: Spec, values: Spec, *others: Spec, what: str, size: DimLike, cut: DimLike | None) -> Spec:
    """Return `cotangent` after testing that it is equal for equal values, and 0 for zero singular values."""
    return cotangent


@primitive(family="tenferro-linalg.unrotated.v1", extension="linalg")
def unrotated_(cotangent: Spec, basis: Spec, scale: Spec, *, what: str, size: DimLike) -> Spec:
    """Return `cotangent` of a null-space basis after testing that a rotation of the basis does not change the loss."""
    return cotangent


@primitive(family="tenferro-linalg.unsigned.v1", extension="linalg")
def unsigned_(cotangent: Spec, other: Spec, values: Spec, scale: Spec, *, size: DimLike) -> Spec:
    """Return `cotangent` of U after testing that not both it and `other`, of V, use a single null vector."""
    return cotangent


def frobenius(xp: Any, a: Any, axes: tuple[int, ...]) -> Any:
    """Root of the sums of squares over the last axes."""
    if a.__class__ is np.ndarray and a.ndim == len(axes):
        return np.sqrt(np.vdot(a, a).real)
    return xp.sqrt((a.conj() * a).real.sum(axis=axes))


def _norms(xp: Any, arrays: Any, values: Any) -> tuple[Any, Any]:
    """Summed 2-norms of the vectors and summed Frobenius norms of the matrices among cotangents."""
    vectors = matrices = xp.zeros(values.shape[:-1], values.dtype)
    for a in arrays:
        if a.ndim == values.ndim:
            vectors = vectors + frobenius(xp, a, (-1,))
        else:
            matrices = matrices + frobenius(xp, a, (-2, -1))
    return vectors, matrices


def _scale(xp: Any, values: Any, *others: Any) -> Any:
    vectors, matrices = _norms(xp, others, values)
    return matrices + multiplets.largest(xp, values) * vectors


def scale_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return partial(_scale, la.xp)


def _expanded_scale(*operands: Any) -> Any:
    return _scale(Namespace(False), *operands)


def _condition(xp: Any, values: Any, size: int) -> Any:
    """The largest value over the smallest nonvanishing gap."""
    gaps = multiplets.steps(xp, values)
    large = gaps > multiplets.tau(xp, values, size)
    inverse = xp.where(large, 1 / xp.where(large, gaps, 1), 0)
    return multiplets.largest(xp, values) * multiplets.most(xp, inverse, (-1,))


def _phases(numerator: Any, kind: str, role: str) -> bool:
    """Whether a test includes the diagonal, where the numerators are changes of phases."""
    return kind == "difference" and role == "cotangent" and numerator.dtype.kind == "c"


def _checked(
    xp: Any, numerator: Any, values: Any, scale: Any, *, kind: str, role: str, size: int, **_: Any
) -> tuple[Any, Any]:
    def regular() -> Any:
        found = multiplets.all_differ(xp, values, size, kind != "difference")
        if not _phases(numerator, kind, role):
            return found
        limit = (TOLERANCE * multiplets.EPS[values.dtype] * size * scale)[..., None, None]
        return found & (~xp.eye(values.shape[-1], dtype=bool) | (xp.abs(numerator) <= limit)).all()

    test = partial(not_vanishing, xp, numerator, values, scale, kind, role, size)
    return numerator, unless(xp, regular, test)


def _checked_kernel(la: Any, ins: Any, outs: Any, *, kind: str, role: str, what: str, **_: Any) -> Any:
    def run(numerator: Any, values: Any, scale: Any, size: int, cut: int | None) -> Any:
        xp = la.xp
        if not _phases(numerator, kind, role) and multiplets.regular(xp, values, size, kind != "difference"):
            return numerator
        bad = not_vanishing(xp, numerator, values, scale, kind, role, size)
        if bool(bad.any()):
            limit = scale * (TOLERANCE * multiplets.EPS[values.dtype] * size)
            raise report_numerator(la, numerator, values, limit, bad, kind, role, what, cut)
        return numerator

    return run


def not_vanishing(xp: Any, numerator: Any, values: Any, scale: Any, kind: str, role: str, size: int) -> Any:
    """Where a numerator does not vanish although its gap does."""
    vanishing = multiplets.pairs(xp, values, kind, size)
    if kind == "difference" and role == "tangent":
        vanishing = vanishing & ~xp.eye(values.shape[-1], dtype=bool)
    tolerance = TOLERANCE * multiplets.EPS[values.dtype] * size
    bad = vanishing & (xp.abs(numerator) > (tolerance * xp.asarray(scale))[..., None, None])
    return bad & beyond_noise(xp, numerator, values, scale, size) if _phases(numerator, kind, role) else bad


def beyond_noise(xp: Any, numerator: Any, values: Any, scale: Any, size: int) -> Any:
    """Where a numerator exceeds the noise of phases; cotangents of second order hold quotients by the smallest gap."""
    noise = multiplets.EPS[values.dtype] * _condition(xp, values, size) * xp.asarray(scale)
    return ~xp.eye(values.shape[-1], dtype=bool) | (xp.abs(numerator) > noise[..., None, None])


def _quotient_kernel(la: Any, ins: Any, outs: Any, *, kind: str, what: str, strict: bool, **_: Any) -> Any:
    def run(numerator: Any, values: Any, size: int) -> Any:
        xp = la.xp
        if strict:
            bad = too_close(xp, values, kind)
            if bool(bad.any()):
                raise report_second_order(la, values, bad, kind, what)
        if multiplets.regular(xp, values, size, kind != "difference"):
            gaps = multiplets.gaps(values, kind)
            if kind != "difference":
                return numerator / gaps
            multiplets.set_diagonal(gaps, 1)
            out = xp.divide(numerator, gaps, out=xp.empty(numerator.shape, numerator.dtype))
            multiplets.set_diagonal(out, 0)
            return out
        return divided(xp, numerator, values, kind, size)

    return run


def too_close(xp: Any, values: Any, kind: str) -> Any:
    """Gaps too small for a quotient of higher order: it divides the noise once more; below sqrt(eps) no digit is left.

    The diagonal does not count.
    """
    root = multiplets.EPS[values.dtype] ** 0.5
    close = xp.abs(multiplets.gaps(values, kind)) <= root * multiplets.largest(xp, values)[..., None, None]
    return close & ~xp.eye(values.shape[-1], dtype=bool) if kind == "difference" else close


def divided(xp: Any, numerator: Any, values: Any, kind: str, size: int) -> Any:
    """`numerator` over its gaps; 0 where they vanish."""
    # Mask both sides: an inf of a dropped pair would reappear as NaN at second order.
    vanishing = multiplets.pairs(xp, values, kind, size)
    gaps = xp.where(vanishing, values.dtype.type(1), multiplets.gaps(values, kind))
    return xp.where(vanishing, numerator.dtype.type(0), numerator / gaps)


def _quotient(xp: Any, numerator: Any, values: Any, *, kind: str, size: int, strict: bool, **_: Any) -> tuple[Any, Any]:
    def plain() -> Any:
        gaps = multiplets.gaps(values, kind)
        if kind != "difference":
            return numerator / gaps
        on = xp.eye(values.shape[-1], dtype=bool)
        return xp.where(on, numerator.dtype.type(0), numerator / xp.where(on, values.dtype.type(1), gaps))

    if strict:
        return plain(), too_close(xp, values, kind)
    if xp.optimistic:
        return plain(), ~multiplets.all_differ(xp, values, size, kind != "difference")
    masked = partial(divided, xp, numerator, values, kind, size)
    if not xp.branching:
        return masked(), xp.asarray(False)
    return xp.cond(multiplets.all_differ(xp, values, size, kind != "difference"), plain, masked), xp.asarray(False)


def _certified_kernel(la: Any, ins: Any, outs: Any, *, what: str, **_: Any) -> Any:
    def run(cotangent: Any, values: Any, *more: Any) -> Any:
        *others, size, cut = more
        xp = la.xp
        if multiplets.regular(xp, values, size, what != "eigh"):
            return cotangent
        bad, zero = unequal(xp, cotangent, values, others, what, size)
        if bool(bad.any()) or (zero is not None and bool(zero.any())):
            raise report_certificate(la, cotangent, values, bad, zero, what, cut, bool(others))
        return cotangent

    return run


def unequal(xp: Any, cotangent: Any, values: Any, others: Any, what: str, size: int) -> tuple[Any, Any]:
    """Pairs of equal values with different cotangents, and zero singular values with a nonzero one, or ``None``."""
    vectors, matrices = _norms(xp, (cotangent, *others), values)
    largest = multiplets.largest(xp, values)
    tolerance = TOLERANCE * multiplets.EPS[values.dtype] * size
    limit = tolerance * (vectors + xp.where(largest > 0, matrices / xp.where(largest > 0, largest, 1), 0))
    spread = xp.abs(cotangent[..., :, None] - cotangent[..., None, :])
    bad = multiplets.equal(xp, values, size) & (spread > limit[..., None, None])
    if what == "eigh":
        return bad, None
    return bad, multiplets.null(xp, values, size) & (xp.abs(cotangent) > limit[..., None])


def _certified(xp: Any, cotangent: Any, values: Any, *others: Any, what: str, size: int, **_: Any) -> tuple[Any, Any]:
    def test() -> Any:
        bad, zero = unequal(xp, cotangent, values, others, what, size)
        return bad if zero is None else bad | zero[..., None]

    return cotangent, unless(xp, partial(multiplets.all_differ, xp, values, size, what != "eigh"), test)


def _unrotated_kernel(la: Any, ins: Any, outs: Any, *, what: str, **_: Any) -> Any:
    def run(cotangent: Any, basis: Any, scale: Any, size: int) -> Any:
        turn, limit = _rotation(la.xp, cotangent, basis, scale, size)
        bad = turn > limit[..., None, None]
        if bool(bad.any()):
            raise report_frame(la, turn, limit, bad, what)
        return cotangent

    return run


def _rotation(xp: Any, cotangent: Any, basis: Any, scale: Any, size: int) -> tuple[Any, Any]:
    """How much rotations of a basis change the loss, and the limit below which that counts as zero."""
    inner = basis.conj().swapaxes(-1, -2) @ cotangent
    turn = xp.abs(inner - inner.conj().swapaxes(-1, -2)) / 2
    return turn, TOLERANCE * float(np.finfo(cotangent.dtype).eps) * size * xp.asarray(scale)


def _unrotated(xp: Any, cotangent: Any, basis: Any, scale: Any, *, what: str, size: int) -> tuple[Any, Any]:
    turn, limit = _rotation(xp, cotangent, basis, scale, size)
    return cotangent, turn > limit[..., None, None]


def _unsigned_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    def run(cotangent: Any, other: Any, values: Any, scale: Any, size: int) -> Any:
        if multiplets.regular(la.xp, values, size, True):
            return cotangent
        bad = both_signs(la.xp, cotangent, other, values, scale, size)
        if bool(bad.any()):
            raise report_signs(la, values, bad)
        return cotangent

    return run


def both_signs(xp: Any, cotangent: Any, other: Any, values: Any, scale: Any, size: int) -> Any:
    """Which matrices have a single null vector on each side, with a loss that uses both."""
    single = multiplets.null(xp, values, size).sum(axis=-1) == 1
    limit = TOLERANCE * multiplets.EPS[values.dtype] * size * xp.asarray(scale)
    last = xp.arange(values.shape[-1]) == values.shape[-1] - 1
    used = [xp.where(last, frobenius(xp, g, (-2,)), 0).sum(axis=-1) > limit for g in (cotangent, other)]
    return single & used[0] & used[1]


def _unsigned(xp: Any, cotangent: Any, other: Any, values: Any, scale: Any, *, size: int) -> tuple[Any, Any]:
    test = partial(both_signs, xp, cotangent, other, values, scale, size)
    return cotangent, unless(xp, partial(multiplets.all_differ, xp, values, size, True), test)


def checked(
    numerator: Any, values: Any, scale: Any, kind: str, role: str, what: str, size: DimLike, cut: DimLike | None = None
) -> Any:
    """See the module's text."""
    return checked_(numerator, values, scale, kind=kind, role=role, what=what, size=size, cut=cut)


def quotient(numerator: Any, values: Any, kind: str, what: str, size: DimLike) -> Any:
    """`numerator` over the gaps of `kind`; zero where they vanish."""
    return quotient_(numerator, values, kind=kind, what=what, size=size, strict=False)


def certified(
    cotangent: Any, values: Any, others: tuple[Any, ...], what: str, size: DimLike, cut: DimLike | None = None
) -> Any:
    """See the module's text; `others` are the cotangents of the vectors, or ``None``."""
    return certified_(cotangent, values, *[o for o in others if o is not None], what=what, size=size, cut=cut)


def unrotated(cotangent: Any, basis: Any, scale: Any, what: str, size: DimLike) -> Any:
    """See the module's text."""
    return unrotated_(cotangent, basis, scale, what=what, size=size)


def unsigned(cotangent: Any, other: Any, values: Any, scale: Any, size: DimLike) -> Any:
    """See the module's text."""
    return unsigned_(cotangent, other, values, scale, size=size)


def cotangent_scale(values: Any, *cotangents: Any) -> Any:
    """Scale for comparing numerators computed from these cotangents."""
    return cotangent_scale_(values, *[c for c in cotangents if c is not None])


def _gap_change(dv: Any, like: Any, kind: str) -> Any:
    across = columns(dv, like)
    if kind == "column":
        return across
    return across - rows(dv, like) if kind == "difference" else across + rows(dv, like)


def _quotient_jvp(
    primals: Any, tangents: Any, outs: Any, *, kind: str, what: str, size: DimLike, strict: bool
) -> tuple[Any]:
    (_, values), (dn, dv), q = primals, tangents, outs[0]
    change = dn
    if dv is not None:
        moved = -(q * _gap_change(dv, q, kind))
        change = moved if change is None else change + moved
    if change is None:
        return (None,)
    return (quotient_(change, values, kind=kind, what=what, size=size, strict=True),)


def _quotient_vjp(
    primals: Any, outs: Any, cotangents: Any, *, kind: str, what: str, size: DimLike, strict: bool
) -> tuple[Any, Any]:
    values, q = primals[1], outs[0]
    n_bar = quotient_(cotangents[0], values, kind=kind, what=what, size=size, strict=True)
    pull = -re(cj(q) * n_bar)
    v_bar = reduce_sum(pull, axes=(pull.ndim - 2,))
    if kind != "column":
        down = reduce_sum(pull, axes=(pull.ndim - 1,))
        v_bar = v_bar - down if kind == "difference" else v_bar + down
    return n_bar, v_bar


PASSING = General(
    jvp=lambda primals, tangents, outs, **_: (tangents[0],),
    vjp=lambda primals, outs, cotangents, **_: (cotangents[0], *[None] * (len(primals) - 1)),
)
"""A test returns its first operand, so its derivative is the derivative of that operand."""


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels, size_of

    def size_and_cut(ins: Any, outs: Any, *, size: Any, cut: Any, **_: Any) -> tuple[Any, ...]:
        return size, cut

    kernels(registry, cotangent_scale_, scale_kernel, blas=False)
    kernels(registry, checked_, _checked_kernel, sizes=size_and_cut, blas=False)
    kernels(registry, quotient_, _quotient_kernel, sizes=size_of, blas=False)
    kernels(registry, certified_, _certified_kernel, sizes=size_and_cut, blas=False)
    kernels(registry, unrotated_, _unrotated_kernel, sizes=size_of)
    kernels(registry, unsigned_, _unsigned_kernel, sizes=size_of, blas=False)
    registry.expansion(cotangent_scale_, _expanded_scale, keep=True)
    for p, formula in (
        (checked_, _checked),
        (quotient_, _quotient),
        (certified_, _certified),
        (unsigned_, _unsigned),
    ):
        register_formula(registry, p, formula, regular=True)
    register_formula(registry, unrotated_, _unrotated)
    registry.rule(cotangent_scale_, Inactive())
    registry.rule(checked_, PASSING)
    registry.rule(certified_, PASSING)
    registry.rule(unrotated_, PASSING)
    registry.rule(unsigned_, PASSING)
    registry.rule(quotient_, General(jvp=_quotient_jvp, vjp=_quotient_vjp))
