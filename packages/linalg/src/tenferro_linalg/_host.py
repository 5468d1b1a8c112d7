"""The CPU provider: LAPACK through NumPy and SciPy, with a second and a third attempt after failures.

Every method takes stacks of matrices. Failures are typed and name the matrix of the stack; no method returns NaN for
finite input.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tenferro_linalg._masks import mask_of
from tenferro_linalg._small import SMALL_MAX_SIZE, host_routine
from tenferro_runtime.extension import NumericalError, library
from tenferro_tensor_core import complex_of

Raw = np.ndarray[Any, Any]

STACKED_SOLVE_MAX_SIZE = 32
"""Largest size of matrices that NumPy's stacked solver solves without stored factors."""

SHORT_WORK_MAX_SIZE = 32
"""Largest size for which the minimal LAPACK workspace is used; blocking does not pay there."""

QR_BLOCK = 32
"""Number of columns that LAPACK reflects at once, equal to its own request."""

INVERSE_BLOCK = 64
"""Number of columns of an inverse that LAPACK computes at once, equal to its own request."""


def items(x: Raw) -> Iterable[tuple[int, ...]]:
    """Indices of the matrices of a stack."""
    return np.ndindex(x.shape[:-2]) if x.ndim > 2 else ((),)


def where(index: tuple[int, ...]) -> str:
    """A matrix of a stack, in words."""
    return f"matrix {index} of the stack" if index else "the matrix"


