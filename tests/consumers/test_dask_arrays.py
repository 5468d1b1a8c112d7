"""dask's arrays whose blocks are tensors."""

from typing import Any

import dask.array as da
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor import Tensor

A = np.random.default_rng(0).normal(size=(4, 6))


def assigned(d: Any) -> Any:
    d[0, 0] = 9.0
    d[d > 0] = 3.0
    return d


def summed(v: Any, axis: Any, keepdims: bool) -> Any:
    return v.sum(axis=axis, keepdims=keepdims)


KEEPING: dict[str, Any] = {
    "arithmetic": lambda d: (d + 1) * d - d**2 + A * d,
    "ufuncs": lambda d: da.sin(d) + np.exp(d) + da.sqrt(abs(d)),
    "reductions": lambda d: (
        d.sum(axis=0) + d.mean(axis=0) + d.std(axis=0) + d.var() + d.max() - d.min(axis=0) + d.prod()
    ),
    "logic": lambda d: (d > 0).any(axis=0) | (d > 0).all(),
    "norm": lambda d: da.linalg.norm(d),
    "tensordot": lambda d: da.tensordot(d, d.T, 1),
    "matmul": lambda d: d @ d.T + d.dot(d.T),
    "einsum": lambda d: da.einsum("ij,kj->ik", d, d),
    "outer": lambda d: da.outer(d[0], d[1]),
    "concatenate": lambda d: da.concatenate([d, d]),
    "stack": lambda d: da.stack([d, d.map_blocks(lambda b: b * 2)]),
    "shapes": lambda d: d.T.reshape(-1) + d.ravel() + da.broadcast_to(d, (2, 4, 6)).reshape(2, -1),
    "where": lambda d: da.where(d > 0, d, 0) + d.clip(-0.5, 0.5),
    "indexing": lambda d: d[1:3, ::2] + d[[0, 2]][:, ::2],
    "mask": lambda d: d[d > 0],
    "assignment": assigned,
    "cumsum": lambda d: d.cumsum(axis=0),
    "svd": lambda d: da.linalg.svd(d.rechunk((4, -1)))[1],
    "qr": lambda d: abs(da.linalg.qr(d.T.rechunk((3, 4)))[1]),
    "overlap": lambda d: d.map_overlap(lambda b: b * 2, depth=1),
    "dtype": lambda d: d.astype("float32"),
    "roll and flip": lambda d: da.roll(d, 1, axis=0) + da.flip(d, 0),
    "diff": lambda d: da.diff(d, axis=0),
    "pad": lambda d: da.pad(d, 1),
    "tile and repeat": lambda d: da.tile(d, (2, 1)) + da.repeat(d, 2, axis=0),
    "median": lambda d: da.median(d, axis=1),
    "covariance": lambda d: da.cov(d),
    "triangle": lambda d: da.triu(d),
    "fft": lambda d: da.fft.fft(d.rechunk((4, -1))),
    "histogram": lambda d: da.histogram(d, bins=4, range=(-2, 2))[0],
    "reduction by functions": lambda d: da.reduction(d, chunk=summed, aggregate=summed, dtype=float),
}


@pytest.mark.parametrize("name", KEEPING)
def test_operations_keep_tensors(name: str) -> None:
    f = KEEPING[name]
    want = f(da.from_array(A.copy(), chunks=(2, 3))).compute(scheduler="sync")
    got = f(da.from_array(tr.asarray(A), chunks=(2, 3), asarray=False)).compute(scheduler="sync")
    assert isinstance(got, Tensor)
    np.testing.assert_allclose(np.asarray(got), want, atol=1e-12)


def test_threads_and_blocks() -> None:
    d = da.from_array(tr.asarray(A), chunks=(2, 3), asarray=False)
    assert isinstance(d.blocks[0, 0].compute(scheduler="sync"), Tensor)
    np.testing.assert_allclose(np.asarray((d @ d.T).compute(scheduler="threads")), A @ A.T)
    np.testing.assert_allclose(np.asarray(da.argmax(d, axis=0).compute(scheduler="sync")), A.argmax(0))
