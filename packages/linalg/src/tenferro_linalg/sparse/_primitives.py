"""Products with sparse matrices, closed under differentiation, and solutions of sparse equations.

With y = A x, and a the entries of A at rows i and columns j: dy = A dx + dA x. For a cotangent g of y, the cotangent of
x is A^H g and that of a is g_i conj(x_j): `sampled_` evaluates an outer product at the positions of the entries, and
its derivatives are products with matrices that have the same positions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tenferro_linalg.sparse._structure import RowStructure, beside
from tenferro_runtime.batching import lane_by_lane
from tenferro_runtime.extension import DTypeError, General, NumericalError, Registry, Spec, primitive
from tenferro_tensor.catalog import conj, reshape, transpose


def _matched(what: str, *xs: Spec) -> None:
    if any(x.dtype != xs[0].dtype or not x.inexact for x in xs):
        raise DTypeError(f"{what} takes operands of one real or complex dtype, got {', '.join(map(repr, xs))}")


@primitive(family="tenferro-linalg.sparse_product.v1", extension="linalg")
def product_(data: Spec, x: Spec, *, structure: RowStructure) -> Spec:
    """Product of the matrix with entries `data` and the vector or matrix `x`."""
    _matched("a sparse product", data, x)
    return x.with_(shape=(structure.shape[0], *x.shape[1:]))


@primitive(family="tenferro-linalg.sparse_sampled.v1", extension="linalg")
def sampled_(y: Spec, x: Spec, *, structure: RowStructure) -> Spec:
    """The entries of ``y @ x.T`` at the positions of a structure; for vectors, of the outer product."""
    _matched("a sampled product", y, x)
    return x.with_(shape=(structure.count,))


@primitive(family="tenferro-linalg.sparse_solve.v1", extension="linalg")
def solve_(data: Spec, b: Spec, *, structure: RowStructure) -> Spec:
    """Solution of the equation whose matrix has the entries `data`, for the columns of `b`."""
    _matched("a sparse equation", data, b)
    return b


def _product_kernel(la: Any, ins: Any, outs: Any, *, structure: RowStructure) -> Callable[..., Any]:
    if la.xp is not np:
        return partial(la.sparse_product, structure)
    from scipy.sparse import _sparsetools  # called by `csr_array` itself, after checks of each operand

    starts, columns, (m, n) = structure.starts, structure.columns, structure.shape

    def run(data: Any, x: Any) -> Any:
        out = np.zeros((m, *x.shape[1:]), x.dtype)
        data, x = np.ascontiguousarray(data), np.ascontiguousarray(x)
        if x.ndim == 1:
            _sparsetools.csr_matvec(m, n, starts, columns, data, x, out)
        elif x.shape[1] == 1:
            _sparsetools.csr_matvec(m, n, starts, columns, data, x.reshape(-1), out.reshape(-1))
        else:
            _sparsetools.csr_matvecs(m, n, x.shape[1], starts, columns, data, x.reshape(-1), out.reshape(-1))
        return out

    return run


def _sampled_kernel(la: Any, ins: Any, outs: Any, *, structure: RowStructure) -> Callable[..., Any]:
    if la.xp is not np:
        return partial(la.sparse_sampled, structure)
    rows, columns = structure.rows, structure.columns

    def run(y: Any, x: Any) -> Any:
        if y.ndim == 1:
            return y[rows] * x[columns]
        return np.einsum("kp,kp->k", y[rows], x[columns])

    return run


def _solve_kernel(ins: Any, outs: Any, *, structure: RowStructure) -> Callable[..., Any]:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    turned, order = structure.transposed

    def run(data: Any, b: Any) -> Any:
        if not (np.isfinite(data).all() and np.isfinite(b).all()):
            raise NumericalError("spsolve: the matrix or the right-hand side has an entry that is not finite")
        # Compressed rows of the transpose are the compressed columns that SuperLU takes.
        columns = csc_array((data[order], turned.columns, turned.starts), shape=structure.shape)
        try:
            factors = splu(columns)
        except RuntimeError as error:
            raise NumericalError(
                f"spsolve: the matrix is singular ({error}); regularise it, or take lsqr for the least-squares solution"
            ) from None
        return factors.solve(np.ascontiguousarray(b))

    return run


def _adjoint(data: Any, structure: RowStructure) -> tuple[Any, RowStructure]:
    """Entries and structure of the adjoint."""
    import tenferro_runtime as tr

    turned, order = structure.transposed
    return tr.conj(tr.take(data, beside(data, order))), turned


def _product_jvp(primals: Any, tangents: Any, outs: Any, *, structure: RowStructure) -> Any:
    (data, x), (of_data, of_x) = primals, tangents
    parts = [] if of_data is None else [product_(of_data, x, structure=structure)]
    parts += [] if of_x is None else [product_(data, of_x, structure=structure)]
    return (sum(parts[1:], parts[0]),)


def _product_vjp(primals: Any, outs: Any, cotangents: Any, *, structure: RowStructure) -> Any:
    (data, x), (g,) = primals, cotangents
    turned, its_structure = _adjoint(data, structure)
    return sampled_(g, conj(x), structure=structure), product_(turned, g, structure=its_structure)


def _sampled_jvp(primals: Any, tangents: Any, outs: Any, *, structure: RowStructure) -> Any:
    (y, x), (of_y, of_x) = primals, tangents
    parts = [] if of_y is None else [sampled_(of_y, x, structure=structure)]
    parts += [] if of_x is None else [sampled_(y, of_x, structure=structure)]
    return (sum(parts[1:], parts[0]),)


def _sampled_vjp(primals: Any, outs: Any, cotangents: Any, *, structure: RowStructure) -> Any:
    (y, x), (g,) = primals, cotangents
    turned, its_structure = _adjoint(conj(g), structure)
    return product_(g, conj(x), structure=structure), product_(turned, conj(y), structure=its_structure)


def _solve_jvp(primals: Any, tangents: Any, outs: Any, *, structure: RowStructure) -> Any:
    (data, _), (of_data, of_b), (x,) = primals, tangents, outs
    rhs = of_b
    if of_data is not None:
        moved = -product_(of_data, x, structure=structure)
        rhs = moved if rhs is None else rhs + moved
    return (solve_(data, rhs, structure=structure),)


def _solve_vjp(primals: Any, outs: Any, cotangents: Any, *, structure: RowStructure) -> Any:
    (data, _), (x,), (g,) = primals, outs, cotangents
    turned, its_structure = _adjoint(data, structure)
    w = solve_(turned, g, structure=its_structure)
    return -sampled_(w, conj(x), structure=structure), w


def _of_lanes(primitive: Any) -> Callable[..., Any]:
    """Batching rule for a matrix that all lanes share: the columns of all lanes are concatenated."""

    def rule(size: Any, values: Any, batched: Any, /, *, structure: RowStructure) -> Any:
        data, x = values
        if batched[0]:
            return lane_by_lane(primitive.op(structure=structure), size, values, batched)
        if x.ndim == 2:
            return transpose(primitive(data, transpose(x, permutation=(1, 0)), structure=structure), permutation=(1, 0))
        _, n, p = x.spec.shape
        wide = reshape(transpose(x, permutation=(1, 0, 2)), shape=(n, size * p))
        out = primitive(data, wide, structure=structure)
        apart = reshape(out, shape=(out.spec.shape[0], size, p))
        return transpose(apart, permutation=(1, 0, 2))

    return rule


def _sampled_lanes(size: Any, values: Any, batched: Any, /, *, structure: RowStructure) -> Any:
    """Batching rule of sampled products: the rows of all lanes are taken, multiplied and summed over columns."""
    import tenferro_runtime as tr

    y, x = [v if has else tr.expand_dims(v, axis=0) for v, has in zip(values, batched, strict=True)]
    rows, columns = beside(x, structure.rows, structure.columns)
    out = tr.take(y, rows, axis=1) * tr.take(x, columns, axis=1)
    return tr.sum(out, axis=2) if y.ndim == 3 else out


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, product_, _product_kernel, blas=False)
    kernels(registry, sampled_, _sampled_kernel, blas=False)
    registry.kernel(solve_, "cpu", _solve_kernel)
    registry.rule(product_, General(jvp=_product_jvp, vjp=_product_vjp))
    registry.rule(sampled_, General(jvp=_sampled_jvp, vjp=_sampled_vjp))
    registry.rule(solve_, General(jvp=_solve_jvp, vjp=_solve_vjp))
    registry.batching(product_, _of_lanes(product_))
    registry.batching(sampled_, _sampled_lanes)
    registry.batching(solve_, _of_lanes(solve_))