class HostProvider:
    """Decompositions and solvers on NumPy arrays."""

    xp = np

    def local(self, x: Any) -> Raw:
        """Copy an array to main memory, for tests of single numbers and for messages."""
        return np.asarray(x)

    def finite(self, what: str, x: Raw) -> Raw:
        """Return `x` after checking that all entries are finite."""
        if not np.isfinite(x).all():
            index = tuple(np.argwhere(~np.isfinite(x))[0].tolist())
            seen = "nan" if np.isnan(x[index]) else "inf"
            raise NumericalError(
                f"{what}: the operand contains {seen} at index {index}; find where it arises, or replace it first",
                index=index,
            )
        return x

    def routine(self, name: str) -> Callable[..., Any] | None:
        """A routine for small matrices, if the backend has one."""
        return host_routine(name)

    # decompositions

    def svd(self, x: Raw, full: bool) -> Any:
        """U, S, Vh; by divide and conquer, then on the rescaled matrix, then by QR iteration."""
        if (not full or x.shape[-2] == x.shape[-1]) and (found := _small("svd", x)) is not None:
            return found
        return _ladder("svd", x, lambda a: np.linalg.svd(a, full_matrices=full), [
            lambda a: _rescaled(a, lambda b: np.linalg.svd(b, full_matrices=full), 1),
            lambda a: _gesvd(a, full),
        ])  # fmt: skip

    def svdvals(self, x: Raw) -> Any:
        """Singular values, by the same attempts as `svd`."""
        return _ladder("svdvals", x, lambda a: (np.linalg.svd(a, compute_uv=False),), [
            lambda a: (_rescaled(a, lambda b: np.linalg.svd(b, full_matrices=False), 1)[1],),
            lambda a: (_gesvd(a, False)[1],),
        ])[0]  # fmt: skip

    def eigh(self, x: Raw) -> Any:
        """Eigenvalues and eigenvectors; by divide and conquer, then rescaled, then by QR iteration."""
        if (found := _small("eigh", x)) is not None:
            return found
        return _ladder("eigh", x, np.linalg.eigh, [
            lambda a: _rescaled(a, np.linalg.eigh, 0),
            _syev,
        ])  # fmt: skip

    def eigvalsh(self, x: Raw) -> Any:
        """Eigenvalues, by the same attempts as `eigh`."""
        return _ladder("eigvalsh", x, lambda a: (np.linalg.eigvalsh(a),), [lambda a: _syev(a)[:1]])[0]

    def eig(self, x: Raw) -> Any:
        """Eigenvalues and eigenvectors of general matrices, both complex; by the QR algorithm, then rescaled."""
        found = _ladder("eig", x, np.linalg.eig, [lambda a: _rescaled(a, np.linalg.eig, 0)])
        return tuple(part.astype(complex_of(x.dtype), copy=False) for part in found)

    def eigvals(self, x: Raw) -> Any:
        """Eigenvalues of general matrices, complex, by the same attempts as `eig`."""
        found = _ladder("eigvals", x, lambda a: (np.linalg.eigvals(a),), [
            lambda a: _rescaled(a, lambda b: (np.linalg.eigvals(b),), 0),
        ])  # fmt: skip
        return found[0].astype(complex_of(x.dtype), copy=False)

    def schur(self, x: Raw, what: str) -> tuple[Raw, Raw]:
        """T and Q of ``x = Q T Q*``; T is upper triangular, for real matrices with 2 by 2 blocks."""
        t, q = np.empty_like(x), np.empty_like(x)
        for index in items(x) if x.size else ():
            t[index], q[index] = _gees(x[index], what, index)
        return t, q

    def lapack(self, name: str, dtype: Any) -> Callable[..., Any]:
        """LAPACK function for a dtype."""
        return _lapack(name, dtype)

    def qr(self, x: Raw, mode: Any) -> Any:
        """Q and R."""
        if x.ndim > 2 or 0 in x.shape:
            return tuple(np.linalg.qr(x, mode=mode))
        m, k = x.shape[0], min(x.shape)
        columns, scales, r = _reflected(x, m if mode == "complete" else k)
        if r.shape[0] > k:
            reflections = np.empty((m, m), x.dtype, order="F")
            reflections[:, :k] = columns
        else:
            reflections = columns[:, : r.shape[0]]
        form = _lapack("ungqr" if x.dtype.kind == "c" else "orgqr", x.dtype)
        q = form(reflections, scales, lwork=QR_BLOCK * r.shape[0], overwrite_a=True)[0]
        return np.ascontiguousarray(q), r

    def qr_r(self, x: Raw) -> Raw:
        """Only R, in reduced form."""
        if x.ndim > 2 or 0 in x.shape:
            return np.linalg.qr(x, mode="r")  # type: ignore[return-value]  # NumPy's stubs know one overload
        return _reflected(x, min(x.shape))[2]

    def lu(self, x: Raw) -> tuple[Raw, Raw]:
        """L without its diagonal and U packed in one matrix, and the row exchanges."""
        packed, pivots = np.empty_like(x), np.empty((*x.shape[:-2], min(x.shape[-2:])), np.int64)
        if 0 not in x.shape:
            getrf = _lapack("getrf", x.dtype)
            for index in items(x):
                packed[index], pivots[index], _ = getrf(x[index])
        return packed, pivots

    def column_order(self, x: Raw) -> Raw:
        """Column order of pivoted QR."""
        order = np.empty((*x.shape[:-2], x.shape[-1]), np.int64)
        order[...] = np.arange(x.shape[-1])
        if 0 not in x.shape:
            geqp3 = _lapack("geqp3", x.dtype)
            for index in items(x):
                order[index] = geqp3(x[index])[1] - 1
        return order

    def ldl(self, x: Raw, lower: bool, hermitian: bool) -> tuple[Raw, Raw, Raw]:
        """The triangular factor, the block diagonal one and the order of the rows, of each matrix."""
        factor, d, order = np.empty_like(x), np.empty_like(x), np.empty(x.shape[:-1], np.int64)
        for index in items(x) if x.shape[-1] else ():
            rows, d[index], order[index] = library("scipy.linalg").ldl(
                x[index], lower=lower, hermitian=hermitian, check_finite=False
            )
            factor[index] = rows[order[index]]
        return factor, d, order

    def cholesky(self, x: Raw) -> Raw:
        """Lower factor."""
        try:
            return np.linalg.cholesky(x)
        except LinAlgError:
            for index in items(x):
                info = _lapack("potrf", x.dtype)(x[index], lower=1)[1]
                if info > 0:
                    raise NumericalError(
                        f"cholesky: {where(index)} is not positive definite: its leading minor of order {info} "
                        "is not positive; check that it is Hermitian, or add a multiple of the identity",
                        index=index,
                        minor=info,
                    ) from None
            raise

    # equations

    def full_rank_inverse(self, x: Raw, cut: Any) -> Raw | None:
        """Pseudo-inverse from QR factors, if these prove that all singular values exceed `cut` times the largest.

        Small matrices are not tried, since their singular values cost less.
        """
        m, n = x.shape[-2:]
        return self._full_rank(x, cut, n, m, lambda index, proof: _inverse(*proof, wide=m < n))

    def full_rank_solution(self, x: Raw, b: Raw, cut: Any) -> Raw | None:
        """The pseudo-inverse, applied to right-hand sides, under the same conditions."""
        m, n = x.shape[-2:]
        return self._full_rank(
            x, cut, n, b.shape[-1], lambda index, proof: _least_squares(*proof, b[index], wide=m < n)
        )

    def _full_rank(
        self, x: Raw, cut: Any, rows: int, columns: int, solved: Callable[[tuple[int, ...], tuple[Raw, Raw, Raw]], Raw]
    ) -> Raw | None:
        m, n = x.shape[-2:]
        if max(m, n) <= SMALL_MAX_SIZE or 0 in x.shape or not columns:
            return None
        out, limits = np.empty((*x.shape[:-2], rows, columns), x.dtype), np.broadcast_to(cut, x.shape[:-2])
        for index in items(x):
            proof = _proof(x[index] if m >= n else x[index].T, float(limits[index]))
            if proof is None:
                return None
            out[index] = solved(index, proof)
        return out

    def solve(self, x: Raw, b: Raw) -> Raw:
        """Solution of ``x y = b`` for a matrix of right-hand sides, bit-equal to a solution from stored factors."""
        if _unfactored(x) or 0 in b.shape:
            return self._solve_stack(x, b)
        return self.lu_solve(x, *self.lu_factor(x), b, False)

    def _solve_stack(self, x: Raw, b: Raw) -> Raw:
        try:
            return np.linalg.solve(x, b)
        except LinAlgError:
            raise self.singular("solve", x) from None

    def inv(self, x: Raw, what: str) -> Raw:
        """Inverse, from LU factors of the transpose, in place: its inverse is the transpose of the result."""
        out = np.array(x, order="C")
        getrf, getri, n = _lapack("getrf", x.dtype), _lapack("getri", x.dtype), x.shape[-1]
        for index in items(x) if x.size else ():
            columns = out[index].T
            _, pivots, info = getrf(columns, overwrite_a=True)
            if info > 0:
                raise _singular(what, index, info - 1)
            getri(columns, pivots, lwork=INVERSE_BLOCK * n, overwrite_lu=True)
        return out

    def singular(self, what: str, x: Raw) -> NumericalError:
        """The error for the first singular matrix of a stack."""
        for index in items(x):
            pivot = _getrf(x[index])[2]
            if pivot > 0:
                return _singular(what, index, pivot - 1)
        return _singular(what, (), x.shape[-1] - 1)

    def lu_factor(self, x: Raw) -> tuple[Raw, Raw]:
        """Packed LU factors of the transposes, and pivots; small matrices are returned unfactored."""
        if _unfactored(x):
            return x, np.zeros(x.shape[:-1], np.int64)
        lu, pivots = np.array(x, order="C"), np.empty(x.shape[:-1], np.int64)
        getrf = _lapack("getrf", x.dtype)
        for index in items(x) if x.size else ():
            _, pivots[index], info = getrf(lu[index].T, overwrite_a=True)  # rows are columns of the transpose
            if info > 0:
                raise _singular("solve", index, info - 1)
        return lu, pivots

    def lu_solve(self, x: Raw, lu: Raw, pivots: Raw, b: Raw, adjoint: bool) -> Raw:
        """Solution of ``x y = b`` or ``x* y = b`` from the factors of `x`."""
        if _unfactored(x) or 0 in b.shape:
            x = self.finite("solve", x)  # in a program this kernel may run alone
            return self._solve_stack(x.conj().swapaxes(-1, -2) if adjoint else x, b)
        turned = adjoint and x.dtype.kind == "c"  # the conjugate of the transpose that was factored
        b = b.conj() if turned else b
        out, getrs = np.empty(b.shape, b.dtype), _lapack("getrs", b.dtype)
        for index in items(x):
            out[index] = getrs(lu[index].T, pivots[index], b[index], trans=0 if adjoint else 1)[0]
        return out.conj() if turned else out

    def solve_triangular(self, x: Raw, b: Raw, lower: bool, unit: bool, adjoint: bool) -> Raw:
        """Solution of ``x y = b`` or ``x* y = b`` for triangular `x`; the other triangle is not read."""
        n = x.shape[-1]
        if not unit and n and not (diagonal := np.diagonal(x, axis1=-2, axis2=-1)).all():
            *index, i = np.argwhere(diagonal == 0)[0].tolist()
            raise _singular("solve_triangular", tuple(index), i)
        if 0 in b.shape:
            return np.zeros_like(b)
        if x.ndim > 2 and n <= STACKED_SOLVE_MAX_SIZE:
            if adjoint:
                x, lower = x.conj().swapaxes(-1, -2), not lower
            return _substitute(x, b, lower, unit)
        # BLAS reads rows as columns of the transpose: ``y' x' = b'``, solved in place.
        out, trsm = np.array(b, order="C"), _blas("trsm", b.dtype)
        for i in items(x):
            trsm(1, x[i].T, out[i].T, side=1, lower=not lower, trans_a=2 * adjoint, diag=unit, overwrite_b=1)
        return out

    def banded_solve(self, ab: Raw, b: Raw, lower: int, upper: int, positive: bool) -> Raw:
        """Solution of banded equations, by Cholesky factors if the matrix is `positive`."""
        out = np.empty_like(b)
        if 0 in b.shape:
            return out
        gbsv, pbsv = _lapack("gbsv", ab.dtype), _lapack("pbsv", ab.dtype)
        for index in items(ab):
            if positive:
                _, out[index], info = pbsv(ab[index][upper:], b[index], lower=1)
                problem = f"is not positive definite: its leading minor of order {info} is not positive"
            else:
                wide = np.zeros((2 * lower + upper + 1, ab.shape[-1]), ab.dtype)
                wide[lower:] = ab[index]
                _, _, out[index], info = gbsv(lower, upper, wide, b[index])
                problem = f"is singular: pivot {info - 1} of its triangular factor is exactly zero"
            if info > 0:
                raise NumericalError(
                    f"{'solveh_banded' if positive else 'solve_banded'}: {where(index)} {problem}; check it, or "
                    "regularise it",
                    index=index,
                )
        return out

    def toeplitz_solve(self, v: Raw, b: Raw) -> Raw:
        """Solution of Toeplitz equations, by Levinson's recursion, then by LU of the dense matrix."""
        out, n, linalg = np.empty_like(b), b.shape[-2], library("scipy.linalg")
        limit = 100 * n * float(np.finfo(b.dtype).eps)
        for index in items(b) if 0 not in b.shape else ():
            c, r = v[index][n - 1 :: -1], v[index][n - 1 :]
            try:
                with np.errstate(all="ignore"):
                    found = linalg.solve_toeplitz((c, r), b[index], check_finite=False)
                    rest = np.abs(linalg.matmul_toeplitz((c, r), found) - b[index]).max()
                    scale = np.abs(v[index]).sum() * np.abs(found).max() + np.abs(b[index]).max()
                good = bool(rest <= limit * scale)
            except LinAlgError:
                good = False
            if not good:
                dense = linalg.toeplitz(c, r)
                lu, pivots, info = _getrf(dense)
                if info > 0:
                    raise _singular("solve_toeplitz", index, info - 1)
                found = _lapack("getrs", b.dtype)(lu, pivots, b[index])[0]
            out[index] = found
        return out

    def det(self, x: Raw) -> Raw:
        """Determinants."""
        return np.linalg.det(x)

    def slogdet(self, x: Raw) -> Any:
        """Signs (or phases) and logarithms of absolute values of determinants."""
        return tuple(np.linalg.slogdet(x))


