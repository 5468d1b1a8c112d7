"""How CuPy's linear algebra fails, which is not as NumPy's does: nothing is raised, and results are what is left.

cuSOLVER's codes are on the device, where reading them would wait for it. A division by a zero pivot gives infinities
and NaN; the factorization of a matrix that is not positive definite stops, and leaves the pivot that is not positive.
"""

import ctypes
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from cupy_interface import faithful


def _stacked(one: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of matrices applied along stacks."""

    def run(x: np.ndarray, *more: np.ndarray) -> np.ndarray:
        batch = x.shape[:-2]
        found = [one(x[index], *[y[index] for y in more]) for index in np.ndindex(batch)]
        return np.stack(found).reshape((*batch, *found[0].shape)) if found else np.empty_like(more[0] if more else x)

    return run


@_stacked
def _cholesky(x: np.ndarray) -> np.ndarray:
    if not x.size:
        return x
    (potrf,) = scipy.linalg.get_lapack_funcs(("potrf",), (x,))
    return np.asarray(potrf(x, lower=1, clean=1)[0])


def _or_nan(one: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def run(x: np.ndarray, *more: np.ndarray) -> np.ndarray:
        try:
            return one(x, *more)
        except np.linalg.LinAlgError:
            return np.full_like(more[0] if more else x, np.nan)

    return run


def cholesky(a: Any) -> Any:
    return _cholesky(a)


def inv(a: Any) -> Any:
    return _stacked(_or_nan(np.linalg.inv))(a)


def solve(a: Any, b: Any) -> Any:
    return _stacked(_or_nan(np.linalg.solve))(a, b)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """One matrix, not a stack; reads the code, and warns of a zero pivot."""
    assert a.ndim == 2
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (a,))
    packed, pivots, code = getrf(a)
    if code > 0:
        warnings.warn(f"Diagonal number {code} is exactly zero. Singular matrix.", RuntimeWarning, stacklevel=2)
    return packed, pivots


def solve_triangular(
    a: Any,
    b: Any,
    trans: int = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Stacks of at least one matrix, with the batch axes of `b`; a zero on the diagonal gives infinities or NaN."""
    assert a.shape[:-2] == b.shape[:-2] and 0 not in b.shape

    def one(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        found = scipy.linalg.solve_triangular(
            x, y, trans=trans, lower=lower, unit_diagonal=unit_diagonal, check_finite=False
        )
        return np.asarray(found)

    return _stacked(_or_nan(one))(a, b)


def _at(address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Memory as an array in Fortran order."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape, order="F")


def _getrf_batched(dtype: str) -> Callable[..., None]:
    def run(handle: int, n: int, a: int, lda: int, pivots: int, info: int, count: int) -> None:
        (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), dtype=np.dtype(dtype))
        assert lda == n
        for k, address in enumerate(_at(a, (count,), np.uint64)):
            matrix = _at(int(address), (n, n), dtype)
            matrix[...], exchanged, code = getrf(matrix)
            _at(pivots, (n, count), np.int32)[:, k] = exchanged + 1
            _at(info, (count,), np.int32)[k] = code

    return run


def _getrs_batched(dtype: str) -> Callable[..., int]:
    def run(
        handle: int, trans: int, n: int, k: int, a: int, lda: int, pivots: int, b: int, ldb: int, info: int, count: int
    ) -> int:
        (getrs,) = scipy.linalg.get_lapack_funcs(("getrs",), dtype=np.dtype(dtype))
        assert lda == ldb == n
        addresses = zip(_at(a, (count,), np.uint64), _at(b, (count,), np.uint64), strict=True)
        for number, (matrix, side) in enumerate(addresses):
            exchanged = _at(pivots, (n, count), np.int32)[:, number] - 1
            found = _at(int(side), (n, k), dtype)
            found[...] = getrs(_at(int(matrix), (n, n), dtype), exchanged, found, trans=trans)[0]
        return 0

    return run


def fake_cublas() -> Any:
    """The routines of cuBLAS for stacks, on addresses."""
    owner, names = "cupy_backends.cuda.libs.cublas", {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}
    found: dict[str, Callable[..., Any]] = {
        f"{letter}getrfBatched": _getrf_batched(dtype) for letter, dtype in names.items()
    }
    found |= {f"{letter}getrsBatched": _getrs_batched(dtype) for letter, dtype in names.items()}
    routines = {name: faithful(owner, name, run) for name, run in found.items()}
    return SimpleNamespace(CUBLAS_OP_N=0, CUBLAS_OP_T=1, CUBLAS_OP_C=2, **routines)


class csr_matrix:
    """A sparse matrix in compressed rows; its first product waits for the device unless `sum_duplicates` was called."""

    def __init__(self, parts: Any, shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr = parts
        self.shape, self.checked = shape, False
        assert all(type(part).__name__ == "DeviceArray" and part.ndim == 1 for part in parts)
        assert self.indptr.view(np.ndarray)[-1] == self.data.size == self.indices.size

    def sum_duplicates(self) -> None:
        self.checked = True

    def __matmul__(self, x: Any) -> Any:
        assert self.checked, "waits for the device"
        assert {self.data.device.id, self.indices.device.id} == {x.device.id} and self.data.dtype == x.dtype
        plain = [part.view(np.ndarray) for part in (self.data, self.indices, self.indptr)]
        found = scipy.sparse.csr_array(tuple(plain), shape=self.shape) @ x.view(np.ndarray)
        return np.asfortranarray(found).view(type(x))


LIKE_CUPY = {
    "cupy.linalg": (cholesky, inv, solve),
    "cupyx.scipy.linalg": (lu_factor, solve_triangular),
    "cupyx.scipy.sparse": (csr_matrix,),
}
"""By module, the functions that replace those of NumPy and SciPy."""
