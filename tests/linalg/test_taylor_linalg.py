"""Taylor mode through linear algebra, Fourier transforms and contractions, against nested jvp."""

from typing import Any

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from taylor_checks import check_taylor
from tenferro_ad import laplacian, taylor
from tenferro_einsum import einsum
from tenferro_fft import fft, irfft, rfft
from thorough import tries

R = np.random.default_rng(0)
A, B, C = R.normal(size=(4, 4)), R.normal(size=(4, 2)), R.normal(size=(5, 3))
S = A @ A.T + 4 * np.eye(4)
Z = A + 1j * R.normal(size=(4, 4))
H = Z @ Z.conj().T + 4 * np.eye(4)


def thin(x: Any) -> Any:
    return tl.svd(x, full_matrices=False)


CASES: dict[str, Any] = {
    "solve": (tl.solve, (S, B)),
    "solve of complex": (tl.solve, (Z, B + 0j)),
    "solve_triangular": (tl.solve_triangular, (S, B)),
    "inv": (tl.inv, (S,)),
    "inv of a stack": (tl.inv, (np.stack([S, 2 * S]),)),
    "slogdet": (tl.slogdet, (S,)),
    "det": (tl.det, (S,)),
    "det of singular": (tl.det, (np.stack([A[0], A[1], A[0] + A[1], A[3]]),)),
    "spectral_function": (lambda x: tl.spectral_function(x, lambda w: tr.log(w) * w), (S,)),
    "nuclear norm": (lambda x: tl.matrix_norm(x, ord="nuc"), (C,)),
    "cholesky": (tl.cholesky, (S,)),
    "cholesky of complex": (tl.cholesky, (H,)),
    "qr": (tl.qr, (C,)),
    "qr of wide": (tl.qr, (C.T,)),
    "qr of complex": (tl.qr, (Z,)),
    "eigh": (tl.eigh, (S,)),
    "eigh of complex": (tl.eigh, (H,)),
    "eigvalsh": (tl.eigvalsh, (S,)),
    "svd": (thin, (C,)),
    "svd of complex": (thin, (Z[:, :3],)),
    "full svd": (tl.svd, (C,)),
    "svdvals": (tl.svdvals, (C,)),
    "pinv": (tl.pinv, (C,)),
    "vector_norm": (tl.vector_norm, (C,)),
    "fft": (fft, (Z,)),
    "rfft": (rfft, (A,)),
    "irfft": (lambda x: irfft(x, n=6), (Z,)),
    "contraction": (lambda a, b, c: einsum("ij,jk,kl->il", a, b, c), (A, S, B)),
    "diagonal": (lambda a: einsum("ii->i", a), (A,)),
    "inner product": (lambda a, b: einsum("ij,ij->", a, b), (A, S)),
    "outer product of complex": (lambda a, b: einsum("i,j->ij", a, b), (Z[0], Z[1])),
}


@pytest.mark.parametrize("name", CASES)
def test_against_nested_jvp(name: str) -> None:
    f, xs = CASES[name]
    # Terms of a spectral function are as many as orders of its directions: k! of order k.
    check_taylor(f, xs, tries(4, 5) if name == "spectral_function" else tries(5, 6), rtol=1e-7)


@pytest.mark.parametrize("name", ["solve", "cholesky", "eigh", "fft", "contraction"])
def test_compiled(name: str) -> None:
    f, xs = CASES[name]
    check_taylor(tr.compile(lambda *xs: f(*xs)), xs, 2, rtol=1e-8)


def test_equal_values() -> None:
    x, d = np.diag([1.0, 1.0, 3.0]), R.normal(size=(3, 3))
    d = d + d.T
    # The first derivative follows the perturbation; no second one is defined by the rule.
    (slopes,) = taylor(lambda x: tl.eigh(x).eigenvalues, (x,), ([d],))[1]
    np.testing.assert_allclose(np.sort(slopes.numpy()[:2]), np.linalg.eigvalsh(d[:2, :2]))
    with pytest.raises(tl.DegenerateError, match="second"):
        taylor(tl.eigh, (x,), ([d, None],))


def test_functions_that_do_not_depend_on_the_choice_of_vectors() -> None:
    """At equal values their higher derivatives are limits beside the point, as those of jvp are."""
    x = np.diag([1.0, 1.0, 3.0, 4.0])
    check_taylor(lambda x: tl.spectral_function(x, tr.exp), (x,), 3, rtol=1e-6)
    check_taylor(lambda x: tl.spectral_function(x, tr.exp).sum(), (x,), 2, rtol=1e-6)
    f = laplacian(lambda x: tl.spectral_function(x, tr.exp).sum())
    assert f(x).item() == pytest.approx(f(x + np.diag([1e-5, 0.0, 0.0, 0.0])).item(), rel=1e-4)
