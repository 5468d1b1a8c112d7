"""Cost models of decompositions and solvers: operations after Golub and Van Loan, and the memory that LAPACK takes.

NumPy hands LAPACK one matrix of a stack at a time: copies of the operand and of the results, and the work array that
the driver requests. The coefficients below are for real numbers, measured on square, tall and wide matrices.
Sizes: ``m`` by ``n``, ``k`` the smaller of them; ``m n k`` is the long side times the short side squared.
"""

from __future__ import annotations

from typing import Any

from tenferro_linalg import _det, _eig, _eigh, _pinv, _qr, _solve, _svd, _tridiagonal
from tenferro_linalg._cholesky import cholesky_
from tenferro_linalg.equations import _riccati, _schur_factors, _stein, _sylvester
from tenferro_linalg.similarity import _hessenberg, _rotations, _schur
from tenferro_runtime.extension import Cost, DimLike, Registry, Spec, dim_min

Specs = tuple[Spec, ...]

BLOCK_COLUMNS = 96
"""Number of columns that blocked algorithms store in addition to the matrix."""


class _Sizes:
    """Extents of one matrix, number of matrices, bytes of an element, and real operations in one of the dtype."""

    def __init__(self, x: Spec) -> None:
        self.m, self.n = x.shape[-2:]
        self.k: DimLike = dim_min(self.m, self.n)
        self.count: DimLike = 1
        for d in x.shape[:-2]:
            self.count = self.count * d
        self.each, self.factor, self.cplx = x.dtype.itemsize, 4 if x.cplx else 1, x.cplx

    def cost(self, flops: DimLike, elements: DimLike) -> Cost:
        """Operations for one real matrix, and workspace in elements."""
        return Cost(self.factor * self.count * flops, workspace=self.each * elements)


def _svd_work(s: _Sizes) -> DimLike:
    """A copy of the operand, U and Vh before they are copied out, and the work array of ``gesdd``."""
    m, n, k = s.m, s.n, s.k
    long = isinstance(m, int) and isinstance(n, int) and 6 * max(m, n) >= 11 * min(m, n)
    return m * n + (5 if long else 3) * k * k


def _svd_cost(ins: Specs, outs: Specs, **_: Any) -> Cost:
    s = _Sizes(ins[0])
    bases = sum([o.shape[-2] * o.shape[-1] for o in (outs[0], outs[-1])])
    return s.cost(6 * s.m * s.n * s.k + 20 * s.k * s.k * s.k, _svd_work(s) + bases)


def _svdvals_cost(ins: Specs, outs: Specs) -> Cost:
    s = _Sizes(ins[0])
    return s.cost(2 * s.m * s.n * s.k + 2 * s.k * s.k * s.k, s.m * s.n + BLOCK_COLUMNS * (s.m + s.n))


def _pinv_cost(ins: Specs, outs: Specs, **_: Any) -> Cost:
    s = _Sizes(ins[0])
    bases = (s.m + s.n) * s.k
    return s.cost(8 * s.m * s.n * s.k + 20 * s.k * s.k * s.k, _svd_work(s) + 2 * bases - s.m * s.n)


def _square(flops: int, by: int, work: int, more: int = 0) -> Any:
    """Model of ``flops / by`` n^3 operations and `work` matrices besides operand and result, plus `more` if complex."""

    def model(ins: Specs, outs: Specs, **_: Any) -> Cost:
        s = _Sizes(ins[0])
        matrix = s.n * s.n
        return s.cost((flops * matrix * s.n) // by, (work + more * s.cplx) * matrix)

    return model


def _qr_cost(ins: Specs, outs: Specs, **_: Any) -> Cost:
    s = _Sizes(ins[0])
    q, r = (o.shape[-2] * o.shape[-1] for o in outs)
    return s.cost(4 * s.m * s.n * s.k - (4 * s.k * s.k * s.k) // 3, 2 * s.m * s.n + q - r)


def _lu_solve_cost(ins: Specs, outs: Specs, **_: Any) -> Cost:
    s = _Sizes(ins[0])
    columns = outs[0].shape[-1]
    return s.cost(2 * s.n * s.n * columns, s.n * s.n + s.n * columns)


def _solve_cost(ins: Specs, outs: Specs) -> Cost:
    s = _Sizes(ins[0])
    columns = outs[0].shape[-1]
    return s.cost((2 * s.n * s.n * s.n) // 3 + 2 * s.n * s.n * columns, s.n * s.n + s.n * columns)


def _triangular_cost(ins: Specs, outs: Specs, **_: Any) -> Cost:
    s = _Sizes(ins[0])
    columns = outs[0].shape[-1]
    return s.cost(s.n * s.n * columns, s.n * s.n + s.n * columns)


def _tridiagonal_cost(ins: Specs, outs: Specs) -> Cost:
    """About twenty rotations of two rows for each eigenvalue."""
    (out,) = outs
    return Cost(20 * out.size * out.shape[-1], workspace=2 * out.dtype.itemsize * out.shape[-1])


def _sylvester_cost(ins: Specs, outs: Specs, **_: Any) -> Cost:
    """Two changes of basis, and a solution in triangular form."""
    s = _Sizes(outs[0])
    return s.cost(5 * s.m * s.n * (s.m + s.n), 2 * s.m * s.n)


def register(registry: Registry) -> None:
    """The cost models of the primitives that call LAPACK."""
    table = {
        _svd.svd_: _svd_cost,
        _svd.svdvals_: _svdvals_cost,
        _eig.eig_: _square(25, 1, 4, more=1),
        _eig.eigvals_: _square(10, 1, 2),
        _eigh.eigh_: _square(9, 1, 4, more=1),
        _eigh.eigvalsh_: _square(4, 3, 3),
        _qr.qr_: _qr_cost,
        cholesky_: _square(1, 3, 2),
        _solve.lu_factor_: _square(2, 3, 1),
        _solve.lu_solve_: _lu_solve_cost,
        _solve.solve_: _solve_cost,
        _solve.solve_triangular_: _triangular_cost,
        _solve.inv_: _square(2, 1, 2),
        _det.det_: _square(2, 3, 1),
        _det.slogdet_: _square(2, 3, 1),
        _pinv.pinv_: _pinv_cost,
        _schur_factors.schur_factors_: _square(25, 1, 2),
        _schur.schur_: _square(25, 1, 2),
        _hessenberg.hessenberg_: _square(14, 3, 2),
        _rotations.schur_rotation_: _square(2, 3, 1),
        _rotations.hessenberg_rotation_: _square(2, 1, 1),
        _sylvester.sylvester_: _sylvester_cost,
        _stein.stein_: _square(16, 3, 3),
        _riccati.continuous_are_: _square(250, 1, 16),
        _riccati.discrete_are_: _square(250, 1, 16),
        _tridiagonal.eigvalsh_tridiagonal_: _tridiagonal_cost,
    }
    for primitive, model in table.items():
        registry.cost(primitive, model)
