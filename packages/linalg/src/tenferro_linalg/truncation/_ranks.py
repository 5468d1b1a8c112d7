"""The rank of a truncation: a number, a computed one, or the number of values that exceed a tolerance.

A rank determined by a tolerance is a constant of differentiation. Its primitive computes its own singular values, which
stay at the original point when a derivative is taken as a limit at nearby points, where values near zero are larger.
"""

from typing import Any

from tenferro_linalg._bases import hermitian
from tenferro_linalg._operands import integer, require_inexact
from tenferro_linalg._pinv import cut_of
from tenferro_runtime.extension import ArgumentError, Inactive, Registry, Spec, primitive
from tenferro_tensor.catalog import reduce_max, reshape, stop_gradient
from tenferro_tensor.functions import truncate
from tenferro_tensor_core import Dim, ask, dim_min, int64


def kept(what: str, x: Any, k: Any, rtol: Any, atol: Any, kind: str) -> tuple[Any, Any]:
    """The matrices with all batch axes, and the rank: an integer, a symbolic size, or a 0-d integer array."""
    most = dim_min(*x.spec.shape[-2:])
    if k is not None:
        if rtol is not None or atol is not None:
            raise ArgumentError(f"{what}: pass either k or tolerances, not both", k=str(k))
        if hasattr(k, "spec"):
            return x, k
        k = k if isinstance(k, Dim) else integer(what, "k", k)
        if ask(k, "<", 0) or ask(k, ">", most):
            raise ArgumentError(f"{what}: k={k} is not between 0 and min(m, n) = {most}", k=k)
        return x, k
    if rtol is None and atol is None:
        raise ArgumentError(f"{what}: pass k, the rank to keep, or a tolerance, rtol= or atol=")
    x, relative = cut_of(what, x, "rtol", 0.0 if rtol is None else rtol)
    x, absolute = cut_of(what, x, "atol", 0.0 if atol is None else atol)
    if relative[0].spec.shape != x.spec.shape[:-2]:
        x, relative = cut_of(what, x, "rtol", relative[0])
    ranks = rank_(stop_gradient(x), relative[0], absolute[0], kind=kind, what=what)
    if not ranks.ndim:
        return x, ranks
    if ask(ranks.spec.size, "==", 0):
        return x, 0
    return x, reduce_max(reshape(ranks, shape=(ranks.spec.size,)), axes=(0,))


def first(x: Any, k: Any, axis: int) -> Any:
    """The first `k` entries along an axis, which is counted from the end."""
    return truncate(x, k, axis=x.ndim + axis)


@primitive(family="tenferro-linalg.rank.v1", extension="linalg")
def rank_(x: Spec, rtol: Spec, atol: Spec, *, kind: str, what: str) -> Spec:
    """Number of values above both tolerances, `rtol` times the largest one and `atol`."""
    require_inexact(what, x)
    return x.with_(shape=x.shape[:-2], dtype=int64)


def _kernel(la: Any, ins: Any, outs: Any, *, kind: str, what: str) -> Any:
    def values(x: Any) -> Any:
        if kind == "svd":
            return la.svdvals(x)
        if kind == "eigh":
            return la.xp.abs(la.eigvalsh(hermitian(x)))
        pivoted = la.xp.take_along_axis(x, la.column_order(x)[..., None, :], axis=-1)
        return la.xp.abs(la.xp.diagonal(la.qr_r(pivoted), axis1=-2, axis2=-1))

    def run(x: Any, rtol: Any, atol: Any) -> Any:
        xp = la.xp
        if 0 in x.shape:
            return xp.zeros(x.shape[:-2], int64)[()]
        found = values(la.finite(what, x))
        limit = xp.maximum(xp.asarray(rtol)[..., None] * found.max(axis=-1, keepdims=True), xp.asarray(atol)[..., None])
        above = found > limit
        if kind == "qr":  # on the diagonal of R, a small entry may precede a larger one
            above = xp.cumprod(above, axis=-1)
        return above.sum(axis=-1).astype(int64)[()]

    return run


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, rank_, _kernel)
    registry.rule(rank_, Inactive())
