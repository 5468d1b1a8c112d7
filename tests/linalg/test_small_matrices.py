"""Routines for small matrices: residuals as LAPACK's tests measure them, and what they leave to others."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_linalg as la
import tenferro_runtime as tr
from tenferro_linalg._host import HostProvider
from tenferro_linalg.functions._chains import Chain
from tenferro_linalg.functions._exponential import exponential
from tenferro_runtime.extension import NumericalError, get_backend
from tenferro_runtime.lowering import lower
from tenferro_tensor import Spec
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Foreign, everything, verify
from whole_functions import Native

RATIO = 10
"""LAPACK's own tests allow 30."""

pytestmark = pytest.mark.skipif(
    get_backend("cpu").routine("small.svd") is None, reason="this installation has no C extension"
)
dtypes = st.sampled_from("fdFD")
extents = st.integers(1, 8)
batches = st.sampled_from([(), (1,), (5,), (19,), (2, 9)])


def routine(name: str, *operands: Any, flags: int = 0) -> Any:
    run = get_backend("cpu").routine(f"small.{name}")
    assert run is not None
    return run(*operands, flags)


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def norm(x: Any) -> Any:
    x = np.abs(x)
    largest = x.max(axis=(-2, -1), keepdims=True)
    largest[largest == 0] = 1
    return np.linalg.norm(x / largest, axis=(-2, -1)) * largest[..., 0, 0]


def small(error: Any, scale: Any, x: Any) -> None:
    """An error of a stack is explained by the rounding of matrices of this scale."""
    rounding = np.finfo(x.dtype)
    allowed = RATIO * max(x.shape[-2:]) * (rounding.eps * np.asarray(scale) + rounding.smallest_subnormal)
    assert np.isfinite(error).all()
    assert (np.asarray(error) <= allowed).all()


@st.composite
def stacks(draw: Any, square: bool = False, spread: bool = True) -> Any:
    """Matrices with gaps, transposed, graded, of low rank, with equal rows."""
    batch, m, n, dtype = draw(batches), draw(extents), draw(extents), draw(dtypes)
    n = m if square else n
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    layout = draw(st.sampled_from(["rows", "columns", "gaps", "backwards"]))
    shape = (*batch, n, m) if layout == "columns" else (*batch, m, 2 * n if layout == "gaps" else n)
    x = rng.standard_normal(shape)
    if dtype in "FD":
        x = x + 1j * rng.standard_normal(shape)
    x = x.astype(dtype)
    x = {"rows": x, "columns": x.swapaxes(-1, -2), "gaps": x[..., ::2], "backwards": x[..., ::-1, ::-1]}[layout]
    kind = draw(st.sampled_from(["plain", "graded", "tiny", "huge"])) if spread else "plain"
    tall = np.float32(1) if dtype in "fF" else np.float64(1)
    if kind == "graded":
        x = x * (tall * 10.0 ** -np.arange(m))[:, None].astype(tall.dtype)
    elif kind != "plain":
        x = x * tall.dtype.type({"tiny": np.finfo(tall).tiny * 64, "huge": np.finfo(tall).max / 1024}[kind])
    return x


def eye(n: int) -> Any:
    return np.eye(n)


@given(stacks())
def test_qr(x: Any) -> None:
    q, r = routine("qr", x)
    wide = x.astype("D")
    scale = norm(wide)
    small(norm(q.astype("D") @ r.astype("D") - wide), scale, x)
    small(norm(adjoint(q) @ q - eye(q.shape[-1])), 1, x)
    assert (np.tril(r, -1) == 0).all()
    assert (np.diagonal(r, axis1=-2, axis2=-1).imag == 0).all()
    np.testing.assert_array_equal(routine("qr_r", x), r)
    signs = [np.sign(np.diagonal(v, axis1=-2, axis2=-1).real) for v in (r, np.linalg.qr(x)[1])]
    np.testing.assert_array_equal(*signs)


