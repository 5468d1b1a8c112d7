"""Equal and zero values: every matrix worth keeping, with the verdict that the theory gives for each loss.

``exact`` means equal to central differences; otherwise the named error. Never NaN, never a wrong number.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import (
    adjoint,
    assert_gradient,
    assert_pushed,
    difference,
    gradient,
    hermitian,
    inner,
    numbers,
    pushed,
    real,
    with_values,
)
from tenferro_ad import checkpoint, grad, jvp, variable
from tenferro_linalg import DegenerateError, GaugeError, RankError
from tenferro_linalg import _multiplets as multiplets
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor
from tenferro_tensor_core import NumericalError

KINDS = ["float64", "complex128"]
SEEDS = [None, 5]


def columns(s):
    return fn.expand_dims(s, axis=-2)


def verdict(f, x, v, expected):
    if expected == "exact":
        assert_gradient(f, x, v)
        return
    with pytest.raises(expected):
        grad(f)(tensor(x))


# Hermitian eigenvalues

SPECTRA = {
    #                     b v sin(w) v*    norm     last projector  w^3      largest value
    (1, 1, 2): ("exact", "exact", "exact", "exact", "exact"),
    (4, 1, 1): ("exact", "exact", "exact", "exact", "exact"),
    (2, 2, 2, 2, 2): ("exact", "exact", GaugeError, "exact", DegenerateError),
    (1, 1, 1, 3, 3, 5): ("exact", "exact", "exact", "exact", "exact"),
    (1, 2, 4): ("exact", "exact", "exact", "exact", "exact"),
    (0, 0, 0): ("exact", "exact", GaugeError, "exact", DegenerateError),
}
HERMITIAN_LOSSES = ("sine", "norm", "last", "cube", "largest")


def eigh_losses(n, dtype):
    b = numbers(1, (n, n), dtype)

    def sine(x):
        w, v = la.eigh(x)
        return inner(la.matmul(v * columns(fn.sin(w)), adjoint(v)), b)

    def norm(x):
        w, v = la.eigh(x)
        return la.vector_norm(la.matmul(v * columns(w), adjoint(v)))

    def last(x):
        v = la.eigh(x).eigenvectors[:, -1:]
        return inner(la.matmul(v, adjoint(v)), b)

    cube = lambda x: fn.sum(la.eigvalsh(x) ** 3)
    return {"sine": sine, "norm": norm, "last": last, "cube": cube, "largest": lambda x: la.eigvalsh(x)[-1]}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("name", HERMITIAN_LOSSES)
def test_eigh_in_reverse(name, spectrum, seed, dtype):
    x = hermitian(spectrum, dtype, seed)
    v = numbers(2, x.shape, dtype)
    verdict(eigh_losses(len(spectrum), dtype)[name], x, v, SPECTRA[spectrum][HERMITIAN_LOSSES.index(name)])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("name", ["sine", "norm", "cube"])
def test_eigh_forward_is_exact_for_every_smooth_loss(name, spectrum, seed, dtype):
    x = hermitian(spectrum, dtype, seed)
    if name == "norm" and not any(spectrum):  # a kink at the zero matrix: the subgradient 0
        assert pushed(eigh_losses(len(spectrum), dtype)[name], x, numbers(2, x.shape, dtype)) == 0
        return
    assert_pushed(eigh_losses(len(spectrum), dtype)[name], x, numbers(2, x.shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_the_gradient_of_the_invisible_loss(dtype):
    """At the identity all cotangents of this loss vanish, but its gradient is b; a bare backward pass refuses it."""
    b = np.array([[0, 1], [1, 0]], dtype)

    def loss(x):
        w, v = la.eigh(x)
        return inner(la.matmul(v * columns(w - fn.mean(w)), adjoint(v)), b)

    x, v = np.eye(2, dtype=dtype), numbers(3, (2, 2), dtype)
    y = variable(tensor(x))
    with pytest.raises(DegenerateError, match="grad and vjp evaluate the function at nearby points"):
        loss(y).backward()
    np.testing.assert_allclose(gradient(loss, x), b, atol=1e-11)
    assert pushed(loss, x, v) == pytest.approx((b * v).sum().real)


@pytest.mark.parametrize("dtype", KINDS)
def test_a_stationary_gauge_dependent_loss_is_found_in_the_generic_basis(dtype):
    """sum |V|^4 is stationary at LAPACK's basis of the identity, V = 1, and depends on the basis all the same."""
    loss = lambda x: fn.sum(real(la.eigh(x).eigenvectors * fn.conj(la.eigh(x).eigenvectors)) ** 2)

    def once(x):
        v = la.eigh(x).eigenvectors
        return fn.sum(real(v * fn.conj(v)) ** 2)

    def in_loop(x):
        return tr.scan(lambda carry, _: (carry + once(x), None), fn.sum(real(x)), None, length=2)[0]

    x = tensor(2 * np.eye(3, dtype=dtype))
    for call in (once, tr.compile(once), in_loop, tr.compile(in_loop), checkpoint(once)):
        with pytest.raises(GaugeError):
            grad(call)(x)
        with pytest.raises(GaugeError):
            tr.compile(grad(call))(x)
    assert np.isfinite(float(loss(tensor(np.eye(3, dtype=dtype)))))


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_only_derivatives_ask_for_a_generic_basis(name):
    """A program of values has LAPACK's vectors, as a concrete call has: unit vectors for the identity."""
    f = lambda x: tuple(getattr(la, name)(x))
    x = np.eye(4)
    asked = "basis=generic"
    assert asked not in str(tr.trace(f, x)) and asked in str(tr.trace(grad(lambda x: fn.sum(f(x)[0])), x))
    for compiled in (f, tr.compile(f)):
        vectors = np.abs(compiled(tensor(x))[0 if name == "svd" else 1])
        np.testing.assert_array_equal(vectors, x)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-8, 1e-10, 1e-12, 1e-14, 1e-15, 0.0])
