"""Pseudo-inverses, functions of eigenvalues and forward derivatives in native programs: as the kernels have them."""

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
from tenferro_tensor.loop_ir import Call, everything, verify
from whole_functions import Native


def check(f: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> None:
    """Open sizes, no kernel, and the values of single steps."""
    names = iter("abcdefgh")
    square = arrays[0].shape[-2] == arrays[0].shape[-1]
    shapes = []
    for x in arrays:
        *batch, m, n = map(tr.dim, (next(names) for _ in x.shape))
        shapes.append((*batch, n, n) if square else (*batch, m, n))
    shapes = [shapes[0]] * len(arrays)
    program = tr.trace(f, *[Spec(shape, x.dtype) for shape, x in zip(shapes, arrays, strict=True)])
    function = lower(program)
    verify(function)
    sizes = {str(d): n for d, n in zip(shapes[0], arrays[0].shape, strict=True)}
    assert not [s for s in everything(function.body) if isinstance(s, Call) and not s.recourse]
    want = [np.asarray(v) for v in program.run(*map(tr.asarray, arrays))]
    tolerance = 1e-9 if arrays[0].dtype.char in "dD" else 1e-2
    status, found, _ = Native(function).run(*arrays, sizes=sizes, call=lambda *_: 1)
    assert status == 0
    for got in (interpret(function, arrays, tuple([sizes[name] for name in function.sizes])), found):
        for a, w in zip(got, want, strict=True):
            np.testing.assert_allclose(a, w, rtol=tolerance, atol=tolerance * np.abs(w).max(initial=1))


def matrix(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(8)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def loss(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def total(x: Any) -> Any:
        y = f(x)
        return tr.sum(tr.real(y * tr.conj(y)))

    return total


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("rtol", [None, 0.005, "array"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3)])
def test_pseudo_inverses(shape: tuple[int, ...], rtol: Any, dtype: str) -> None:
    x = matrix(shape, dtype)
    cut = (lambda x: tr.mean(tr.abs(x), axis=(-2, -1)) * 1e-3) if rtol == "array" else lambda x: rtol
    check(lambda x: la.pinv(x, rtol=cut(x)), x)
    check(ad.grad(loss(lambda x: la.pinv(x, rtol=cut(x)))), x)


def test_singular_values_below_the_cut_count_as_zero() -> None:
    u, _, vh = np.linalg.svd(matrix((5, 3)), full_matrices=False)
    x = (u * [2.0, 1.0, 1e-5]) @ vh
    check(lambda x: la.pinv(x, rtol=0.01), x)
    check(ad.grad(loss(lambda x: la.pinv(x, rtol=0.01))), x)


def test_a_rank_that_is_not_certain_is_reported() -> None:
    u, _, vh = np.linalg.svd(matrix((5, 3)), full_matrices=False)
    x = (u * [2.0, 1.0, 0.03]) @ vh
    program = tr.trace(ad.grad(loss(lambda x: la.pinv(x, rtol=0.01))), tr.asarray(x))
    with pytest.raises(la.RankError, match="lies within a factor of 10 of the cut"):
        interpret(lower(program), [x], ())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_functions_of_eigenvalues(shape: tuple[int, ...], dtype: str) -> None:
    x = matrix(shape, dtype)
    x = x + x.conj().swapaxes(-1, -2)
    for f in (tr.exp, tr.sin, lambda w: tr.exp(1j * w)):
        check(lambda x: la.spectral_function(x, f), x)  # noqa: B023


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_forward_derivatives(dtype: str) -> None:
    for f, shape in (
        (lambda x: la.eigh(x)[0], (4, 4)),
        (lambda x: tr.abs(la.eigh(x)[1]), (4, 4)),
        (la.svdvals, (4, 3)),
        (lambda x: tr.abs(la.svd(x, full_matrices=False)[0]), (4, 3)),
    ):
        x, dx = matrix(shape, dtype), matrix(shape, dtype)[::-1]
        check(lambda x, dx: ad.jvp(f, (x,), (dx,))[1], x, np.ascontiguousarray(dx))  # noqa: B023
