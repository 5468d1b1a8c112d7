"""The coupling of kept and discarded singular vectors, from the matrix and the kept triplets alone.

With ``A_2 = A - U S V*``, applied but never decomposed, the components x, y of ``dU``, ``dV`` outside the kept spaces
solve, for each kept value s_j (cf. arXiv 2311.11894)::

    s_j x_j - A_2 y_j = p_j        s_j y_j - A_2* x_j = q_j

Eliminating y leaves ``(s_j^2 - A_2 A_2*) x_j = s_j p_j + A_2 q_j``, which is positive definite if s_j is larger than
all discarded values; conjugate gradients solve it for all columns at once. The map is its own adjoint, so the rule is
closed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, cj, columns, mm, re, to, total
from tenferro_linalg._degeneracy import frobenius
from tenferro_linalg._errors import DegenerateError
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._operands import require_inexact
from tenferro_runtime.extension import General, Registry, Spec, primitive
from tenferro_tensor.catalog import reduce_sum


@primitive(family="tenferro-linalg.coupled.v1", extension="linalg")
def coupled_(rest: Spec, s: Spec, p: Spec, q: Spec) -> tuple[Spec, Spec]:
    """x and y of the equations above; `rest` is ``A_2``."""
    require_inexact("svd_random", rest, p, q)
    return p, q


def _kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(rest: Any, s: Any, p: Any, q: Any) -> Any:
        if not s.shape[-1] or 0 in s.shape:
            return p, q
        _refuse(la, _vanishing(s, rest), s, "is zero")
        x, y, near = _solution(la.xp, _repeated, rest, s, p, q)
        _refuse(la, near, s, "is not separated from the discarded ones")
        return x, y

    return run


def _formula(xp: Any, rest: Any, s: Any, p: Any, q: Any) -> tuple[Any, Any, Any]:
    if 0 in s.shape or 0 in rest.shape:
        return p, q, xp.asarray(False)
    x, y, near = _solution(xp, xp.while_loop, rest, s, p, q)
    return x, y, near | _vanishing(s, rest)


def _vanishing(s: Any, rest: Any) -> Any:
    """Which kept values are zero."""
    return s <= 8 * max(rest.shape[-2:]) * float(np.finfo(s.dtype).eps) * s.max(axis=-1, keepdims=True)


def _repeated(goes_on: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    """A loop on arrays, with the arguments of `while_loop`."""
    while bool(goes_on(state)):
        state = step(state)
    return state


def _solution(xp: Any, loop: Callable[..., Any], rest: Any, s: Any, p: Any, q: Any) -> tuple[Any, Any, Any]:
    """x and y, and which kept values are too close to the discarded ones."""
    most, eps = max(rest.shape[-2:]), float(np.finfo(s.dtype).eps)
    unit = xp.asarray(s.max(axis=-1))[..., None, None]
    unit = xp.where(unit > 0, unit, 1)
    a, ratio = rest / unit, xp.asarray(s)[..., None, :] / unit
    ah, p, q = a.conj().swapaxes(-1, -2), p / unit, q / unit

    def normal(v: Any) -> Any:
        return ratio * ratio * v - a @ (ah @ v)

    b = ratio * p + a @ q
    x, left = _gradients(xp, loop, normal, b, 8 * eps, 20 * min(rest.shape[-2:]) + 20)
    # A solution this large means that the operator is singular to working precision.
    huge = 64 * most * eps * frobenius(xp, x, (-2,)) >= frobenius(xp, b, (-2,))
    near = left | (huge & (xp.abs(x).max(axis=-2) > 0))
    return x, (q + ah @ x) / xp.where(ratio > 0, ratio, 1), near


def _gradients(
    xp: Any, loop: Callable[..., Any], normal: Callable[[Any], Any], b: Any, tolerance: float, steps: int
) -> tuple[Any, Any]:
    """Conjugate gradients for each column, and which columns did not converge."""

    def product(v: Any, w: Any) -> Any:
        return (v.conj() * w).real.sum(axis=-2, keepdims=True)

    first = product(b, b)
    goal, none = tolerance**2 * first, xp.asarray(0)

    def goes_on(state: Any) -> Any:
        *_, size, _, stalled, count = state
        return (size > goal).any() & (stalled <= 30) & (count < steps)

    def step(state: Any) -> Any:
        x, r, d, size, best, stalled, count = state
        image = normal(d)
        curvature = product(d, image)
        good = (size > goal) & (curvature > 0)
        along = xp.where(good, size / xp.where(good, curvature, 1), 0)
        x, r = x + along * d, r - along * image
        new = product(r, r)
        stalled = xp.where((new < 0.5 * best).any(), 0, stalled + 1)
        d = r + xp.where(good, new / xp.where(size > 0, size, 1), 0) * d
        return x, r, d, xp.where(good, new, size), xp.minimum(best, new), stalled, count + 1

    x, _, _, size, best, *_ = loop(goes_on, step, (xp.zeros_like(b), b, b, first, first, none, none))
    # Rounding leaves a residual proportional to the operator times the solution.
    limit = xp.maximum(64 * goal, (64 * tolerance) ** 2 * product(x, x))
    return x, ((best > limit) & (size > 0))[..., 0, :]


def _refuse(la: Any, bad: Any, s: Any, why: str) -> None:
    bad = la.local(bad)
    if bad.any():
        *batch, j = (int(i) for i in np.argwhere(bad)[0])
        of = f" of matrix {tuple(batch)} of the stack" if batch else ""
        raise DegenerateError(
            f"svd_random: the kept singular value S[{j}] = {float(la.local(s)[(*batch, j)]):.6g}{of} {why}, and its "
            "vectors have no derivative; keep more or fewer triplets",
            batch=tuple(batch),
            pair=(j, j),
        )


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    (rest, s, p, q), (drest, ds, dp, dq), (x, y) = primals, tangents, outs
    if drest is not None:
        dp, dq = total(dp, mm(drest, y)), total(dq, mm(adjoint(drest), x))
    if ds is not None:
        dp, dq = (total(d, -(to(columns(ds, v), v.dtype) * v)) for d, v in ((dp, x), (dq, y)))
    return coupled_(rest, s, p * 0 if dp is None else dp, q * 0 if dq is None else dq)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any, Any, Any]:
    (rest, s, p, q), (x, y), (gx, gy) = primals, outs, cotangents
    gp, gq = coupled_(rest, s, p * 0 if gx is None else gx, q * 0 if gy is None else gy)
    gs = total(*[-reduce_sum(re(cj(v) * g), axes=(g.ndim - 2,)) for v, g in ((x, gp), (y, gq))])
    return mm(gp, adjoint(y)) + mm(x, adjoint(gq)), gs, gp, gq


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, coupled_, _kernel)
    register_formula(registry, coupled_, _formula, loops=False)
    registry.rule(coupled_, General(jvp=_jvp, vjp=_vjp))