def test_near_degeneracy_is_exact(gap):
    """The plain quotient loses eps/gap; inside tau the pair is tested. Nothing is silently worse."""
    x = hermitian((1.0, 1.0 + gap, 2.0, 3.0), "float64", 6)
    b = numbers(4, (4, 4))
    sine = eigh_losses(4, "float64")["sine"]
    expected = difference(lambda y: float(sine(tensor(y))), x, b)
    assert abs((gradient(sine, x) * b).sum() - expected) <= 1e-9 + (200 * 2.2e-16 / gap if gap > 1e-14 else 0)
    assert_gradient(eigh_losses(4, "float64")["cube"], x, b)


# singular values

MATRICES = {
    "3211": ((4, 4), (3, 2, 1, 1)),
    "1123": ((4, 4), (1, 1, 2, 3)),
    "2221": ((4, 4), (2, 2, 2, 1)),
    "3100": ((4, 4), (3, 1, 0, 0)),
    "3210": ((4, 4), (3, 2, 1, 0)),
    "tall 221": ((6, 3), (2, 2, 1)),
    "wide 211": ((3, 5), (2, 1, 1)),
    "tall 2200": ((6, 4), (2, 2, 0, 0)),
    "unitary": ((4, 4), (1, 1, 1, 1)),
    "zeros 3x3": ((3, 3), (0, 0, 0)),
    "zeros 4x6": ((4, 6), (0, 0, 0, 0)),
    "distinct": ((4, 3), (3, 2, 1)),
}

