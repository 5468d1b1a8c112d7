"""Traced and compiled linear algebra: the same values and gradients, symbolic sizes, pruning, errors at replay."""

from typing import Any

import numpy as np
import pytest

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import adjoint, hermitian, inner, numbers, real
from tenferro_ad import check_grads, checkpoint, grad, jacfwd, jvp, linearize
from tenferro_linalg import DegenerateError, GaugeError
from tenferro_runtime.extension import Spec, check_program, optimise
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor

B = numbers(1, (4, 4))


def columns(s):
    return fn.expand_dims(s, axis=-2)


def of_svd(x):
    u, s, vh = la.svd(x, full_matrices=False)
    return inner(la.matmul(u * columns(fn.sin(s)), vh), B)


def of_eigh(x):
    w, v = la.eigh(x)
    return inner(la.matmul(v * columns(fn.sin(w)), adjoint(v)), B)


LOSSES = {
    "svd": of_svd,
    "eigh": of_eigh,
    "qr": lambda x: inner(la.qr(x).Q, B),
    "cholesky": lambda x: inner(la.cholesky(la.matmul(x, adjoint(x))), B),
    "solve": lambda x: fn.sum(la.solve(x, tensor(B)) ** 2),
    "inv": lambda x: inner(la.inv(x), B),
    "det": lambda x: la.det(x),
    "slogdet": lambda x: la.slogdet(x).logabsdet,
    "pinv": lambda x: inner(la.pinv(x), B),
    "norm": lambda x: la.vector_norm(x, ord=3),
    "spectral": lambda x: inner(la.spectral_function(x, fn.sin), B),
    "trunc": lambda x: inner(la.matmul(la.svd_trunc(x, 2).U, adjoint(la.svd_trunc(x, 2).U)) * 0 + x, B),
}


@pytest.mark.parametrize("name", LOSSES)
def test_compiled_values_and_gradients_are_the_eager_ones(name):
    f, x = LOSSES[name], tensor(numbers(2, (4, 4)))
    expected = grad(f)(x)._concrete()
    np.testing.assert_allclose(float(tr.compile(f)(x)), float(f(x)), rtol=1e-12)
    inside, outside = tr.compile(grad(f)), grad(tr.compile(f))
    for _ in range(3):  # the first call traces, later ones replay
        np.testing.assert_allclose(inside(x)._concrete(), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(outside(x)._concrete(), expected, rtol=1e-10, atol=1e-12)
    v = tensor(numbers(3, (4, 4)))
    pushed = jvp(tr.compile(f), (x,), (v,))[1]
    np.testing.assert_allclose(float(pushed), (expected * v._concrete()).sum(), rtol=1e-9)


def test_unused_vectors_are_not_computed():
    x = Spec((4, 4), np.dtype("float64"))
    for f, cheap, dear in [
        (lambda y: fn.sum(la.svd(y, full_matrices=False).S), "svdvals", "svd"),
        (lambda y: fn.sum(la.svdvals(y)), "svdvals", "svd"),
        (lambda y: fn.sum(la.eigh(y)[0]), "eigvalsh", "eigh"),
        (lambda y: fn.sum(la.eigvalsh(y)), "eigvalsh", "eigh"),
        (lambda y: fn.sum(fn.real(la.eig(y)[0])), "eigvals", "eig"),
        (lambda y: fn.sum(la.qr(y).R), "qr_r", "qr"),
    ]:
        program = tr.Runtime().optimise(tr.trace(f, x))
        check_program(program)
        names = [e.op.primitive.name for e in program.equations]
        assert cheap in names and dear not in names
    kept = optimise(tr.trace(lambda y: fn.sum(la.svd(y, full_matrices=False).U), x))
    assert "svd" in [e.op.primitive.name for e in kept.equations]


def test_values_are_those_of_a_decomposition_that_is_there_anyway():
    x = Spec((4, 4), np.dtype("float64"))
    a = tensor(numbers(6, (4, 4)))
    for f, name in [
        (lambda y: (la.svdvals(y), la.svd(y, full_matrices=False).U), "svd"),
        (lambda y: (la.eigh(y)[1], la.eigvalsh(y)), "eigh"),
    ]:
        program = check_program(tr.Runtime().optimise(tr.trace(f, x)))
        assert [e.op.primitive.name for e in program.equations] == [name]
        for got, want in zip(program.run(a), f(a), strict=True):
            np.testing.assert_allclose(got._concrete(), want._concrete(), atol=1e-12)
    apart = tr.Runtime(deterministic=True).optimise(tr.trace(lambda y: (la.svdvals(y), la.svd(y).U), x))
    assert len(apart.equations) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (9, 9), (40, 40), (2, 5, 5), (2, 33, 33)])
