"""Truncated decompositions: what is kept, ranks given, computed and found, and gradients with the discarded part."""

from typing import Any

import numpy as np
import pytest

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import (
    DTYPES,
    adjoint,
    assert_derivatives,
    gradient,
    hermitian,
    inner,
    numbers,
    with_values,
)
from tenferro_ad import grad
from tenferro_tensor import Spec, tensor
from tenferro_tensor import functions as fn
from tenferro_tensor_core import ArgumentError, NumericalError, TenferroError

KINDS = ["float64", "complex128"]
SHAPES = [(5, 3), (3, 5), (4, 4)]


def rebuilt(parts):
    u, s, vh = parts
    return (u * s[..., None, :]) @ vh


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_tolerances_find_the_rank(shape, dtype):
    x = with_values(shape, (4, 2, 0.5), dtype, seed=1) if min(shape) == 3 else hermitian((-4, 2, 0.5, 0.1), dtype, 1)
    for rtol, atol, rank in ((0.2, None, 2), (None, 3.0, 1), (0.2, 3.0, 1), (None, 9.0, 0)):
        options: dict[str, Any] = {"rtol": rtol, "atol": atol}
        assert la.svd_trunc(x, **options).S.shape == (rank,)
        stack = la.svd_trunc(np.stack([x, 0.3 * x]), **options)
        assert stack.U.shape == (2, shape[0], rank)
        if shape[0] == shape[1]:
            assert la.eigh_trunc(x, **options).eigenvalues.shape == (rank,)
    q, r, p = la.qr_trunc(x, rtol=1e-3)
    np.testing.assert_allclose(q @ r, x[:, p.numpy()], atol=1e-5)
    assert la.qr_trunc(x, atol=9.0).Q.shape == (shape[0], 0)
    low = with_values(shape, (2, 1, 0, 0)[: min(shape)], dtype, seed=2)
    assert [la.qr_trunc(low, rtol=1e-4).Q.shape[1], la.svd_trunc(low, rtol=1e-4).S.shape[0]] == [2, 2]


@pytest.mark.parametrize("which", ["magnitude", "largest", "smallest"])
def test_eigh_trunc_keeps_the_leading_pairs(which):
    x = hermitian((-3, -1, 0.5, 2), "complex128", seed=4)
    w, v = la.eigh_trunc(np.stack([x, x]), 3, which=which)
    wanted: list[float] = {"magnitude": [-3.0, 2, -1], "largest": [2.0, 0.5, -1], "smallest": [-3.0, -1, 0.5]}[which]
    np.testing.assert_allclose(w[1], wanted)
    np.testing.assert_allclose(x @ v[1].numpy(), v[1].numpy() * w[1].numpy(), atol=1e-12)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives(shape, dtype):
    x, v, w = (numbers(i, shape, dtype) for i in (5, 6, 7))
    assert_derivatives(lambda y: inner(rebuilt(la.svd_trunc(y, 2)), w), x, v)
    assert_derivatives(lambda y: inner(rebuilt(la.svd_trunc(y, rtol=0.4)), w), x, v)

    def pivoted(y):
        found = la.qr_trunc(y, 2)
        return inner(found.Q @ found.R, w)

    assert_derivatives(pivoted, x, v)
    if shape[0] == shape[1]:
        for which in ("magnitude", "largest"):

            def low(y, which=which):
                values, vectors = la.eigh_trunc(y, 2, which=which)
                return inner((vectors * fn.sin(values)) @ adjoint(vectors), w)

            assert_derivatives(low, x, v)


def test_the_discarded_part_matters():
    x, w = with_values((6, 5), (3, 2, 1.9, 1, 0.5), seed=8), numbers(9, (6, 6))

    def loss(y):
        u = la.svd_trunc(y, 2).U
        return inner(u @ u.mT, w)

    assert_derivatives(loss, x, numbers(10, (6, 5)), rtol=1e-5)
    u, s, vh = la.svd_trunc(x, 2)
    alone = np.asarray(u * s) @ np.asarray(vh)
    assert np.linalg.norm(gradient(loss, x) - gradient(loss, alone)) > 0.1 * np.linalg.norm(gradient(loss, x))