SVD_VERDICTS = {
    #            norm     b u s v          b u s^3 v        polar            values^2  nuclear
    "3211": ("exact", "exact", "exact", "exact", "exact", "exact"),
    "1123": ("exact", "exact", "exact", "exact", "exact", "exact"),
    "2221": ("exact", "exact", "exact", "exact", "exact", "exact"),
    "3100": ("exact", "exact", "exact", GaugeError, "exact", DegenerateError),
    "3210": ("exact", "exact", "exact", GaugeError, "exact", DegenerateError),
    "tall 221": ("exact", "exact", "exact", "exact", "exact", "exact"),
    "wide 211": ("exact", "exact", "exact", "exact", "exact", "exact"),
    "tall 2200": ("exact", "exact", "exact", GaugeError, "exact", DegenerateError),
    "unitary": ("exact", "exact", "exact", "exact", "exact", "exact"),
    "zeros 3x3": (None, "exact", "exact", GaugeError, "exact", DegenerateError),
    "zeros 4x6": (None, "exact", "exact", GaugeError, "exact", DegenerateError),
    "distinct": ("exact", "exact", "exact", "exact", "exact", "exact"),
}
LOSSES = ("norm", "linear", "cubic", "polar", "squares", "nuclear")


def svd_losses(shape, dtype):
    b = numbers(7, shape, dtype)

    def rebuilt(power):
        def function(x):
            u, s, vh = la.svd(x, full_matrices=False)
            return la.matmul(u * columns(s**power) if power else u, vh)

        return function

    return {
        "norm": lambda x: la.vector_norm(rebuilt(1)(x)),
        "linear": lambda x: inner(rebuilt(1)(x), b),
        "cubic": lambda x: inner(rebuilt(3)(x), b),
        "polar": lambda x: inner(rebuilt(0)(x), b),
        "squares": lambda x: fn.sum(la.svdvals(x) ** 2),
        "nuclear": lambda x: la.matrix_norm(x, ord="nuc"),
    }


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("loss", LOSSES)
def test_svd_in_reverse(loss, name, seed, dtype):
    shape, values = MATRICES[name]
    expected = SVD_VERDICTS[name][LOSSES.index(loss)]
    x = with_values(shape, values, dtype, seed)
    if expected is None:  # a kink at the zero matrix: the subgradient 0
        np.testing.assert_array_equal(gradient(svd_losses(shape, dtype)[loss], x), np.zeros(shape))
        return
    verdict(svd_losses(shape, dtype)[loss], x, numbers(8, shape, dtype), expected)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("loss", ["linear", "cubic", "squares"])
def test_svd_forward_is_exact_for_every_smooth_loss(loss, name, seed, dtype):
    shape, values = MATRICES[name]
    assert_pushed(svd_losses(shape, dtype)[loss], with_values(shape, values, dtype, seed), numbers(8, shape, dtype))


def test_independent_signs_at_a_single_zero_value():
    """The polar factor of a real matrix jumps where its determinant changes sign; one null vector alone is fine."""
    x, b = with_values((4, 4), (3, 2, 1, 0), "float64", 44), numbers(45, (4, 4))
    with pytest.raises(GaugeError, match=r"signs of U\[:, 3\] and Vh\[3, :\] are free independently"):
        grad(svd_losses((4, 4), "float64")["polar"])(tensor(np.stack([np.eye(4) + b / 9, x])))

    def left(y):
        u = la.svd(y, full_matrices=False).U[:, 3:]
        return inner(la.matmul(u, adjoint(u)), b)

    assert_gradient(left, x, numbers(46, (4, 4)))


@pytest.mark.parametrize("dtype", KINDS)
def test_all_ones(dtype):
    x, v = np.ones((5, 5), dtype), numbers(9, (5, 5), dtype)
    losses = svd_losses((5, 5), dtype)
    verdict(losses["norm"], x, v, "exact")
    verdict(losses["linear"], x, v, "exact")
    assert_pushed(losses["linear"], x, v)


