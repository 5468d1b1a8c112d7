"""A call of every public function of arrays and of every primitive, for the table of `vmap`.

Operands are recipes for arrays of a dtype. Rows that have several calls of one function name the others after it, as
in ``einsum, network``. Decompositions are called in a way that does not depend on the choice of their vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

import numpy_call
import numpy_calls
import tenferro_einsum as te
import tenferro_fft as tf
import tenferro_linalg as tl
import tenferro_runtime as tr
from array_oracles import array
from operations import FUNCTIONS
from rule_cases import CASES, Case
from tenferro_tensor_core import DTypeError

Operand = Callable[[np.dtype[Any]], np.ndarray[Any, Any]]


class Call(NamedTuple):
    """A function of arrays, with what it is called on.

    Attributes:
        f: a function of one lane.
        operands: makes its operands.
    """

    f: Callable[..., Any]
    operands: tuple[Operand, ...]


def between(low: float, high: float, *shape: int, seed: int = 0) -> Operand:
    """Distinct numbers in no order; complex ones have an imaginary part half as large."""

    def make(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng(seed)
        count = int(np.prod(shape))
        real, imag = (rng.permutation(np.linspace(low, high, count)) for _ in range(2))
        return (real + 0.5j * imag if dtype.kind == "c" else real).astype(dtype).reshape(shape)

    return make


def ascending(*shape: int) -> Operand:
    """Numbers in ascending order."""
    return lambda dtype: np.sort(between(0.6, 3.0, *shape)(dtype))


M: Final = between(0.6, 4.7, 3, 4)
N: Final = between(0.7, 3.9, 3, 4, seed=1)
SQUARE: Final = between(-1.1, 1.7, 3, 3, seed=2)
OTHER: Final = between(-1.3, 1.9, 3, 3, seed=3)
VECTOR: Final = between(0.4, 2.1, 3, seed=4)
LINE: Final = between(-1.0, 2.0, 6, seed=5)
GRID: Final = between(-1.0, 2.0, 4, 6, seed=6)
UNIT: Final = between(-0.9, 0.9, 3, 4)
LARGE: Final = between(1.6, 4.7, 3, 4)
NUMBER: Final = between(1.7, 1.7)
INDEX: Final = np.asarray([2, 0, -1])


def _written(f: Any, x: Any, *args: Any) -> Any:
    """A copy of an array after a function wrote to it."""
    x = x.copy()
    f(x, *args)
    return x


def _whole(x: Any) -> Any:
    return tr.cast(tr.floor(x * 4), tr.int64)


def _adjoint(x: Any) -> Any:
    return tr.conj(tr.matrix_transpose(x))


def _hermitian(x: Any) -> Any:
    return x + _adjoint(x)


def _positive(x: Any) -> Any:
    return x @ _adjoint(x) + tr.eye(x.shape[-1], device=x.device)


def _projected(u: Any, s: Any) -> Any:
    """A function of a matrix that its vectors enter by projectors only."""
    return (u * tr.expand_dims(s * s, axis=0)) @ _adjoint(u)


def _table() -> dict[str, Call]:
    table: dict[str, Call] = {}

    def put(module: Any, name: str, f: Any, *operands: Operand) -> None:
        key = f"{module.__name__}.{name}"
        assert key not in table, key
        table[key] = Call(f, operands)

    def each(module: Any, names: str, *operands: Operand) -> None:
        for name in names.split():
            put(module, name, getattr(module, name), *operands)

    _elementwise(put, each)
    _reductions(put, each)
    _structure(put, each)
    _control_flow(put)
    for name, found in numpy_calls.of_arrays().items():
        put(tr, name, _of_numbers(found), *[_shaped(o, seed) for seed, o in enumerate(found.operands)])
    _linalg(put, each)
    _factors(put, each)
    _truncations(put, each)
    _structured_matrices(put, each)
    _fft(put, each)
    _einsum(put)
    for case in CASES:
        table[f"primitives.{case}"] = Call(case.f, tuple([_of_case(case, i) for i in range(_arity(case))]))
    return table


def _shaped(operand: numpy_call.Operand, seed: int) -> Operand:
    """An operand in the dtype that is asked for, also where it stands for indices or a mask."""

    def make(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return (operand(dtype.name) if callable(operand) else array(operand, dtype.name, seed)).astype(dtype)

    return make


def _of_numbers(found: numpy_call.Call) -> Callable[..., Any]:
    """The call with its indices and masks made of numbers, which differ between lanes."""
    kinds = [x.dtype.kind for x in found.arrays("float64")]

    def run(*xs: Any) -> Any:
        made: dict[str, Callable[[Any], Any]] = {
            "b": lambda x: tr.real(x) > 0.5,
            "f": tr.asarray,
            "i": lambda x: tr.cast(tr.floor(tr.real(x)), tr.int64),
        }
        return found.f(tr, *[made[k](x) for k, x in zip(kinds, xs, strict=True)])

    return run


def _arity(case: Case) -> int:
    given = case.zs if case.xs is None else case.xs
    assert given is not None, case
    return len(given)


def _of_case(case: Case, i: int) -> Operand:
    def make(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        given = case.zs if dtype.kind == "c" else case.xs
        if given is None:
            raise DTypeError(f"{case} is not for {dtype}")
        return np.asarray(given[i])

    return make


def _elementwise(put: Any, each: Any) -> None:
    inside = {name: row.smooth for name, row in FUNCTIONS.items() if row.smooth}
    unit = {name for name, (low, high) in inside.items() if -1 < low and high < 1}
    large = {name for name, (low, _) in inside.items() if low > 1}
    others = (
        "abs abs2 angle ceil conj deg2rad fabs floor frexp i0 imag iscomplex isfinite isinf isnan isneginf isposinf "
        "isreal logical_not modf nan_to_num negative positive rad2deg real reciprocal rint round sign signbit sinc "
        "spacing square stop_gradient trunc"
    )
    each(tr, " ".join(sorted({*others.split(), *FUNCTIONS} - unit - large)), M)
    each(tr, " ".join(sorted(unit)), UNIT)
    each(tr, " ".join(sorted(large)), LARGE)
    each(
        tr,
        "add allclose array_equal array_equiv atan2 complex copysign divide divmod equal float_power floor_divide fmax "
        "fmin fmod greater greater_equal heaviside hypot isclose less less_equal logaddexp logaddexp2 "
        "logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract",
        M,
        N,
    )
    for f in (tr.bitwise_and, tr.bitwise_or, tr.bitwise_xor, tr.bitwise_left_shift, tr.bitwise_right_shift):
        put(tr, f.__name__, lambda x, y, f=f: f(_whole(x), _whole(y)), M, N)
    put(tr, "bitwise_count", lambda x: tr.bitwise_count(_whole(x)), M)
    put(tr, "bitwise_invert", lambda x: tr.bitwise_invert(_whole(x)), M)
    put(tr, "packbits", lambda x: tr.packbits(tr.real(x) > 1.5, axis=1), M)
    put(tr, "unpackbits", lambda x: tr.unpackbits(tr.cast(_whole(x), tr.uint8), axis=0), M)
    put(tr, "sort_complex", tr.sort_complex, M)
    put(tr, "real_if_close", lambda x: tr.real_if_close(x + 0j), M)
    for f in (tr.gcd, tr.lcm):
        put(tr, f.__name__, lambda x, y, f=f: f(_whole(tr.real(x)), _whole(tr.real(y))), M, N)
    put(tr, "ldexp", lambda x, k: tr.ldexp(x, _whole(tr.real(k))), M, N)
    put(tr, "polygamma", lambda x: tr.polygamma(1, x), M)
    put(tr, "clip", tr.clip, M, between(1.0, 1.4, 4), between(2.0, 3.0, 4))
    put(tr, "where", lambda c, x, y: tr.where(tr.real(c) > 1.5, x, y), M, N, between(0.1, 0.3, 4))
    put(tr, "astype", lambda x: tr.astype(x, tr.complex64), M)
    put(tr, "cast", lambda x: tr.cast(x, tr.float32), M)
    put(tr, "convert", lambda x: tr.convert(x, tr.complex128), M)
    put(tr, "to_device", lambda x: tr.to_device(x, "cpu"), M)
    put(tr, "array", lambda x: tr.array(x, ndmin=3), M)
    put(tr, "asarray", lambda x: tr.asarray(x), M)
    put(tr, "compile", lambda x: tr.compile(lambda x: tr.sin(x) * x)(x), M)
    put(tr, "vmap", tr.vmap(lambda x, y: x * tr.sum(y), (1, None)), M, N)


def _reductions(put: Any, each: Any) -> None:
    for f in (
        tr.all, tr.any, tr.argmax, tr.argmin, tr.count_nonzero, tr.cumulative_prod, tr.cumulative_sum, tr.flip,
        tr.logsumexp, tr.max, tr.mean, tr.min, tr.prod, tr.std, tr.sum, tr.var,
    ):  # fmt: skip
        put(tr, f.__name__, partial(f, axis=1), M)
    put(tr, "average", lambda x, w: tr.average(x, axis=1, weights=w), M, between(0.5, 1.0, 4))
    put(tr, "cov", lambda x, w: tr.cov(x, aweights=tr.abs(w)), M, between(0.5, 1.0, 4))
    put(tr, "corrcoef", tr.corrcoef, M)
    for f in (
        tr.cumprod, tr.cumsum, tr.median, tr.nanargmax, tr.nanargmin, tr.nancumprod, tr.nancumsum, tr.nanmax,
        tr.nanmean, tr.nanmedian, tr.nanmin, tr.nanprod, tr.nanstd, tr.nansum, tr.nanvar, tr.ptp,
    ):  # fmt: skip
        put(tr, f.__name__, partial(f, axis=1), M)
    put(tr, "quantile", lambda x, q: tr.quantile(x, q, axis=1), M, between(0.1, 0.9, 2))
    put(tr, "nanquantile", lambda x, q: tr.nanquantile(x, q, axis=1), M, between(0.1, 0.9, 2))
    put(tr, "percentile", lambda x: tr.percentile(x, 30.0, axis=0, method="hazen"), M)
    put(tr, "nanpercentile", lambda x: tr.nanpercentile(x, 30.0), M)
    put(tr, "histogram", lambda x, w: tr.histogram(x, 3, weights=w, density=True), M, N)
    put(tr, "histogram_bin_edges", lambda x: tr.histogram_bin_edges(x, 3), M)
    put(tr, "histogram2d", lambda x, y: tr.histogram2d(tr.ravel(x), tr.ravel(y), 2), M, N)
    put(tr, "histogramdd", lambda x, w: tr.histogramdd(x, 2, weights=w), M, VECTOR)
    put(tr, "bincount", lambda x: tr.bincount(_whole(tr.real(x))), VECTOR)
    put(tr, "bincount, length", lambda x, w: tr.bincount(_whole(tr.real(x)) % 3, w, length=3), VECTOR, VECTOR)
    put(tr, "digitize", lambda x, e: tr.digitize(x, e), M, ascending(5))
    for f in (tr.max, tr.mean, tr.sum, tr.std):
        put(tr, f"{f.__name__}, all axes", partial(f, keepdims=True), M)
    put(tr, "apply_along_axis", lambda x: tr.apply_along_axis(tr.cumulative_sum, 0, x), M)
    put(tr, "apply_over_axes", lambda x: tr.apply_over_axes(tr.prod, x, (0, 1)), M)
    put(tr, "vectorize", tr.vectorize(tr.matmul, signature="(n,m),(m)->(n)"), between(-1, 1, 2, 3, 3), VECTOR)
    put(tr, "polyfit", lambda x, y: tr.polyfit(tr.real(x), y, 1), VECTOR, between(0.5, 2.0, 3))
    put(tr, "poly", tr.poly, VECTOR)
    put(tr, "roots", lambda p: tr.sum(tr.abs2(tr.roots(p, strip_zeros=False))), between(0.5, 2.0, 4))
    put(tr, "top_k", lambda x: tr.top_k(x, 2, axis=0), M)
    put(tr, "logspace", lambda a, b: tr.logspace(a, b, 4), VECTOR, NUMBER)
    put(tr, "geomspace", lambda a, b: tr.geomspace(a, b, 4, axis=1), VECTOR, NUMBER)
    put(tr, "copy", tr.copy, M)
    put(
        tr, "put_along_axis",
        lambda x, i, v: _written(tr.put_along_axis, x, _whole(tr.real(i)) % 3, v, 0),
        M, between(0.1, 2.0, 1, 4), NUMBER,
    )  # fmt: skip
    put(tr, "copyto", lambda x, v: _written(tr.copyto, x, v), M, NUMBER)
    put(tr, "fill_diagonal", lambda x, v: _written(tr.fill_diagonal, x, v), M, NUMBER)
    put(tr, "put", lambda x, v: _written(tr.put, x, [1, 5], v), M, NUMBER)
    put(tr, "place", lambda x, v: _written(tr.place, x, np.eye(3, 4) > 0, v), M, NUMBER)
    put(tr, "putmask", lambda x, v: _written(tr.putmask, x, tr.real(x) > 0.0, v), M, NUMBER)
    put(tr, "cumulative_trapezoid", lambda y, x: tr.cumulative_trapezoid(y, x, axis=1, initial=0), M, N)
    each(tr, "gelu relu sigmoid silu softplus", between(-2.0, 3.1, 3, 4))
    put(tr, "one_hot", lambda x: tr.one_hot(_whole(tr.real(x)) % 5, 4, axis=0), M)
    put(tr, "softmax", lambda x: tr.softmax(x, axis=0), M)
    put(tr, "log_softmax", lambda x: tr.log_softmax(x, axis=0), M)
    put(tr, "sort", lambda x: tr.sort(x, axis=0), M)
    put(tr, "argsort", lambda x: tr.argsort(x, axis=0, descending=True), M)
    put(tr, "searchsorted", tr.searchsorted, ascending(5), M)
    put(tr, "isin", tr.isin, M, between(0.6, 4.7, 5))
    each(tr, "dot inner matmul vdot vecdot", SQUARE, OTHER)
    put(tr, "matvec", tr.matvec, SQUARE, VECTOR)
    put(tr, "vecmat", tr.vecmat, VECTOR, SQUARE)
    put(tr, "matmul, vector", tr.matmul, SQUARE, VECTOR)
    put(tr, "matmul, stack", tr.matmul, between(-1, 1, 2, 1, 3, 4), between(-1, 1, 5, 4, 2))
    put(tr, "tensordot", lambda x, y: tr.tensordot(x, y, axes=([0], [1])), SQUARE, OTHER)
    each(tr, "kron", SQUARE, M)
    each(tr, "outer", VECTOR, LINE)
    each(tr, "matrix_trace", M)


def _structure(put: Any, each: Any) -> None:
    each(tr, "matrix_transpose ravel transpose diagonal empty_like ones_like zeros_like", M)
    put(tr, "full_like", lambda x, v: tr.full_like(x, v), M, NUMBER)
    put(tr, "full", lambda v: tr.full((2, 3), v), NUMBER)
    put(tr, "linspace", lambda a, b: tr.linspace(a, b, 5), NUMBER, between(3.0, 3.0))
    put(tr, "broadcast_arrays", tr.broadcast_arrays, M, between(1.0, 2.0, 4))
    put(tr, "broadcast_to", lambda x: tr.broadcast_to(x, (2, 3, 4)), M)
    put(tr, "concat", lambda x, y: tr.concat([x, y, x], axis=1), M, N)
    put(tr, "ravel_tree", lambda x, y: tr.ravel_tree({"x": x, "y": [y, 1.0]})[0], M, N)
    put(tr, "diff", lambda x: tr.diff(x, axis=1, n=2), M)
    put(tr, "expand_dims", lambda x: tr.expand_dims(x, axis=1), M)
    put(tr, "meshgrid", lambda x, y: tr.meshgrid(x, y, indexing="ij"), VECTOR, LINE)
    put(tr, "moveaxis", lambda x: tr.moveaxis(x, 0, -1), M)
    put(tr, "pad", lambda x, v: tr.pad(x, ((1, 0), (2, 1)), constant_values=v), M, NUMBER)
    put(tr, "permute_dims", lambda x: tr.permute_dims(x, (1, 0)), M)
    put(tr, "repeat", lambda x: tr.repeat(x, 2, axis=1), M)
    put(tr, "repeat, counts", lambda x: tr.repeat(x, np.asarray([2, 0, 1]), axis=0), M)
    put(tr, "reshape", lambda x: tr.reshape(x, (2, -1)), M)
    put(tr, "roll", lambda x: tr.roll(x, (1, -1), axis=(0, 1)), M)
    put(tr, "split", lambda x: tr.split(x, 2, axis=1), M)
    put(tr, "squeeze", lambda x: tr.squeeze(x, axis=1), between(0.5, 2.0, 3, 1, 2))
    put(tr, "stack", lambda x, y: tr.stack([x, y], axis=1), M, N)
    put(tr, "swapaxes", lambda x: tr.swapaxes(x, 0, 1), M)
    put(tr, "take", lambda x: tr.take(x, INDEX, axis=0), M)
    put(tr, "take, computed", lambda x, y: tr.take(x, tr.argsort(tr.real(y)), axis=0), M, VECTOR)
    put(tr, "take_along_axis", lambda x, y: tr.take_along_axis(x, tr.argsort(tr.real(y), axis=1), axis=1), M, N)
    put(tr, "tile", lambda x: tr.tile(x, (2, 1, 3)), M)
    put(tr, "tril", lambda x: tr.tril(x, k=1), M)
    put(tr, "triu", tr.triu, M)
    put(tr, "unstack", lambda x: tr.unstack(x, axis=1), M)
    put(tr, "dynamic_slice", lambda x, i: tr.dynamic_slice(x, (_whole(tr.real(i)) % 3, 1), (2, 2)), GRID, NUMBER)
    put(
        tr, "dynamic_update_slice",
        lambda x, y, i: tr.dynamic_update_slice(x, y, (1, _whole(tr.real(i)) % 3)), GRID, between(0, 1, 2, 3), NUMBER,
    )  # fmt: skip
    put(tr, "Tensor.__getitem__", lambda x: x[1:, ::-1][:, [0, -1]], M)
    put(tr, "Tensor.__getitem__, computed", lambda x, y: x[tr.argsort(tr.real(y)), 1], M, VECTOR)
    put(tr, "Tensor.at, add", lambda x, y: x.at[INDEX].add(y), M, between(0.0, 1.0, 3, 4))
    put(tr, "Tensor.at, set", lambda x, y: x.at[1:, tr.argmax(tr.real(x[0]))].set(y), M, between(0.0, 1.0, 2))
    put(tr, "compress", lambda x: tr.compress(x, tr.real(x) > 1.5), M)
    put(tr, "truncate", lambda x, k: tr.truncate(x, _whole(tr.real(k)) % 3), M, NUMBER)
    put(tr, "nonzero", lambda x: tr.nonzero(tr.real(x) > 1.5), M)
    put(tr, "repeat, computed", lambda x, k: tr.repeat(x, _whole(tr.real(k)) % 3, axis=0), M, VECTOR)
    each(tr, "unique_all unique_counts unique_inverse unique_values", M)


def _control_flow(put: Any) -> None:
    put(tr, "cond", lambda x: tr.cond(tr.sum(tr.abs(x)) > 27.0, tr.sin, lambda x: x * x, x), M)
    put(
        tr, "switch",
        lambda i, x: tr.switch(_whole(tr.real(i)) % 3, [tr.sin, lambda x: x * x, tr.exp], x), NUMBER, VECTOR,
    )  # fmt: skip
    put(tr, "scan", lambda c, xs: tr.scan(lambda c, x: (c * x, c + x), c, xs), VECTOR, SQUARE)
    put(tr, "map", lambda xs: tr.map(lambda x: tr.sum(x) * x, xs), SQUARE)
    put(tr, "associative_scan", lambda xs: tr.associative_scan(lambda a, b: a * b, xs), SQUARE)
    put(tr, "fori_loop", lambda x: tr.fori_loop(0, 3, lambda i, x: tr.sin(x) + i, x), VECTOR)
    for name, most in (("while_loop", None), ("while_loop, bounded", 12)):
        put(
            tr, name,
            lambda x, most=most: tr.while_loop(
                lambda x: tr.sum(tr.abs(x)) < 9.0, lambda x: x * 1.25, x, max_steps=most
            ),
            VECTOR,
        )  # fmt: skip


def _riccati(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: f(x, tr.eye(x.shape[0], dtype=x.dtype, device=x.device), _positive(x), _positive(y))


def _linalg(put: Any, each: Any) -> None:
    each(tl, "matmul tensordot vecdot", SQUARE, OTHER)
    each(tl, "diagonal matrix_transpose trace", M)
    each(tl, "outer", VECTOR, LINE)
    put(tl, "cross", lambda x, y: tl.cross(x, y, axis=0), M, N)
    each(tl, "det inv slogdet", SQUARE)
    each(tl, "pinv svdvals", M)
    each(tl, "matrix_rank", M)
    each(tl, "solve", SQUARE, VECTOR)
    put(tl, "solve, matrices", tl.solve, SQUARE, OTHER)
    put(tl, "solve_triangular", lambda a, b: tl.solve_triangular(a, b, lower=True, trans="C"), SQUARE, VECTOR)
    put(tl, "matrix_power", lambda x: tl.matrix_power(x, 3), SQUARE)
    put(tl, "matrix_norm", tl.matrix_norm, M)
    put(tl, "matrix_norm, nuclear", lambda x: tl.matrix_norm(x, ord="nuc"), M)
    put(tl, "norm", lambda x: tl.norm(x, 1, 1), M)
    put(tl, "vector_norm", lambda x: tl.vector_norm(x, axis=1), M)
    put(tl, "vector_norm, third power", lambda x: tl.vector_norm(x, ord=3), M)
    put(tl, "cholesky", lambda x: tl.cholesky(_positive(x)), SQUARE)
    put(tl, "eigvals", lambda x: tl.eigvals(_positive(x)), SQUARE)
    put(tl, "eig", lambda x: (lambda w, v: (w, tr.abs(v)))(*tl.eig(_positive(x))), SQUARE)  # type: ignore[arg-type]
    put(tl, "eigvalsh", lambda x: tl.eigvalsh(_hermitian(x)), SQUARE)

    def eigh(x: Any) -> Any:
        w, v = tl.eigh(_hermitian(x))
        return w, _projected(v, w)

    def svd(x: Any) -> Any:
        u, s, vh = tl.svd(x, full_matrices=False)
        return _projected(u, s), s, _projected(_adjoint(vh), s)

    def svd_full(x: Any) -> Any:
        _, s, vh = tl.svd(x, full_matrices=True)
        rest = _adjoint(vh)[:, s.shape[0] :]
        return s, rest @ _adjoint(rest)

    def svd_trunc(x: Any) -> Any:
        u, s, vh = tl.svd_trunc(x, 2)
        return (u * tr.expand_dims(s, axis=0)) @ vh, s

    def qr(x: Any) -> Any:
        q, r = tl.qr(x)
        return q @ r[:, 1:], q[:, :2] @ _adjoint(q[:, :2])

    put(tl, "eigh", eigh, SQUARE)
    put(tl, "svd", svd, M)
    put(tl, "svd, full", svd_full, M)
    put(tl, "svd_trunc", svd_trunc, M)
    put(tl, "qr", qr, between(-1, 2, 4, 3))
    put(tl, "spectral_function", lambda x: tl.spectral_function(_hermitian(x), tr.sin), SQUARE)
    each(tl, "expm matrix_exp cosm sinm tanm coshm sinhm tanhm", SQUARE)
    each(tl, "expm_frechet solve_continuous_lyapunov solve_discrete_lyapunov solve_lyapunov", SQUARE, OTHER)
    put(tl, "eigvalsh, generalised", lambda a, b: tl.eigvalsh(_hermitian(a), _positive(b)), SQUARE, OTHER)
    put(tl, "eigvals, generalised", lambda a, b: tl.eigvals(_positive(a), _positive(b)), SQUARE, OTHER)
    put(tl, "eigvalsh_tridiagonal", lambda x: tl.eigvalsh_tridiagonal(tr.abs(x[0]), tr.abs(x[1, 1:])), SQUARE)
    put(tl, "eigh_tridiagonal", lambda x: tl.eigh_tridiagonal(tr.abs(x[0]), tr.abs(x[1, 1:]))[0], SQUARE)
    put(tl, "schur", lambda x: tr.abs(tl.schur(x, output="complex").T), SQUARE)
    put(tl, "rsf2csf", lambda x: tr.abs(tl.rsf2csf(*tl.schur(_hermitian(x))).T), SQUARE)
    each(tl, "hessenberg", SQUARE)
    for name in ("solve_continuous_are", "solve_discrete_are"):
        put(tl, name, _riccati(getattr(tl, name)), SQUARE, OTHER)
    put(tl, "funm", lambda x: tl.funm(x, tr.exp), SQUARE)
    put(tl, "sqrtm", lambda x: tl.sqrtm(_positive(x)), SQUARE)
    put(tl, "logm", lambda x: tl.logm(_positive(x)), SQUARE)
    put(tl, "signm", lambda x: tl.signm(_positive(x)), SQUARE)
    put(tl, "fractional_matrix_power", lambda x: tl.fractional_matrix_power(_positive(x), 0.3), SQUARE)
    put(tl, "solve_sylvester", lambda a, q: tl.solve_sylvester(_positive(a), _positive(q), q), SQUARE, OTHER)
    put(tl, "singular_function", lambda x: tl.singular_function(x, lambda s: s * s * s), between(-1, 2, 3, 2))


def _factors(put: Any, each: Any) -> None:
    def lstsq(a: Any, b: Any) -> Any:
        return tl.lstsq(a, b)[:3]

    def ldl(x: Any) -> Any:
        return tl.ldl(_hermitian(x))[:2]

    tall = between(-1, 2, 4, 3)
    each(tl, "cond", M)
    put(tl, "cond, ones", lambda x: tl.cond(x, 1), SQUARE)
    put(tl, "multi_dot", lambda x, y, v: tl.multi_dot([x, y, v]), SQUARE, OTHER, VECTOR)
    put(tl, "tensorsolve", lambda a, b: tl.tensorsolve(tr.reshape(a, (3, 1, 3)), b), SQUARE, VECTOR)
    put(tl, "tensorinv", lambda a: tl.tensorinv(tr.reshape(a, (3, 1, 3)), 1), SQUARE)
    put(tl, "lu", lambda x: tl.lu(x), tall)
    put(tl, "lu_factor", lambda x: tl.lu_factor(x).lu, M)
    put(tl, "lu_solve", lambda a, b: tl.lu_solve(tl.lu_factor(a), b, 2), SQUARE, VECTOR)
    put(tl, "ldl", ldl, SQUARE)
    put(tl, "lstsq", lstsq, tall, between(-1, 2, 4, 2))
    put(tl, "polar", tl.polar, tall)
    put(tl, "cho_factor", lambda x: tl.cho_factor(_positive(x)).c, SQUARE)
    put(tl, "cho_solve", lambda x, b: tl.cho_solve((_positive(x), True), b), SQUARE, VECTOR)
    put(tl, "cholesky_solve", lambda x, b: tl.cholesky_solve(_positive(x), b), SQUARE, VECTOR)
    put(tl, "cholesky_inverse", lambda x: tl.cholesky_inverse(_positive(x)), SQUARE)
    put(tl, "rank_revealing_qr", lambda x: tl.rank_revealing_qr(x).R, tall)
    put(tl, "householder_product", tl.householder_product, tall, VECTOR)
    put(tl, "orth", lambda x: (lambda q: q @ _adjoint(q))(tl.orth(x)), tall)
    put(tl, "null_space", lambda x: (lambda q: q @ _adjoint(q))(tl.null_space(x)), M)
    put(tl, "subspace_angles", tl.subspace_angles, between(-1, 2, 5, 2), between(-1, 1, 5, 2, seed=7))


def _truncations(put: Any, each: Any) -> None:
    def eigh_trunc(x: Any) -> Any:
        w, v = tl.eigh_trunc(_hermitian(x), 2)
        return w, _projected(v, w)

    def svd_random(x: Any) -> Any:
        u, s, vh = tl.svd_random(x, 2, iterations=3)
        return (u * tr.expand_dims(s, axis=0)) @ vh, s

    put(tl, "svd_random", svd_random, M)
    put(tl, "eigh_trunc", eigh_trunc, SQUARE)

    def qr_trunc(x: Any) -> Any:
        found = tl.qr_trunc(x, 2)
        return found.Q @ found.R

    put(tl, "qr_trunc", qr_trunc, between(-1, 2, 4, 3))


def _structured_matrices(put: Any, each: Any) -> None:
    bands, line = between(4, 9, 3, 5), between(3, 9, 5)
    put(tl, "solve_banded", lambda a, b: tl.solve_banded((1, 1), a, b), bands, between(-1, 2, 5, 2))
    put(
        tl,
        "solveh_banded",
        lambda a, b: tl.solveh_banded(a * tr.asarray([[9.0], [1], [1]], device=a.device), b, lower=True),
        bands,
        between(-1, 2, 5),
    )
    put(tl, "solve_toeplitz", lambda c, b: tl.solve_toeplitz((c, 2 * c), b), line, between(-1, 2, 5, 2))
    put(tl, "solve_circulant", tl.solve_circulant, line, between(-1, 2, 5, 2))
    put(tl, "block_diag", lambda x, y: tl.block_diag(x, y), M, VECTOR)
    put(tl, "toeplitz", lambda x, y: tl.toeplitz(x, y), VECTOR, line)
    put(tl, "hankel", lambda x, y: tl.hankel(x, y), VECTOR, line)
    put(tl, "vander", lambda x: tl.vander(x, 3), line)
    each(tl, "circulant companion", line)
    put(tl, "convolution_matrix", lambda x: tl.convolution_matrix(x, 3), line)


def _fft(put: Any, each: Any) -> None:
    each(
        tf,
        "fft ifft fftn ifftn fftshift ifftshift hfft irfft irfftn rfft rfftn ihfft fft2 ifft2 rfft2 irfft2 hfft2 "
        "ihfft2 hfftn ihfftn dct idct dst idst dctn idctn dstn idstn czt hilbert",
        GRID,
    )
    for name in ("fftconvolve", "oaconvolve"):
        put(tf, name, getattr(tf, name), GRID, GRID)
    for name in ("fht", "ifht"):
        put(tf, name, lambda x, name=name: getattr(tf, name)(x, 0.1, 1.0), GRID)
    put(tf, "zoom_fft", lambda x: tf.zoom_fft(x, 0.5), GRID)
    put(tf, "fft, first axis", lambda x: tf.fft(x, axis=0, n=5), GRID)
    put(tf, "irfft, odd", lambda x: tf.irfft(x, axis=0, n=5), GRID)


def _einsum(put: Any) -> None:
    for name in "inner kron tensordot".split():
        put(te, name, getattr(te, name), SQUARE, OTHER)
    put(te, "outer", te.outer, VECTOR, LINE)
    put(te, "einsum", lambda x, y: te.einsum("ij,jk->ik", x, y), SQUARE, OTHER)
    put(te, "einsum, diagonal", lambda x: te.einsum("iji->ji", x), between(-1, 1, 2, 3, 2))
    put(te, "einsum, spread", lambda x, y: te.einsum("i,ij->iij", x, y), VECTOR, SQUARE)
    put(te, "einsum, network", lambda x, y, v: te.einsum("ij,jk,k,kj->i", x, y, v, x), SQUARE, OTHER, VECTOR)
    put(te, "plan", lambda x, y: te.plan("ij,ik->jk", x, y)(x, y), SQUARE, OTHER)


CALLS: Final = _table()

OF_DATA: Final = frozenset({"tenferro_linalg.null_space", "tenferro_linalg.orth"}) | frozenset(
    f"tenferro_runtime.{name}"
    for name in (
        "bincount", "compress", "nonzero", "real_if_close", "truncate", "repeat, computed", "unique_all",
        "unique_counts", "unique_inverse", "unique_values", *numpy_calls.of_data(),
    )
)  # fmt: skip
"""Calls whose results have sizes that depend on data: these would differ between lanes."""

NO_ARRAYS: Final = frozenset(
    """
    tenferro_linalg.dft tenferro_linalg.hadamard tenferro_linalg.helmert tenferro_linalg.hilbert
    tenferro_linalg.invhilbert tenferro_linalg.invpascal tenferro_linalg.pascal
    tenferro_runtime.__array_namespace_info__ tenferro_runtime.arange tenferro_runtime.assume
    tenferro_runtime.broadcast_shapes tenferro_runtime.can_cast tenferro_runtime.compute_context
    tenferro_runtime.compute_device tenferro_runtime.current_runtime tenferro_runtime.debug_callback
    tenferro_runtime.debug_print tenferro_runtime.dim tenferro_runtime.empty
    tenferro_runtime.compare
    tenferro_runtime.explain_dispatch tenferro_runtime.export_library tenferro_runtime.eye tenferro_runtime.find_nan
    tenferro_runtime.finfo tenferro_runtime.from_dlpack tenferro_runtime.host_fallback
    tenferro_runtime.identity tenferro_runtime.iinfo
    tenferro_runtime.iscomplexobj tenferro_runtime.isdtype tenferro_runtime.isrealobj tenferro_runtime.isscalar
    tenferro_runtime.issubdtype tenferro_runtime.iterable
    tenferro_runtime.ndim tenferro_runtime.promote_types tenferro_runtime.shape
    tenferro_runtime.size
    tenferro_runtime.load tenferro_runtime.load_library tenferro_runtime.no_transfers tenferro_runtime.ones
    tenferro_runtime.pure_callback
    tenferro_runtime.register_dataclass tenferro_runtime.register_node tenferro_runtime.result_type
    tenferro_runtime.show_config tenferro_runtime.show_progress tenferro_runtime.show_ir tenferro_runtime.synchronize
    tenferro_runtime.synchronize_all tenferro_runtime.trace tenferro_runtime.transfers tenferro_runtime.tree_all
    tenferro_runtime.tree_flatten tenferro_runtime.tree_flatten_with_path tenferro_runtime.tree_leaves
    tenferro_runtime.tree_map tenferro_runtime.tree_map_with_path tenferro_runtime.tree_reduce
    tenferro_runtime.tree_structure tenferro_runtime.tree_transpose tenferro_runtime.tree_unflatten
    tenferro_runtime.frombuffer tenferro_runtime.fromfunction tenferro_runtime.fromiter
    tenferro_runtime.bartlett tenferro_runtime.blackman tenferro_runtime.hamming tenferro_runtime.hanning
    tenferro_runtime.kaiser tenferro_runtime.diag_indices tenferro_runtime.indices tenferro_runtime.mask_indices
    tenferro_runtime.tri tenferro_runtime.tril_indices tenferro_runtime.triu_indices
    tenferro_runtime.zeros tenferro_fft.fftfreq tenferro_fft.fhtoffset tenferro_fft.get_workers
    tenferro_fft.next_fast_len tenferro_fft.prev_fast_len tenferro_fft.rfftfreq tenferro_fft.set_workers
    tenferro_einsum.contract_path
    tenferro_einsum.load_paths tenferro_einsum.run_on tenferro_einsum.save_paths
    tenferro_linalg.arnoldi tenferro_linalg.expm_multiply tenferro_linalg.lanczos tenferro_linalg.svds
    tenferro_linalg.coo_array tenferro_linalg.csr_array tenferro_linalg.sparse_array tenferro_linalg.spsolve
    tenferro_linalg.bicgstab tenferro_linalg.cg tenferro_linalg.eigs tenferro_linalg.eigsh
    tenferro_linalg.gmres tenferro_linalg.lsmr tenferro_linalg.lsqr tenferro_linalg.minres
    """.split()
)
"""Public functions that compute nothing from arrays by themselves; callbacks and iterations have tests of their own."""
