"""Programs as loop nests: what `interpret` makes of them is what the program gives step by step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_einsum as te
import tenferro_runtime as tr
from tenferro_runtime.lowering import lower
from tenferro_runtime.lowering._lower import written
from tenferro_runtime.lowering._lowering import Lowering
from tenferro_runtime.lowering._values import Numbers
from tenferro_tensor import tensor
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import verify
from whole_functions import Native

RNG = np.random.default_rng(7)


def real(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def definite(n: int) -> Any:
    x = real(n, n)
    return x @ x.T + n * np.eye(n)


def cholesky(a: Any) -> Any:
    """By rows, each element by a masked product of two rows."""
    n = a.shape[0]
    k = tr.arange(n)

    def row(a: Any, i: Any) -> Any:
        def column(a: Any, j: Any) -> Any:
            known = tr.sum(tr.where(k < j, a[i] * a[j], 0.0))
            return a.at[i, j].set(tr.where(j < i, (a[i, j] - known) / a[j, j], a[i, j])), None

        a, _ = tr.scan(column, a, tr.arange(n))
        return a.at[i, i].set(tr.sqrt(a[i, i] - tr.sum(tr.where(k < i, a[i] * a[i], 0.0)))), None

    return tr.scan(row, a, tr.arange(n))[0]


def jacobi(x: Any, y: Any) -> Any:
    def step(both: Any, _: None) -> Any:
        x, y = both
        y = y.at[1:-1].set((x[:-2] + x[1:-1] + x[2:]) / 3)
        x = x.at[1:-1].set((y[:-2] + y[1:-1] + y[2:]) / 3)
        return (x, y), None

    return tr.scan(step, (x, y), None, length=6)[0]


def heat(u: Any) -> Any:
    def step(u: Any, _: None) -> Any:
        inner = u[1:-1, 1:-1]
        inner = inner + 0.1 * (u[2:, 1:-1] - 2 * inner + u[:-2, 1:-1]) + 0.1 * (u[1:-1, 2:] - 2 * inner + u[1:-1, :-2])
        return u.at[1:-1, 1:-1].set(inner), tr.sum(u)

    return tr.scan(step, u, None, length=5)


def exchanged(x: Any, y: Any) -> Any:
    return tr.scan(lambda both, i: ((both[1], both[0] + both[1] * i), both[0][0]), (x, y), tr.arange(5.0))


def plainly_exchanged(x: Any, y: Any) -> Any:
    return tr.scan(lambda both, i: ((both[1], both[0]), both[0] + both[1][::-1]), (x, y), tr.arange(5))


def turned(x: Any, y: Any, z: Any) -> Any:
    return tr.scan(lambda c, i: ((c[1], c[2], c[0]), None), (x, y, z), tr.arange(4))[0]


def overlapping(x: Any) -> Any:
    def step(x: Any, i: Any) -> Any:
        x = x.at[1:].set(x[:-1] * 0.5)
        x = x.at[::2].add(x[::-1][::2])
        return x, x[i]

    return tr.scan(step, x, tr.arange(4))


def growing(x: Any) -> Any:
    return tr.while_loop(lambda s: s[1] < 7, lambda s: (s[0] * 1.5 + 1, s[1] + 1), (x, tr.asarray(0)))


def bounded(x: Any) -> Any:
    return tr.while_loop(lambda s: s[0] < 1e9, lambda s: (tr.sum(s[1]), s[1] * 2), (tr.sum(x), x), max_steps=5)


def chosen(x: Any) -> Any:
    def step(x: Any, i: Any) -> Any:
        return tr.cond(i % 2 == 0, lambda x: x.at[i].set(x[i] * 2), lambda x: x, x), x[i]

    return tr.scan(step, x, tr.arange(6))


def branches(x: Any) -> Any:
    def step(x: Any, i: Any) -> Any:
        return tr.switch(i, [lambda x: x + 1, lambda x: x[::-1], lambda x: x.at[0].set(7.0)], x), i

    return tr.scan(step, x, tr.arange(-1, 4))


def kalman(a: Any, h: Any, q: Any, r: Any, z: Any) -> Any:
    def step(state: Any, z: Any) -> Any:
        x, p = state
        x, p = a @ x, a @ p @ a.T + q
        gain = p @ h.T / (h @ p @ h.T + r)[0, 0]
        x, p = x + gain @ (z - h @ x), p - gain @ h @ p
        return (x, p), x

    n = a.shape[0]
    return tr.scan(step, (tr.zeros(n), tr.eye(n)), z)


def shapes(x: Any) -> Any:
    return (
        tr.sum(x, axis=0), tr.sum(x, axis=1), tr.max(x, axis=0), tr.argmax(x, axis=1), tr.argmin(x, axis=0),
        tr.cumulative_sum(x, axis=1), tr.cumulative_prod(x, axis=0), tr.prod(x), tr.concat([x, x[::-1]], axis=1),
        tr.roll(x, 1, axis=0), tr.reshape(x.T, (-1,)), tr.flip(x), tr.any(x > 2, axis=0), tr.all(x < 2, axis=1),
    )  # fmt: skip


def products(x: Any) -> Any:
    return x @ x + tr.exp(x).T, x @ x[0], x[0] @ x, x[0] @ x[1], tr.matmul(x[:, None, :], x[:, :, None])


def products_by_blas(x: Any, y: Any) -> Any:
    return (
        x @ y, x.T @ y, x @ y.T, x.T @ y.T, x[::2] @ y[:, ::3], x[::-1] @ y, tr.matmul(x[None], y[None]),
        tr.matmul(x[:, :1], y[:1, :]), tr.matmul(tr.reshape(x, (100, 4))[:, :1], y[:1, ::2]),
        tr.tensordot(tr.reshape(x, (4, 5, 20)), tr.reshape(y, (5, 4, 20)), axes=([0, 1], [1, 0])),
    )  # fmt: skip


def contracted(x: Any, y: Any, z: Any) -> Any:
    trace = ad.grad(lambda x: te.einsum("ii->", x * x))(x)
    return (
        te.einsum("ij,jk,kl->il", x, y, z), te.einsum("ii->i", x), te.einsum("ij,jk,ki->", x, y, z), trace,
        ad.grad(lambda x: tr.sum(te.einsum("ij,jk,ik->i", x, y, z) ** 2))(x), te.einsum("ii,jk->jk", x, y),
    )  # fmt: skip


def normalised(x: Any) -> Any:
    x = x - tr.mean(x, axis=1, keepdims=True)
    return x / tr.sqrt(tr.mean(x**2, axis=1, keepdims=True) + 1e-5)


def gradient(x: Any) -> Any:
    def loss(x: Any) -> Any:
        return tr.sum(tr.scan(lambda c, i: (tr.tanh(c * x[i] + 1.0) + c, None), x, tr.arange(5))[0])

    return ad.grad(loss)(x)


def picked(x: Any) -> Any:
    where = tr.asarray(np.array([3, 1, -1, 0] * 5))
    return x[where], x.at[where].add(1.0), tr.sort(x), x.at[where].max(0.0)


def mandelbrot(z: Any) -> Any:
    return tr.scan(lambda c, _: (c * c + z, tr.abs(c)), tr.zeros_like(z), None, length=4)


def counting(x: Any) -> Any:
    def step(bits: Any, byte: Any) -> Any:
        def one(c: Any, _: None) -> Any:
            return tr.where((c & 1) == 1, (c >> 1) ^ 0xA001, c >> 1), None

        return tr.scan(one, bits ^ byte, None, length=8)[0], bits

    return tr.scan(step, tr.asarray(0xFFFF), x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (cholesky, (definite(8),)),
    "jacobi": (jacobi, (real(30), real(30))),
    "heat": (heat, (real(8, 9),)),
    "exchanged": (exchanged, (real(20), real(20))),
    "exchanged numbers": (exchanged, (real(3), real(3))),
    "plainly exchanged": (plainly_exchanged, (real(20), real(20))),
    "turned": (turned, (real(20), real(20), real(20))),
    "overlapping": (overlapping, (real(21),)),
    "overlapping numbers": (overlapping, (real(5),)),
    "growing": (growing, (real(30),)),
    "bounded": (bounded, (real(30),)),
    "chosen": (chosen, (real(30),)),
    "chosen numbers": (chosen, (real(7),)),
    "branches": (branches, (real(20),)),
    "branches of numbers": (branches, (real(4),)),
    "kalman": (kalman, (real(4, 4) * 0.3, real(1, 4), np.eye(4) * 0.1, np.eye(1), real(9, 1))),
    "shapes": (shapes, (real(6, 7),)),
    "shapes of numbers": (shapes, (real(2, 3),)),
    "products": (products, (real(20, 20),)),
    "products of numbers": (products, (real(3, 3),)),
    **{
        f"products by BLAS of {dtype}": (products_by_blas, (real(20, 20).astype(dtype), real(20, 20).astype(dtype)))
        for dtype in ("float32", "float64", "complex64", "complex128")
    },
    "normalised": (normalised, (real(20, 30),)),
    "gradient": (gradient, (real(40),)),
    "contracted": (contracted, (real(20, 20), real(20, 20), real(20, 20))),
    "contracted numbers": (contracted, (real(3, 3), real(3, 3), real(3, 3))),
    "picked": (picked, (real(20),)),
    "mandelbrot": (mandelbrot, (real(20) + 1j * real(20),)),
    "counting": (counting, (RNG.integers(0, 256, 20),)),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_mean_what_the_program_means(name: str) -> None:
    f, arrays = CASES[name]
    values = tuple([tr.asarray(a) for a in arrays])
    program = tr.trace(f, *values)
    function = lower(program)
    verify(function)
    found = interpret(function, arrays, ())
    for got, want in zip(found, program.run(*values), strict=True):
        exact = got.dtype.itemsize // (2 if got.dtype.kind == "c" else 1) == 8 or got.dtype.kind not in "fc"
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-12 if exact else 1e-5, atol=1e-13 if exact else 1e-5)
        assert got.dtype == np.asarray(want).dtype


@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_what_the_interpreter_gives(name: str) -> None:
    f, arrays = CASES[name]
    function = lower(tr.trace(f, *map(tr.asarray, arrays)))
    if "call sort" in str(function):
        pytest.skip("its kernels are called by the entry")
    for got, want in zip(Native(function)(*arrays), interpret(function, arrays, ()), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_passes_over_nests_keep_every_bit(name: str) -> None:
    f, arrays = CASES[name]
    program = tr.trace(f, *[tr.asarray(a) for a in arrays])
    before, after = written(program), lower(program)
    verify(after)
    for got, want in zip(interpret(after, arrays, ()), interpret(before, arrays, ()), strict=True):
        assert got.tobytes() == want.tobytes()


def test_negative_indices_and_windows_need_no_tests_in_counted_loops() -> None:
    def f(x: Any) -> Any:
        return tr.scan(lambda x, i: (x.at[i].set(x[i - 1] + x[i + 1]), None), x, tr.arange(1, 29))[0]

    text = str(lower(tr.trace(f, tr.asarray(real(30)))))
    assert "select" not in text and "switch" not in text and "maximum" not in text


def test_updates_of_dead_values_need_no_memory() -> None:
    assert not lower(tr.trace(cholesky, tr.asarray(definite(8)))).temporaries
    assert not lower(tr.trace(jacobi, tr.asarray(real(30)), tr.asarray(real(30)))).temporaries


@pytest.mark.parametrize("first", [1, 2, 4])
def test_gradients_of_slices_keep_their_sizes_open(first: int) -> None:
    def f(u: Any) -> Any:
        def step(u: Any, _: None) -> Any:
            return u.at[1:-1].set(u[1:-1] * u[:-2] - u[2:]), tr.sum(u[first:-first] ** 3)

        u, rows = tr.scan(step, u, None, length=3)
        return tr.sum(u**2) + tr.sum(rows)

    gradient = ad.grad(f)
    program = tr.compile(gradient).program(tr.asarray(real(20)))
    function = lower(program)
    verify(function)
    assert function.sizes == ("n0",)
    native = Native(function)
    for n in (2, 3, 4, 5, 7, 8, 20):
        u = real(n)
        want = np.asarray(gradient(tr.asarray(u)))
        np.testing.assert_allclose(interpret(function, [u], (n,))[0], want, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(native.run(u, sizes={"n0": n})[1][0], want, rtol=1e-11, atol=1e-12)


def test_few_numbers_in_an_open_shape() -> None:
    x = real(2)
    f = tr.compile(lambda x: tr.reshape(tr.stack([tr.sum(x), tr.max(x), tr.min(x), x[0]]), (x.shape[0], -1)))
    program = f.program(x)
    assert program.symbolic
    function = lower(program)
    (want,) = program.run(tr.asarray(x))
    for got in (interpret(function, [x], (2,))[0], Native(function)(x, sizes={"n0": 2})[0]):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_of_the_best(dtype: str, name: str, axis: int) -> None:
    n, m = tr.dim("n"), tr.dim("m")
    f = lower(tr.trace(lambda x: getattr(tr, name)(x, axis=axis), tr.Spec((n, m), np.dtype(dtype))))
    native = Native(verify(f))
    for shape in ((1, 1), (3, 5), (40, 17), (5, 300)):
        x = (RNG.standard_normal(shape) * 2).astype(dtype)
        arrays = [x, np.zeros_like(x)]
        if x.dtype.kind == "f":
            odd = x.copy()
            odd[-1], odd[0, shape[1] // 2] = np.nan, np.nan
            arrays += [odd, np.full_like(x, np.inf), np.full_like(x, -np.inf), np.where(x < 0, -0.0, 0.0).astype(dtype)]
        for each in arrays:
            want = getattr(np, name)(each, axis=axis)
            np.testing.assert_array_equal(native(each, sizes=dict(zip("nm", shape, strict=True)))[0], want)
            if each.size < 100:
                np.testing.assert_array_equal(interpret(f, [each], shape)[0], want)


def test_constants_of_programs_that_are_gone_are_not_taken_for_others() -> None:
    """Expansions are forgotten while the program around them is lowered, and their memory is used again."""
    lowering = Lowering(lambda step: pytest.fail("no equation is lowered"))
    for k in range(100):
        found = lowering.constant(tensor(np.full((2,) * (k % 3), float(k))))
        assert isinstance(found, Numbers) and found.shape == (2,) * (k % 3)
        assert {e.value for e in found.elements} == {k}
