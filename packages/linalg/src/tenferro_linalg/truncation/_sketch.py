"""Singular value decomposition of random sketches (Halko, Martinsson and Tropp 2011).

The range of ``A (A* A)^q Omega`` contains the leading left vectors; with an orthonormal basis Q of it, the
decomposition of the small matrix ``Q* A`` yields the triplets. Derivatives are those of the triplets themselves: inside
the kept spaces as for `svd`, and outside by `coupled_`, without any other decomposition.
"""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, diagonal, from_diagonal, mm, part, re, scaled, skew, sym, to, total
from tenferro_linalg._bases import generic_svd
from tenferro_linalg._degeneracy import certified, checked, cotangent_scale, quotient
from tenferro_linalg._operands import (
    basis,
    in_generic_basis,
    inexact,
    integer,
    matrices,
    require_inexact,
    show,
    stacked,
)
from tenferro_linalg._svd import SVDResult
from tenferro_linalg.truncation._coupling import coupled_
from tenferro_runtime.extension import (
    ArgumentError,
    General,
    GradientError,
    Registry,
    ShapeError,
    Spec,
    primitive,
)
from tenferro_tensor import tensor
from tenferro_tensor.catalog import stop_gradient
from tenferro_tensor_core import ask, dim_max, dim_min, real_of, require_equal
from tenferro_tensor_core.forks import importing
from tenferro_tensor_core.tracebacks import boundary


@boundary
def svd_random(
    x: Any, /, k: int, *, oversample: int = 8, iterations: int = 2, key: Any = None, sketch: Any = None
) -> SVDResult:
    """The `k` largest singular triplets from a random sketch (Halko, Martinsson and Tropp 2011).

    Takes ``O(m n k)`` operations, compared with ``O(m n min(m, n))`` of `svd_trunc`. The error is that of the best
    approximation of rank `k` times a factor close to 1 where the values decay quickly; more iterations make them decay
    more quickly. Derivatives are those of the exact triplets, as accurate as the triplets are.

    Args:
        x: matrices (..., m, n).
        k: number of triplets, at most min(m, n).
        oversample: columns of the sketch beyond `k`.
        iterations: how often the sketch is multiplied by ``A A*``.
        key: random key of the normally distributed sketch, which is the same for all matrices of a stack; by default
            ``random.key(0)``.
        sketch: a matrix (n, l) with l >= k columns to use instead.

    Returns:
        U (..., m, k), S (..., k), real and descending, and Vh (..., k, n).

    Raises:
        ArgumentError: `k` is negative or larger than min(m, n), or another number is negative.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        ShapeError: the sketch does not fit.
        GaugeError: (gradient) the loss depends on an arbitrary choice of vectors.
        DegenerateError: (derivative) a kept value is zero or not separated from the discarded ones, or equal kept
            values leave the derivative undetermined.

    >>> svd_random([[3.0, 0.0], [0.0, 4.0]], 1).S.round(12)
    Tensor([4.])
    """
    x = matrices("svd_random", x)
    n, most = x.spec.shape[-1], dim_min(*x.spec.shape[-2:])
    k, extra, turns = (
        integer("svd_random", name, v) for name, v in (("k", k), ("oversample", oversample), ("iterations", iterations))
    )
    if k < 0 or ask(k, ">", most):
        raise ArgumentError(f"svd_random: k={k} is not between 0 and min(m, n) = {most}", k=k)
    if extra < 0 or turns < 0:
        raise ArgumentError(f"svd_random: oversample={extra} or iterations={turns} is negative")
    if sketch is None:
        with importing():
            from tenferro_runtime import random  # many modules that only a sketch needs
        key = tensor(np.array(0, np.uint64), device=x.spec.place.device) if key is None else key  # random.key(0)
        omega = random.normal(key, (n, dim_min(k + extra, most)), real_of(x.dtype))
    else:
        omega = inexact(sketch)
        if omega.ndim != 2:
            raise ShapeError(f"svd_random: the sketch must be one matrix, got shape {show(omega.spec.shape)}")
        require_equal(omega.spec.shape[0], n, "svd_random: the sketch needs as many rows as the matrices have columns")
        if ask(omega.spec.shape[1], "<", k):
            raise ShapeError(f"svd_random: a sketch of shape {show(omega.spec.shape)} has fewer than k={k} columns")
    omega = stacked(to(stop_gradient(omega), x.dtype), x.spec.shape[:-2])
    return SVDResult(*svd_sketched_(x, omega, k=k, iterations=turns, basis=basis(x)))