def test_deterministic_programs_have_the_bits_of_concrete_calls(shape, dtype):
    """Vectors of equal values aside, which a program turns so that a loss that depends on them shows."""
    raw = numbers(6, shape) + (1j * numbers(7, shape) if dtype[0] == "c" else 0)
    x = tensor((raw + 3 * np.eye(shape[-1])).astype(dtype))
    b = tensor(numbers(8, (*shape[:-1], 2)).astype(dtype))
    calls = {
        "solve": la.solve, "inv": lambda x, b: la.inv(x), "det": lambda x, b: la.det(x),
        "slogdet": lambda x, b: la.slogdet(x), "svdvals": lambda x, b: la.svdvals(x), "qr": lambda x, b: la.qr(x),
        "eigvalsh": lambda x, b: la.eigvalsh(x), "eigh": lambda x, b: la.eigh(x), "svd": lambda x, b: la.svd(x),
        "cholesky": lambda x, b: la.cholesky(x @ fn.conj(x).mT), "pinv": lambda x, b: la.pinv(x),
    }  # fmt: skip
    for name, f in calls.items():
        found, wanted = tr.compile(f, deterministic=True)(x, b), f(x, b)
        for got, want in zip(*[v if isinstance(v, tuple) else (v,) for v in (found, wanted)], strict=True):
            assert got._concrete().tobytes() == want._concrete().tobytes(), name


def test_a_pruned_program_is_differentiable():
    """The values-only primitives have rules of their own."""
    x, v = tensor(numbers(4, (4, 3))), tensor(numbers(5, (4, 3)))
    program = tr.Runtime().optimise(tr.trace(lambda y: fn.sum(la.svdvals(y) ** 3), x))
    f = lambda y: program.run(y)[0] if isinstance(program.run(y), (tuple, list)) else program.run(y)
    from tenferro_linalg._eig import eigvals_
    from tenferro_linalg._eigh import eigvalsh_
    from tenferro_linalg._svd import svdvals_

    for direct, public in [
        (lambda y: fn.sum(svdvals_(y) ** 3), lambda y: fn.sum(la.svdvals(y) ** 3)),
        (lambda y: fn.sum(fn.real(eigvals_(y[:3]) ** 3)), lambda y: fn.sum(fn.real(la.eigvals(y[:3]) ** 3))),
        (lambda y: fn.sum(eigvalsh_(y[:3]) ** 3), lambda y: fn.sum(la.eigvalsh(y[:3]) ** 3)),
    ]:
        np.testing.assert_allclose(grad(direct)(x)._concrete(), grad(public)(x)._concrete(), rtol=1e-12)
        np.testing.assert_allclose(float(jvp(direct, (x,), (v,))[1]), float(jvp(public, (x,), (v,))[1]), rtol=1e-12)
    assert float(f(x)) == pytest.approx(float(fn.sum(la.svdvals(x) ** 3)))  # type: ignore[arg-type]


SYMBOLIC = {
    "svd": lambda x: la.svd(x, full_matrices=False).S,
    "full": lambda x: la.svd(x, full_matrices=True).U,
    "qr": lambda x: la.qr(x).R,
    "complete": lambda x: la.qr(x, mode="complete").R,
    "pinv": la.pinv,
    "nuclear": lambda x: la.matrix_norm(x, ord="nuc"),
    "power": lambda x: la.vector_norm(x, ord=3, axis=-1),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name):
    """One program serves tall, square and wide matrices, and empty ones."""
    f = SYMBOLIC[name]
    program = tr.trace(f, Spec((tr.dim("m"), tr.dim("n")), np.dtype("float64")))
    for shape in [(5, 3), (4, 4), (3, 5), (1, 1), (0, 3)]:
        x = tensor(numbers(6, shape))
        got = program.run(x)
        got = got[0] if isinstance(got, (tuple, list)) else got
        expected = f(x)
        assert got.shape == expected.shape
        if name != "full":
            np.testing.assert_allclose(got._concrete(), expected._concrete(), atol=1e-12)


