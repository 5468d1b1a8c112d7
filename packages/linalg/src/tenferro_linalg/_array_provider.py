"""The provider for devices whose array library has NumPy's interface, and the one for CuPy.

A check that may raise an exception waits for the device; a compiled program waits once for all of its checks.
"""

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import numpy as np

from tenferro_linalg._cublas import CublasStacks
from tenferro_runtime.extension import BoundedCache, NumericalError, UnsupportedError
from tenferro_tensor.device_runtimes import check, current_checks
from tenferro_tensor_core import complex_of

Raw = TypeVar("Raw", bound=Any)
"""An array of the library."""

STRUCTURES_MAX = 64
"""Largest number of structures of sparse matrices, by device and stream, that stay on devices."""


class LinalgProvider:
    """Decompositions and solvers on the arrays of a library with NumPy's interface.

    A method whose function the library lacks raises `UnsupportedError`.

    Methods take:
        x: matrices (..., m, n), a stack of raw arrays.
        b: right-hand sides (..., n, k), with the batch axes of `x`.
        what: name of the public function, for messages.
        name: name of a routine.
        full: whether U and Vh are square.
        mode: ``"reduced"`` or ``"complete"``.
        lower: whether the lower triangle counts; for bands, number of diagonals below the main one.
        upper: number of diagonals above the main one.
        hermitian: whether the matrices are Hermitian, not symmetric.
        adjoint: whether to solve with the adjoint of `x`.
        unit: whether the diagonal consists of ones and is not read.
        positive: whether the matrices are positive definite.
        lu, pivots: results of `lu_factor`.
        ab: diagonals (..., lower + upper + 1, n), as LAPACK stores them.
        cut: ratios (...) to the largest singular value, or one for all, up to which a singular value counts as zero.
        v: diagonals (..., 2 n - 1) of Toeplitz matrices, from the lower left to the upper right.
        structure: positions of the entries of a sparse matrix.
        data: its entries.
        y: factor with a row for each row of a sparse matrix.

    Methods return:
        Raw arrays with the batch axes of `x`: factors, values or solutions, in the order of their summary.

    Attributes:
        xp: the module with NumPy's interface.

    Args:
        library: maps a name to a module of the backend: ``"numpy"``, and ``"scipy.linalg"`` if there is one.
    """

    def __init__(self, library: Callable[[str], Any]) -> None:
        self.xp: Any = library("numpy")
        self._library = library

    def local(self, x: Raw) -> np.ndarray[Any, Any]:
        """Copy an array to main memory, for tests of single numbers and for messages."""
        return np.asarray(x)

    def finite(self, what: str, x: Raw) -> Raw:
        """Return `x` after checking that all entries are finite; if the check is deferred, zeros if any is not."""
        good = self.xp.isfinite(x)
        whole = good.all()

        def error(index: tuple[int, ...]) -> NumericalError:
            return NumericalError(
                f"{what}: the operand contains nan or inf at index {index}; find where it arises, "
                "or replace it before the call",
                index=index,
            )

        self._require(whole, good, error)
        return x if current_checks() is None else self.xp.where(whole, x, self.xp.zeros_like(x))

    def _require(self, whole: Any, good: Any, error: Callable[[tuple[int, ...]], NumericalError]) -> None:
        """Check that all of `good`, which is `whole`, is true; the error is given the index of the first entry that
        is not.
        """
        if 0 in good.shape:
            return
        shape = good.shape
        if current_checks() is not None:  # keep a position, not the flags, which are as many as the entries
            at = good.argmin()
            check(whole, lambda: error(_index(at, shape)))
        else:
            check(whole, lambda: error(_index(good.argmin(), shape)))

    def routine(self, name: str) -> None:
        """Routines for small matrices; none here."""

    def full_rank_inverse(self, x: Raw, cut: Any) -> Raw | None:
        """Pseudo-inverse of matrices whose singular values provably exceed `cut` times the largest; none here."""

    def full_rank_solution(self, x: Raw, b: Any, cut: Any) -> Raw | None:
        """That pseudo-inverse, applied to right-hand sides; none here."""

    def svd(self, x: Raw, full: bool) -> tuple[Raw, Raw, Raw]:
        """U, S and Vh; square U and Vh if `full`."""
        return self._checked("svd", x, tuple(self._function("svd")(x, full_matrices=full)))

    def svdvals(self, x: Raw) -> Raw:
        """Singular values, descending."""
        return self._checked("svdvals", x, (self._function("svd")(x, compute_uv=False),))[0]

    def eigh(self, x: Raw) -> tuple[Raw, Raw]:
        """Eigenvalues, ascending, and eigenvectors of Hermitian matrices."""
        return self._checked("eigh", x, tuple(self._function("eigh")(x)))

    def eigvalsh(self, x: Raw) -> Raw:
        """Eigenvalues of Hermitian matrices, ascending."""
        return self._checked("eigvalsh", x, (self._function("eigvalsh")(x),))[0]

    def eig(self, x: Raw) -> tuple[Raw, Raw]:
        """Eigenvalues and eigenvectors of general matrices, both complex."""
        found = tuple(self._function("eig")(x))
        return self._checked("eig", x, tuple(part.astype(complex_of(x.dtype), copy=False) for part in found))

    def eigvals(self, x: Raw) -> Raw:
        """Eigenvalues of general matrices, complex."""
        found = self._function("eigvals")(x).astype(complex_of(x.dtype), copy=False)
        return self._checked("eigvals", x, (found,))[0]

    def schur(self, x: Raw, what: str) -> tuple[Raw, Raw]:
        """Not available from the array library."""
        raise UnsupportedError(f"{what} needs Schur factors, which this device has no library for; use the CPU")

    def _function(self, name: str) -> Any:
        """A function of ``xp.linalg``."""
        found = getattr(getattr(self.xp, "linalg", None), name, None)
        if found is None:
            raise UnsupportedError(f"the array library of this device has no linalg.{name}; compute it on the CPU")
        return found

    @property
    def _extra(self) -> Any:
        """The library with the interface of ``scipy.linalg``."""
        return self._library("scipy.linalg")

    def qr(self, x: Raw, mode: str) -> tuple[Raw, Raw]:
        """Q and R in ``"reduced"`` or ``"complete"`` form."""
        return tuple(self._function("qr")(x, mode=mode))

    def qr_r(self, x: Raw) -> Raw:
        """Only R, in reduced form."""
        return self._function("qr")(x, mode="r")

    def lu(self, x: Raw) -> tuple[Raw, Raw]:
        """L without its diagonal and U packed in one matrix, and the row exchanges."""
        packed, pivots = self.xp.empty_like(x), self.xp.empty((*x.shape[:-2], min(x.shape[-2:])), np.int64)
        if 0 not in x.shape:
            for index in np.ndindex(x.shape[:-2]):
                packed[index], pivots[index] = self._getrf(x[index])
        return packed, pivots

    def _getrf(self, matrix: Raw) -> tuple[Raw, Raw]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a zero pivot is no problem, or is reported as an error
            return tuple(self._extra.lu_factor(matrix, check_finite=False))

    def column_order(self, x: Raw) -> Raw:
        """Column order of pivoted QR, found by projecting out the column with the largest remainder."""
        xp, (*batch, _, n) = self.xp, x.shape
        rest, order = x.copy(), xp.empty((*batch, n), np.int64)
        left = xp.ones((*batch, n), bool)
        for k in range(n):
            size = xp.where(left, (xp.abs(rest) ** 2).sum(axis=-2), -1.0)
            at = size.argmax(axis=-1)[..., None]
            order[..., k : k + 1] = at
            left &= xp.arange(n) != at
            column = xp.take_along_axis(rest, at[..., None, :], axis=-1)
            norm = xp.sqrt((xp.abs(column) ** 2).sum(axis=-2, keepdims=True))
            column = column / xp.where(norm > 0, norm, 1)
            rest = rest - column @ (column.conj().swapaxes(-1, -2) @ rest)
        return order

    def ldl(self, x: Raw, lower: bool, hermitian: bool) -> tuple[Raw, Raw, Raw]:
        """Not available from the array library."""
        raise UnsupportedError("ldl has no kernel on this device; compute it on the CPU, or use lu or cholesky")

    def cholesky(self, x: Raw) -> Raw:
        """Lower Cholesky factor."""
        factor = self._function("cholesky")(x)
        pivots = self.xp.diagonal(factor, axis1=-2, axis2=-1).real
        problem = "is not positive definite; add a multiple of the identity"
        # A routine that stops may leave finite numbers, and the pivot that is not positive among them.
        regular = (pivots > 0).all(axis=-1) if x.shape[-1] else True
        return self._checked("cholesky", x, (factor,), problem, regular)[0]

    def solve(self, x: Raw, b: Any, what: str = "solve") -> Raw:
        """Solution of ``x y = b`` for a matrix of right-hand sides."""
        return self._checked(what, x, (self._function("solve")(x, b),), "is singular; use pinv, or regularise it")[0]

    def inv(self, x: Raw, what: str) -> Raw:
        """Inverse."""
        return self._checked(what, x, (self._function("inv")(x),), "is singular; use pinv, or regularise it")[0]

    def lu_factor(self, x: Raw) -> tuple[Raw, Raw]:
        """Packed LU factors and pivots; stacks are returned unfactored, since `lu_solve` receives the matrices too."""
        if x.ndim > 2:
            return x, self.xp.zeros(x.shape[:-1], np.int64)
        lu, pivots = self._getrf(x)
        self._checked("solve", x, (1.0 / self.xp.diagonal(lu),), "is singular; use pinv, or regularise it")
        return lu, pivots.astype(np.int64)

    def lu_solve(self, x: Raw, lu: Any, pivots: Any, b: Any, adjoint: bool) -> Raw:
        """Solution of ``x y = b`` or ``x* y = b`` from the factors of `x`."""
        if x.ndim > 2:
            return self.solve(x.conj().swapaxes(-1, -2) if adjoint else x, b)
        return self._extra.lu_solve((lu, pivots.astype(np.int32)), b, trans=2 if adjoint else 0, check_finite=False)

    def solve_triangular(self, x: Raw, b: Any, lower: bool, unit: bool, adjoint: bool) -> Raw:
        """Solution of ``x y = b`` or ``x* y = b`` for triangular `x`."""
        out = self.xp.empty_like(b)
        for index in np.ndindex(x.shape[:-2]):
            out[index] = self._extra.solve_triangular(
                x[index], b[index], trans=2 if adjoint else 0, lower=lower, unit_diagonal=unit, check_finite=False
            )
        return self._checked("solve_triangular", x, (out,), "is singular; use pinv, or regularise it")[0]

    def banded_solve(self, ab: Raw, b: Any, lower: int, upper: int, positive: bool) -> Raw:
        """Not available from the array library."""
        raise UnsupportedError(
            "banded equations have no kernel on this device; solve them on the CPU, or use solve with the whole matrix"
        )

    def sparse_product(self, structure: Any, data: Raw, x: Any) -> Raw:
        """Not available from the array library."""
        raise UnsupportedError("sparse products have no kernel on this device; compute them on the CPU")

    def sparse_sampled(self, structure: Any, y: Raw, x: Any) -> Raw:
        """Not available from the array library."""
        raise UnsupportedError("sampled products have no kernel on this device; compute them on the CPU")

    def toeplitz_solve(self, v: Raw, b: Any) -> Raw:
        """Solution of Toeplitz equations, by LU of the dense matrix."""
        n = b.shape[-2]
        places = self.xp.arange(n)
        return self.solve(v[..., places - places[:, None] + n - 1], b, "solve_toeplitz")

    def det(self, x: Raw) -> Raw:
        """Determinants."""
        return self._function("det")(x)

    def slogdet(self, x: Raw) -> tuple[Raw, Raw]:
        """Signs (or phases) and logarithms of absolute values of determinants."""
        return tuple(self._function("slogdet")(x))

    def _checked(
        self,
        what: str,
        x: Raw,
        parts: tuple[Any, ...],
        problem: str = "did not converge; rescale it",
        good: Any = True,
    ) -> Any:
        """The results for matrices `x`, after checking that they are finite: these solvers report failure by others.

        Args:
            what: name of the function.
            x: the matrices.
            parts: the results.
            problem: what is wrong with a matrix otherwise.
            good: further flags of the matrices.
        """
        batch = x.ndim - 2
        for p in parts:
            good = self.xp.isfinite(p).all(axis=tuple(range(batch, p.ndim))) & good

        def error(index: tuple[int, ...]) -> NumericalError:
            name = f"matrix {index} of the stack" if index else "the matrix"
            return NumericalError(f"{what}: {name} {problem}", index=index)

        self._require(good.all(), good, error)
        return parts


