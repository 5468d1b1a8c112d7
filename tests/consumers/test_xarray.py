"""xarray's labelled arrays over tensors."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_tensor import Tensor

A = np.random.default_rng(0).normal(size=(4, 6))
GROUPS = xr.DataArray([0, 0, 1, 1], dims="x", name="g")
WEIGHTS = xr.DataArray(np.arange(4.0), dims="x")


def labelled(data: Any) -> xr.DataArray:
    return xr.DataArray(data, dims=("x", "y"), coords={"x": np.arange(4.0), "y": np.arange(6)})


def assigned(d: xr.DataArray) -> xr.DataArray:
    d[{"x": 0}] = 5.0
    d.loc[{"x": 2.0}] = 7.0
    return d


KEEPING: dict[str, Any] = {
    "arithmetic": lambda d: (d + 1) * d - 2.0**d / 3 + np.ones(6) * d,
    "comparison": lambda d: (d > 0) & ~(d > 1),
    "ufunc": lambda d: np.sin(d) + xr.ufuncs.exp(d),
    "reductions": lambda d: d.sum() + d.mean("x") + d.std("y") + d.var() + d.max("y") - d.min() + d.prod("x"),
    "median": lambda d: d.median("x"),
    "quantile": lambda d: d.quantile(0.3, "x"),
    "logic": lambda d: (d > 0).any("x") | (d > 0).all(),
    "count": lambda d: d.count("x"),
    "cumulative": lambda d: d.cumsum("x") + d.cumprod("y"),
    "where": lambda d: d.where(d > 0, 0.0) + xr.where(d > 0, d, -d) + d.where(d > 0).fillna(9.0),
    "concat": lambda d: xr.concat([d, d], "x").sum("y"),
    "concat along a new dimension": lambda d: xr.concat([d, d], "t"),
    "selection": lambda d: d.isel(x=slice(1, 3)) + d.sel(x=2.0) + d.sel(x=1.9, method="nearest"),
    "selection by list": lambda d: d.isel(x=[0, 2]),
    "assignment": assigned,
    "transpose": lambda d: d.T,
    "stack": lambda d: d.stack(z=("x", "y")).unstack("z"),
    "dot": lambda d: xr.dot(d, d, dim="x") + (d @ d.rename(x="z")).sum(),
    "shift": lambda d: d.shift(x=1, fill_value=0.0) + d.roll(x=1),
    "pad": lambda d: d.pad(x=1, constant_values=0.0),
    "clip and round": lambda d: d.clip(-0.5, 0.5) + d.round(1),
    "diff": lambda d: d.diff("x"),
    "gradient": lambda d: d.differentiate("x"),
    "integral": lambda d: d.integrate("x"),
    "position of extremes": lambda d: d.argmax("x"),
    "label of extremes": lambda d: d.idxmax("x"),
    "groups": lambda d: d.groupby(GROUPS).mean(),
    "coarse": lambda d: d.coarsen(x=2).mean(),
    "weighted": lambda d: d.weighted(WEIGHTS).mean("x"),
    "covariance": lambda d: xr.cov(d, d) + xr.corr(d, d),
    "sorting": lambda d: d.sortby("x", ascending=False),
    "reindexing": lambda d: d.reindex(x=[0.0, 1.0, 9.0]),
    "membership": lambda d: d.isin([1.0]),
    "dataset": lambda d: xr.Dataset({"a": d, "b": d * 2}).mean().to_array(),
    "alignment": lambda d: d + d.isel(x=slice(1, 3)),
    "dtype": lambda d: d.astype("float32"),
    "copy": lambda d: d.copy(deep=True),
    "function": lambda d: xr.apply_ufunc(lambda v: v * 2, d),
}


@pytest.mark.parametrize("name", KEEPING)
def test_operations_keep_tensors(name: str) -> None:
    f = KEEPING[name]
    want, got = f(labelled(A.copy())), f(labelled(tr.asarray(A)))
    assert isinstance(got.data, Tensor)
    assert got.dims == want.dims and got.coords.keys() == want.coords.keys()
    np.testing.assert_allclose(np.asarray(got.data), want.data)


def test_results_that_are_no_tensors() -> None:
    d = labelled(tr.asarray(A))
    assert d.equals(d.copy()) and d.isel(x=0, y=0).item() == A[0, 0] and "Tensor" in repr(d)
    np.testing.assert_array_equal(d.values, A)
    np.testing.assert_array_equal(d.to_pandas().to_numpy(), A)
    np.testing.assert_allclose(d.interp(x=[0.5]).values, labelled(A).interp(x=[0.5]).values)


def test_gradients_and_programs_pass_through_labels() -> None:
    def loss(a: Any) -> Any:
        d = labelled(a)
        return (d * d).sum("x").mean().data

    slope = grad(loss)(tr.asarray(A))
    np.testing.assert_allclose(np.asarray(slope), A / 3)
    np.testing.assert_allclose(float(tr.compile(loss)(tr.asarray(A))), (A**2).sum(0).mean())
