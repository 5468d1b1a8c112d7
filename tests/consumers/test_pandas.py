"""pandas: series and frames from tensors, beside tensors, and tensors from them."""

import numpy as np
import pandas as pd
import pytest

import tenferro_runtime as tr
from tenferro_ad import variable
from tenferro_tensor import Tensor
from tenferro_tensor_core import GradientError

A = np.random.default_rng(0).normal(size=(4, 6))
V = np.arange(1.0, 7.0)


def test_from_tensors() -> None:
    x = tr.asarray(V)
    series = pd.Series(x, index=tr.asarray(np.arange(6)))
    assert series.dtype == np.float64 and series.index.dtype == np.int64 and series.tolist() == V.tolist()
    np.testing.assert_array_equal(pd.DataFrame(tr.asarray(A)).to_numpy(), A)
    frame = pd.DataFrame({"a": x, "b": x * 2}).assign(c=x * 3)
    frame["d"] = x * 4
    assert frame.dtypes.unique().tolist() == [np.float64] and frame.d.tolist() == (V * 4).tolist()
    assert pd.Index(x).tolist() == V.tolist() and len(pd.concat([pd.Series(x), pd.Series(V)])) == 12


def test_a_frame_does_not_see_what_is_assigned_to_the_tensor() -> None:
    x = tr.asarray(V.copy())
    series = pd.Series(x)
    x[0] = 99.0
    assert series.tolist() == V.tolist()
    series.iloc[1] = 77.0
    assert x.tolist() == [99.0, *V[1:]]
    own = pd.Series(np.array(x))
    own.iloc[1] = 77.0
    assert own[1] == 77.0 and x.tolist() == [99.0, *V[1:]]


def test_beside_tensors() -> None:
    x, series = tr.asarray(V), pd.Series(V)
    for total in (series + x, x + series, np.add(series, x)):
        assert isinstance(total, pd.Series) and total.tolist() == (2 * V).tolist()
    assert series.isin(np.asarray(x)).all() and series.iloc[tr.asarray([0, 2])].tolist() == [1.0, 3.0]
    assert series.where(x > 2, -x).tolist() == np.where(V > 2, V, -V).tolist()


def test_to_tensors() -> None:
    frame = pd.DataFrame({"a": V, "b": V * 2})
    for x, want in [
        (tr.asarray(frame), frame.to_numpy()),
        (tr.asarray(frame.a), V),
        (tr.asarray(frame.a.to_numpy()), V),
    ]:
        assert isinstance(x, Tensor) and x.tolist() == want.tolist()
    assert tr.asarray(pd.Series([1, 2], dtype="int32")).dtype == np.int32
    assert tr.asarray(pd.Series([1, 2], dtype="Int64")).tolist() == [1, 2]


def test_values_that_are_differentiated_are_refused() -> None:
    with pytest.raises(GradientError, match="detach"):
        pd.Series(variable(V))
    assert pd.Series(variable(V).detach()).tolist() == V.tolist()
