"""Matrix algebra on stacks of matrices, written with primitives: the vocabulary of the derivative rules.

Every function works on the last two axes and accepts concrete, differentiated and traced values. Nothing here inspects
sizes, so symbolic extents pass through.
"""

from typing import Any

import numpy as np

from tenferro_linalg._masks import KEPT, mask_of, mask_on
from tenferro_runtime.extension import ArgumentError, Inactive, Linear, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import (
    broadcast_in_dim,
    conj,
    convert,
    dot_general,
    eq,
    ge,
    gt,
    imag,
    iota,
    le,
    ne,
    real,
    reduce_sum,
    select,
    slice_,
    transpose,
)
from tenferro_tensor_core import DimLike


@primitive(family="tenferro-linalg.part.v1", extension="linalg")
def part_(x: Spec, *, keep: str) -> Spec:
    """Zero all entries outside the part named by `keep`."""
    if keep not in KEPT:
        raise ArgumentError(f"part keeps one of {', '.join(KEPT)}; got {keep!r}", keep=keep)
    return x


@primitive(family="tenferro-linalg.identity_like.v1", extension="linalg")
def identity_like_(x: Spec) -> Spec:
    """Identity matrices of the shape and dtype of `x`."""
    return x


@primitive(family="tenferro-linalg.hermitian.v1", extension="linalg")
def hermitian_(x: Spec, *, transposed: bool) -> Spec:
    """The Hermitian matrix with the strict lower part of `x` and the real part of its diagonal; if `transposed`, the
    transpose of this map: the lower part of ``x + x*`` with the real diagonal of `x`.
    """
    return x


def part_kernel(la: Any, ins: Any, outs: Any, *, keep: str) -> Any:
    """The kernel of `part_`."""
    xp, zero = la.xp, outs[0].dtype.type(0)

    def run(x: Any) -> Any:
        m, n = x.shape[-2:]
        return xp.where(mask_of(keep, m, n) if xp is np else mask_on(xp, keep, m, n), x, zero)

    return run


def _hermitian_kernel(la: Any, ins: Any, outs: Any, *, transposed: bool) -> Any:
    parted = part_kernel(la, ins, outs, keep="strict_lower")

    def run(x: Any) -> Any:
        other = x if transposed else parted(x)
        out = la.xp.add(other, other.conj().swapaxes(-1, -2), out=la.xp.empty(x.shape, x.dtype))
        out = parted(out) if transposed else out
        n = x.shape[-1]
        out.reshape(*x.shape[:-2], n * n)[..., :: n + 1] += la.xp.diagonal(x, axis1=-2, axis2=-1).real
        return out

    return run


def _identity_kernel(la: Any, ins: Any, outs: Any) -> Any:
    xp, dtype = la.xp, outs[0].dtype
    return lambda x: xp.broadcast_to(xp.eye(*x.shape[-2:], dtype=dtype), x.shape).copy()


def _places(x: Any) -> tuple[Any, Any]:
    """Row and column indices of every entry."""
    spec: Spec = x.spec
    rows, columns = (
        iota(shape=spec.shape, dtype=np.dtype(np.int64), axis=axis, place=spec.place)
        for axis in (spec.ndim - 2, spec.ndim - 1)
    )
    return rows, columns


def _parted(x: Any, *, keep: str) -> Any:
    compare = {"diagonal": eq, "off_diagonal": ne, "lower": ge, "strict_lower": gt, "upper": le}[keep]
    return select(compare(*_places(x)), x, 0)


def _hermitian(x: Any, *, transposed: bool) -> Any:
    other = x if transposed else part(x, "strict_lower")
    out = other + adjoint(other)
    out = part(out, "strict_lower") if transposed else out
    return out + to(part(re(x), "diagonal"), x.dtype)


def _identities(x: Any) -> Any:
    return convert(eq(*_places(x)), dtype=x.spec.dtype)


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, part_, part_kernel, blas=False)
    kernels(registry, hermitian_, _hermitian_kernel, blas=False)
    kernels(registry, identity_like_, _identity_kernel, blas=False)
    registry.expansion(part_, _parted, keep=True)
    registry.expansion(hermitian_, _hermitian, keep=True)
    registry.expansion(identity_like_, _identities, keep=True)
    registry.rule(part_, Linear(x=lambda g, keep: part_(g, keep=keep)))
    registry.rule(hermitian_, Linear(x=lambda g, transposed: hermitian_(g, transposed=not transposed)))
    registry.rule(identity_like_, Inactive())