def test_values_of_a_multiplet():
    spectral = lambda x: la.matrix_norm(x, ord=2)
    with pytest.raises(DegenerateError, match="kink"):
        grad(spectral)(tensor(np.diag([2.0, 2.0, 1.0])))
    np.testing.assert_allclose(gradient(spectral, np.diag([2.0, 1.0, 1.0])), np.diag([1.0, 0, 0]), atol=1e-15)
    np.testing.assert_allclose(
        gradient(lambda x: la.matrix_norm(x, ord="nuc"), np.diag([2.0, 1, 1])), np.eye(3), atol=1e-14
    )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(6, 3), (3, 6)])
@pytest.mark.parametrize("values", [(3, 2, 1), (2, 2, 1), (2, 1, 1)])
def test_projector_on_the_null_space_of_full_matrices(shape, values, dtype):
    m, n = shape
    c, d = numbers(10, (m, m), dtype), numbers(11, (n, n), dtype)

    def loss(x):
        u, _, vh = la.svd(x, full_matrices=True)
        p, q = u[:, 3:], vh[3:, :]
        return inner(la.matmul(p, adjoint(p)), c) + inner(la.matmul(adjoint(q), q), d)

    x = with_values(shape, values, dtype, 12)
    assert_gradient(loss, x, numbers(13, shape, dtype))
    assert_pushed(loss, x, numbers(13, shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("k,expected", [(1, "exact"), (2, GaugeError), (3, "exact")])
def test_truncation_at_and_inside_a_multiplet(k, expected, dtype):
    b = numbers(14, (5, 5), dtype)

    def projector(x):
        u = la.svd_trunc(x, k).U
        return inner(la.matmul(u, adjoint(u)), b)

    x = with_values((5, 5), (3, 2, 2, 1, 0.5), dtype, 15)
    verdict(projector, x, numbers(16, (5, 5), dtype), expected)
    if expected != "exact":
        with pytest.raises(DegenerateError, match=r"k = 2 cuts the multiplet S\[1\.\.2\]: keep k = 1 or k = 3"):
            grad(lambda y: fn.sum(la.svd_trunc(y, k).S))(tensor(x))


def test_truncation_beside_a_small_gap_has_the_coupling_to_discarded_vectors():
    values = np.concatenate([np.linspace(5, 2, 5), np.linspace(2 - 1e-6, 0.1, 25)])
    x, v = with_values((30, 30), values, "float64", 17), numbers(18, (30, 30))
    b = numbers(19, (30, 30))

    def rebuilt(y):
        u, s, vh = la.svd_trunc(y, 5)
        return inner(la.matmul(u * columns(s), vh), b)

    expected = difference(lambda y: float(rebuilt(tensor(y))), x, v, h=1e-8)
    assert (gradient(rebuilt, x) * v).sum() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150])
def test_gradients_are_free_of_scale(scale):
    x = with_values((4, 4), (3, 2, 1, 1), "float64", 20)

    def polar(y):
        u, _, vh = la.svd(y, full_matrices=False)
        return inner(la.matmul(u, vh), numbers(21, (4, 4)))

    np.testing.assert_allclose(gradient(polar, x * scale) * scale, gradient(polar, x), rtol=1e-10, atol=1e-12)


def test_single_precision_multiplets():
    x = with_values((4, 4), (3, 2, 1, 1), "float32", 22)
    loss = svd_losses((4, 4), "float32")
    g = gradient(loss["norm"], x)
    np.testing.assert_allclose(g, x / np.linalg.norm(x), atol=1e-5)
    np.testing.assert_allclose(gradient(loss["linear"], x), numbers(7, (4, 4), "float32"), atol=2e-4)


@pytest.mark.parametrize("dtype", KINDS)
def test_gauge_dependent_losses_name_output_pair_and_gap(dtype):
    def loss(x):
        u = la.svd(x, full_matrices=False).U[:, 1]
        return fn.sum(real(u * fn.conj(u)) * np.arange(4.0))

    x = tensor(with_values((4, 4), (3, 2, 2, 1), dtype, 23))
    with pytest.raises(GaugeError, match=r"choice of U and Vh for the equal singular values S\[[12]\] = 2") as caught:
        grad(loss)(x)
    error = caught.value
    assert error.payload["output"] == "U and Vh" and error.payload["pair"] in [(1, 2), (2, 1)]
    assert 0 <= error.payload["gap"] < 1e-14 and error.payload["rate"] > 1e3 * error.payload["allowed"]


