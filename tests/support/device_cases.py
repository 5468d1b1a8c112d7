"""Calls of every family as functions of arrays, to be computed on two devices: name, function, operands in NumPy."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from operations import OPERATIONS
from tenferro_einsum import einsum
from tenferro_tensor import Primitive


class Case(NamedTuple):
    """A function of arrays, and its operands.

    Attributes:
        name: for messages.
        run: gives an array, or a tuple of arrays, that there is only one right answer for.
        operands: in main memory.
    """

    name: str
    run: Callable[..., Any]
    operands: tuple[np.ndarray, ...]


WIDER = {"float32": "float64", "complex64": "complex128"}


def exact(case: Case) -> Any:
    """The results on operands of twice the digits that have the same values."""
    return case.run(*[tr.asarray(x.astype(WIDER.get(x.dtype.name, x.dtype))) for x in case.operands])


def require_digits(found: np.ndarray, cpu: np.ndarray, exact: np.ndarray, what: str) -> None:
    """Raise if a device loses digits: its error may be a few times that of the CPU, plus some units in the last place
    of the largest number.
    """
    regular = np.isfinite(cpu)
    np.testing.assert_array_equal(np.isfinite(found), regular, err_msg=what)
    if not regular.any():
        return
    off, own = (np.max(np.abs(x - exact)[regular]) for x in (found, cpu))
    allowed = 8 * own + 32 * np.finfo(found.dtype).eps * np.max(np.abs(exact)[regular])
    assert off <= allowed, f"{what}: off by {off:.1e}, {allowed:.1e} are allowed; the CPU is off by {own:.1e}"


def matrices(dtype: str = "float64", *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + 7)
    x = rng.standard_normal(shape or (2, 4, 4))
    return (x + 1j * rng.standard_normal(x.shape)).astype(dtype) if dtype.startswith("c") else x.astype(dtype)


def elementwise(dtypes: tuple[str, ...]) -> list[Case]:
    """Every element-wise primitive on numbers of its interval, a row against a column where there are two."""
    found = []
    for primitive, row in OPERATIONS.items():
        if not isinstance(primitive, Primitive) or not primitive.elementwise or primitive.metadata:
            continue
        for dtype in dtypes:
            kind = np.dtype(dtype).kind
            rng = np.random.default_rng(1)
            operands = []
            for k in range(len(primitive.operands)):
                low, high = row.second if k == 1 and row.second else row.drawn
                shape = (7, 1) if k == 1 else (7, 5)
                x = rng.uniform(low, high, shape)
                if kind == "c":
                    x = x + 1j * rng.uniform(-1, 1, shape)
                operands.append((rng.random(shape) < 0.5) if k == primitive.chooser else x.astype(dtype))
            try:
                primitive.infer(*[tr.asarray(x).spec for x in operands])
            except (TypeError, ValueError):
                continue  # not defined for the dtype
            found.append(Case(f"{primitive.name} {dtype}", primitive, tuple(operands)))
    return found


def structure() -> list[Case]:
    """Views, copies, indexing, sorting, scans and reductions."""
    x, v = matrices("float64", 3, 4, 5), matrices("float64", 9)
    whole = np.array([[3, -1, 2], [0, 7, 7]])
    at = np.array([2, 0, 1])
    return [
        Case("reshape", lambda x: tr.reshape(x, (4, 15)), (x,)),
        Case("transpose", lambda x: tr.permute_dims(x, (2, 0, 1)) + 0.0, (x,)),
        Case("broadcast", lambda v: tr.broadcast_to(v, (3, 9)) * 1.0, (v,)),
        Case("slice", lambda x: x[1:, ::-2, 1:4], (x,)),
        Case("index", lambda x, at: x[at, 1], (x, at)),
        Case("take", lambda x, at: tr.take(x, at, axis=1), (x, at)),
        Case("update of a slice", lambda x: x.at[1:, ::-2].set(x[:2, ::2]).at[0].add(x[1]), (x,)),
        Case("update", lambda v, at: v.at[at].add(2.0), (v, at)),
        Case("pad", lambda x: tr.pad(x, ((1, 0), (0, 2), (0, 0))), (x,)),
        Case("concat", lambda x: tr.concat([x, x], axis=1), (x,)),
        Case("flip", lambda x: tr.flip(x, axis=(0, 2)), (x,)),
        Case("sort", lambda x: tr.sort(x, axis=1), (x,)),
        Case("sort down", lambda x: tr.sort(x, axis=-1, descending=True), (whole,)),
        Case("argsort", lambda x: tr.argsort(x, axis=1, stable=True), (whole,)),
        Case("searchsorted", lambda a, v: tr.searchsorted(a, v), (np.sort(v), v)),
        Case("cumsum", lambda x: tr.cumulative_sum(x, axis=1), (x,)),
        Case("cumprod", lambda x: tr.cumulative_prod(x, axis=2), (x,)),
        *[
            Case(f"{name} over {axis}", partial(getattr(tr, name), axis=axis), (x,))
            for name in ("sum", "prod", "max", "min", "mean", "var", "all", "any")
            for axis in (None, 1, (0, 2))
        ],
        Case("argmax", lambda x: tr.argmax(x, axis=1), (x,)),
        Case("argmin of whole numbers", lambda x: tr.argmin(x, axis=1), (whole,)),
        Case("sum of booleans", lambda x: tr.sum(x > 0, axis=0), (x,)),
        Case("where", lambda x: tr.where(x > 0, x, -2.0 * x), (x,)),
        Case("convert", lambda x: x.astype("int32") + x.astype("complex64").real.astype("int32"), (x,)),
        Case("bits", lambda x: (x << 2) ^ (x >> 1) | ~x, (whole,)),
        Case("iota", lambda x: x + tr.arange(5, device=x.device), (x,)),
    ]


def families(dtype: str) -> list[Case]:
    """Contractions, linear algebra and Fourier transforms; factors are compared by what they multiply to."""
    a, b = matrices(dtype), matrices(dtype, 2, 4, 3)
    h = a @ a.conj().swapaxes(-1, -2) + 4 * np.eye(4, dtype=dtype)
    tall = matrices(dtype, 6, 3)
    v = matrices(dtype, 4, 6)
    linalg, fft = tr.linalg, tr.fft

    def adjoint(x: Any) -> Any:
        return tr.conj(x).mT

    def rebuilt(x: Any) -> Any:
        u, s, vh = linalg.svd(x, full_matrices=False)
        return (u * s[..., None, :].astype(u.dtype)) @ vh

    def spectral(x: Any) -> Any:
        w, q = linalg.eigh(x)
        return w, (q * w[..., None, :].astype(q.dtype)) @ adjoint(q)

    found = [
        Case("matmul", lambda a, b: a @ b, (a, b)),
        Case("tensordot", lambda a, b: tr.tensordot(a, b, axes=((1,), (1,))), (a, b)),
        Case("vecdot", lambda a: tr.vecdot(a, a), (a,)),
        Case("einsum", lambda a, b: einsum("bij,bjk->ik", a, b), (a, b)),
        Case("einsum of three", lambda a, b, t: einsum("bij,bjk,lk->bil", a, b, t), (a, b, tall)),
        Case("trace", lambda a: einsum("bii->b", a), (a,)),
        Case("svd", rebuilt, (a,)),
        Case("svd of tall", rebuilt, (tall,)),
        Case("svdvals", lambda x: linalg.svdvals(x), (a,)),
        Case("eigh", spectral, (h,)),
        Case("eigvalsh", lambda x: linalg.eigvalsh(x), (h,)),
        Case("qr", lambda x: tr.matmul(*linalg.qr(x)), (tall,)),
        Case("cholesky", lambda x: linalg.cholesky(x), (h,)),
        Case("solve", lambda x, b: linalg.solve(x, b), (h, b)),
        Case("inv", lambda x: linalg.inv(x), (h,)),
        Case("det", lambda x: linalg.det(x), (a,)),
        Case("slogdet", lambda x: tuple(linalg.slogdet(x)), (a,)),
        Case("solve_triangular", lambda x, b: linalg.solve_triangular(tr.tril(x), b, lower=True), (h, b)),
        Case("pinv", lambda x: linalg.pinv(x), (tall,)),
        Case("norm", lambda x: linalg.vector_norm(x), (a,)),
        Case("fft", lambda x: fft.fft(x), (v,)),
        Case("ifft", lambda x: fft.ifft(x, axis=0), (v,)),
        Case("fftn", lambda x: fft.fftn(x), (v,)),
    ]
    if not dtype.startswith("c"):
        found += [
            Case("rfft", lambda x: fft.rfft(x), (v,)),
            Case("irfft", lambda x: fft.irfft(fft.rfft(x), n=6), (v,)),
        ]
    return found