@pytest.mark.parametrize("dtype", KINDS)
def test_degenerate_cuts(dtype):
    w = numbers(11, (5, 5), dtype)
    x = with_values((5, 5), (3, 2, 2, 1, 0.5), dtype, seed=12)

    def low(y, k, right=w):
        return inner(rebuilt(la.svd_trunc(y, k)), right)

    for k in (1, 3):
        assert_derivatives(lambda y, k=k: low(y, k), x, numbers(13, (5, 5), dtype), rtol=1e-6)
    with pytest.raises((la.DegenerateError, la.GaugeError)):
        gradient(lambda y: low(y, 2), x)
    h = hermitian((-2, -1, 0.5, 1, 2), dtype, seed=14)
    for k in (1, 3):
        with pytest.raises(la.DegenerateError, match=f"eigh_trunc: the cut after {k} eigenvalues separates"):
            gradient(lambda y, k=k: fn.sum(la.eigh_trunc(y, k).eigenvalues ** 3), h)
    assert np.isfinite(gradient(lambda y: fn.sum(la.eigh_trunc(y, 2).eigenvalues ** 3), h)).all()


@pytest.mark.parametrize("dtype", KINDS)
def test_a_found_rank_stays_where_derivatives_are_limits(dtype):
    """Values that are equal make `grad` run beside the point, where the values near zero exceed the tolerance."""
    x, w = with_values((4, 4), (2, 2, 1, 0), dtype, seed=15), numbers(16, (4, 4), dtype)

    def loss(y):
        u, s, vh = la.svd_trunc(y, rtol=1e-9)
        q = la.orth(y, 1e-9)
        return inner((u * s**3) @ vh, w) + inner(q @ adjoint(q), w)

    left, right = x @ numbers(17, (4, 4), dtype), numbers(18, (4, 4), dtype) @ x
    g = gradient(loss, x)
    for v in (left, right):  # along these the rank is 3
        h = 1e-4
        up, down = (float(loss(tensor(x + t * v))) for t in (h, -h))
        assert (g.conj() * v).real.sum() == pytest.approx((up - down) / (2 * h), rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(30, 12), (9, 25), (10, 10)])
def test_sketches_find_the_leading_triplets(shape, dtype):
    values = np.concatenate([[3, 2, 1.5], 0.2 * 0.5 ** np.arange(min(shape) - 3)])
    x = with_values(shape, values, dtype, seed=20)
    stack = np.stack([x, 2 * x])
    tol = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    exact = rebuilt(la.svd_trunc(stack, 3)).numpy()
    for options in ({"key": tr.random.key(3)}, {"oversample": 0}, {"sketch": numbers(21, (shape[1], 5))}):
        found = la.svd_random(stack, 3, iterations=12, **options)
        np.testing.assert_allclose(found.S[1], 2 * values[:3], rtol=tol)
        np.testing.assert_allclose(rebuilt(found), exact, atol=10 * tol)
    np.testing.assert_array_equal(la.svd_random(x, 3).U.numpy(), la.svd_random(x, 3, key=tr.random.key(0)).U.numpy())
    assert la.svd_random(x, 0).U.shape == (shape[0], 0)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(8, 5), (5, 9)])
def test_derivatives_of_sketches_are_those_of_the_triplets(shape, dtype):
    x, v, w = with_values(shape, (3, 2, 0.3, 0.2, 0.1), dtype, 22), numbers(23, shape, dtype), numbers(24, shape, dtype)
    c = numbers(25, shape[:1] * 2, dtype)

    def loss(y):
        u, s, vh = la.svd_random(y, 2, iterations=20)
        return inner((u * fn.sin(s)) @ vh, w) + inner(u @ adjoint(u), c) + fn.sum(s**3)

    assert_derivatives(loss, x, v)
    equal = with_values(shape, (3, 2, 2, 1, 0), dtype, 26)
    for k, text in ((2, "is not separated"), (5, "S.4. = .* is zero")):
        with pytest.raises(la.DegenerateError, match=text):
            gradient(lambda y, k=k: inner((lambda u: u @ adjoint(u))(la.svd_random(y, k).U), c), equal)