def part(x: Any, keep: str) -> Any:
    """Zero the entries of `x` outside a part."""
    return part_(x, keep=keep)


def swap(x: Any) -> Any:
    """Transpose of each matrix."""
    n = x.ndim
    return transpose(x, permutation=(*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """Conjugate transpose of each matrix."""
    return swap(conj(x) if x.spec.cplx else x)


def mm(x: Any, y: Any, *more: Any) -> Any:
    """Matrix product of two or more stacks with the same batch axes, from left to right."""
    if x.dtype != y.dtype:
        dtype = np.promote_types(x.dtype, y.dtype)
        x, y = to(x, dtype), to(y, dtype)
    b = tuple(range(x.ndim - 2))
    out = dot_general(x, y, contract=((x.ndim - 1,), (y.ndim - 2,)), batch=(b, b))
    return mm(out, *more) if more else out


def to(x: Any, dtype: Any) -> Any:
    """Convert `x` to a dtype."""
    return x if x.dtype == dtype else convert(x, dtype=dtype)


def re(x: Any) -> Any:
    """Real part; real values are returned as they are."""
    return real(x) if x.spec.cplx else x


def im(x: Any) -> Any:
    """Imaginary part; zeros for real values."""
    return imag(x) if x.spec.cplx else x * 0.0


def cj(x: Any) -> Any:
    """Complex conjugate; real values are returned as they are."""
    return conj(x) if x.spec.cplx else x


def sym(x: Any) -> Any:
    """Hermitian part."""
    return (x + adjoint(x)) * 0.5


def skew(x: Any) -> Any:
    """Skew-Hermitian part."""
    return (x - adjoint(x)) * 0.5


def rows(v: Any, like: Any) -> Any:
    """Broadcast vectors `v` (..., m) to the shape of `like`, constant along each row."""
    n = v.ndim
    return broadcast_in_dim(v, shape=like.spec.shape, dims=tuple(range(n)))


def columns(v: Any, like: Any) -> Any:
    """Broadcast vectors `v` (..., n) to the shape of `like`, constant along each column."""
    n = v.ndim
    return broadcast_in_dim(v, shape=like.spec.shape, dims=(*range(n - 1), n))


def scaled(x: Any, v: Any) -> Any:
    """``x @ diag(v)``."""
    return x * columns(v, x)


def diagonal(x: Any) -> Array:
    """Diagonals of square matrices."""
    return reduce_sum(part(x, "diagonal"), axes=(x.ndim - 1,))


def from_diagonal(v: Any) -> Any:
    """Square matrices with the given diagonals."""
    k = v.spec.shape[-1]
    return part(broadcast_in_dim(v, shape=(*v.spec.shape, k), dims=tuple(range(v.ndim))), "diagonal")


def hermitian_from_lower(x: Any) -> Any:
    """The Hermitian matrix with the strict lower part of `x` and the real part of its diagonal."""
    return hermitian_(x, transposed=False)


def block(x: Any, row: tuple[DimLike, DimLike] | None = None, column: tuple[DimLike, DimLike] | None = None) -> Any:
    """Rows ``row[0]:row[1]`` and columns ``column[0]:column[1]`` of each matrix; by default all."""
    n = x.ndim
    (a, b), (c, d) = row or (0, x.spec.shape[-2]), column or (0, x.spec.shape[-1])
    if a == 0 and c == 0 and b == x.spec.shape[-2] and d == x.spec.shape[-1]:
        return x
    return slice_(x, start=(*(0,) * (n - 2), a, c), limit=(*x.spec.shape[:-2], b, d), stride=(1,) * n)


def total(*terms: Any) -> Any:
    """Sum of the terms that are not ``None``."""
    out = None
    for t in terms:
        if t is not None:
            out = t if out is None else out + t
    return out
