"""Fourier transforms in programs that run as one native function: loops give what the kernels give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_fft as fft
import tenferro_runtime as tr
from tenferro_fft.loops import _roots
from tenferro_runtime.lowering import lower
from tenferro_tensor import Spec
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Call, everything, verify
from whole_functions import Native

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "fft": fft.fft,
    "ifft": lambda x: fft.ifft(x, norm="ortho"),
    "fftn": fft.fftn,
    "ifftn": lambda x: fft.ifftn(x, axes=(1, 0)),
    "columns": lambda x: fft.fft(x, axis=0),
    "rfft": lambda x: fft.rfft(tr.real(x)),
    "irfft": lambda x: fft.irfft(x, n=2 * x.shape[-1]),
    "rfft_columns": lambda x: fft.rfft(tr.imag(x), axis=0),
    "irfft_columns": lambda x: fft.irfft(x, n=2 * x.shape[0], axis=0),
}


def array(shape: tuple[int, ...], dtype: str = "complex128") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def loss(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def total(x: Any) -> Any:
        y = f(x)
        return tr.sum(tr.real(y * tr.conj(y) * y))

    return total


def kernels(function: Any) -> int:
    """How many statements of a function, those of branches included, are calls of kernels."""
    return sum(isinstance(s, Call) for s in everything(function.body))


@pytest.mark.parametrize("result", ["values", "gradients"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_with_open_sizes(name: str, dtype: str, result: str) -> None:
    f, x = FUNCTIONS[name], array((8, 24), dtype)
    if result == "gradients":
        f = ad.grad(loss(f))
    spec = Spec((tr.dim("m", 1), tr.dim("n", 2)), np.dtype(dtype))
    sizes = {"m": 8, "n": 24}
    tolerance = 1e-14 if dtype == "complex128" else 1e-5
    program = tr.trace(f, spec)
    function = lower(program)
    verify(function)
    want = [np.asarray(v) for v in program.run(tr.asarray(x))]
    values = tuple([sizes[name] for name in function.sizes])
    status, found, _ = Native(function).run(x, sizes=sizes, call=lambda *_: 1)  # no kernel is called
    assert status == 0
    meant = interpret(function, [x], values) if dtype == "complex128" else found  # the nests do not depend on it
    for got in (meant, found):
        for a, w in zip(got, want, strict=True):
            assert a.dtype == w.dtype
            np.testing.assert_allclose(a, w, rtol=tolerance, atol=tolerance * np.abs(w).max())


@pytest.mark.parametrize("n", [4, 8, 12, 20, 36, 60, 64, 100, 120, 128, 240, 1000, 1024, 4096])
def test_lengths_that_are_products_of_small_primes(n: int) -> None:
    x = array((3, n))
    assert _roots.fits(n)
    for f in (fft.fft, fft.ifft):
        function = lower(tr.trace(f, tr.asarray(x)))
        assert kernels(function) == 0
        (found,) = Native(function)(x)
        want = np.asarray(f(tr.asarray(x)))
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-15 * np.abs(want).max())


@pytest.mark.parametrize("shape", [(5,), (2,), (7, 12), (12, 1), (14,), (131072,)])
def test_other_lengths_are_left_to_the_kernel(shape: tuple[int, ...]) -> None:
    x = array(shape)
    program = tr.trace(fft.fftn, tr.asarray(x))
    function = lower(program)
    verify(function)
    assert kernels(function) == 1
    open_ = lower(tr.trace(fft.fftn, Spec(tuple([tr.dim(f"n{k}", 1) for k in range(x.ndim)]), x.dtype)))
    called: list[int] = []
    sizes = {f"n{k}": n for k, n in enumerate(shape)}
    status, _, _ = Native(open_).run(x, sizes=sizes, call=lambda *_: called.append(1) or 0)
    assert (status, called) == (0, [1])


@pytest.mark.parametrize("n", [2, 6, 9, 7, 26, 15])
def test_real_transforms_of_other_lengths(n: int) -> None:
    x = array((n,)).real
    spec = Spec((tr.dim("n", 1),), x.dtype)
    function = lower(tr.trace(fft.rfft, spec))
    verify(function)
    called: list[int] = []
    status, _, _ = Native(function).run(x, sizes={"n": n}, call=lambda *_: called.append(1) or 0)
    assert (status, called) == (0, [1])


def test_loops_share_the_roots_of_unity() -> None:
    def step(_: Any, x: Any) -> Any:
        return fft.ifft(0.5j * fft.fft(x))

    x = array((48,))
    program = tr.trace(lambda x: tr.fori_loop(0, 5, step, x), Spec((tr.dim("n", 1),), x.dtype))
    function = lower(program)
    assert str(function).count("cos(") == 1
    np.testing.assert_allclose(
        interpret(function, [x], (48,))[0], (0.5j) ** 5 * x, rtol=0, atol=1e-15 * np.abs(x).max()
    )


def test_deterministic_programs_keep_the_bits_of_kernels() -> None:
    x = array((3, 96))
    f = tr.compile(lambda x: fft.fft(x), deterministic=True)
    for _ in range(2):
        found = np.asarray(f(tr.asarray(x)))
        tr.fusion.wait()
        np.testing.assert_array_equal(found, np.asarray(fft.fft(tr.asarray(x))))
