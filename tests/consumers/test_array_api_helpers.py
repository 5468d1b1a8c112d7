"""array-api-compat and array-api-extra: what the libraries above ask of arrays and do with them."""

from typing import Any

import array_api_compat as compat
import array_api_extra as xpx
import numpy as np
import pytest

import tenferro_runtime as tr
from probing import failure
from tenferro_ad import grad, variable

A = np.random.default_rng(0).normal(size=(4, 6))
V = np.arange(1.0, 7.0)


def test_what_arrays_are() -> None:
    x = tr.asarray(V)
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, x) is tr
    assert compat.size(x) == 6 and compat.device(x) == x.device
    assert compat.to_device(x, compat.device(x)).tolist() == V.tolist()
    assert compat.is_writeable_array(x) and not compat.is_lazy_array(x) and not compat.is_lazy_array(variable(V))
    met = []
    tr.compile(lambda v: met.append(compat.is_lazy_array(v)) or v)(x)
    assert met == [True]


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_updates_of_elements(name: str) -> None:
    want = getattr(xpx.at(V.copy())[1:4], name)(2.0)
    kept = tr.asarray(V)
    assert getattr(xpx.at(kept)[1:4], name)(2.0, copy=True).tolist() == want.tolist()
    assert kept.tolist() == V.tolist()
    taken = tr.asarray(V)
    assert getattr(xpx.at(taken)[1:4], name)(2.0, copy=False).tolist() == want.tolist() == taken.tolist()
    chosen = getattr(xpx.at(tr.asarray(V))[tr.asarray(V) > 3], name)(2.0)
    assert chosen.tolist() == getattr(xpx.at(V.copy())[V > 3], name)(2.0).tolist()
    traced = tr.compile(lambda v: getattr(xpx.at(v * 1.0)[1:4], name)(2.0))
    assert traced(kept).tolist() == want.tolist()


def test_gradients_pass_updates() -> None:
    slope = grad(lambda v: tr.sum(xpx.at(v * 1.0)[1:3].multiply(5.0)))(tr.asarray(V))
    assert slope.tolist() == [1.0, 5.0, 5.0, 1.0, 1.0, 1.0]
    slope = grad(lambda v: tr.sum(xpx.apply_where(v > 3, v, lambda x: x**2, lambda x: -x)))(tr.asarray(V))
    assert slope.tolist() == [-1.0, -1.0, -1.0, 8.0, 10.0, 12.0]


FUNCTIONS: dict[str, Any] = {
    "apply_where": lambda a: xpx.apply_where(a(V) > 2, a(V), lambda v: v * 2, lambda v: -v),
    "apply_where with a number": lambda a: xpx.apply_where(a(V) > 2, a(V), lambda v: v * 2, fill_value=0.0),
    "argpartition": lambda a: xpx.argpartition(a(V), 2),
    "atleast_nd": lambda a: xpx.atleast_nd(a(V), ndim=3),
    "cov": lambda a: xpx.cov(a(A)),
    "create_diagonal": lambda a: xpx.create_diagonal(a(V)),
    "isclose": lambda a: xpx.isclose(a(V), a(V + 1e-9)),
    "isin": lambda a: xpx.isin(a(V), a(V[:2])),
    "kron": lambda a: xpx.kron(a(A), a(A)),
    "nan_to_num": lambda a: xpx.nan_to_num(a(np.array([np.nan, 1.0]))),
    "one_hot": lambda a: xpx.one_hot(a(np.array([0, 2])), 3),
    "pad": lambda a: xpx.pad(a(A), 1),
    "partition": lambda a: xpx.partition(a(V[::-1].copy()), 2),
    "setdiff1d": lambda a: xpx.setdiff1d(a(V), a(V[:2])),
    "sinc": lambda a: xpx.sinc(a(V / 3)),
    "union1d": lambda a: xpx.union1d(a(V), a(V[:2] + 9)),
    "lazy_apply": lambda a: xpx.lazy_apply(lambda v: v * 2, a(V)),
    "lazy_apply of NumPy's function": lambda a: xpx.lazy_apply(np.sort, a(V), as_numpy=True),
}


def test_functions_agree_with_those_of_numpy() -> None:
    failed = {name: failure(f, lambda x: [x], 1e-12) for name, f in FUNCTIONS.items()}
    assert not any(failed.values()), {k: v for k, v in failed.items() if v}
    assert int(xpx.nunique(tr.asarray(V))) == 6
    assert xpx.default_dtype(tr) == tr.float64
