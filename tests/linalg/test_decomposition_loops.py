"""Decompositions and the tests of their derivatives in programs that run as one native function."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_linalg as la
import tenferro_runtime as tr
from tenferro_cpu.native import available
from tenferro_runtime.extension import TenferroError
from tenferro_runtime.lowering import lower
from tenferro_runtime.running import fusion
from tenferro_tensor import Spec
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import verify
from whole_functions import Native


def squares(*parts: Any) -> Any:
    return sum(tr.sum(tr.real(p * tr.conj(p)) ** 2) for p in parts)


def of_svd(x: Any) -> Any:
    u, s, vh = la.svd(x, full_matrices=False)
    return squares(u, s, vh)


def of_cut(x: Any) -> Any:
    u, s, vh = la.svd_trunc(x, 2)
    return squares(u, s, vh)


def of_qr(x: Any) -> Any:
    q, r = la.qr(x)
    return squares(q, r) + tr.sum(tr.real(q)) * tr.sum(tr.real(r))


VALUES: dict[str, Callable[[Any], Any]] = {
    "svd": lambda x: tuple(la.svd(x, full_matrices=False)),
    "full": lambda x: tuple(la.svd(x)),
    "svdvals": la.svdvals,
    "eigh": lambda x: tuple(la.eigh(x)),
    "eigvalsh": la.eigvalsh,
    "eig": lambda x: tuple(la.eig(x)),
    "eigvals": la.eigvals,
    "qr": lambda x: tuple(la.qr(x)),
    "complete": lambda x: tuple(la.qr(x, mode="complete")),
    "triangle": lambda x: la.qr(x)[1],
    "det": la.det,
    "expm": la.expm,
    "lu": lambda x: (*la.lu(x), *la.lu_factor(x)),
}
LOSSES: dict[str, Callable[[Any], Any]] = {
    "svd": of_svd,
    "cut": of_cut,
    "svdvals": lambda x: squares(la.svdvals(x)),
    "eigh": lambda x: squares(*la.eigh(x)),
    "eigvalsh": lambda x: squares(la.eigvalsh(x)),
    "qr": of_qr,
    "triangle": lambda x: squares(la.qr(x)[1]),
    "det": lambda x: squares(la.det(x)),
    "expm": lambda x: squares(la.expm(x)),
    "lu": lambda x: squares(*la.lu(x)[1:]),
}
SQUARE = ("eigh", "eigvalsh", "eig", "eigvals", "det", "expm")
CASES = [
    ((5, 5), "float64"), ((2, 3, 3), "complex128"), ((4, 10), "complex64"), ((6, 3), "float32"), ((20, 20), "float64"),
    ((3, 2, 4, 3), "float64"), ((2, 9, 9), "complex128"),
]  # fmt: skip


def matrices(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


@lru_cache(2)  # of the functions that many cases share; `fusion.wait` compiles all programs that are alive
def lowered(f: Callable[[Any], Any], shape: tuple[int, ...], dtype: str, native: bool) -> tuple[Any, Any, Any]:
    """The program of a function, its lowered form, and that as machine code."""
    program = tr.trace(f, Spec(shape, np.dtype(dtype)))
    function = lower(program)
    verify(function)
    return program, function, Native(function) if native else None


MOST_INTERPRETED = 200
"""Number of elements beyond which only machine code runs, if there is any: the interpreter takes long."""


def agree(f: Callable[[Any], Any], x: Any, *, native: bool = True) -> None:
    """Lowered and run, a function gives what its program gives; `native` code calls no kernel."""
    program, function, code = lowered(f, x.shape, x.dtype.name, native)
    tolerance = 1e-9 if x.dtype in (np.float64, np.complex128) else 3e-3
    want = [np.asarray(v) for v in program.run(tr.asarray(x))]
    found = [] if native and x.size > MOST_INTERPRETED else [interpret(function, (x,), ())]
    if native:
        found.append(code(x))
    for got in found:
        for a, w in zip(got, want, strict=True):
            np.testing.assert_allclose(a, w, rtol=tolerance, atol=tolerance * np.abs(w).max(initial=1))


@pytest.mark.parametrize(("shape", "dtype"), CASES)
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, shape: tuple[int, ...], dtype: str) -> None:
    if name in SQUARE and shape[-1] != shape[-2]:
        shape = (*shape[:-1], shape[-2])
    rotated = (name == "full" and shape[-1] != shape[-2]) or (name == "complete" and shape[-1] < shape[-2])
    single = name in ("eig", "eigvals") and dtype in ("float32", "complex64")
    agree(VALUES[name], matrices(shape, dtype), native=not (rotated or single))


@pytest.mark.parametrize(("shape", "dtype"), CASES)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str, shape: tuple[int, ...], dtype: str) -> None:
    if name in SQUARE and shape[-1] != shape[-2]:
        shape = (*shape[:-1], shape[-2])
    agree(ad.grad(LOSSES[name]), matrices(shape, dtype))


def of_expm(x: Any) -> Any:
    return ad.grad(lambda x: tr.sum(tr.real(la.expm(x))))(x)


@pytest.mark.parametrize("norm", [0.0, 0.01, 0.2, 0.7, 1.5, 3.0, 6.0, 12.0, 24.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_every_degree_and_number_of_squarings(norm: float, dtype: str) -> None:
    x = matrices((2, 5, 5), dtype)
    x = (x / np.abs(x).sum(axis=-1).max() * norm).astype(dtype)
    agree(la.expm, x)
    agree(of_expm, x)


def test_more_squarings_are_left_to_the_kernel() -> None:
    x = matrices((9, 9), "float64")
    x = np.stack([x, 100 * np.triu(x, 1)])
    program = tr.compile(la.expm)
    for _ in range(3):
        np.testing.assert_allclose(program(x), la.expm(x), rtol=1e-9)
        fusion.wait()


def gauge(x: Any) -> Any:
    """Of vectors of which no particular ones are determined where values are equal."""
    return tr.sum(la.eigh(x)[1] * tr.asarray(np.arange(9.0).reshape(3, 3)))


ODD = {
    "nan": (of_svd, np.full((3, 3), np.nan)),
    "infinite": (of_qr, np.full((3, 3), np.inf)),
    "equal": (gauge, np.eye(3)),
    "two equal": (gauge, np.diag([1.0, 1.0, 2.0])),
    "kink": (lambda x: tr.sum(la.svdvals(x)), np.diag([1.0, 0.0, 2.0])),
    "signs": (lambda x: la.svd(x)[0][0, 2] * la.svd(x)[2][2, 1], np.diag([1.0, 0.0, 2.0])),
    "cut": (lambda x: squares(la.svd_trunc(x, 1)[0]), np.eye(3)),
    "dependent": (of_qr, np.ones((3, 3))),
    "triangle": (lambda x: squares(la.qr(x)[1]), np.ones((3, 2))),
    "invariant": (lambda x: tr.sum(la.eigh(x)[0] ** 2), np.eye(3)),
    "singular": (lambda x: la.det(x), np.ones((3, 3))),
}


@pytest.mark.parametrize("name", ODD)
def test_the_kernel_decides_about_equal_values_and_dependent_columns(name: str) -> None:
    f, x = ODD[name]
    value = tr.asarray(x)
    program = tr.trace(ad.grad(f), value)
    function = lower(program)
    try:
        want = [np.asarray(v) for v in program.run(value)]
    except TenferroError as cause:
        with pytest.raises(type(cause), match=re.escape(str(cause)[:60])):
            interpret(function, (x,), ())
    else:
        np.testing.assert_allclose(interpret(function, (x,), ())[0], want[0], atol=1e-12)


def test_second_derivatives_look_at_gaps() -> None:
    f = ad.grad(lambda x: tr.sum(ad.grad(LOSSES["eigh"])(x) ** 2))
    agree(f, matrices((4, 4), "float64"))
    x = np.diag([1.0, 1.0 + 1e-9, 2.0])
    program = tr.trace(f, tr.asarray(x))
    with pytest.raises(TenferroError, match="gap") as cause:
        program.run(tr.asarray(x))
    with pytest.raises(type(cause.value), match=re.escape(str(cause.value)[:60])):
        interpret(lower(program), (x,), ())


@pytest.mark.skipif(not available(), reason="no machine code here")
@pytest.mark.parametrize("name", ["svd", "cut", "eigh", "qr"])
def test_compiled_gradients_are_one_native_function(name: str) -> None:
    f = tr.compile(ad.value_and_grad(LOSSES[name]))
    for shape in ((4, 4), (6, 6), (6, 6)):
        x = tr.asarray(matrices(shape, "float64"))
        for _ in range(2):
            (value, found), (expected, want) = f(x), ad.value_and_grad(LOSSES[name])(x)
            fusion.wait()
            np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-9)
            np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-8, atol=1e-9)
    assert f.explain(x).form == "runs as one native function"
    with pytest.raises(TenferroError, match="nan"):
        f(tr.asarray(np.full((6, 6), np.nan)))
