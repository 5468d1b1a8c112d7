"""Kernels of one op, their meaning on NumPy, and units in the last place."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tenferro_cpu.native import Engine, available, engine
from tenferro_cpu.native.codegen.operations._ops import supported
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_tensor import Op, Primitive, Spec, catalog
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import finfo, load_bfloat16

DTYPES = {
    "b": ["bool"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "f": ["float32", "float64"],
    "c": ["complex64", "complex128"],
    "n": ["float16", load_bfloat16().name],  # which NumPy knows by name from here on
}
_REFERENCE = kernels(np, lambda: import_module("scipy.special"))
LONG = np.longdouble
EXTENDED = np.finfo(LONG).nmant > 60


def has_form(primitive: Primitive, *dtypes: Any) -> bool:
    """Whether this processor, at the vector level that is set, has machine code for a primitive."""
    return available() and supported(primitive, tuple(map(np.dtype, dtypes)), engine().host)


FUNCTIONS = pytest.mark.skipif(
    not has_form(catalog.exp, "float64"), reason="there is no machine code of functions at this vector level"
)


def one_op(op: Op, *dtypes: Any, engine: Engine | None = None) -> Elementwise:
    """The native kernel of an op."""
    return Elementwise(op, tuple(map(np.dtype, dtypes)), engine)


def reference(op: Op, ins: tuple[Spec, ...], out: Spec) -> Any:
    """The NumPy kernel of an op."""
    return _REFERENCE[op.primitive](ins, (out,), **op.params)


def meaning(op: Op, *arrays: Any) -> Any:
    """The result of an op, by NumPy."""
    ins = tuple([Spec(np.shape(x), x.dtype) for x in arrays])
    out = op.infer(*[Spec((), s.dtype) for s in ins])
    assert isinstance(out, Spec)
    with np.errstate(all="ignore"):
        return np.asarray(reference(op, ins, Spec((0,), out.dtype))(*arrays))


def ulps(y: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance from the exact result in units in the last place; 0 where that is not finite in the dtype of `y`."""
    info = np.finfo(y.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(y.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), info.tiny))
        error = np.abs(y.astype(LONG) - exact) / unit.astype(LONG)
    error = np.where(np.isfinite(rounded), error, 0.0)
    return np.where(np.isnan(error), np.inf, error).astype(float)


def values(rng: np.random.Generator, dtype: Any, shape: Any, special: bool = False) -> np.ndarray:
    """Random numbers of a dtype; `special` mixes infinities, NaN, zeros and subnormal numbers in."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        z = np.empty(shape, dtype)
        z.real, z.imag = values(rng, part, shape), values(rng, part, shape)
        return z
    x = np.asarray(rng.standard_normal(shape) * 3).astype(dtype)
    if special and x.size:
        limits = finfo(dtype)
        tiny = limits.smallest_normal
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny / 4, limits.max], dtype)
        flat = x.reshape(-1)
        chosen = rng.random(flat.size) < 0.3
        flat[chosen] = rng.choice(odd, chosen.sum())
    return x


def operands(rng: np.random.Generator, primitive: Primitive, dtype: Any, arity: int) -> list[np.dtype]:
    """Dtypes of the operands of an element-wise primitive."""
    return [np.dtype("bool") if i == primitive.chooser else np.dtype(dtype) for i in range(arity)]