@pytest.mark.parametrize("name", ["svd", "qr", "pinv"])
def test_symbolic_gradients(name):
    f = {
        "svd": lambda x: fn.sum(la.svd(x, full_matrices=False).S ** 2),
        "qr": lambda x: fn.sum(fn.sin(la.qr(x).R)),
        "pinv": lambda x: fn.sum(la.pinv(x)),
    }[name]
    program = tr.trace(grad(f), Spec((tr.dim("m"), tr.dim("n")), np.dtype("float64")))
    for shape in [(5, 3), (4, 4), (3, 5)]:
        x = tensor(numbers(7, shape))
        got = program.run(x)
        got = got[0] if isinstance(got, (tuple, list)) else got
        np.testing.assert_allclose(got._concrete(), grad(f)(x)._concrete(), atol=1e-10)


def test_the_tests_for_degeneracy_run_at_every_replay():
    g = tr.compile(grad(of_svd))
    for seed in (8, 9):
        assert np.isfinite(g(tensor(numbers(seed, (4, 4))))._concrete()).all()
    program = g.program(tensor(B))
    with pytest.raises(DegenerateError):
        program.run(tensor(np.diag([3.0, 2.0, 1.0, 1.0])))
    assert np.isfinite(g(tensor(numbers(10, (4, 4))))._concrete()).all()
    phase = tr.compile(grad(lambda x: fn.sum(real(la.svd(x, full_matrices=False).U))))
    with pytest.raises(GaugeError):
        phase(tensor(numbers(11, (4, 4), "complex128")))


def test_the_family_is_reached_from_the_namespace():
    assert tr.linalg.svd is la.svd
    assert float(tr.linalg.det(tensor(np.eye(2)))) == 1.0


@pytest.mark.parametrize("name", LOSSES)
def test_linearisations_have_one_basis_for_all_tangents(name):
    f, x = LOSSES[name], tensor(numbers(12, (4, 4)))
    y, push = linearize(f, x)
    assert float(y) == pytest.approx(float(f(x)))
    g = grad(f)(x)._concrete()
    for seed in (13, 14):
        v = numbers(seed, (4, 4))
        assert float(push(tensor(v))) == pytest.approx((g * v).sum(), rel=1e-9)
    np.testing.assert_allclose(jacfwd(f)(x)._concrete(), g, rtol=1e-9, atol=1e-11)


def test_a_linearisation_at_a_multiplet_chooses_the_basis_for_each_tangent():
    """In one basis no derivative exists along a general tangent: the function is pushed anew for it."""
    x = tensor(np.diag([3.0, 1.0, 1.0, 2.0]))
    _, push = linearize(of_eigh, x)
    for seed in (15, 16):
        v = tensor(numbers(seed, (4, 4)))
        assert float(push(v)) == pytest.approx(float(jvp(of_eigh, (x,), (v,))[1]))
    _, push = linearize(lambda y: la.eigvalsh(y), x)
    np.testing.assert_allclose(push(tensor(np.eye(4)))._concrete(), np.ones(4), atol=1e-14)
    assert float(jvp(tr.compile(of_svd), (x,), (v,))[1]) == pytest.approx(float(jvp(of_svd, (x,), (v,))[1]))
    both = tr.compile(lambda y, v: jvp(of_eigh, (y,), (v,))[1])
    assert float(both(x, v)) == pytest.approx(float(jvp(of_eigh, (x,), (v,))[1]))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_checker_of_the_library_accepts_the_rules(dtype):
    x = numbers(17, (3, 3), dtype) + 2 * np.eye(3)
    for f in (
        lambda y: la.svdvals(y),
        lambda y: la.eigvalsh(y),
        lambda y: la.matmul(la.eigh(y)[1] * 0 + y, y),
        lambda y: la.qr(y),
        lambda y: la.inv(y),
        lambda y: la.slogdet(y).logabsdet,
        lambda y: la.cholesky(la.matmul(y, adjoint(y))),
        lambda y: la.pinv(y[:2]),
        lambda y: la.spectral_function(y, fn.exp),
        lambda y: la.vector_norm(y, ord=3, axis=0),
    ):
        check_grads(f, (tensor(x),), order=2)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 5), (2, 4, 3), (0, 3), (3, 0)])