@primitive(family="tenferro-linalg.svd_sketched.v1", extension="linalg")
def svd_sketched_(x: Spec, omega: Spec, *, k: int, iterations: int, basis: str) -> tuple[Spec, Spec, Spec]:
    """U, S, Vh of the `k` largest triplets in the range of the sketch."""
    require_inexact("svd_random", x, omega)
    *batch, m, n = x.shape
    return (
        x.with_(shape=(*batch, m, k)),
        x.with_(shape=(*batch, k), dtype=real_of(x.dtype)),
        x.with_(shape=(*batch, k, n)),
    )


def _sketched_kernel(la: Any, ins: Any, outs: Any, *, k: int, iterations: int, basis: str) -> Any:
    def run(x: Any, omega: Any) -> Any:
        x = la.finite("svd_random", x)
        xh = x.conj().swapaxes(-1, -2)
        q = la.qr(x @ omega, "reduced")[0]
        for _ in range(iterations):
            q = la.qr(x @ la.qr(xh @ q, "reduced")[0], "reduced")[0]
        u, s, vh = la.svd(q.conj().swapaxes(-1, -2) @ x, False)
        u, s, vh = q @ u[..., :k], s[..., :k].copy(), vh[..., :k, :].copy()
        # Use the same generic basis of equal values in U and V, so that the tests detect any dependence on the choice.
        return generic_svd(la, u, s, vh) if basis == "generic" else (u, s, vh)

    return run


def _outside(a: Any, u: Any) -> Any:
    return a - mm(u, mm(adjoint(u), a))


def _rest(x: Any, u: Any, s: Any, vh: Any) -> Any:
    return x - mm(scaled(u, to(s, u.dtype)), vh)


def _jvp(primals: Any, tangents: Any, outs: Any, **_: Any) -> tuple[Any, Any, Any]:
    (x, _), (da, _), (u, s, vh) = primals, tangents, outs
    size, v = dim_max(*x.spec.shape[-2:]), adjoint(vh)
    left, right = mm(da, v), mm(adjoint(da), u)
    inner = mm(adjoint(u), left)
    scale = cotangent_scale(s, da)
    even = checked(sym(inner), s, scale, "difference", "tangent", "svd", size)
    odd = checked(skew(inner), s, scale, "sum", "tangent", "svd", size)
    plus = quotient(part(even, "off_diagonal"), s, "difference", "svd", size)
    minus = quotient(odd, s, "sum", "svd", size)
    out, back = coupled_(_rest(x, u, s, vh), s, _outside(left, u), _outside(right, v))
    return mm(u, plus + minus) + out, re(diagonal(even)), adjoint(mm(v, plus - minus) + back)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, basis: str, **_: Any) -> tuple[Any, None]:
    (x, _), (u, s, vh), (gu, gs, gvh) = primals, outs, cotangents
    if basis != "generic":
        raise GradientError("svd_random in a plain basis is not differentiable in reverse; call it on the value itself")
    size, v = dim_max(*x.spec.shape[-2:]), adjoint(vh)
    gv = None if gvh is None else adjoint(gvh)
    scale = cotangent_scale(s, gu, gv, gs)
    q = None if gs is None else to(from_diagonal(certified(gs, s, (gu, gv), "svd", size)), u.dtype)
    if gu is None and gv is None:
        return mm(u, q, vh), None
    gu, gv = u * 0 if gu is None else gu, v * 0 if gv is None else gv
    a, b = skew(mm(adjoint(u), gu)), skew(mm(vh, gv))
    plus = checked(a + b, s, scale, "difference", "cotangent", "svd", size)
    minus = checked(a - b, s, scale, "sum", "cotangent", "svd", size)
    q = total(q, quotient(plus, s, "difference", "svd", size), quotient(minus, s, "sum", "svd", size))
    out, back = coupled_(_rest(x, u, s, vh), s, _outside(gu, u), _outside(gv, v))
    return mm(mm(u, q) + out, vh) + mm(u, adjoint(back)), None


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, svd_sketched_, _sketched_kernel)
    registry.rule(svd_sketched_, General(jvp=_jvp, vjp=_vjp, recorded=in_generic_basis))