def _index(at: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([int(i) for i in np.unravel_index(int(at), shape)])


class CupyProvider(LinalgProvider):
    """The provider of cuSOLVER and rocSOLVER through CuPy, of cuBLAS for stacks, and of cuSPARSE."""

    def __init__(self, library: Callable[[str], Any]) -> None:
        super().__init__(library)
        self._stacks = None if self.xp.cuda.runtime.is_hip else CublasStacks(self.xp)
        self._structures: BoundedCache[Any, tuple[Any, Any]] = BoundedCache(
            "tenferro_linalg: structures of sparse matrices on devices", STRUCTURES_MAX
        )

    def local(self, x: Any) -> Any:
        """The array in main memory, for messages."""
        return self.xp.asnumpy(x)

    def lu(self, x: Any) -> tuple[Any, Any]:
        """See `LinalgProvider.lu`; stacks of square matrices in one call."""
        if self._stacks is None or not self._stacks.serves(x):
            return super().lu(x)
        return self._stacks.factor(x)

    def lu_factor(self, x: Any) -> tuple[Any, Any]:
        """See `LinalgProvider.lu_factor`."""
        if self._stacks is None or not self._stacks.serves(x):
            return super().lu_factor(x)
        lu, pivots = self._stacks.factor(x)
        inverses = 1.0 / self.xp.diagonal(lu, axis1=-2, axis2=-1)
        self._checked("solve", x, (inverses,), "is singular; use pinv, or regularise it")
        return lu, pivots

    def lu_solve(self, x: Any, lu: Any, pivots: Any, b: Any, adjoint: bool) -> Any:
        """See `LinalgProvider.lu_solve`."""
        if self._stacks is None or not self._stacks.serves(x):
            return super().lu_solve(x, lu, pivots, b, adjoint)
        return self._stacks.solve(lu, pivots, b, adjoint)

    @property
    def _sparse(self) -> Any:
        """The library with the interface of ``scipy.sparse``."""
        return self._library("scipy.sparse")

    def _placed(self, structure: Any) -> tuple[Any, Any]:
        """A matrix with the positions, and the rows of its entries, on the current device.

        Each stream has its own, so that its order protects their memory. CuPy waits for the device when it checks the
        positions of a new matrix, but not those of a copy.
        """
        xp, stream = self.xp, self.xp.cuda.get_current_stream()

        def made() -> tuple[Any, Any]:
            columns, starts, rows = map(xp.asarray, (structure.columns, structure.starts, structure.rows))
            ones = xp.ones(structure.count, np.dtype(np.float32))
            matrix = self._sparse.csr_matrix((ones, columns, starts), shape=structure.shape)
            matrix.sum_duplicates()
            return matrix, rows

        return self._structures.get_or_make((structure, xp.cuda.runtime.getDevice(), stream.ptr), made)

    def sparse_product(self, structure: Any, data: Any, x: Any) -> Any:
        """Product with a vector or a matrix, by cuSPARSE."""
        if not structure.count or 0 in x.shape:
            return self.xp.zeros((structure.shape[0], *x.shape[1:]), x.dtype)
        matrix = copy(self._placed(structure)[0])
        matrix.data = data
        return matrix @ x

    def sparse_sampled(self, structure: Any, y: Any, x: Any) -> Any:
        """The entries of ``y @ x.T`` at the positions."""
        if not structure.count:
            return self.xp.zeros(0, x.dtype)
        matrix, rows = self._placed(structure)
        products = y[rows] * x[matrix.indices]
        return products if x.ndim == 1 else products.sum(axis=-1)

    def solve_triangular(self, x: Any, b: Any, lower: bool, unit: bool, adjoint: bool) -> Any:
        """See `LinalgProvider.solve_triangular`; CuPy takes stacks."""
        if 0 in b.shape:
            return self.xp.empty_like(b)
        out = self._extra.solve_triangular(
            x, b, trans=2 if adjoint else 0, lower=lower, unit_diagonal=unit, check_finite=False
        )
        return self._checked("solve_triangular", x, (out,), "is singular; use pinv, or regularise it")[0]
