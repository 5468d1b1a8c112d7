"""Calls in float16 and bfloat16, and the comparison of their results."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_tensor_core import DType, dtype, finfo

NARROW: Final = ("float16", "bfloat16")


def bits(x: Any) -> tuple[DType, tuple[int, ...], bytes]:
    """What must be equal where nothing may differ."""
    host = np.asarray(x.numpy() if hasattr(x, "numpy") else x)
    return host.dtype, host.shape, host.tobytes()


def close(x: Any, y: Any, units: float, narrow: DType) -> bool:
    """Whether arrays differ by so many rounding units of a narrow type; beyond its range there are infinities."""
    x, y = (np.asarray(v.numpy() if hasattr(v, "numpy") else v).astype(complex) for v in (x, y))
    y = np.where(np.abs(y) > finfo(narrow).max, np.sign(y.real) * np.inf, y)
    size = np.abs(y[np.isfinite(y)]).max(initial=1e-3)
    return x.shape == y.shape and bool(np.all((x == y) | (np.abs(x - y) <= units * finfo(narrow).eps * size)))


def require_alike(got: Iterable[Any], want: Iterable[Any], what: str, sums: bool = True) -> None:
    """The same bits; where float32 itself may differ in its last place (sums), one rounding unit apart."""
    for x, y in zip(got, want, strict=True):
        if bits(x) != bits(y):
            kind = bits(x)[0]
            assert sums and bits(y)[0] == kind, (what, x, y)
            assert close(x, y, 1, kind if kind.itemsize == 2 else dtype("float16")), (what, x, y)


def chain(x: Any, y: Any) -> tuple[Any, ...]:
    """Steps of which each has one answer; no product meets a sum, which XLA contracts where float16 is in hardware."""
    z = x * y / (1.5 + tr.abs(x)) + tr.sqrt(tr.abs(y)) / 3.0
    picked = tr.where(x > y, x, y * 1.3)
    return z, picked, tr.concat([x, z, picked[::-1]]), tr.sort(x), tr.max(z, axis=0) * tr.sign(y)


def sums(x: Any, y: Any) -> tuple[Any, ...]:
    """Steps that add many numbers, or call a function."""
    z = tr.exp(-x * y)
    return tr.sqrt(tr.sum(z * z, axis=0)) + tr.max(z), (z @ y.T)[::2], tr.cumulative_sum(z, axis=1), tr.mean(z * x)
