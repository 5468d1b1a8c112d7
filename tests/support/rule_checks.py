"""Checking derivatives of functions of tensors: against central differences, mode against mode, order by order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_ad import jvp, vjp
from tenferro_tensor import tensor

STEP = 1e-5
REAL_TOLERANCE = 2e-6


def pair(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """The pairing Re(conj(a) b) of cotangents with tangents."""
    return float(sum(np.sum(np.real(np.conj(x) * y)) for x, y in zip(a, b, strict=True)))


def random_like(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """A direction of the shape and kind of an array."""
    t = rng.normal(size=x.shape)
    return np.asarray(t + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else t)


def raw(x: Any) -> np.ndarray:
    return np.asarray(x.data)


def push(f: Callable[..., Any], xs: Sequence[np.ndarray], ts: Sequence[np.ndarray]) -> np.ndarray:
    return raw(jvp(f, tuple(map(tensor, xs)), tuple(map(tensor, ts)))[1])


def pull(f: Callable[..., Any], xs: Sequence[np.ndarray], g: np.ndarray) -> list[np.ndarray]:
    return [raw(v) for v in vjp(f, *map(tensor, xs))[1](tensor(g))]


def difference(f: Callable[..., Any], xs: Sequence[np.ndarray], ts: Sequence[np.ndarray]) -> np.ndarray:
    """The derivative of `f` along `ts` by central differences."""
    up, down = ([tensor(x + s * STEP * t) for x, t in zip(xs, ts, strict=True)] for s in (1, -1))
    return (raw(f(*up)) - raw(f(*down))) / (2 * STEP)


def close(got: Any, want: Any, what: str, tolerance: float) -> None:
    got, want = np.asarray(got), np.asarray(want)
    scale = 1 + np.max(np.abs(want), initial=0)
    np.testing.assert_allclose(got / scale, want / scale, rtol=0, atol=tolerance, err_msg=what)


def check_derivatives(f: Callable[..., Any], xs: Sequence[np.ndarray], order: int = 2, seed: int = 0) -> None:
    """Hold both modes against central differences and against each other, and so the derivatives of both.

    Args:
        f: a function of tensors to one tensor.
        xs: double-precision arguments.
        order: 1 or 2.
        seed: for the directions.
    """
    rng = np.random.default_rng(seed)
    xs = [np.asarray(x) for x in xs]
    ts = [random_like(rng, x) for x in xs]
    y = raw(f(*map(tensor, xs)))
    g = random_like(rng, y)

    pushed, pulled = push(f, xs, ts), pull(f, xs, g)
    assert pushed.shape == y.shape and pushed.dtype == y.dtype
    assert [(v.shape, v.dtype) for v in pulled] == [(x.shape, x.dtype) for x in xs]
    close(pushed, difference(f, xs, ts), "jvp against central differences", REAL_TOLERANCE)
    close(pair(pulled, ts), pair([g], [pushed]), "vjp against jvp", 1e-10)
    if order < 2:
        return

    for k in range(len(xs)):

        def gradient(*args: Any, k: int = k) -> Any:
            return vjp(f, *args)[1](tensor(g))[k]

        second = push(gradient, xs, ts)
        close(second, difference(gradient, xs, ts), f"jvp of vjp, argument {k}, against differences", REAL_TOLERANCE)
        w = random_like(rng, xs[k])
        close(pair(pull(gradient, xs, w), ts), pair([w], [second]), f"vjp of vjp, argument {k}, against jvp", 1e-9)

    def directional(*args: Any) -> Any:
        return jvp(f, args, tuple(map(tensor, ts)))[1]

    close(push(directional, xs, ts), difference(directional, xs, ts), "jvp of jvp against differences", REAL_TOLERANCE)


def check_single_precision(f: Callable[..., Any], xs: Sequence[np.ndarray], seed: int = 0) -> None:
    """Derivatives in single precision have its dtypes, and the values that double precision gives."""
    rng = np.random.default_rng(seed)
    small = {"f": np.float32, "c": np.complex64}
    low = [np.asarray(x).astype(small[np.asarray(x).dtype.kind]) for x in xs]
    ts = [np.asarray(random_like(rng, x)).astype(x.dtype) for x in low]
    y = raw(f(*map(tensor, low)))
    g = np.asarray(random_like(rng, y)).astype(y.dtype)
    assert y.dtype in (np.float32, np.complex64)

    def wide(v: np.ndarray) -> np.ndarray:
        return np.asarray(v).astype({"f": np.float64, "c": np.complex128}[v.dtype.kind])

    pushed, pulled = push(f, low, ts), pull(f, low, g)
    assert pushed.dtype == y.dtype
    assert [v.dtype for v in pulled] == [x.dtype for x in low]
    close(pushed, push(f, list(map(wide, low)), list(map(wide, ts))), "jvp in single precision", 5e-5)
    for got, want in zip(pulled, pull(f, list(map(wide, low)), wide(g)), strict=True):
        close(got, want, "vjp in single precision", 5e-5)
