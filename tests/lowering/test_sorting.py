"""Sorting and searching in loops: the bits of the kernels, for lines of any length."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from native_kernels import FUNCTIONS
from tenferro_runtime.lowering import lower
from tenferro_tensor import Spec, catalog
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Call, everything, verify
from whole_functions import Native

DTYPES = ["bool", "int8", "uint16", "int64", "float32", "float64"]


def numbers(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    """Many equal ones; some NaN among floating-point ones."""
    rng = np.random.default_rng(17)
    x = rng.integers(0, 9, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(shape) < 0.2] = np.nan
    return x


def check(f: Callable[..., Any], *arrays: np.ndarray[Any, Any], open_: bool) -> None:
    names = iter("abcdefgh")
    shapes = [tuple([tr.dim(next(names)) if open_ else n for n in x.shape]) for x in arrays]
    program = tr.trace(f, *[Spec(shape, x.dtype) for shape, x in zip(shapes, arrays, strict=True)])
    function = lower(program)
    verify(function)
    sizes = {str(d): n for shape, x in zip(shapes, arrays, strict=True) for d, n in zip(shape, x.shape, strict=True)}
    values = tuple([sizes[name] for name in function.sizes])
    want = [np.asarray(v) for v in program.run(*map(tr.asarray, arrays))]
    status, found, _ = Native(function).run(*arrays, sizes=sizes, call=lambda *_: 1)
    assert status == 0
    for got in (interpret(function, arrays, values), found):
        for a, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, w, strict=True)


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_short_lines(dtype: str, descending: bool, open_: bool) -> None:
    def both_along_every_axis(x: Any) -> Any:
        return [f(x, axis=axis, descending=descending) for f in (tr.sort, tr.argsort) for axis in (0, 1, -1)]

    check(both_along_every_axis, numbers(dtype, 3, 20, 2), open_=open_)


def test_lines_of_one_element_and_none() -> None:
    for n in (0, 1, 2, 64):
        check(tr.argsort, numbers("float64", n), open_=True)


def test_large_arrays_keep_the_kernel() -> None:
    def calls(f: Callable[..., Any], spec: Spec) -> int:
        return sum(isinstance(s, Call) for s in everything(lower(tr.trace(f, spec)).body))

    f8 = np.dtype("float64")
    assert calls(tr.sort, Spec((91,), f8)) == 1
    assert calls(tr.sort, Spec((90,), f8)) == 0
    assert calls(tr.sort, Spec((3, 90), f8)) == 1
    assert calls(tr.sort, Spec((64,), np.dtype("complex128"))) == 1
    called: list[int] = []
    function = lower(tr.trace(tr.sort, Spec((tr.dim("n"),), f8)))
    for n in (90, 91):
        Native(function).run(np.ones(n), sizes={"n": n}, call=lambda *_: called.append(n) or 0)  # noqa: B023
    assert called == [91]


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_searches(dtype: str, side: str, open_: bool) -> None:
    for n in (1, 7, 40):
        edges, values = np.sort(numbers(dtype, n)), numbers(dtype, 4, 11)
        check(lambda x, v: tr.searchsorted(x, v, side=side), edges, values, open_=open_)


def test_deterministic_programs_have_the_order_of_zeros_of_the_kernel() -> None:
    x = np.array([0.0, -0.0] * 20 + [-1.0])
    f = tr.compile(lambda x: tr.fori_loop(0, 2, lambda i, x: tr.sort(-x), x), deterministic=True)
    for _ in range(2):
        found = np.asarray(f(tr.asarray(x)))
        tr.fusion.wait()
        assert found.tobytes() == np.sort(-np.sort(-x)).tobytes()


def test_searches_in_what_is_computed() -> None:
    edges, values = np.linspace(0.0, 3.0, 30), np.linspace(-1.0, 5.0, 40)
    check(lambda x, v: tr.searchsorted(x * 2.0, v - 1.0) + 1, edges, values, open_=True)
    check(lambda v: tr.searchsorted(tr.asarray([0.0, 1.0, 2.0]), v), values, open_=True)


@FUNCTIONS
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_logarithms_of_sums(reverse: bool) -> None:
    x = np.random.default_rng(2).standard_normal((4, 9))
    x[1, :3] = -np.inf
    n, m = tr.dim("n"), tr.dim("m")

    def f(x: Any) -> Any:
        return catalog.cumlogsumexp(x, axis=1, reverse=reverse)

    program = tr.trace(f, Spec((n, m), x.dtype))
    function = lower(program)
    verify(function)
    (want,) = program.run(tr.asarray(x))
    for (got,) in (interpret(function, [x], (4, 9)), Native(function)(x, sizes={"n": 4, "m": 9})):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-14)
