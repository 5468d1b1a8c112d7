"""Recorded products: the short way of ``@`` says what the long way says, the first time and every later one."""

import gc
import sys

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, no_grad, variable
from tenferro_tensor_core import ShapeError

SHAPES = [
    ((2, 2), (2, 2)), ((2, 3), (3, 4)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((6, 2, 2), (6, 2, 2)),
    ((6, 2, 3), (3, 2)), ((5, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_products_and_their_derivatives(left, right, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(dtype) + (1j * rng.standard_normal(s) if dtype[0] == "c" else 0)
            for s in (left, right))  # fmt: skip
    x, y = tr.asarray(a), tr.asarray(b)
    weights = tr.asarray(rng.standard_normal((a @ b).shape))
    step = 1e-6

    def loss(p, q):
        return tr.sum(tr.real(p @ q) * weights)

    for _ in range(5):
        vx, vy = variable(x), variable(y)
        z = vx @ vy
        np.testing.assert_allclose(np.asarray(z.detach()), a @ b, rtol=1e-12, atol=1e-12)
        tr.sum(tr.real(z) * weights).backward()
        for v, raw, only in ((vx, a, grad(loss, 0)(x, y)), (vy, b, grad(loss, 1)(x, y))):
            np.testing.assert_allclose(np.asarray(v.grad), np.asarray(only), rtol=1e-12, atol=1e-12)
            assert v.grad.shape == raw.shape
        if a.size and b.size:
            moved = a.copy()
            moved.flat[0] += step
            slope = float(loss(tr.asarray(moved), y) - loss(x, y)) / step
            assert abs(np.asarray(vx.grad).flat[0].real - slope) < 1e-4


def test_operands_of_other_kinds():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3, 3))
    vx = variable(tr.asarray(a))
    for _ in range(3):
        np.testing.assert_allclose((vx @ b).detach(), a @ b)
        np.testing.assert_allclose((b @ vx).detach(), b @ a)
        np.testing.assert_allclose((vx @ tr.asarray(b)).detach(), a @ b)
        np.testing.assert_allclose((tr.asarray(b) @ vx).detach(), b @ a)
        with no_grad():
            assert not (vx @ vx).requires_grad
        with pytest.raises(TypeError):
            vx @ 2.0
        with pytest.raises(TypeError):
            vx @ None
        with pytest.raises(ShapeError, match="matmul cannot multiply"):
            vx @ tr.ones((2, 2))
        mixed = vx @ tr.asarray(b.astype("float32"))
        np.testing.assert_allclose(mixed.detach(), a @ b.astype("float32"))


def test_second_derivatives_go_through_products_of_recorded_values():
    a = tr.asarray(np.random.default_rng(2).standard_normal((3, 3)))

    def f(x):
        return tr.sum(x @ x @ x)

    once = grad(lambda x: tr.sum(grad(f)(x) * a))
    first = np.asarray(once(a))
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(once(a)), first)
    step, e = 1e-6, np.zeros((3, 3))
    e[0, 1] = step
    slope = (float(tr.sum(grad(f)(a + e) * a)) - float(tr.sum(grad(f)(a - e) * a))) / (2 * step)
    assert abs(first[0, 1] - slope) < 1e-5


def test_no_reference_leaks():
    x = variable(tr.asarray(np.eye(2)))
    y = tr.asarray(np.eye(2))
    for _ in range(50):
        x @ x, x @ y, y @ y
    gc.collect()
    before = [sys.getrefcount(v) for v in (x, y, x.value, y.spec, x.node)]
    for _ in range(20_000):
        x @ x, x @ y, y @ y
    assert [sys.getrefcount(v) for v in (x, y, x.value, y.spec, x.node)] == before
