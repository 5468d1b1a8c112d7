"""Equal and zero values in native programs: no kernel runs, unless it must raise; bases are orthonormal and generic."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import adjoint, hermitian, numbers, with_values
from tenferro_ad import grad, variable
from tenferro_linalg._eigh import eigh_
from tenferro_linalg._svd import svd_
from tenferro_runtime.lowering import lower
from tenferro_runtime.running import fusion
from tenferro_tensor import Spec
from thorough import tries
from whole_functions import Native

Array = np.ndarray[Any, Any]


def columns(s: Any) -> Any:
    return tr.expand_dims(s, axis=-2)


def inner(x: Any, b: Any) -> Any:
    return tr.sum(tr.real(tr.conj(b) * x))  # that of `linalg_checks` takes an array of NumPy


def of_eigh(power: Any) -> Callable[[Any, Any], Any]:
    def loss(x: Any, b: Any) -> Any:
        w, v = la.eigh(x)
        return inner((v * columns(power(w))) @ adjoint(v), b)

    return loss


def last_projector(x: Any, b: Any) -> Any:
    v = la.eigh(x).eigenvectors[:, -1:]
    return inner(v @ adjoint(v), b)


def of_svd(power: int) -> Callable[[Any, Any], Any]:
    def loss(x: Any, b: Any) -> Any:
        u, s, vh = la.svd(x, full_matrices=False)
        return inner((u * columns(s**power)) @ vh, b)

    return loss


HERMITIAN = {
    "sine": of_eigh(tr.sin),
    "cube": lambda x, b: tr.sum(la.eigvalsh(x) ** 3),
    "largest": lambda x, b: la.eigvalsh(x)[-1],
    "last projector": last_projector,
}
SPECTRA = [
    (1, 1, 2),
    (4, 1, 1),
    (2, 2, 2, 2, 2),
    (1, 1, 1, 3, 3, 5),
    (1, 2, 4),
    (0, 0, 0),
    (3,),
    (),
    (1,) * 10 + (2, 2),
]

GENERAL = {
    "linear": of_svd(1),
    "polar": of_svd(0),
    "squares": lambda x, b: tr.sum(la.svdvals(x) ** 2),
    "nuclear": lambda x, b: tr.sum(la.svdvals(x)),
}
MATRICES = [
    ((4, 4), (3, 2, 1, 1)),
    ((4, 4), (3, 1, 0, 0)),
    ((6, 3), (2, 2, 1)),
    ((3, 5), (2, 1, 1)),
    ((6, 4), (2, 2, 0, 0)),
    ((4, 6), (2, 0, 0, 0)),
    ((4, 4), (1, 1, 1, 1)),
    ((3, 3), (0, 0, 0)),
    ((4, 3), (3, 2, 1)),
    ((1, 1), (0,)),
    ((0, 2), ()),
    ((12, 12), (2,) * 5 + (1,) * 2 + (0,) * 5),
]


def agrees(f: Callable[[Any, Any], Any], native: Native, x: Array, sizes: dict[str, int]) -> None:
    """A native program has the gradient of an eager call, or asks for the kernel that raises the error of that."""
    b, asked = numbers(8, x.shape, x.dtype.name), []

    def kernel(*_: Any) -> int:
        asked.append(True)
        return 1

    status, found, _ = native.run(x, b, sizes=sizes, call=kernel)
    y = variable(tr.asarray(x))  # `grad` would evaluate the function at nearby points where a backward pass refuses
    try:
        f(y, tr.asarray(b)).backward()
    except (la.GaugeError, la.DegenerateError):
        assert asked and status
        return
    assert not asked and not status
    np.testing.assert_allclose(found[0], np.asarray(y.grad), rtol=1e-9, atol=1e-9)


def by_turns(cases: list[Any], loss: int, dtype: str) -> Iterator[tuple[Any, int | None]]:
    """Diagonal matrices and rotated ones: of each case, one for real numbers and the other one for complex numbers."""
    for number, case in enumerate(cases):
        seeds = (None, 5) if (number + loss + (dtype == "complex128")) % 2 else (5, None)
        yield from [(case, seed) for seed in seeds[: tries(1, 2)]]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("loss", HERMITIAN)
def test_gradients_through_equal_eigenvalues(loss: str, dtype: str) -> None:
    f, n = HERMITIAN[loss], tr.dim("n")
    native = Native(lower(tr.trace(grad(f), *[Spec((n, n), np.dtype(dtype))] * 2)))
    for spectrum, seed in by_turns(SPECTRA, [*HERMITIAN].index(loss), dtype):
        if loss in ("largest", "last projector") and not spectrum:
            continue
        agrees(f, native, hermitian(spectrum, dtype, seed), {"n": len(spectrum)})


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("loss", GENERAL)
def test_gradients_through_equal_and_zero_singular_values(loss: str, dtype: str) -> None:
    f, (m, n) = GENERAL[loss], map(tr.dim, "mn")
    native = Native(lower(tr.trace(grad(f), *[Spec((m, n), np.dtype(dtype))] * 2)))
    for (shape, values), seed in by_turns(MATRICES, [*GENERAL].index(loss), dtype):
        agrees(f, native, with_values(shape, values, dtype, seed), dict(zip("mn", shape, strict=True)))


def repeated(rng: np.random.Generator, k: int, distinct: int) -> Array:
    """Descending values, of which some are equal and some may be zero."""
    levels = np.append(rng.permutation(np.arange(1, distinct + 1)) / distinct, 0.0)
    return np.sort(rng.choice(levels, k))[::-1]


TOLERANCES = {"float32": 1e-4, "float64": 1e-12, "complex64": 1e-4, "complex128": 1e-12}
PROGRAMS: dict[Any, Native] = {}


def bases(kind: str, dtype: str, x: Array) -> list[Array]:
    """The factors in a generic basis, by a native program of open sizes, which asks for no kernel."""
    if (kind, dtype) not in PROGRAMS:
        names = tuple(tr.dim(name) for name in ("b", "m", "m" if kind == "eigh" else "n"))
        factors = {
            "eigh": lambda x: eigh_(x, basis="generic"),
            "svd": lambda x: svd_(x, full=False, basis="generic", cut=None),
            "full": lambda x: svd_(x, full=True, basis="generic", cut=None),
        }[kind]
        PROGRAMS[kind, dtype] = Native(lower(tr.trace(lambda x: tuple(factors(x)), Spec(names, np.dtype(dtype)))))
    sizes = dict(zip("bmn", x.shape, strict=True))
    if kind == "eigh":
        del sizes["n"]
    status, found, _ = PROGRAMS[kind, dtype].run(x, sizes=sizes, call=lambda *_: 1)
    assert not status
    return [np.asarray(a) for a in found]


def orthonormal(v: Array, tolerance: float) -> None:
    one = np.broadcast_to(np.eye(v.shape[-1]), (len(v), v.shape[-1], v.shape[-1]))
    np.testing.assert_allclose(v.conj().swapaxes(-1, -2) @ v, one, atol=tolerance)


@given(
    st.sampled_from(sorted(TOLERANCES)), st.sampled_from(["svd", "full"]),
    st.tuples(st.integers(0, 3), st.integers(1, 14), st.integers(1, 14)), st.integers(1, 3), st.integers(0, 99),
)  # fmt: skip
def test_factors_in_a_generic_basis(
    dtype: str, kind: str, shape: tuple[int, int, int], distinct: int, seed: int
) -> None:
    batch, m, n = shape
    rng, k, tolerance = np.random.default_rng(seed), min(m, n), TOLERANCES[dtype]

    def unitary(size: int) -> Array:
        z = rng.standard_normal((size, size))
        return np.linalg.qr(z + 1j * rng.standard_normal((size, size)) if dtype[0] == "c" else z)[0]

    values = [repeated(rng, k, distinct) for _ in range(batch)]
    x = np.zeros((batch, m, n), dtype)
    for at, s in zip(x, values, strict=True):
        at[...] = (unitary(m)[:, :k] * s) @ unitary(n)[:k]
    u, s, vh = bases(kind, dtype, x)
    np.testing.assert_allclose((u[..., :k] * s[:, None, :]) @ vh[:, :k], x, atol=tolerance)
    np.testing.assert_allclose(s, np.array(values).reshape(batch, k), atol=tolerance)
    orthonormal(u, tolerance)
    orthonormal(vh.conj().swapaxes(-1, -2), tolerance)
    h = np.zeros((batch, m, m), dtype)
    for at in h:
        q = unitary(m)
        at[...] = (q * repeated(rng, m, distinct)) @ q.conj().T
    w, v = bases("eigh", dtype, h)
    np.testing.assert_allclose((v * w[:, None, :]) @ v.conj().swapaxes(-1, -2), h, atol=tolerance)
    orthonormal(v, tolerance)


@pytest.mark.parametrize("dtype", sorted(TOLERANCES))
def test_native_programs_and_kernels_choose_one_basis(dtype: str) -> None:
    """Of a multiple of the identity, whose vectors LAPACK knows without rounding."""
    for n in (2, 3, 9, tries(12, 40)):
        x = np.broadcast_to(np.eye(n, dtype=dtype), (2, n, n)).copy()
        for kind, kernel in (("eigh", eigh_), ("svd", svd_), ("full", svd_)):
            more = {} if kind == "eigh" else {"full": kind == "full", "cut": None}
            want = kernel(tr.asarray(x), basis="generic", **more)
            for got, expected in zip(bases(kind, dtype, x), want, strict=True):
                np.testing.assert_allclose(got, np.asarray(expected), atol=TOLERANCES[dtype])
            v = np.asarray(want[-1])
            assert np.abs(v).min() > 1e-3 / n, "a vector of the basis is special"
            assert np.abs(v - v.swapaxes(-1, -2))[:, ~np.eye(n, dtype=bool)].min() > 1e-5 / n


@pytest.mark.parametrize("full", [False, True])
def test_vectors_of_empty_matrices(full: bool, capfd: pytest.CaptureFixture[str]) -> None:
    f = tr.compile(lambda x: tuple(la.svd(x, full_matrices=full)))
    f(tr.asarray(np.ones((3, 2))))
    fusion.wait()
    for shape in ((0, 3), (3, 0), (0, 0), (1, 1)):
        u, s, vh = (np.asarray(x) for x in f(tr.asarray(np.ones(shape))))
        assert s.shape == (min(shape),)
        for v in (u, vh.T):
            np.testing.assert_allclose(v.T @ v, np.eye(v.shape[1]), atol=1e-14)
    assert not "".join(capfd.readouterr())