@given(stacks())
def test_svd(x: Any) -> None:
    u, s, vh = routine("svd", x)
    wide = x.astype("D")
    scale = norm(wide)
    small(norm(u.astype("D") * s[..., None, :].astype("d") @ vh.astype("D") - wide), scale, x)
    small(norm(adjoint(u) @ u - eye(u.shape[-1])), 1, x)
    small(norm(vh @ adjoint(vh) - eye(vh.shape[-2])), 1, x)
    assert (s >= 0).all()
    assert (np.diff(s, axis=-1) <= 0).all()
    small(np.abs(s - np.linalg.svd(wide, compute_uv=False)).max(axis=-1), scale, x)
    small(np.abs(s - routine("svdvals", x)).max(axis=-1), scale, x)


@given(stacks(square=True))
def test_eigh(x: Any) -> None:
    h = x / 2 + adjoint(x / 2)
    w, v = routine("eigh", h)
    wide = h.astype("D")
    scale = norm(wide)
    small(norm(wide @ v.astype("D") - v.astype("D") * w[..., None, :].astype("d")), scale, x)
    small(norm(adjoint(v) @ v - eye(v.shape[-1])), 1, x)
    assert (np.diff(w, axis=-1) >= 0).all()
    small(np.abs(w - np.linalg.eigvalsh(wide)).max(axis=-1), scale, x)
    small(np.abs(w - routine("eigvalsh", x)).max(axis=-1), scale, x)


@given(stacks(square=True, spread=False), st.booleans(), st.integers(1, 8), st.data())
def test_equations(x: Any, turned: bool, k: int, data: Any) -> None:
    n = x.shape[-1]
    b = np.ones((*x.shape[:-1], k), x.dtype) * (1 + np.arange(k))
    b = b.astype(x.dtype)
    y = routine("solve", x, b, flags=int(turned))
    a = adjoint(x) if turned else x
    small(norm(a @ y - b), norm(a) * norm(y), x)
    inverse = routine("inv", x)
    small(norm(inverse @ x - eye(n)) / norm(inverse) / norm(x), np.linalg.cond(x), x)
    determinant, (sign, logarithm) = routine("det", x), routine("slogdet", x)
    want = np.linalg.det(x.astype("D"))
    small(np.abs(determinant - want), norm(x) ** n, x)
    small(np.abs(sign * np.exp(logarithm) - want), norm(x) ** n * (1 + np.abs(logarithm)), x)
    positive = x @ adjoint(x) + eye(n).astype(x.dtype)
    factor = routine("cholesky", positive)
    small(norm(factor @ adjoint(factor) - positive), norm(positive), x)
    assert (np.triu(factor, 1) == 0).all()
    flags = data.draw(st.integers(0, 7))
    triangle = np.tril(factor, 0) if flags & 2 else adjoint(factor)
    unit = triangle / np.diagonal(triangle, axis1=-2, axis2=-1)[..., None, :] if flags & 4 else triangle
    noise = np.triu(np.ones((n, n), x.dtype), 1)
    given_ = (unit + (noise if flags & 2 else noise.T)).astype(x.dtype)
    y = routine("solve_triangular", given_, b, flags=flags)
    unit = adjoint(unit) if flags & 1 else unit
    small(norm(unit @ y - b), norm(unit) * norm(y), x)


@given(stacks())
def test_lu(x: Any) -> None:
    packed, exchanges, order = routine("lu", x)
    m, n = x.shape[-2:]
    lower = np.tril(packed[..., : min(m, n)], -1) + np.eye(m, min(m, n))
    upper = np.triu(packed[..., : min(m, n), :])
    rows = np.take_along_axis(x.astype("D"), order[..., None], -2)
    small(norm(lower.astype("D") @ upper.astype("D") - rows), norm(x.astype("D")), x)
    assert (np.abs(lower) <= 1.5).all()  # pivots have the largest sum of the moduli of both parts
    assert exchanges.shape == (*x.shape[:-2], min(m, n))
    assert order.dtype == exchanges.dtype == np.int64
    for index in np.ndindex(x.shape[:-2]):
        line = list(range(m))
        for i, j in enumerate(exchanges[index]):
            line[i], line[j] = line[j], line[i]
        assert line == order[index].tolist()


