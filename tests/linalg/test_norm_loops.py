"""Norms in programs that run as one native function: what the kernel gives, near the ends of the range, too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_linalg as la
import tenferro_runtime as tr
from tenferro_runtime.lowering import lower
from tenferro_tensor import Spec
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import verify
from whole_functions import Native

NORMS: dict[str, Callable[[Any, float], Any]] = {
    "all axes": lambda x, p: la.vector_norm(x, axis=None, ord=p),
    "first": lambda x, p: la.vector_norm(x, axis=0, ord=p),
    "second": lambda x, p: la.vector_norm(x, axis=1, ord=p),
    "outer": lambda x, p: la.vector_norm(x, axis=(0, 2), ord=p),
    "each axis": lambda x, p: la.vector_norm(x, axis=(0, 1, 2), ord=p),
    "slice": lambda x, p: la.vector_norm(x[0], ord=p),
    "gradient": lambda x, p: ad.grad(lambda x: tr.sum(la.vector_norm(x, axis=1, ord=p)))(x),
}


def check(f: Any, x: np.ndarray[Any, Any], *, open_: bool = True) -> None:
    shape = tuple(map(tr.dim, "nmk"[: x.ndim])) if open_ else x.shape
    program = tr.trace(f, Spec(shape, x.dtype))
    function = lower(program)
    assert "call" not in str(function)
    verify(function)
    sizes = {str(d): n for d, n in zip(shape, x.shape, strict=True)}
    want = [np.asarray(v) for v in program.run(tr.asarray(x))]
    tolerance = 1e-13 if x.dtype.char in "dD" else 1e-5
    status, found, _ = Native(function).run(x, sizes=sizes)
    assert status == 0
    for got in (interpret(function, [x], tuple([sizes[name] for name in function.sizes])), found):
        for a, w in zip(got, want, strict=True):
            assert a.dtype == w.dtype
            np.testing.assert_allclose(a, w, rtol=tolerance, atol=0)


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("p", [2, 3, 0.5, -1, -2])
@pytest.mark.parametrize("norm", NORMS)
def test_powers_and_axes(norm: str, p: float, dtype: str, open_: bool) -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(0.5, 2.0, (3, 4, 2)).astype(dtype)
    if x.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    check(lambda x: NORMS[norm](x, p), x, open_=open_)


@pytest.mark.parametrize("p", [2, 3, -1])
@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e-320, 0.0, np.inf, np.nan])
def test_ends_of_the_range(scale: float, p: float) -> None:
    for x in (np.array([3.0, -4.0]) * scale, np.array([3.0 * scale, 1.0, 0.5])):
        with np.errstate(over="ignore"):  # the kernel divides by the smallest element
            check(lambda x: la.vector_norm(x, ord=p), x)


@pytest.mark.parametrize("p", [2, 3, -1])
def test_no_elements(p: float) -> None:
    check(lambda x: la.vector_norm(x, ord=p), np.zeros(0))
    check(lambda x: la.vector_norm(x, axis=0, ord=p), np.zeros((0, 3)))
