"""Programs compiled without the handling of equal eigenvalues and singular values, until these occur."""

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_ad import grad, hessian, jvp, value_and_grad
from tenferro_linalg import GaugeError
from tenferro_runtime.extension import REGISTRY, NumericalError, Spec, primitive
from tenferro_runtime.ir import inner_programs
from tenferro_xla import HloEmitter, _executable, lower_to_stablehlo
from tenferro_xla._lower import lowered

RNG = np.random.default_rng(5)


def drawn(shape, dtype="float64"):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return tr.conj(tr.matrix_transpose(x))


def values(a):
    return tr.sum(tl.svdvals(a) ** 3) + tr.sum(tl.eigvalsh(a + adjoint(a)) ** 3)


def vectors(a):
    w, v = tl.eigh(a @ adjoint(a))
    whole = tr.real((v * tr.exp(-w)[..., None, :]) @ adjoint(v))
    return tr.sum(whole[..., 0, :] * whole[..., 2, :])


def triplets(a):
    u, s, vh = tl.svd(a, full_matrices=False)
    low = tr.real((u * s[..., None, :] ** 2) @ vh)
    return tr.sum(low[..., 0, :] * low[..., 1, :]) + tr.sum(tr.abs(u[..., 0]) ** 4) + vectors(a)


@pytest.fixture
def compiled_modules(monkeypatch):
    """Whether each module that is compiled for a program of several steps is optimistic."""
    found = []

    def noted(program, platform, **options):
        module = lowered(program, platform, **options)
        first = program.equations[0].op
        if len(program.equations) > 1 or any(inner_programs(first.params)):  # not an eager step
            found.append(module.optimistic)
        return module

    monkeypatch.setattr(_executable, "lowered", noted)
    return found


REGULAR, DEGENERATE = drawn((4, 4)), np.diag([2.0, 2.0, 1.0, 1.0])


@pytest.mark.parametrize("f", [values, vectors])
@pytest.mark.parametrize("place", ["cpu:0", "xla:cpu:0"])
def test_the_whole_program_is_compiled_when_values_are_equal(f, place, compiled_modules):
    run = tr.compile(value_and_grad(f), backend="xla")
    for x, modules in ((REGULAR, [True]), (REGULAR, [True]), (DEGENERATE, [True, False]), (REGULAR, [True, False]),
                       (-DEGENERATE, [True, False])):  # fmt: skip
        (value, slope), (want, want_slope) = run(tr.asarray(x, device=place)), value_and_grad(f)(tr.asarray(x))
        assert compiled_modules == modules and str(slope.device) == place
        np.testing.assert_allclose(np.asarray(value.to_device("cpu:0")), want, rtol=1e-10)
        np.testing.assert_allclose(np.asarray(slope.to_device("cpu:0")), want_slope, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (1, 4, 4)])
def test_derivatives_of_regular_matrices(dtype, shape, compiled_modules):
    x, dx = drawn(shape, dtype), drawn(shape, dtype)
    tolerance = 1e-2 if np.finfo(dtype).bits == 32 else 1e-8

    def both(x, dx):
        return grad(triplets)(x), jvp(triplets, (x,), (dx,))[1], grad(values)(x)

    for got, want in zip(tr.compile(both, backend="xla")(x, dx), both(tr.asarray(x), tr.asarray(dx)), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    assert compiled_modules == [True]


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (1, 1), (1, 3), (0, 3), (3, 0)])
def test_other_shapes(shape):
    def f(x):
        u, s, vh = tl.svd(x, full_matrices=True)
        k = min(shape)
        return tr.sum((u[..., :k] * s**2) @ vh[..., :k, :]) + tr.sum(tl.svdvals(x))

    x = drawn(shape)
    np.testing.assert_allclose(tr.compile(grad(f), backend="xla")(x), grad(f)(tr.asarray(x)), atol=1e-9)


def test_second_derivatives():
    def f(v):
        return tr.sum(tl.svdvals(tr.reshape(v, (2, 2))) ** 3)

    v = drawn(4)
    np.testing.assert_allclose(tr.compile(hessian(f), backend="xla")(v), hessian(f)(tr.asarray(v)), atol=1e-8)


