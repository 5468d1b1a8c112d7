"""`expm_multiply`: the exponential of an operator applied to a vector, by Taylor polynomials over short time steps.

Al-Mohy and Higham, SIAM J. Sci. Comput. 33, 488 (2011), with a fixed degree for each precision and without the shift by
the mean of the diagonal.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, overload

import numpy as np

import tenferro_runtime as tr
from tenferro_linalg._operands import inexact
from tenferro_linalg.krylov._conjugate_gradients import length
from tenferro_linalg.krylov._krylov_bases import noise, unit
from tenferro_linalg.krylov._operators import as_operator, known
from tenferro_linalg.krylov._spaces import space_of
from tenferro_linalg.sparse import SparseArray
from tenferro_runtime.extension import ArgumentError, Array
from tenferro_runtime.ir import here
from tenferro_tensor_core import complex_of, promote, real_of
from tenferro_tensor_core.tracebacks import boundary

T = TypeVar("T")

DEGREES: Final = {"f": (20, 3.0), "d": (30, 3.5)}
"""Degree of the polynomial, and the norm up to which it is exact to rounding, by real dtype."""

POWER_STEPS: Final = 12
"""Number of products that estimate the norm of a function."""


@overload
def expm_multiply(A: Any, b: Array | np.ndarray[Any, Any] | list[float], t: Any = ..., *, norm: Any = ...) -> Array: ...
@overload
def expm_multiply(A: Any, b: T, t: Any = ..., *, norm: Any = ...) -> T: ...
@boundary
def expm_multiply(A: Any, b: Any, t: Any = 1.0, *, norm: Any = None) -> Any:
    """Exponential of an operator applied to a vector: ``exp(t A) b``, the solution of b' = A b at time t.

    The time is divided into steps over which a Taylor polynomial is exact to rounding (Al-Mohy and Higham 2011).
    Differentiable with respect to `b`, `t` and everything that `A` depends on, in both modes and to any order. Reverse
    mode stores the state of each step, or as many as the memory budget of recorded loops allows.

    Args:
        A: a matrix (n, n), dense or sparse, or a linear function of arrays in the containers of `b`.
        b: the state at time 0, arrays in any containers; converted to the dtype of the result, complex for complex `t`.
        t: a real or complex time, or a vector of times (m,).
        norm: upper bound of the norm of `A`, for functions; by default estimated by products, which may underestimate
            it for functions that are far from normal.

    Returns:
        The state at time t, in the containers of `b`; for a vector of times, stacked along a new first axis.

    Raises:
        ArgumentError: `t` has more than one axis.

    See also: `expm`.

    >>> A = tr.asarray([[0.0, -1.0], [1.0, 0.0]])
    >>> tr.linalg.expm_multiply(A, [1.0, 0.0], 0.5)
    Tensor([0.87758256, 0.47942554])
    """
    A, t = known(A), inexact(t)
    operator, dtype = as_operator(A, "expm_multiply")
    if t.ndim > 1:
        raise ArgumentError(f"expm_multiply takes a time or a vector of times{here()}, got shape {t.shape}")
    if t.spec.cplx:
        dtype = complex_of(t.dtype) if dtype is None else promote(dtype, complex_of(real_of(t.dtype)))
    space, state = space_of(inexact(b) if isinstance(b, list) else b, "the state of expm_multiply", dtype)
    t = tr.astype(t, space.dtype if t.spec.cplx else real_of(space.dtype))
    degree, most = DEGREES[real_of(space.dtype).char]

    def apply(x: Any) -> Any:
        return space.flat(operator.matvec(space.tree_of(x)), "the result of the operator of expm_multiply")

    size = tr.stop_gradient(_norm(A, apply, state) if norm is None else tr.asarray(norm, dtype=real_of(space.dtype)))

    def evolved(state: Any, span: Any) -> Any:
        count = tr.astype(tr.ceil(tr.maximum(size * tr.abs(tr.stop_gradient(span)) / most, 1.0)), "int64")
        step = tr.astype(span / count, space.dtype)

        def polynomial(_: Any, state: Any) -> Any:
            def added(j: Any, carry: Any) -> Any:
                total, term = carry
                term = apply(term) * (step / (j + 1))
                return total + term, term

            return tr.fori_loop(0, degree, added, (state, state))[0]

        return tr.fori_loop(0, count, polynomial, state)

    if t.ndim == 0:
        return space.tree_of(evolved(state, t))
    states, before = [], tr.zeros_like(t[0])
    for k in range(t.shape[0]):
        state = evolved(state, t[k] - before)
        before = t[k]
        states.append(space.tree_of(state))
    return tr.tree_map(lambda *xs: tr.stack(xs), *states)


def _norm(A: Any, apply: Any, like: Any) -> Any:
    """1-norm of a matrix, or an estimate of the norm of a function."""
    if isinstance(A, SparseArray):
        return tr.max(SparseArray(tr.abs(tr.stop_gradient(A.data)), A.structure).sum(0))
    if hasattr(A, "ndim"):
        return tr.max(tr.sum(tr.abs(tr.stop_gradient(inexact(A))), axis=0))
    x: Any = noise(like.shape[0], like.dtype, 3.0)
    found: Any = 0.0
    for _ in range(POWER_STEPS):
        x = tr.stop_gradient(apply(unit(x)))
        found = tr.maximum(length(x), found)
    return 1.5 * found