def test_phases_of_complex_vectors():
    x = numbers(24, (3, 4, 4), "complex128")
    with pytest.raises(GaugeError, match=r"phase of vector \d of the eigenvectors V .* of matrix \(\d,\) of the stack"):
        grad(lambda y: fn.sum(fn.real(la.eigh(y).eigenvectors)))(tensor(x))
    with pytest.raises(GaugeError, match="phase of vector"):
        grad(lambda y: fn.sum(fn.real(la.svd(y, full_matrices=False).U)))(tensor(x))
    extra = lambda y: fn.sum(fn.real(la.svd(y, full_matrices=True).U)[:, 2:] ** 2 * numbers(1, (4, 2)))
    with pytest.raises(GaugeError, match="extra columns"):
        grad(extra)(tensor(x[0, :, :2]))


def test_one_degenerate_matrix_of_a_stack_is_named():
    x = np.stack([np.diag([3.0, 2, 1]), np.diag([2.0, 2, 1])])
    with pytest.raises(DegenerateError, match=r"of matrix \(1,\) of the stack") as caught:
        grad(lambda y: fn.sum(la.svdvals(y)[..., 0]))(tensor(x))
    assert caught.value.payload["batch"] == (1,)


# second order


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("spectrum", [(1, 1, 2), (1, 1, 1, 3, 3, 5)])
def test_second_order_of_values_at_a_multiplet(spectrum, dtype):
    x = hermitian(spectrum, dtype, 25)
    v = numbers(26, x.shape, dtype)
    cube = lambda y: fn.sum(la.eigvalsh(y) ** 3)
    h = (v + v.conj().T) / 2
    expected = 3 * (x @ h + h @ x)
    np.testing.assert_allclose(jvp(grad(cube), (tensor(x),), (tensor(v),))[1]._concrete(), expected, atol=1e-11)


