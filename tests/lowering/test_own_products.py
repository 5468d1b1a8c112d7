"""Products of a matrix with itself: BLAS computes one triangle, and the other one has the same numbers."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from native_kernels import has_form
from tenferro_einsum import einsum
from tenferro_runtime.lowering import lower
from tenferro_runtime.passes import optimise
from tenferro_tensor import Spec, catalog, get_backend
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Call, Foreign, everything, verify

FORMS: dict[str, Any] = {
    "columns": lambda x: (y := tr.exp(x)).mT @ y,
    "rows": lambda x: (y := tr.exp(x)) @ y.mT,
    "columns of an argument": lambda x: x.mT @ x,
    "every other row": lambda x: x[::2].mT @ x[::2],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("form", FORMS)
def test_products_with_oneself(form: str, dtype: str) -> None:
    f = FORMS[form]
    program = optimise(tr.trace(f, Spec((tr.dim("n"), tr.dim("m")), np.dtype(dtype))))
    function = verify(lower(program))
    assert [s.symbol[1:] for s in everything(function.body) if isinstance(s, Foreign)] == ["syrk"]
    native = get_backend("cpu").whole(function, bare=True) if has_form(catalog.exp, dtype) else None
    for shape in ((7, 5), (5, 7), (1, 1), (40, 30), (0, 3), (3, 0)):
        x = np.random.default_rng(0).standard_normal(shape)
        x = (x + 1j * x[::-1] if dtype.startswith("c") else x).astype(dtype)
        wanted = np.asarray(f(tr.asarray(x)))
        ways = [interpret(function, [x], shape)[0]]
        if native is not None:
            ways.append(native.run(shape, x))
        for got in ways:
            np.testing.assert_allclose(got, wanted, rtol=1e-4 if dtype in ("float32", "complex64") else 1e-12)


def test_two_matrices_are_multiplied_as_such() -> None:
    x = Spec((tr.dim("n"), tr.dim("n")), np.dtype("float64"))
    for f in (lambda x: x @ x, lambda x: x.mT @ (x + 1.0), lambda x: x[1:].mT @ x[:-1]):
        function = lower(optimise(tr.trace(f, x)))
        assert [s.symbol[1:] for s in everything(function.body) if isinstance(s, Foreign)] == ["gemm"]


@pytest.mark.parametrize(("n", "whole"), [(4, False), (16, True)])
def test_large_contractions_have_a_kernel_of_their_own(n: int, whole: bool) -> None:
    """It reads operands where they lie, in whatever order of axes."""
    a, b = np.random.default_rng(0).standard_normal((2, n, n, n, n))
    program = optimise(tr.trace(lambda a, b: einsum("abcd,dbef->acef", a, b) + 1.0, tr.asarray(a), tr.asarray(b)))
    function = verify(lower(program))
    assert any(isinstance(s, Call) for s in everything(function.body)) == whole
    np.testing.assert_allclose(interpret(function, [a, b])[0], np.einsum("abcd,dbef->acef", a, b) + 1.0, atol=1e-12)


@pytest.mark.parametrize("factor", ["itself", "another"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("view", ["flipped", "repeated", "every other"])
def test_a_single_row_or_column_of_any_stride(view: str, axis: int, factor: str) -> None:
    """BLAS reads forward only: a row that is reversed, or that repeats one number, is copied first."""

    def f(x: Any) -> Any:
        v = tr.sum(x, axis=axis, keepdims=True)
        if view == "flipped":
            v = tr.flip(v)
        elif view == "repeated":
            v = tr.broadcast_to(tr.sum(v, keepdims=True), v.shape)
        else:
            v = v[::2, ::2]
        return (v.mT @ v if factor == "itself" else v.mT @ (v * 2.0)) if axis == 0 else v @ v.mT

    x = np.random.default_rng(0).standard_normal((5, 7))
    program = optimise(tr.trace(f, Spec((tr.dim("n"), tr.dim("m")), np.dtype("float64"))))
    function = verify(lower(program))
    wanted = np.asarray(f(tr.asarray(x)))
    native = get_backend("cpu").whole(function, bare=True)
    np.testing.assert_allclose(interpret(function, [x], x.shape)[0], wanted, rtol=1e-12)
    if native is not None:
        np.testing.assert_allclose(native.run(x.shape, x), wanted, rtol=1e-12)