def test_r_alone_is_r_to_the_bit_and_has_its_derivatives(shape, dtype):
    raw = numbers(8, shape).astype(dtype)
    x = tensor(raw * (1 + 0.5j) if dtype == "complex128" else raw)
    alone = tr.compile(lambda y: la.qr(y).R, deterministic=True)
    assert [e.op.primitive.name for e in alone.program(x).equations] == ["qr_r"]
    np.testing.assert_array_equal(alone(x)._concrete(), la.qr(x).R._concrete())
    if 0 in shape:
        return

    def loss(y):
        r = la.qr(y).R
        return fn.sum(fn.real(r * fn.conj(r) * r))

    np.testing.assert_allclose(grad(tr.compile(loss))(x)._concrete(), grad(loss)(x)._concrete(), rtol=1e-9, atol=1e-10)
    direction = tensor(numbers(9, shape).astype(dtype))
    got, want = (jvp(f, (x,), (direction,))[1] for f in (tr.compile(loss), loss))
    np.testing.assert_allclose(got._concrete(), want._concrete(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_compiled_derivative_at_a_multiplet(dtype):
    """The program for distinct values fails at equal ones; another trace of the function is taken there."""
    b, v = numbers(20, (4, 4), dtype), tensor(numbers(21, (4, 4), dtype))

    def sine(y):
        w, u = la.eigh(y)
        return inner(la.matmul(u * fn.expand_dims(fn.sin(w), axis=-2), adjoint(u)), b)

    compiled: dict[str, Any] = {
        "grad": tr.compile(grad(sine)),
        "hvp": tr.compile(lambda y: jvp(grad(sine), (y,), (v,))[1]),
        "inside": grad(tr.compile(sine)),
        "vmap": lambda y: tr.compile(tr.vmap(grad(sine)))(fn.stack([y, y + 1]))[0],
    }
    plain = {"hvp": lambda y: jvp(grad(sine), (y,), (v,))[1]}
    for spectrum in [(1, 1, 2, 3), (1, 2, 3, 4), (1, 1, 2, 3), (2, 2, 2, 2)]:
        x = tensor(hermitian(spectrum, dtype, 22))
        for name, f in compiled.items():
            expected = plain.get(name, grad(sine))(x)._concrete()
            np.testing.assert_allclose(f(x)._concrete(), expected, atol=1e-10 if name != "hvp" else 1e-7)


def test_a_compiled_gradient_of_a_kink_stays_refused():
    def loss(y):
        w, u = la.eigh(y)
        return fn.sum(la.matmul(u * fn.sin(w), fn.matrix_transpose(u)) * numbers(23, (3, 3))) + w[0]

    f = tr.compile(grad(loss))
    x, y = tensor(np.diag([1.0, 1.0, 2.0])), tensor(np.diag([1.0, 2.0, 4.0]))
    for _ in range(2):
        with pytest.raises(DegenerateError, match="no common limit"):
            f(x)
        np.testing.assert_allclose(f(y)._concrete(), grad(loss)(y)._concrete(), atol=1e-14)


def test_where_the_function_is_recorded_in_parts():
    """A checkpointed function is run again beside the point as any other; the body of a recorded loop is not."""
    b = numbers(24, (3, 3))

    def sine(y):
        w, u = la.eigh(y)
        return la.matmul(u * columns(fn.sin(w)), adjoint(u))

    def looped(y):
        return inner(tr.scan(lambda carry, _: (sine(carry), None), y, None, length=2)[0], b)

    x = tensor(hermitian((1, 1, 2), "float64", 25))
    twice = lambda y: inner(sine(sine(y)), b)
    kept = lambda y: inner(checkpoint(sine)(sine(y)), b)
    np.testing.assert_allclose(grad(kept)(x)._concrete(), grad(twice)(x)._concrete(), atol=1e-11)
    np.testing.assert_allclose(grad(looped)(x)._concrete(), grad(twice)(x)._concrete(), atol=1e-11)
    with pytest.raises(DegenerateError):
        tr.compile(grad(looped))(x)
    apart = tensor(hermitian((1, 1.5, 2), "float64", 25))
    np.testing.assert_allclose(tr.compile(grad(looped))(apart)._concrete(), grad(twice)(apart)._concrete(), atol=1e-11)


def test_a_rough_function_takes_shorter_steps():
    """``exp(40 w)`` changes by much within the usual step."""
    x, b = hermitian((0.2, 0.2, 1.0), "float64", 26), numbers(27, (3, 3))

    def rough(y):
        w, u = la.eigh(y)
        return inner(la.matmul(u * columns(fn.exp(40 * w)), adjoint(u)), b)

    exact = grad(lambda y: inner(la.spectral_function(y, lambda w: fn.exp(40 * w)), b))
    expected = exact(tensor(x))._concrete()
    np.testing.assert_allclose(grad(rough)(tensor(x))._concrete(), expected, atol=1e-9 * np.abs(expected).max())