SECOND = {
    "grad of grad": lambda f, x, v: grad(lambda y: inner(grad(f)(y), v))(x),
    "jvp of grad": lambda f, x, v: jvp(grad(f), (x,), (tensor(v),))[1],
    "grad of jvp": lambda f, x, v: grad(lambda y: jvp(f, (y,), (tensor(v),))[1])(x),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("spectrum", [(1, 1, 2), (2, 2, 2), (1, 1 + 1e-12, 2), (1, 1 + 1e-9, 2), (1, 2, 4)])
@pytest.mark.parametrize("mode", SECOND)
def test_second_order_through_vectors(mode, spectrum, dtype):
    x, v = hermitian(spectrum, dtype, 27), numbers(28, (3, 3), dtype)
    f = eigh_losses(3, dtype)["sine"]
    expected = difference(lambda y: gradient(f, y), x, v)
    np.testing.assert_allclose(SECOND[mode](f, tensor(x), v)._concrete(), expected, atol=1e-7)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape,values", [((4, 4), (3, 2, 1, 1)), ((5, 3), (2, 1, 1)), ((3, 4), (2, 1, 0))])
@pytest.mark.parametrize("mode", SECOND)
def test_second_order_through_singular_vectors(mode, shape, values, dtype):
    x, v = with_values(shape, values, dtype, 29), numbers(30, shape, dtype)
    f = svd_losses(shape, dtype)["cubic"]
    b = tensor(numbers(7, shape, dtype))
    cube = lambda y: inner(la.matmul(la.matmul(y, adjoint(y)), y), b._concrete())
    expected = jvp(grad(cube), (tensor(x),), (tensor(v),))[1]._concrete()
    np.testing.assert_allclose(SECOND[mode](f, tensor(x), v)._concrete(), expected, atol=2e-7)


@pytest.mark.parametrize("mode", SECOND)
def test_second_order_of_values(mode):
    """A symmetric function of the eigenvalues at a multiplet, in every mode."""
    x, v = hermitian((1, 1, 2), "float64", 25), numbers(26, (3, 3))
    h = (v + v.T) / 2
    expected = 3 * (x @ h + h @ x)
    f = lambda y: fn.sum(la.eigvalsh(y) ** 3)
    np.testing.assert_allclose(SECOND[mode](f, tensor(x), v)._concrete(), expected, atol=1e-8)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("weight", [1.0, 1e-3])
@pytest.mark.parametrize("member", [0, 1, 2])
def test_kinks_stay_refused(member, weight, dtype):
    """One member of a triple eigenvalue, the middle one too, beside a smooth function of the vectors."""
    b = numbers(31, (4, 4), dtype)

    def loss(x):
        w, v = la.eigh(x)
        return inner(la.matmul(v * columns(fn.sin(w)), adjoint(v)), b) + weight * w[member]

    with pytest.raises(DegenerateError, match="no common limit"):
        grad(loss)(tensor(hermitian((1, 1, 1, 2), dtype, 32)))


@pytest.mark.parametrize("dtype", KINDS)
def test_a_decomposition_of_a_function_of_another_one(dtype):
    """The second node has a fivefold value where the first one has a triple and a double one."""
    x, v, b = hermitian((1, 1, 1, 3, 3, 5), dtype, 33), numbers(34, (6, 6), dtype), numbers(35, (6, 6), dtype)

    def matrix_function(f, y):
        w, u = la.eigh(y)
        return la.matmul(u * columns(f(w)), adjoint(u))

    merged = lambda y: matrix_function(lambda w: (w - 1) * (w - 3) / 4 + 1, y)
    assert_gradient(lambda y: inner(matrix_function(fn.sin, merged(y)), b), x, v)


# QR


def rank_two(m, n, dtype, column=None):
    """Rank 2, the dependent column being the third, or a given column of zeros."""
    x = numbers(29, (m, n), dtype)
    if column is None:
        x[:, 2] = x[:, 0] - 2 * x[:, 1]
    else:
        x[:, column] = 0
    return x


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(6, 5), (4, 4), (4, 6)])
@pytest.mark.parametrize("column", [None, 2])
def test_qr_is_exact_before_the_first_dependent_column(shape, column, dtype):
    m, n = shape
    bq, br = numbers(30, (m, 2), dtype), numbers(31, (2, n), dtype)

    def loss(x):
        q, r = la.qr(x)
        return inner(fn.sin(q[:, :2]), bq) + inner(r[:2, :], br)

    assert_gradient(loss, rank_two(m, n, dtype, column), numbers(32, shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_qr_complement_of_a_deficient_matrix_through_its_projector(dtype):
    b = numbers(33, (5, 5), dtype)

    def loss(x):
        q2 = la.qr(x, mode="complete").Q[:, 2:]
        return inner(la.matmul(q2, adjoint(q2)), b)

    x = rank_two(5, 3, dtype)[:, [0, 1, 2]]
    direction = numbers(34, (5, 3), dtype)
    direction[:, 2] = direction[:, 0] - 2 * direction[:, 1]
    assert_gradient(loss, x, direction)


@pytest.mark.parametrize("dtype", KINDS)
def test_qr_beyond_the_rank_is_refused(dtype):
    x = tensor(rank_two(6, 5, dtype))
    with pytest.raises(RankError, match=r"column 2 depends on the columns before it .* loss uses R\[2:, :\]") as caught:
        grad(lambda y: la.vector_norm(la.matmul(*la.qr(y))))(x)
    assert caught.value.payload["column"] == 2
    with pytest.raises(GaugeError, match="columns from 2 on are an arbitrary orthonormal basis"):
        grad(lambda y: inner(la.qr(y).Q, numbers(35, (6, 5), dtype)))(x)
    with pytest.raises(RankError, match="no derivative along a general perturbation"):
        jvp(lambda y: la.qr(y).R, (x,), (x,))


@pytest.mark.parametrize("dtype", KINDS)
def test_qr_complete_refuses_a_basis_dependent_loss(dtype):
    loss = lambda y: inner(la.qr(y, mode="complete").Q[:, 3:], numbers(36, (5, 2), dtype))
    with pytest.raises(GaugeError, match="columns from 3 on"):
        grad(loss)(tensor(numbers(37, (5, 3), dtype)))


# determinants and the pseudo-inverse


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("values", [(3, 2, 1, 1), (3, 2, 1, 0), (3, 2, 0, 0), (3, 0, 0, 0), (0, 0, 0, 0)])
def test_det_is_exact_at_every_rank_and_to_second_order(values, dtype):
    x, v = with_values((4, 4), values, dtype, 38), numbers(39, (4, 4), dtype)
    loss = lambda y: inner(la.det(y), np.asarray(1.5 - 0.5j if dtype == "complex128" else 1.5))
    assert_gradient(loss, x, v)
    hessian = jvp(grad(loss), (tensor(x),), (tensor(v),))[1]._concrete()
    np.testing.assert_allclose(hessian, difference(lambda y: gradient(loss, y), x, v), atol=1e-8)


def test_det_of_a_singular_matrix_has_the_cofactors_as_gradient():
    np.testing.assert_allclose(gradient(la.det, np.diag([2.0, 3.0, 0.0])), np.diag([0.0, 0, 6]), atol=1e-14)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_pinv_along_constant_rank(shape, dtype):
    m, n = shape
    left, right = numbers(40, (m, 2), dtype), numbers(41, (2, n), dtype)
    b = numbers(42, (n, m), dtype)
    loss = lambda y: inner(la.pinv(la.matmul(y, tensor(right)), rtol=1e-10), b)
    assert_gradient(loss, left, numbers(43, (m, 2), dtype))
    assert_pushed(loss, left, numbers(43, (m, 2), dtype))


def test_pinv_below_full_rank_wants_an_explicit_cut():
    x = tensor(np.diag([2.0, 1.0, 0.0]))
    with pytest.raises(RankError, match=r"S\[2\] = 0.00e\+00 counts as zero .* pass rtol="):
        grad(lambda y: la.vector_norm(la.pinv(y)))(x)
    near = tensor(np.diag([1.0, 5e-8]))
    with pytest.raises(RankError, match=r"S\[1\] = 5.00e-08 lies within a factor of 10 of the cut 1.00e-08"):
        grad(lambda y: la.vector_norm(la.pinv(y, rtol=1e-8)))(near)
    assert la.pinv(x)._concrete().tolist() == np.diag([0.5, 1.0, 0.0]).tolist()


def test_slogdet_of_a_singular_matrix_has_no_gradient():
    x = tensor(np.diag([1.0, 0.0]))
    sign, log = la.slogdet(x)
    assert float(sign) == 0 and float(log) == -np.inf
    with pytest.raises(NumericalError, match="the gradient of slogdet: the matrix is singular"):
        grad(lambda y: la.slogdet(y).logabsdet)(x)


VALUES = st.floats(-3, 3) | st.sampled_from([0.0, 1.0, 1 + 1e-16, 1 + 4e-15, 2.0, np.nan, np.inf])


@given(st.lists(VALUES, min_size=1, max_size=8), st.booleans())
def test_few_values_are_told_apart_as_many_are(values, zeros):
    found = np.asarray(values)
    with np.errstate(all="ignore"):
        assert multiplets.regular(np, found, 7, zeros) == multiplets.regular(np, found[None], 7, zeros)