@given(stacks(square=True, spread=False), st.sampled_from([1e-30, 1e-8, 0.1, 1.0, 5.0]))
def test_exponential(x: Any, scale: float) -> None:
    x = (x * x.real.dtype.type(scale)).astype(x.dtype)
    n, e = x.shape[-1], np.roll(x, 1, axis=-1) / scale
    stack, directions = (v.reshape(-1, n, n).astype("D") for v in (x, e))
    want = exponential(HostProvider(), Chain.bidiagonal(stack, [directions]))
    found, slope = routine("exp", x), routine("exp_term", x, e.astype(x.dtype))
    allowed = 1000 * n * np.finfo(x.dtype).eps * (1 + norm(stack))
    for got, value in ((found, want.diagonal), (slope, want.corner)):
        error = norm(got.reshape(-1, n, n).astype("D") - value)
        assert (error <= allowed * norm(value)).all()
    for index in np.ndindex(x.shape[:-2]):
        np.testing.assert_array_equal(routine("exp", x[index]), found[index])


def test_graded_matrices_keep_small_values() -> None:
    rng = np.random.default_rng(2)
    scales = 10.0 ** -np.arange(0.0, 24.0, 3.0)
    x = rng.standard_normal((7, 8, 8)) * scales
    s = routine("svdvals", x)
    # The relative accuracy of one-sided rotations: columns have any scale, the rest is well conditioned.
    assert (np.linalg.cond(x / scales) < 1e4).all()
    product = np.abs(np.linalg.det(x / scales)) * scales.prod()
    np.testing.assert_allclose(s.prod(axis=-1), product, rtol=1e-10)


@pytest.mark.parametrize("dtype", "fF")
@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("size", [3, 8])
def test_columns_of_any_scale_have_orthogonal_vectors(size: int, count: int, dtype: str) -> None:
    """Squares of their lengths lose digits in single precision."""
    rng = np.random.default_rng(8)
    for least in (6, 9, 10, 11, 12):
        x = rng.standard_normal((count, size, size)) * 10.0 ** -np.linspace(0, least, size)
        x = x.astype(dtype)
        found = routine("svd", x)
        if found is None:  # the slower way is right
            assert least > 10
            continue
        u, _, vh = found
        small(norm(adjoint(u) @ u - eye(size)), 1, x)
        small(norm(vh @ adjoint(vh) - eye(size)), 1, x)


def spectra() -> dict[str, list[float]]:
    return {
        "equal": [2.0] * 5, "zero": [0.0] * 4, "pairs": [1.0, 1.0, 3.0, 3.0, 5.0], "null": [0.0, 0.0, 1.0, 2.0],
        "near": [1.0, 1.0 + 1e-15, 2.0], "opposite": [-1.0, 1.0, -1.0, 1.0],
    }  # fmt: skip


@pytest.mark.parametrize("name", spectra())
@pytest.mark.parametrize("dtype", "fdFD")
def test_degenerate_spectra(name: str, dtype: str) -> None:
    values = np.array(spectra()[name])
    n = len(values)
    z = np.random.default_rng(3).standard_normal((6, n, 2 * n)).view("D")
    q = np.linalg.qr(z if dtype in "FD" else z.real)[0]
    x = ((q * values) @ adjoint(q)).astype(dtype)
    x = (x + adjoint(x)) / 2
    w, v = routine("eigh", x)
    scale = max(1, np.abs(values).max())
    small(norm(x @ v - v * w[..., None, :]), scale, x)
    small(norm(adjoint(v) @ v - eye(n)), 1, x)
    small(np.abs(w - np.sort(values)).max(axis=-1), scale, x)
    u, s, vh = (p.numpy() for p in la.svd(tr.asarray(x)))
    small(norm(u * s[..., None, :] @ vh - x), scale, x)
    small(norm(adjoint(u) @ u - eye(n)), 1, x)
    small(norm(vh @ adjoint(vh) - eye(n)), 1, x)