def test_failures_are_those_of_the_whole_program():
    slope = tr.compile(grad(lambda a: tr.sum(tl.svd(a).U[0])), backend="xla")
    slope(REGULAR)
    for _ in range(2):
        with pytest.raises(GaugeError):
            slope(np.eye(4))
    f = tr.compile(grad(lambda a: tr.sum(tl.svdvals(a)) + tr.sum(tl.eigvalsh(a))), backend="xla")
    for wrong in (np.nan, np.inf):
        x = REGULAR.copy()
        x[1, 2] = wrong
        with pytest.raises(NumericalError):
            f(x)
    np.testing.assert_allclose(f(REGULAR), grad(lambda a: tr.sum(tl.svdvals(a)) + tr.sum(tl.eigvalsh(a)))(REGULAR))


def test_loops_and_branches(compiled_modules):
    def f(a):
        def step(_, a):
            return tr.cond(a[0, 0] > 0, lambda a: a + grad(values)(a) / 50, lambda a: a, a)

        return tr.fori_loop(0, 3, step, a)

    run = tr.compile(f, backend="xla")
    for x, modules in ((abs(REGULAR), [True]), (DEGENERATE, [True, False])):
        np.testing.assert_allclose(run(x), f(tr.asarray(x)), rtol=1e-9, atol=1e-9)
        assert compiled_modules == modules


def test_conditions_of_loops_are_whole_since_their_failures_are_lost(compiled_modules):
    def f(a):
        return tr.while_loop(lambda a: tr.sum(grad(values)(a)) < 1e3, lambda a: 2 * a, a)

    for x in (REGULAR, DEGENERATE):
        np.testing.assert_allclose(tr.compile(f, backend="xla")(x), f(tr.asarray(x)), rtol=1e-9)
    assert compiled_modules == [False, False]


def test_donated_memory_is_not_needed_again(compiled_modules):
    step = tr.compile(lambda a: a - grad(values)(a) / 10, donate=0, backend="xla")
    for place, optimistic in (("xla:cpu:0", False), ("cpu:0", True)):
        for x in (REGULAR, DEGENERATE):
            got = step(tr.asarray(x.copy(), device=place))
            want = x - np.asarray(grad(values)(tr.asarray(x))) / 10
            np.testing.assert_allclose(np.asarray(got.to_device("cpu:0")), want, atol=1e-9)
        assert compiled_modules.pop(0) == optimistic
    assert compiled_modules == [False]


def test_eager_steps_on_a_device():
    for x in (REGULAR, DEGENERATE, REGULAR):
        there = grad(vectors)(tr.asarray(x, device="xla:cpu:0"))
        np.testing.assert_allclose(np.asarray(there.to_device("cpu:0")), grad(vectors)(tr.asarray(x)), atol=1e-9)


def test_modules_for_others_are_whole():
    program = tr.trace(grad(values), REGULAR)
    module, quick = lower_to_stablehlo(program), lowered(program, "cpu", optimistic=True)
    assert (module.optimistic, quick.optimistic) == (False, True)
    assert len(quick.text.splitlines()) < len(module.text.splitlines()) / 2
    plain = tr.trace(lambda x: tl.inv(x) + 1, REGULAR)
    assert lowered(plain, "cpu", optimistic=True) == lower_to_stablehlo(plain)


def test_a_lowering_of_your_own_may_miss():
    @primitive(family="tests.root_of_square.v1", extension="tests-optimistic")
    def root_of_square(x: Spec) -> Spec:
        return x

    def lowering(e: HloEmitter, xs, outs):
        (x,) = xs
        if not e.optimistic:
            return e.op("abs", xs, outs[0])
        e.miss(e.compare("LT", x, e.constant(0, x.spec)))
        return x

    REGISTRY.lowering(root_of_square, lowering)
    f = tr.compile(lambda x: root_of_square(x) + 1, backend="xla")
    for x in ([1.0, 2.0], [1.0, -2.0], [3.0, 0.0], [-1.0, -1.0]):
        np.testing.assert_array_equal(f(np.asarray(x)), np.abs(x) + 1)
