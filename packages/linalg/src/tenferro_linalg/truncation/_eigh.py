"""Truncated eigenvalue decompositions of Hermitian matrices.

The decomposition is the full one with zero cotangents for the discarded part, so kept and discarded vectors are
coupled. Where the cut separates ``w`` from ``-w`` the choice jumps, and there is no derivative.
"""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import swap
from tenferro_linalg._degeneracy import PASSING
from tenferro_linalg._eigh import EighResult, eigh_
from tenferro_linalg._errors import DegenerateError
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._operands import basis, flag, matrices
from tenferro_linalg.factors._lu import taken
from tenferro_linalg.truncation._ranks import first, kept
from tenferro_runtime.extension import General, Registry, Spec, primitive
from tenferro_tensor.catalog import abs as absolute
from tenferro_tensor.catalog import argsort, stop_gradient
from tenferro_tensor.functions import take_along_axis
from tenferro_tensor_core import DimLike
from tenferro_tensor_core.tracebacks import boundary

ORDERS = ("magnitude", "largest", "smallest")


@boundary
def eigh_trunc(
    x: Any, /, k: Any = None, *, rtol: float | Any | None = None, atol: float | Any | None = None,
    which: str = "magnitude",
) -> EighResult:  # fmt: skip
    """Leading eigenpairs of Hermitian matrices.

    The gradient includes the coupling of kept and discarded vectors.

    Args:
        x: Hermitian matrices (..., n, n); of other matrices, the Hermitian part.
        k: number of pairs to keep, at most n: an integer, a symbolic size, or a computed 0-d integer array.
        rtol: without `k`, keep the pairs whose absolute values exceed `rtol` times the largest; for a stack, the
            largest number over its matrices.
        atol: without `k`, keep only absolute values above `atol`.
        which: order of the eigenvalues: by ``"magnitude"``, descending, or ``"largest"`` or ``"smallest"`` first.

    Returns:
        Eigenvalues (..., k) in that order, real, and eigenvectors (..., n, k) in columns.

    Raises:
        ArgumentError: `k` is out of range, neither `k` nor a tolerance is given, or both are.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        GaugeError, DegenerateError: (gradient) as for `eigh`, and where the cut separates equal magnitudes.

    >>> eigh_trunc([[3.0, 0.0], [0.0, -4.0]], 1).eigenvalues
    Tensor([-4.])
    """
    flag("eigh_trunc", "which", which, ORDERS)
    x, k = kept("eigh_trunc", matrices("eigh_trunc", x, square=True), k, rtol, atol, "eigh")
    w, v = eigh_(x, basis=basis(x))
    key = stop_gradient(absolute(w) if which == "magnitude" else w)
    order = argsort(key, axis=w.ndim - 1, descending=which != "smallest")
    if which == "magnitude" and x.level:
        sorted_ = take_along_axis(w, order, axis=-1)
        count = first(sorted_, k, -1).spec.shape[-1]
        w, v = one_sided_(w, stop_gradient(sorted_), k=count), one_sided_(v, stop_gradient(sorted_), k=count)
    values, vectors = take_along_axis(w, order, axis=-1), swap(taken(swap(v), order))
    return EighResult(first(values, k, -1), first(vectors, k, -1))


@primitive(family="tenferro-linalg.one_sided.v1", extension="linalg")
def one_sided_(x: Spec, w: Spec, *, k: DimLike) -> Spec:
    """`x`; its derivative tests that a cut after the first `k` of the eigenvalues `w` separates no equal magnitudes."""
    return x


@primitive(family="tenferro-linalg.one_sided_change.v1", extension="linalg")
def one_sided_change_(x: Spec, w: Spec, *, k: DimLike) -> Spec:
    """Return `x` after the test of `one_sided_`."""
    return x


def _balanced(xp: Any, x: Any, w: Any, *, k: int) -> tuple[Any, Any]:
    """`x`, and where the cut separates equal magnitudes."""
    n = w.shape[-1]
    if not 0 < k < n:
        return x, xp.asarray(False)
    last, after = w[..., k - 1], w[..., k]
    limit = 8 * n * float(np.finfo(w.dtype).eps) * xp.abs(w[..., 0])
    return x, (last * after < 0) & (xp.abs(last + after) <= limit)


def _kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    def run(x: Any, w: Any, k: int) -> Any:
        bad = la.local(_balanced(la.xp, x, w, k=k)[1])
        if bad.any():
            last, after = w[..., k - 1], w[..., k]
            batch = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
            of = f" of matrix {batch} of the stack" if batch else ""
            raise DegenerateError(
                f"eigh_trunc: the cut after {k} eigenvalues{of} separates {float(la.local(last)[batch]):.6g} from "
                f"{float(la.local(after)[batch]):.6g}, of the same magnitude, and the choice between them jumps; keep "
                "one more or one less, or choose by which=",
                batch=batch,
                pair=(k - 1, k),
            )
        return x

    return run


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    def size_of(ins: Any, outs: Any, *, k: Any) -> tuple[Any, ...]:
        return (k,)

    kernels(registry, one_sided_, lambda la, ins, outs, **_: lambda x, w, k: x, sizes=size_of, blas=False)
    kernels(registry, one_sided_change_, _kernel, sizes=size_of, blas=False)
    registry.expansion(one_sided_, lambda x, w, *, k: x, keep=True)
    register_formula(registry, one_sided_change_, _balanced, loops=False)
    registry.rule(
        one_sided_,
        General(
            jvp=lambda primals, tangents, outs, *, k: (one_sided_change_(tangents[0], primals[1], k=k),),
            vjp=lambda primals, outs, cotangents, *, k: (one_sided_change_(cotangents[0], primals[1], k=k), None),
        ),
    )
    registry.rule(one_sided_change_, PASSING)