def test_sketches_of_programs():
    n, m = tr.dim("n"), tr.dim("m")

    def low(x, seed):
        return rebuilt(la.svd_random(x, 2, key=tr.random.key(seed), iterations=8))

    specs = Spec((n, m), np.dtype("float64")), Spec((), np.dtype("int64"))
    program = tr.trace(low, *specs, examples={"n": 6, "m": 5})
    for shape in ((6, 5), (4, 9)):
        x = with_values(shape, (3, 2, 0.1, 0.1, 0.1)[: min(shape)], seed=27)
        np.testing.assert_allclose(program.run(x, np.int64(7))[0], rebuilt(la.svd_trunc(x, 2)), atol=1e-9)


def test_bad_sketches_are_refused():
    for given, text in (
        ({"k": 3}, "k=3 is not between"),
        ({"k": 1, "oversample": -1}, "oversample=-1"),
        ({"k": 1, "sketch": np.ones((3, 2))}, "needs as many rows"),
        ({"k": 2, "sketch": np.ones((2, 1))}, "fewer than k=2"),
    ):
        options: dict[str, Any] = dict(given)
        with pytest.raises(TenferroError, match=text):
            la.svd_random(np.eye(2), options.pop("k"), **options)


def test_ranks_of_programs():
    n, m = tr.dim("n"), tr.dim("m")
    spec = Spec((n, m), np.dtype("float64"))

    def low(x, tolerance):
        h = x @ x.mT
        w, v = la.eigh_trunc(h, rtol=tolerance**2)
        q, r, _ = la.qr_trunc(x, tr.count_nonzero(la.svdvals(x) > tolerance * 3))
        return tr.sum(tr.sin(rebuilt(la.svd_trunc(x, rtol=tolerance)))) + tr.sum((v * w) @ v.mT) + tr.sum(q @ r**2)

    program = tr.trace(lambda x, t: (low(x, t), grad(low)(x, t)), spec, Spec((), np.dtype("float64")))
    for shape in ((5, 3), (3, 4)):
        x = with_values(shape, (3, 1, 0.1), seed=19)
        for tolerance in (0.5, 0.2, 0.01):
            given = tensor(x), tr.asarray(tolerance)
            for found, wanted in zip(program.run(*given), (low(*given), grad(low)(*given)), strict=True):
                np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_empty_matrices_and_bad_calls():
    assert la.svd_trunc(np.ones((0, 3)), rtol=0.1).Vh.shape == (0, 3)
    assert la.eigh_trunc(np.ones((2, 0, 0)), rtol=0.1).eigenvalues.shape == (2, 0)
    assert la.qr_trunc(np.ones((3, 0)), 0).R.shape == (0, 0)
    for f in (la.svd_trunc, la.eigh_trunc, la.qr_trunc):
        with pytest.raises(ArgumentError, match=f"{f.__name__}: pass k, the rank to keep"):
            f(np.eye(2))
        with pytest.raises(ArgumentError, match=f"{f.__name__}: pass either k or tolerances"):
            f(np.eye(2), 1, rtol=0.1)
        with pytest.raises(ArgumentError, match=f"{f.__name__}: k=3 is not between"):
            f(np.eye(2), 3)
        with pytest.raises(ArgumentError, match=f"{f.__name__}: rtol=-1"):
            f(np.eye(2), rtol=-1)
        with pytest.raises(NumericalError, match="nan at index"):
            f(np.full((2, 2), np.nan), rtol=0.1)
