"""NumPy's functions on tensors are functions of the namespace: on every kind of value, with NumPy's arguments."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, variable
from tenferro_tensor import Tensor
from tenferro_tensor_core import ForeignFunctionError, UnsupportedError

A = np.random.default_rng(0).normal(size=(3, 3))
V = A[0].copy()
EYE = np.eye(3)

EVERYWHERE: dict[str, Any] = {
    "sin": np.sin,
    "absolute": np.absolute,
    "arctan2": lambda x: np.arctan2(x, A),
    "power": lambda x: np.power(np.abs(x), 2.5),
    "array on the left": lambda x: A * x - np.float64(2) ** x + A @ x,
    "list beside": lambda x: np.add(x, [1.0, 2.0, 3.0]) * np.multiply([1.0, 2.0, 3.0], x),
    "dtype": lambda x: np.add(x, 1, dtype=np.float32),
    "ufunc outer": lambda x: np.multiply.outer(x, V),
    "ufunc reduce": lambda x: np.add.reduce(x) + np.multiply.reduce(x, axis=None) + np.maximum.reduce(x, axis=1),
    "ufunc accumulate": np.add.accumulate,
    "mean": np.mean,
    "mean over rows": lambda x: np.mean(x, 0, keepdims=True),
    "mean of some": lambda x: np.mean(x, axis=1, where=A > 0),
    "mean in float32": lambda x: np.mean(x, dtype=np.float32),
    "sum of some": lambda x: np.sum(x, where=A > 0, initial=3.0),
    "max of some": lambda x: np.max(x, where=A > 0, initial=-3.0),
    "var": lambda x: np.var(x, ddof=1) + np.var(x, correction=1) + np.std(x, axis=0),
    "all and any": lambda x: np.logical_and(np.all(x > -9), np.any(x > 0, axis=0)),
    "concatenate": lambda x: np.concatenate([x, A]),
    "stack": lambda x: np.stack((x, x), -1),
    "sum of elements": lambda x: np.sum(np.stack([x[0, 1], x[1, 2] * 3.0])),
    "where": lambda x: np.where(A > 0, x, 0.0),
    "clip": lambda x: np.clip(x, -0.5, 0.5) + np.clip(x, min=-0.2),
    "cumsum": lambda x: np.cumsum(x),
    "cumsum of rows": lambda x: np.cumsum(x, axis=0),
    "transpose": np.transpose,
    "reshape": lambda x: np.reshape(x, (-1,)),
    "squeeze": lambda x: np.squeeze(x[None]),
    "trace": np.trace,
    "diagonal": np.diagonal,
    "take": lambda x: np.take(x, [0, 2]) + np.take(x, [0, 2], axis=0)[0, :2],
    "split": lambda x: np.split(x, 3)[1],
    "pad": lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=3.0),
    "dot": lambda x: np.dot(x, V) + np.dot(A, x)[0] + np.inner(x, V) + np.vdot(x, x),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, A),
    "tensordot": lambda x: np.tensordot(x, A, 1),
    "linalg.solve": lambda x: np.linalg.solve(x + 5 * EYE, V),
    "linalg.norm": lambda x: np.linalg.norm(x) + np.linalg.norm(x, axis=1) + np.linalg.norm(x, 2),
    "linalg.svd": lambda x: np.linalg.svd(x, compute_uv=False) + np.linalg.svd(x)[1],
    "linalg.eigh": lambda x: np.linalg.eigh(x + x.T)[0],
    "fft.fft": lambda x: np.fft.fft(x, axis=0),
    "round": lambda x: np.round(x, 2),
    "zeros_like": np.zeros_like,
    "full_like": lambda x: np.full_like(x, 3.0),
    "roll": lambda x: np.roll(x, 1),
    "broadcast": lambda x: np.broadcast_arrays(x[0], A)[0] + np.broadcast_to(x, (2, 3, 3)),
    "sort": lambda x: np.sort(x, axis=0) + np.argsort(x, axis=-1),
    "count_nonzero": np.count_nonzero,
}


def apply_compiled(f: Any) -> Any:
    return tr.compile(lambda x: f(x))(tr.asarray(A))


KINDS: dict[str, Any] = {
    "concrete": lambda f: f(tr.asarray(A)),
    "compiled": apply_compiled,
    "batched": lambda f: tr.vmap(f)(tr.asarray(A)[None])[0],
    "variable": lambda f: f(variable(A)).detach(),
    "dual": lambda f: jvp(f, (A,), (np.ones_like(A),))[0],
}


@pytest.mark.parametrize("kind", KINDS)
def test_functions_mean_those_of_the_namespace(kind: str) -> None:
    for name, f in EVERYWHERE.items():
        got, want = KINDS[kind](f), np.asarray(f(A))
        assert isinstance(got, Tensor), name
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5 if want.dtype == "f4" else 1e-10, err_msg=name)
        assert got.dtype == want.dtype and got.shape == want.shape, name


@pytest.mark.parametrize(
    "name", ["sin", "mean of some", "concatenate", "sum of elements", "cumsum", "dot", "einsum", "linalg.solve", "var"]
)
def test_gradients_flow(name: str) -> None:
    f = EVERYWHERE[name]
    slope = grad(lambda x: np.sum(f(x) * 0.5))(A)
    step = np.zeros_like(A)
    step[1, 2] = 1e-6
    expected = (np.sum(f(A + step)) - np.sum(f(A - step))) / 4e-6
    np.testing.assert_allclose(float(slope[1, 2]), expected, rtol=1e-6)


UNKNOWN: dict[str, Any] = {
    "sliding_window_view": lambda v: np.lib.stride_tricks.sliding_window_view(v, 2),
    "array2string": np.array2string,
    "own ufunc": np.frompyfunc(abs, 1, 1),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_functions_without_a_counterpart(name: str) -> None:
    f = UNKNOWN[name]
    np.testing.assert_array_equal(f(tr.asarray(V)), f(V))
    for kind in (tr.compile(lambda v: f(v)), lambda v: tr.vmap(f)(v[None]), lambda v: f(variable(v))):
        with pytest.raises(ForeignFunctionError, match="has no counterpart of it; use"):
            kind(tr.asarray(V))


def test_results_that_are_no_arrays() -> None:
    x = tr.asarray(A)
    assert np.shape(x) == (3, 3) and np.ndim(x) == 2 and np.size(x, 0) == 3 and not np.iscomplexobj(x)
    assert np.may_share_memory(x, x[1:]) and not np.shares_memory(x, x + 0)
    part: Any = x[0, :1]
    assert "0.1257" in np.array2string(part) and np.result_type(x, np.float32) == np.float64
    assert tr.compile(lambda v: v * np.ndim(v))(V).tolist() == V.tolist()


def test_out() -> None:
    x, target = tr.asarray(V), np.zeros(3)
    assert np.exp(x, out=target) is target
    np.testing.assert_allclose(target, np.exp(V))
    assert np.sum(tr.asarray(A), axis=0, out=target) is target
    np.testing.assert_allclose(target, A.sum(0))
    target += x
    np.testing.assert_allclose(target, A.sum(0) + V)
    with pytest.raises(ForeignFunctionError, match=r"write a = a \+ x instead of a \+= x"):
        grad(lambda v: np.sum(np.exp(v, out=np.zeros(3))))(V)
    with pytest.raises(ForeignFunctionError, match=r"write a = a \+ x instead of a \+= x"):
        grad(lambda v: np.sum(np.zeros(3).__iadd__(v)))(V)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.exp(x, out=np.zeros(3, int))


def test_arguments_without_a_meaning_here_are_named() -> None:
    with pytest.raises(ForeignFunctionError, match=r"np\.sort was called on .* 'order' .*call tr\.sort"):
        np.sort(variable(V), order="f0")


def test_numpy_answers_what_the_namespace_refuses_of_concrete_tensors() -> None:
    x = tr.asarray(V)
    assert np.where(x > 0, "up", "down").tolist() == np.where(V > 0, "up", "down").tolist()
    values, where = np.unique(x, return_index=True)
    assert isinstance(values, Tensor) and where.tolist() == np.unique(V, return_index=True)[1].tolist()
    with pytest.raises(ValueError, match="no fields"):
        np.sort(x, order="f0")


def test_functions_that_make_arrays_make_them_of_concrete_tensors() -> None:
    assert type(np.atleast_2d(tr.asarray(V))) is np.ndarray
    assert grad(lambda v: np.sum(np.atleast_2d(v)))(V).tolist() == [1.0] * 3


def test_views() -> None:
    pairs = np.arange(6.0) - 2.0
    x = tr.asarray(pairs)
    for dtype in ("f8", "c16", "i8", "u1", "f4"):
        np.testing.assert_array_equal(np.asarray(x.view(dtype)), pairs.view(dtype))
    np.testing.assert_array_equal(np.asarray(x.view("c16").view("f8")), pairs)
    assert isinstance(x.view("c16"), Tensor) and type(x.view("V8")) is np.ndarray  # type: ignore[comparison-overlap]
    slope = grad(lambda v: tr.sum(tr.abs(v.view("c16")) ** 2))(pairs)
    np.testing.assert_allclose(np.asarray(slope), 2 * pairs)
    np.testing.assert_array_equal(np.asarray(tr.compile(lambda v: v.view("c16"))(x)), pairs.view("c16"))
    for kind in (tr.compile(lambda v: v.view("i8")), lambda v: variable(v).view("i8")):
        with pytest.raises(UnsupportedError, match=r"float64\[6\] cannot be viewed as int64"):
            kind(x)


class Foreign:
    """An array of a library that knows tensors."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> str:
        return "foreign"

    def __array_function__(self, *args: Any, **kwargs: Any) -> str:
        return "foreign"


def test_arrays_of_others_have_their_say() -> None:
    foreign: Any = Foreign()
    assert np.add(tr.asarray(V), foreign) == "foreign" == np.concatenate([tr.asarray(V), foreign])
