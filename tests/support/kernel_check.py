"""Runs the kernel of a primitive on raw arrays and compares it with inference and an independent oracle."""

from typing import Any

import numpy as np

from tenferro_tensor import HOST, REGISTRY, Spec, get_backend

TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def spec_of(x: Any) -> Spec:
    """The spec of a raw array in main memory."""
    return Spec(np.shape(x), x.dtype, HOST)


def kernel_of(primitive: Any, ins: tuple[Spec, ...], params: dict[str, Any]) -> tuple[Any, Spec]:
    """The kernel of the CPU backend specialised for operand specs, and the inferred output spec."""
    get_backend("cpu")
    out = primitive.infer(*ins, **params)
    make = REGISTRY.find("kernel", primitive, "cpu")
    assert make is not None, f"{primitive} has no kernel"
    return make(ins, (out,), **params), out


def agree(actual: Any, out: Spec, expected: Any, tolerance: float | None = None) -> None:
    """The result has the inferred shape and dtype exactly, and the expected elements."""
    assert isinstance(actual, (np.ndarray, np.generic)), type(actual)
    assert actual.shape == out.shape, f"shape {actual.shape}, inferred {out}"
    assert actual.dtype == out.dtype, f"dtype {actual.dtype}, inferred {out}"
    expected = np.asarray(expected)
    if out.inexact:
        rtol = TOLERANCE[out.dtype.name] if tolerance is None else tolerance
        np.testing.assert_allclose(np.asarray(actual), expected.astype(out.dtype), rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(actual, expected)


def strided(x: Any) -> Any:
    """The same elements in memory with gaps, in Fortran order, the last axis reversed; an array instead of a scalar."""
    if not x.ndim:
        return np.asarray(x)
    wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype, order="F")
    view = wide[tuple(slice(None, None, 2) for _ in x.shape)][..., ::-1]
    view[...] = x
    return view


def check(primitive: Any, oracle: Any, *arrays: Any, tolerance: float | None = None, **params: Any) -> None:
    """The kernel agrees with ``oracle(*arrays, **params)`` on the arrays and on strided views of the same elements."""
    kernel, out = kernel_of(primitive, tuple(map(spec_of, arrays)), params)
    expected = oracle(*arrays, **params)
    before = [a.copy() for a in arrays]
    agree(kernel(*arrays), out, expected, tolerance)
    agree(kernel(*map(strided, arrays)), out, expected, tolerance)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b, err_msg="the kernel changed an operand")


def sample(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...] = (), low: float = -3, high: float = 3) -> Any:
    """Random elements of a dtype in an interval; integers of both signs where there are any."""
    dt = np.dtype(dtype)
    if dt.kind == "b":
        return rng.integers(0, 2, shape).astype(dt) if shape else np.bool_(rng.integers(0, 2))
    if dt.kind in "iu":
        least = 0 if dt.kind == "u" else int(np.ceil(low))
        x = rng.integers(max(least, int(np.ceil(low))), int(high) + 1, shape)
    elif dt.kind == "c":
        x = rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
    else:
        x = rng.uniform(low, high, shape)
    return np.asarray(x).astype(dt) if shape else np.asarray(x).astype(dt)[()]