def _singular(what: str, index: tuple[int, ...], pivot: int) -> NumericalError:
    return NumericalError(
        f"{what}: {where(index)} is singular: pivot {pivot} of its triangular factor is exactly zero; "
        "use pinv for a least-squares solution, or regularise the matrix",
        index=index,
        pivot=pivot,
    )


@cache
def _lapack(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """LAPACK function for a dtype, cached because the lookup takes as long as a small matrix."""
    return library("scipy.linalg").lapack.get_lapack_funcs(name, dtype=dtype)


@cache
def _blas(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """BLAS function for a dtype."""
    return library("scipy.linalg").blas.get_blas_funcs(name, dtype=dtype)


@cache
def _routine(name: str) -> Callable[..., Any] | None:
    return host_routine(name)


def _small(name: str, x: Raw) -> Any:
    """The results of a routine for small matrices, or None."""
    if max(x.shape[-2:]) > SMALL_MAX_SIZE or (routine := _routine(name)) is None:
        return None
    return routine(x, 0)


def without_factors(rank: int, n: int) -> bool:
    """Whether matrices of `n` rows are solved directly, without stored factors."""
    return n <= (STACKED_SOLVE_MAX_SIZE if rank > 2 else SMALL_MAX_SIZE)


def _unfactored(x: Raw) -> bool:
    return without_factors(x.ndim, x.shape[-1])


def _getrf(a: Raw) -> tuple[Raw, Raw, int]:
    if not a.shape[0]:
        return a, np.zeros(0, np.int64), 0
    return _lapack("getrf", a.dtype)(a)


def _gees(a: Raw, what: str, index: tuple[int, ...]) -> tuple[Raw, Raw]:
    gees = _lapack("gees", a.dtype)
    work = 8 * len(a) if len(a) <= SHORT_WORK_MAX_SIZE else int(gees(_unsorted, a, lwork=-1)[-2][0].real)
    t, *_, q, _, info = gees(_unsorted, a, lwork=work)
    if info:
        raise NumericalError(
            f"{what}: the QR algorithm did not converge for {where(index)}; its largest entry is "
            f"{np.abs(a).max():.3g}; rescale it, or perturb it slightly and try again",
            index=index,
        )
    return t, q


def _unsorted(*_: Any) -> None:
    """Sort callback of LAPACK that keeps the order of the eigenvalues."""


def _reflected(x: Raw, rows: int) -> tuple[Raw, Raw, Raw]:
    """The reflections of a matrix in columns and their scales, and R with `rows` rows."""
    n = x.shape[1]
    columns, scales, _, _ = _lapack("geqrf", x.dtype)(x, lwork=QR_BLOCK * n)
    r = np.zeros((rows, n), x.dtype)
    np.copyto(r, columns[:rows], where=mask_of("upper", rows, n))
    return columns, scales, r


def _proof(a: Raw, cut: float) -> tuple[Raw, Raw, Raw] | None:
    """Reflections of a tall matrix in columns, their scales and ``R^-T``, or None if R may be singular.

    The ratio of the singular values is at least 1 over the product of the Frobenius norms of R and its inverse.
    """
    columns, scales, r = _reflected(a, a.shape[1])
    size = np.vdot(r, r).real
    inverse, singular = _lapack("trtri", a.dtype)(r.T, lower=True, overwrite_c=True)
    doubt = singular or not 4 * cut * cut * size * np.vdot(inverse, inverse).real < 1
    return None if doubt else (columns, scales, inverse)


def _inverse(columns: Raw, scales: Raw, inverse: Raw, *, wide: bool) -> Raw:
    """``R^-1 Q*``, or its transpose for factors of the transpose."""
    dtype, k = columns.dtype, len(inverse)
    q = _lapack("ungqr" if dtype.kind == "c" else "orgqr", dtype)(columns, scales, lwork=QR_BLOCK * k)[0]
    found = _blas("trmm", dtype)(1, inverse, q.conj(), side=1, lower=True, overwrite_b=True)
    return found if wide else found.T


def _least_squares(columns: Raw, scales: Raw, inverse: Raw, b: Raw, *, wide: bool) -> Raw:
    """``R^-1 Q* b``, or ``conj(Q) R^-T b`` for factors of the transpose."""
    dtype, k = columns.dtype, len(inverse)
    rotate, multiply = _lapack("unmqr" if dtype.kind == "c" else "ormqr", dtype), _blas("trmm", dtype)
    work = QR_BLOCK * max(*b.shape, len(columns))
    if not wide:
        adjoint = "C" if dtype.kind == "c" else "T"
        rotated = rotate("L", adjoint, columns, scales, b, work)[0]
        return multiply(1, inverse, rotated[:k], lower=True, trans_a=1)
    right = np.zeros((len(columns), b.shape[1]), dtype, order="F")
    right[:k] = multiply(1, inverse, b, lower=True).conj()
    return rotate("L", "N", columns, scales, right, work, overwrite_c=True)[0].conj()


def _substitute(x: Raw, b: Raw, lower: bool, unit: bool) -> Raw:
    """Forward or backward substitution, one row of the whole stack at a time."""
    n = x.shape[-1]
    out = np.empty(np.broadcast_shapes(x.shape[:-1] + (b.shape[-1],), b.shape), b.dtype)
    for i in range(n) if lower else reversed(range(n)):
        done = slice(0, i) if lower else slice(i + 1, n)
        row = b[..., i, :] - (x[..., i, None, done] @ out[..., done, :])[..., 0, :]
        out[..., i, :] = row if unit else row / x[..., i, i, None]
    return out


def _ladder(what: str, x: Raw, first: Callable[[Raw], Any], others: list[Callable[[Raw], Any]]) -> Any:
    """Make the first attempt on the whole stack; if it fails, all attempts on each matrix."""
    try:
        return first(x)
    except LinAlgError:
        pass
    results = [_attempt(what, x, index, [first, *others]) for index in items(x)]
    return tuple(np.stack(part).reshape(*x.shape[:-2], *part[0].shape) for part in zip(*results))


def _attempt(what: str, x: Raw, index: tuple[int, ...], attempts: list[Callable[[Raw], Any]]) -> Any:
    for attempt in attempts:
        try:
            return attempt(x[index])
        except LinAlgError:
            continue
    raise NumericalError(
        f"{what}: {where(index)} did not converge in any of {len(attempts)} attempts; "
        f"its largest entry is {np.abs(x[index]).max():.3g}; rescale it, or perturb it slightly and try again",
        index=index,
    )


def _rescaled(a: Raw, factor: Callable[[Raw], Any], values: int) -> Any:
    largest = np.abs(a).max()
    parts = list(factor(a / largest))
    parts[values] = parts[values] * largest
    return tuple(parts)


def _gesvd(a: Raw, full: bool) -> Any:
    return library("scipy.linalg").svd(a, full_matrices=full, lapack_driver="gesvd", check_finite=False)


def _syev(a: Raw) -> Any:
    return library("scipy.linalg").eigh(a, driver="ev", check_finite=False)
