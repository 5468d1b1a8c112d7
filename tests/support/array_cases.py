"""Calls of array functions on one real matrix, for tests of tracing, symbolic sizes and derivatives.

Each entry is a function and its properties: ``smooth`` (derivatives can be checked by differences), ``open``
(it can be traced with symbolic sizes).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr


class Case(NamedTuple):
    """A call, and which tests it takes part in."""

    f: Callable[[Any], Any]
    smooth: bool = True
    open: bool = True


def matrix(rows: int = 3, columns: int = 4, seed: int = 0) -> np.ndarray[Any, Any]:
    """Positive distinct numbers, in no order, away from kinks."""
    rng = np.random.default_rng(seed)
    return (rng.permutation(rows * columns) * 0.37 + 0.6).reshape(rows, columns)


ROWS = np.asarray([2, 0, -1, 0])

CASES = {
    "abs2": Case(tr.abs2),
    "angle": Case(lambda x: tr.angle(x + 1j * x[::-1]) * x),
    "argmax": Case(lambda x: tr.argmax(x, axis=1), smooth=False),
    "argsort": Case(lambda x: tr.argsort(x, axis=0), smooth=False),
    "array_equal": Case(lambda x: tr.array_equal(x, x * 1.0), smooth=False),
    "astype": Case(lambda x: x.astype(tr.complex128) * 2j),
    "at_add_rows": Case(lambda x: x.at[ROWS].add(x[:1])),
    "at_max": Case(lambda x: x.at[1:, ::2].max(1.0), open=False),
    "at_min": Case(lambda x: x.at[-1].min(1.0)),
    "at_multiply": Case(lambda x: x.at[0].multiply(x[1])),
    "at_set_slice": Case(lambda x: x.at[1:, 0].set(x[:-1, 1] ** 2)),
    "at_subtract": Case(lambda x: x.at[..., -1].subtract(x[:, 0] ** 2)),
    "average": Case(lambda x: tr.average(x, axis=1, weights=x[0] ** 2)),
    "bincount": Case(lambda x: tr.bincount(tr.argsort(x[0]) // 2, x[0] ** 2, length=2)),
    "broadcast_to": Case(lambda x: tr.broadcast_to(x[:1] ** 2, x.shape)),
    "clip": Case(lambda x: tr.clip(x, 1.1, 3.0) * x),
    "concat": Case(lambda x: tr.concat([x, x * x, x[:1]], axis=0)),
    "corrcoef": Case(lambda x: tr.corrcoef(x[:, :3] + x[0, 0])[0], open=False),
    "count_nonzero": Case(lambda x: tr.count_nonzero(x > 1, axis=0), smooth=False),
    "cov": Case(lambda x: tr.cov(x, ddof=0)),
    "cumsum_flat": Case(lambda x: tr.cumsum(x * x)),
    "cumulative_prod": Case(lambda x: tr.cumulative_prod(x, axis=1)),
    "cumulative_sum": Case(lambda x: tr.cumulative_sum(x * x, axis=0, include_initial=True)),
    "diagonal": Case(lambda x: tr.diagonal(x * x)),
    "diff": Case(lambda x: tr.diff(x**2, axis=1)),
    "digitize": Case(lambda x: tr.digitize(x, np.asarray([1.0, 2.0, 3.5])), smooth=False),
    "dot": Case(lambda x: tr.dot(x, x.T)),
    "expand_dims": Case(lambda x: tr.expand_dims(x, axis=1) * x),
    "flip": Case(lambda x: tr.flip(x, axis=1) * x),
    "fmax": Case(lambda x: tr.fmax(tr.where(x > 2, float("nan"), x), x**2)),
    "frexp": Case(lambda x: tr.frexp(x)[0]),
    "full_like": Case(lambda x: tr.full_like(x, 2.5) * x),
    "heaviside": Case(lambda x: tr.heaviside(x - 2, x) * x),
    "histogram": Case(lambda x: tr.histogram(x, np.asarray([0.0, 1.5, 3.0]), weights=x**2)[0]),
    "histogram_density": Case(lambda x: tr.histogram(x, 3, weights=x**2, density=True)[0]),
    "i0": Case(lambda x: tr.i0(x - 1.0) + tr.i0(x * 9)),
    "index_array": Case(lambda x: x[ROWS] ** 2),
    "index_array_pair": Case(lambda x: x[[0, 1, -1], [2, 0, -2]] ** 2),
    "index_basic": Case(lambda x: x[1:, ::-1][:, 0] ** 2),
    "index_every_other": Case(lambda x: x[::2, 1::2] ** 2),
    "index_new": Case(lambda x: x[None, 0, ..., None] ** 2),
    "index_traced": Case(lambda x: x[tr.argmax(x, axis=0)] ** 2),
    "index_traced_negative": Case(lambda x: x[tr.argmax(x, axis=0) - 1, 0] ** 2),
    "isclose": Case(lambda x: tr.isclose(x, x + 1e-9), smooth=False),
    "isin": Case(lambda x: tr.isin(x, x[:1]), smooth=False),
    "kron": Case(lambda x: tr.kron(x[:2, :2], x)),
    "ldexp": Case(lambda x: tr.ldexp(x, tr.argsort(x, axis=1))),
    "log_softmax": Case(lambda x: tr.log_softmax(x, axis=0)),
    "logaddexp2": Case(lambda x: tr.logaddexp2(x, x[::-1] * 2)),
    "logsumexp": Case(lambda x: tr.logsumexp(x, axis=1)),
    "matmul": Case(lambda x: x @ x.T @ x),
    "matmul_stack": Case(lambda x: x[None] @ tr.stack([x.T, 2 * x.T])),
    "matmul_vector": Case(lambda x: x @ x[0]),
    "max": Case(lambda x: tr.max(x, axis=1) ** 2),
    "mean": Case(lambda x: tr.mean(x * x, axis=0)),
    "mean_all": Case(lambda x: tr.mean(x**2)),
    "median": Case(lambda x: tr.median(x, axis=1) ** 2),
    "meshgrid": Case(lambda x: tr.meshgrid(x[0], x[:, 1])[0] ** 2),
    "modf": Case(lambda x: tr.modf(x * x)[0]),
    "moveaxis": Case(lambda x: tr.moveaxis(x, 0, 1) ** 2),
    "nan_to_num": Case(lambda x: tr.nan_to_num(x) ** 2),
    "nancumprod": Case(lambda x: tr.nancumprod(tr.where(x > 4, float("nan"), x), axis=0)),
    "nanmax": Case(lambda x: tr.nanmax(tr.where(x > 4, float("nan"), x), axis=0) ** 2),
    "nanmedian": Case(lambda x: tr.nanmedian(tr.where(x > 4, float("nan"), x), axis=0) ** 2),
    "nanquantile": Case(lambda x: tr.nanquantile(tr.where(x > 4, float("nan"), x), x[0, :2] / 6, axis=1)),
    "nanstd": Case(lambda x: tr.nanstd(tr.where(x > 4, float("nan"), x), axis=1)),
    "nanvar": Case(lambda x: tr.nanvar(tr.where(x > 4, float("nan"), x)) * x),
    "ones_like": Case(lambda x: tr.ones_like(x, dtype=tr.int32), smooth=False),
    "outer": Case(lambda x: tr.outer(x[0], x[:, 1])),
    "pad": Case(lambda x: tr.pad(x, ((1, 0), (2, 1)), constant_values=7.0) ** 2),
    "prod": Case(lambda x: tr.prod(x, axis=1)),
    "ptp": Case(lambda x: tr.ptp(x, axis=0) ** 2),
    "quantile": Case(lambda x: tr.quantile(x, x[0, :2] / 6, axis=0)),
    "quantile_weibull": Case(lambda x: tr.quantile(x, [[0.2], [0.8]], method="weibull")),
    "quantile_weights": Case(lambda x: tr.quantile(x, 0.4, axis=1, method="inverted_cdf", weights=x[0]) ** 2),
    "ravel": Case(lambda x: tr.ravel(x) ** 2),
    "reciprocal": Case(tr.reciprocal),
    "repeat": Case(lambda x: tr.repeat(x, 2, axis=1) ** 2),
    "reshape": Case(lambda x: tr.reshape(x, (x.shape[1], -1)) ** 2),
    "roll": Case(lambda x: tr.roll(x, 1, axis=1) * x),
    "searchsorted": Case(lambda x: tr.searchsorted(tr.sort(x[0]), x), smooth=False),
    "sinc": Case(lambda x: tr.sinc(x - 1.34) * tr.sinc(x / 9)),
    "softmax": Case(lambda x: tr.softmax(x)),
    "sort": Case(lambda x: tr.sort(x, axis=0) ** 2),
    "squeeze": Case(lambda x: tr.squeeze(x[:1], 0) ** 2),
    "stack": Case(lambda x: tr.stack([x, x**2], axis=1)),
    "std": Case(lambda x: tr.std(x, axis=1, correction=1)),
    "sum_keep": Case(lambda x: x / tr.sum(x, axis=(0, 1), keepdims=True)),
    "swapaxes": Case(lambda x: tr.swapaxes(x, 0, 1) ** 2),
    "take": Case(lambda x: tr.take(x, np.asarray([1, 0, 1]), axis=0) ** 2),
    "take_along_axis": Case(lambda x: tr.take_along_axis(x, tr.argsort(x, axis=0), axis=0) ** 2),
    "tensordot": Case(lambda x: tr.tensordot(x, x, axes=([0], [0]))),
    "tile": Case(lambda x: tr.tile(x, (2, 1, 3)) ** 2),
    "trace": Case(lambda x: (x**2).trace()),
    "transpose": Case(lambda x: tr.transpose(x) ** 2),
    "tril": Case(lambda x: tr.tril(x, k=1) ** 2),
    "triu": Case(lambda x: tr.triu(x) ** 2),
    "var": Case(lambda x: tr.var(x, axis=0)),
    "vdot": Case(lambda x: tr.vdot(x, x * 1j)),
    "vecdot": Case(lambda x: tr.vecdot(x, x + 1j, axis=0)),
    "where": Case(lambda x: tr.where(x > 1.5, x * x, 0.0)),
    "zeros_like": Case(lambda x: tr.zeros_like(x) + x),
}
