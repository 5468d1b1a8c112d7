"""Roots, polynomials of roots and fits, against NumPy, and their derivatives."""

import numpy as np
import pytest

import tenferro_runtime as tr
from array_oracles import assert_same
from tenferro_ad import check_grads, grad
from tenferro_runtime import _namespace
from tenferro_tensor_core import ArgumentError, ShapeError, TracingError

RNG = np.random.default_rng(3)
X, Y = np.sort(RNG.normal(size=8)), RNG.normal(size=8)
PLANES = RNG.normal(size=(8, 2))


@pytest.mark.parametrize(
    "p", [[1.0, -6.0, 11.0, -6.0], [2.0, 0.0, 1.0], [0.0, 0.0, 3.0, 1.0, 0.0, 0.0], [1.0, 2j, 3.0], [5.0], [0.0, 0.0]]
)
def test_roots(p):
    found, wanted = tr.roots(tr.asarray(p)), np.roots(p)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(np.sort_complex(found.numpy()), np.sort_complex(wanted), atol=1e-12)


def test_derivatives_of_roots():
    p = np.asarray([1.3, -2.0, 0.7, 0.9])
    check_grads(lambda p: tr.sum(tr.abs2(tr.roots(p))), (p,))
    traced = tr.compile(lambda p: tr.sum(tr.abs2(tr.roots(p))))
    np.testing.assert_allclose(grad(traced)(tr.asarray(p)), grad(lambda p: tr.sum(tr.abs2(tr.roots(p))))(tr.asarray(p)))
    with pytest.raises(TracingError, match="pass strip_zeros=False"):
        tr.compile(lambda p: tr.roots(p, strip_zeros=True))(tr.asarray(p))
    with pytest.raises(ShapeError, match="roots takes a vector"):
        tr.roots(tr.ones((2, 2)))


@pytest.mark.parametrize(
    "x", [[1.0, 2.0, -3.0], [1j, -1j], [1j, 2.0], [3], [[2.0, 1.0], [0.5, 3.0]], [[0.0, 1], [-1, 0]]]
)
def test_polynomials_of_roots(x):
    assert_same(tr.poly(tr.asarray(x)), np.poly(x))


def test_derivatives_of_polynomials_of_roots():
    assert tr.poly(tr.ones(0)).tolist() == [1.0]
    check_grads(tr.poly, (np.asarray([1.0, 2.0, -3.0]),))
    check_grads(tr.poly, (np.asarray([[2.0, 1.0], [0.5, 3.0]]),))
    assert_same(tr.compile(tr.poly)(tr.asarray([1.0, 2.0])), np.poly([1.0, 2.0]))
    with pytest.raises(ShapeError, match="a vector of roots or a square matrix"):
        tr.poly(tr.ones((2, 3)))


@pytest.mark.parametrize("y", [Y, PLANES, Y + 1j], ids=["vector", "matrix", "complex"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits(y, weighted):
    w = np.linspace(1.0, 2.0, 8) if weighted else None
    given = tr.asarray(X), tr.asarray(y)
    t = None if w is None else tr.asarray(w)
    assert_same(tr.polyfit(*given, 3, w=t), np.polyfit(X, y, 3, w=w), rtol=1e-9)
    assert_same(tr.compile(lambda x, y: tr.polyfit(x, y, 3, w=t))(*given), np.polyfit(X, y, 3, w=w), rtol=1e-9)
    coefficients, residuals, rank, s, rcond = tr.polyfit(*given, 2, w=t, full=True)
    if y.dtype.kind == "f":
        wanted = np.polyfit(X, y, 2, w=w, full=True)
        assert_same([coefficients, residuals, s], [wanted[0], wanted[1], wanted[3]], rtol=1e-9)
        assert (int(rank), float(rcond)) == (wanted[2], wanted[4])
        for cov in (True, "unscaled"):
            assert_same(tr.polyfit(*given, 2, w=t, cov=cov), np.polyfit(X, y, 2, w=w, cov=cov), rtol=1e-9)


def test_derivatives_of_fits():
    w = np.linspace(1.0, 2.0, 8)
    check_grads(lambda x, y, w: tr.polyfit(x, y, 2, w=w), (X, Y, w))
    check_grads(lambda x, y: tr.polyfit(x, y, 1, cov=True), (X, Y))


def test_fits_that_points_do_not_determine():
    with pytest.warns(np.exceptions.RankWarning, match="hardly determine"):
        tr.polyfit(tr.asarray([1.0, 1.0, 1.0]), tr.asarray([1.0, 2.0, 3.0]), 2)
    for f, text in (
        (lambda: tr.polyfit(tr.asarray(X), tr.asarray(Y), -1), "a degree of at least 0"),
        (lambda: tr.polyfit(tr.asarray(X), tr.asarray(Y[:3]), 1), "as many values y"),
        (lambda: tr.polyfit(tr.asarray(X), tr.asarray(Y), 1, w=[1.0]), "one weight for each point"),
        (lambda: tr.polyfit(tr.asarray(X[:2]), tr.asarray(Y[:2]), 1, cov=True), "more than 2 points"),
    ):
        with pytest.raises((ArgumentError, ShapeError), match=text):
            f()


def test_without_the_linalg_family(monkeypatch):
    monkeypatch.setattr(_namespace, "_module_of", lambda name: None)
    monkeypatch.setattr(_namespace, "_families", {})
    for f in (lambda: tr.roots(tr.asarray([1.0, 2.0])), lambda: tr.polyfit(tr.asarray(X), tr.asarray(Y), 1)):
        with pytest.raises(tr.MissingFamilyError, match="pip install tenferro-linalg"):
            f()