def test_what_is_out_of_the_ordinary_is_left_to_others() -> None:
    x = np.eye(3) + np.zeros((4, 3, 3))
    odd = x.copy()
    odd[2, 1, 1] = np.nan
    for name in ("svd", "svdvals", "eigh", "eigvalsh", "qr", "qr_r", "cholesky", "inv", "det", "slogdet", "lu"):
        assert routine(name, odd) is None, name
        assert routine(name, np.eye(9)) is None, name
        assert routine(name, np.zeros((0, 3, 3))) is None, name
        assert routine(name, np.eye(3, dtype=np.int64)) is None, name
    assert routine("solve", odd, x) is None
    singular = x.copy()
    singular[3] = [[3.0, 6.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    assert routine("inv", singular) is None
    assert routine("solve", singular, x) is None
    assert routine("cholesky", -x) is None
    assert routine("svd", np.zeros((3, 3))) is None  # nothing determines the vectors
    np.testing.assert_array_equal(routine("det", singular), [1, 1, 1, 0])
    np.testing.assert_array_equal(routine("slogdet", singular)[1], [0, 0, 0, -np.inf])
    assert routine("exp", odd) is None
    assert routine("exp", 1000.0 * x) is None
    assert routine("exp", -1e12 * x) is None
    assert routine("exp_term", x, odd) is None
    assert routine("exp_term", x, x[..., :2]) is None
    with pytest.raises(TypeError, match="takes 1 arrays and flags"):
        routine("svd", x, x)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_errors_name_the_matrix(size: int) -> None:
    x = np.zeros((40, size, size)) + np.eye(size)
    x[17, -1, -1] = -1
    with pytest.raises(NumericalError, match=rf"matrix \(17,\) .* leading minor of order {size}"):
        la.cholesky(tr.asarray(x))
    x[17, -1, -1] = 0
    with pytest.raises(NumericalError, match=rf"matrix \(17,\) .* pivot {size - 1}"):
        la.inv(tr.asarray(x))
    x[17, -1, -1] = np.inf
    with pytest.raises(NumericalError, match=rf"inf at index \(17, {size - 1}, {size - 1}\)"):
        la.solve(tr.asarray(x), tr.asarray(x))


def test_threads_share_large_stacks() -> None:
    x = np.random.default_rng(4).standard_normal((5000, 3, 3))
    np.testing.assert_array_equal(routine("inv", x)[2500:2600], routine("inv", x[2500:2600].copy()))
    x[4999] = 0
    assert routine("inv", x) is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 2, 2), (3, 3, 3), (4, 4, 4), (3, 4, 2), (5, 2, 3), (6, 6, 6)])
def test_products_of_stacks_of_open_sizes(m: int, n: int, k: int, dtype: str) -> None:
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((2, 5, m, k)), rng.standard_normal((2, 5, n, k))
    if dtype[0] == "c":
        x, y = x + 1j * x[::-1], y - 1j * y[::-1]
    x, y = x.astype(dtype), y.astype(dtype)
    b, c, d, e, f = map(tr.dim, "bcdef")
    specs = (Spec((b, c, d, f), x.dtype), Spec((b, c, e, f), x.dtype))
    function = lower(tr.trace(lambda x, y: (x @ y.mT, y @ x.mT), *specs))
    verify(function)
    symbols = [s.symbol for s in everything(function.body) if isinstance(s, Foreign)]
    assert sum("small.product" in name for name in symbols) == 2
    sizes = {"b": 2, "c": 5, "d": m, "e": n, "f": k}
    values = tuple([sizes[name] for name in function.sizes])
    tolerance = 1e-12 if x.real.dtype == np.float64 else 1e-4
    for got in (interpret(function, [x, y], values), Native(function)(x, y, sizes=sizes)):
        np.testing.assert_allclose(got[0], x @ y.swapaxes(-1, -2), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(got[1], y @ x.swapaxes(-1, -2), rtol=tolerance, atol=tolerance)
