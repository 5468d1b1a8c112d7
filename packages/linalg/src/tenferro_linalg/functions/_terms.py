"""Analytic functions of matrices, with exact derivatives of any order at every matrix, including defective ones.

The p-th derivative of f at A is a sum of terms over the orders of its directions::

    D^p f(A) [E_1, ..., E_p] = sum over orders of T(E_1, ..., E_p)

where T is the corner block of f of a block bidiagonal matrix (see `tenferro_linalg.functions._chains`). One primitive
computes the term of one order, and its family is closed: differentiating by the matrix inserts another factor, in each
position; and since a trace is cyclic, the cotangent of a factor is the adjoint of the term of the others and of the
adjoint of the outer cotangent, in cyclic order.
"""

from __future__ import annotations

from typing import Any

from tenferro_linalg._algebra import adjoint, re, to, total
from tenferro_linalg._operands import require_inexact, require_square
from tenferro_runtime.extension import Cost, DimLike, General, Registry, Spec, primitive
from tenferro_tensor_core import promote

NAMES = {"exp": "expm", "log": "logm", "sqrt": "sqrtm", "sign": "signm"}
"""The functions, and their public names."""


def term(function: str, x: Any, *factors: Any) -> Any:
    """``T(factors)`` of a function at x; without factors, the function itself."""
    return matrix_function_(x, *factors, function=function, order=len(factors))


@primitive(family="tenferro-linalg.matrix_function.v1", extension="linalg")
def matrix_function_(x: Spec, *factors: Spec, function: str, order: int) -> Spec:
    """The term of `order` factors of the function at x."""
    require_inexact(NAMES[function], x)
    require_square(NAMES[function], x)
    return x.with_(dtype=promote(x.dtype, *[e.dtype for e in factors]))


def _jvp(primals: Any, tangents: Any, outs: Any, *, function: str, order: int) -> tuple[Any]:
    (x, *factors), (dx, *changes) = primals, tangents
    found = []
    if dx is not None:
        found += [term(function, x, *factors[:k], dx, *factors[k:]) for k in range(order + 1)]
    for k, e in enumerate(changes):
        if e is not None:
            found.append(term(function, x, *factors[:k], e, *factors[k + 1 :]))
    change = total(*found)
    return (None if change is None else to(change, outs[0].dtype),)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, function: str, order: int) -> tuple[Any, ...]:
    x, *factors = primals
    back = adjoint(cotangents[0])

    def turned(*chain: Any) -> Any:
        return adjoint(term(function, x, *chain))

    by_x = total(*[turned(*factors[k:], back, *factors[:k]) for k in range(order + 1)])
    return _fitting(by_x, x), *[
        _fitting(turned(*factors[k + 1 :], back, *factors[:k]), e) for k, e in enumerate(factors)
    ]


def _fitting(x: Any, like: Any) -> Any:
    """A cotangent for an operand: its real part if the operand is real."""
    return to(x if like.spec.cplx else re(x), like.dtype)


def _kernel(la: Any, ins: Any, outs: Any, *, function: str, order: int) -> Any:
    from tenferro_linalg.functions._kernels import kernel

    return kernel(la, NAMES[function], outs[0].dtype, function, order)


def _cost(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, function: str, order: int) -> Cost:
    (out,) = outs
    n = out.shape[-1]
    count: DimLike = 1
    for d in out.shape[:-2]:
        count = count * d
    products = (order + 1) * (order + 2) * (order + 3) // 6
    flops: DimLike = (4 if out.cplx else 1) * (16 if function == "exp" else 50) * products
    return Cost(flops * count * n * n * n, workspace=out.dtype.itemsize * 8 * (order + 1) * count * n * n)


def register(registry: Registry) -> None:
    """Kernel and rules of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, matrix_function_, _kernel)
    registry.rule(matrix_function_, General(jvp=_jvp, vjp=_vjp))
    registry.cost(matrix_function_, _cost)
