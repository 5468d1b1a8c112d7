"""The Laplacian in one forward run, against traces of Hessians."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_linalg as tl
import tenferro_runtime as tr
from rule_cases import CASES, Case
from tenferro_ad import grad, jacfwd, jvp, laplacian, taylor
from tenferro_ad.power_series._colors import VariableColors
from tenferro_ad.power_series._slots import SlotPlan
from tenferro_ad.power_series._slotted import SlotPlans
from tenferro_runtime.extension import ArgumentError, Builder, GradientError
from tenferro_tensor import Spec, tensor
from tenferro_tensor.catalog import tanh

R = np.random.default_rng(0)
X, W = R.normal(size=(2, 3)), R.normal(size=(6, 5))


def network(x: Any) -> Any:
    h = tr.tanh(x.reshape(-1) @ W)
    return tr.sum(tr.exp(tr.sin(h @ W.T) * 0.3))


def looped(x: Any) -> Any:
    return tr.fori_loop(0, 3, lambda i, c: tr.sin(c) * tr.sum(x * c), x)


def gaussian(row: Any) -> Any:
    return tr.exp(row @ row)


FUNCTIONS: dict[str, Any] = {
    "network": network,
    "determinant": lambda x: tl.slogdet(x @ x.T + tr.eye(2)).logabsdet,
    "eigenvalues": lambda x: tl.eigvalsh(x @ x.T + np.diag([1.0, 2.0])),
    "distances": lambda x: tr.sqrt(tr.sum((x[0] - x[1]) ** 2)) + tr.log(x[0] ** 2 + 2.0),
    "largest": lambda x: tr.max(x**3, axis=1) + tr.sort(tr.sin(x), axis=0)[0, 1],
    "loop": looped,
    "compiled": tr.compile(looped),
    "branch": lambda x: tr.cond(x[0, 0] > 5, lambda x: x, lambda x: tr.sin(x) * x[0], x),
    "lanes": tr.vmap(gaussian),
    "gradient": grad(network),
    "complex": lambda x: tr.sum(tr.exp(1j * x) * x, axis=1),
}


def trace_of_hessian(f: Any, x: np.ndarray) -> np.ndarray:
    h = np.asarray(jacfwd(jacfwd(f))(x))
    n = x.size
    return h.reshape(*h.shape[: h.ndim - 2 * x.ndim], n, n).trace(axis1=-2, axis2=-1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_the_hessian(name: str) -> None:
    f = FUNCTIONS[name]
    want = trace_of_hessian(f, X)
    for g in (
        laplacian(f),
        tr.compile(laplacian(f)),
        laplacian(f, memory_budget=2000),
        laplacian(f, sparse=True),
        tr.compile(laplacian(f, sparse=True)),
    ):
        np.testing.assert_allclose(g(X).numpy(), want, rtol=1e-9, atol=1e-12)


P1, P3, P8 = R.normal(size=(1, 8)), R.normal(size=(3, 8)) / 2, R.normal(size=(8, 8)) / 3


def particles(x: Any) -> Any:
    """Features of particles and of pairs, which meet late."""
    h = tr.tanh(tr.tanh(x @ P3) @ P8)
    d = x[:, None, :] - x[None, :, :]
    pairs = tr.tanh(tr.tanh(tr.sqrt(tr.sum(d * d, axis=-1, keepdims=True) + 0.1) @ P1) @ P8)
    h = tr.tanh(h + tr.sum(pairs, axis=1) @ P8)
    return tr.sum(tr.log(1 + tr.sum(h * h, axis=1)))


def test_few_variables_for_each_element() -> None:
    x = R.normal(size=(6, 3))
    builder = Builder()
    program = builder.close([particles(builder.input(tensor(x).spec))])
    plan = SlotPlan(program, [18])
    slots = [step.number for eq, step in zip(program.equations, plan.steps, strict=True) if eq.op.primitive is tanh]
    assert slots == [3, 3, 6, 6, 18]
    for g in (laplacian(particles, sparse=True, with_jacobian=True), laplacian(particles, with_jacobian=True)):
        value, jacobian, found = g(x)
        np.testing.assert_allclose(value.numpy(), particles(tensor(x)).numpy())
        np.testing.assert_allclose(jacobian.numpy(), grad(particles)(x).numpy(), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found.numpy(), trace_of_hessian(particles, x), rtol=1e-10)
    step = 1e-5 * R.normal(size=x.shape)
    energy = laplacian(particles, sparse=True)
    slope = (energy(x + step).item() - energy(x - step).item()) / 2
    for f in (energy, tr.compile(energy)):
        assert tr.sum(grad(f)(x) * step).item() == pytest.approx(slope, rel=1e-5)
    np.testing.assert_allclose(tr.vmap(energy)(x[None]).numpy(), [energy(x).item()])


def test_plans_follow_indices() -> None:
    """Programs that differ in their indices alone have plans of their own."""
    x = R.normal(size=(4, 2))
    for order in ([0, 1, 2, 3], [3, 3, 0, 1], [2, 1, 2, 1]):
        of = {"order": np.asarray(order)}

        def f(x: Any, of: Any = of) -> Any:
            return tr.sum(tr.exp(x * x[of["order"]] * x), axis=1) * tr.sum(x)

        energy = laplacian(f, sparse=True, has_aux=False)
        np.testing.assert_allclose(energy(x).numpy(), trace_of_hessian(f, x), rtol=1e-9)
    kept = SlotPlans()
    plans = []
    for order in ([0, 1, 2], [2, 1, 0], [0, 1, 2]):
        builder = Builder()
        v = builder.input(tensor(x[:3]).spec)
        program = builder.close([tr.take(tr.sin(v), np.asarray(order), axis=0)])
        plans.append(kept.of(program, (6,)))
    assert plans[0] is plans[2] is not plans[1]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 5))
def test_random_networks(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=n), rng.normal(size=(n, 4))
    steps = [[tr.sin, tr.tanh, tr.exp, lambda h: h * h, lambda h: h / (2.0 + h * h)][i] for i in rng.integers(0, 5, 3)]

    def f(x: Any) -> Any:
        h = x @ a
        for step in steps:
            h = step(h) / tr.sqrt(1.0 + tr.sum(h * h))
        return h

    np.testing.assert_allclose(laplacian(f)(x).numpy(), trace_of_hessian(f, x), rtol=1e-8, atol=1e-10)


def test_value_and_jacobian_come_along() -> None:
    for budget in (None, 1):
        value, jacobian, found = laplacian(network, with_jacobian=True, memory_budget=budget)(X)
        np.testing.assert_allclose(value.numpy(), network(tensor(X)).numpy())
        np.testing.assert_allclose(jacobian.numpy(), grad(network)(X).numpy())
        np.testing.assert_allclose(found.numpy(), trace_of_hessian(network, X))


@pytest.mark.parametrize("sparse", [False, True])
def test_value_of_a_decomposition_comes_along(sparse: bool) -> None:
    f = FUNCTIONS["eigenvalues"]
    value, jacobian, _ = laplacian(f, with_jacobian=True, sparse=sparse)(X)
    np.testing.assert_allclose(value.numpy(), f(tensor(X)).numpy())
    np.testing.assert_allclose(jacobian.numpy(), jacfwd(f)(X).numpy(), rtol=1e-10)


def test_containers() -> None:
    def f(p: Any, scale: Any) -> Any:
        return {"u": tr.sin(p["a"]) * tr.sum(p["b"] ** 2) * scale, "v": p["a"][0] * p["b"]}, scale

    p = {"a": X[0, :2], "b": X[1]}
    _, jacobian, found, aux = laplacian(f, has_aux=True, with_jacobian=True)(p, 2.0)
    assert aux == 2.0
    np.testing.assert_allclose(found["u"].numpy(), 2 * np.sin(p["a"]) * (6 - np.sum(p["b"] ** 2)))
    np.testing.assert_allclose(found["v"].numpy(), 0)
    assert jacobian["u"]["b"].shape == (2, 3)
    np.testing.assert_allclose(jacobian["v"]["b"].numpy(), p["a"][0] * np.eye(3))
    both = laplacian(lambda x, y: tr.sum(x**3 * y**2), argnums=(0, 1))(X[0], X[1])
    np.testing.assert_allclose(both.numpy(), np.sum(6 * X[0] * X[1] ** 2 + 2 * X[0] ** 3))


def test_other_transforms() -> None:
    direction = R.normal(size=X.shape)
    slope = jvp(laplacian(network), (X,), (direction,))[1].item()
    step = 1e-5 * direction
    want = (laplacian(network)(X + step).item() - laplacian(network)(X - step).item()) / 2e-5
    assert slope == pytest.approx(want, rel=1e-6)
    assert tr.sum(grad(laplacian(network))(X) * direction).item() == pytest.approx(want, rel=1e-6)
    assert taylor(laplacian(network), (X,), ([direction],))[1][0].item() == pytest.approx(slope)
    stack = np.stack([X, 2 * X])
    lanes = tr.vmap(laplacian(network))(stack).numpy()
    np.testing.assert_allclose(lanes, [laplacian(network)(x).item() for x in stack])
    np.testing.assert_allclose(
        laplacian(laplacian(lambda x: tr.sum(x**4) + tr.prod(x**2)))(X[0]).numpy(),
        72.0 + 8 * np.sum(X[0] ** 2),
    )


def lattice(p: Any) -> Any:
    """The action of angles on a torus."""
    return tr.sum(tr.cos(p - tr.roll(p, 1, axis=0))) + tr.sum(tr.cos(p - tr.roll(p, 1, axis=1)) * p)


SPARSE: dict[str, Any] = {
    "chain": lambda x: tr.sum(tr.cos(x[1:] - x[:-1]) * x[1:]) + tr.sum(x**4),
    "separable": lambda x: tr.sin(x) ** 3,
    "star": lambda x: tr.sum(x[0] * x**2),
    "dense": lambda x: tr.exp(tr.sum(x)),
    "complex": lambda x: tr.exp(1j * x) * x,
    "linear": lambda x: tr.cumulative_sum(x),
    "loop": lambda x: tr.fori_loop(0, 3, lambda i, c: tr.sin(c) * x, x),
}


@pytest.mark.parametrize("name", SPARSE)
def test_shared_directions(name: str) -> None:
    f, x = SPARSE[name], R.normal(size=6)
    want = trace_of_hessian(f, x)
    for g in (laplacian(f, sparse=True), laplacian(f, sparse=True, memory_budget=1)):
        for _ in range(2):  # the second call finds the colors
            np.testing.assert_allclose(g(x).numpy(), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tr.compile(laplacian(f, sparse=True))(x).numpy(), want, rtol=1e-9, atol=1e-12)


def test_number_of_shared_directions() -> None:
    x, p = R.normal(size=50), R.normal(size=(6, 6))
    for f, at, number in (
        (SPARSE["separable"], x, 1),
        (SPARSE["linear"], x, 1),
        (SPARSE["chain"], x, 2),
        (SPARSE["star"], x, 2),
        (lattice, p, 2),
        (SPARSE["dense"], x, 50),
    ):
        assert VariableColors(f, 0, False).of((at,), {}).number == number
    np.testing.assert_allclose(laplacian(lattice, sparse=True)(p).numpy(), trace_of_hessian(lattice, p))


def test_a_million_variables() -> None:
    x = np.linspace(0.0, 3.0, 1_000_000)
    found = laplacian(SPARSE["chain"], sparse=True)(x).item()
    d = x[1:] - x[:-1]
    assert found == pytest.approx(np.sum(-2 * np.cos(d) * x[1:] - 2 * np.sin(d)) + np.sum(12 * x**2))


def test_shared_directions_of_containers() -> None:
    def f(p: Any, scale: Any, power: int) -> Any:
        return tr.sum(p["a"] ** 2 * p["b"]) * scale + tr.prod(p["b"]) ** power, scale

    p = {"a": X[0], "b": X[1]}
    found, aux = laplacian(f, has_aux=True, sparse=True)(p, 2.0, power=1)
    assert aux == 2.0
    np.testing.assert_allclose(found.numpy(), 4 * np.sum(p["b"]))
    slope = jvp(laplacian(SPARSE["chain"], sparse=True), (X[0],), (X[1],))[1]
    np.testing.assert_allclose(slope.numpy(), jvp(laplacian(SPARSE["chain"]), (X[0],), (X[1],))[1].numpy())


def test_shared_directions_with_values_from_outside() -> None:
    def of(w: Any, sparse: bool) -> Any:
        return laplacian(lambda x: tr.sum(tr.sin(w * x[1:]) * x[:-1]), sparse=sparse)(X[0])

    for transform in (grad, lambda f: lambda w: jvp(f, (w,), (1.0,))[1], tr.compile):
        found, want = (transform(lambda w, s=s: of(w, s))(2.0).item() for s in (True, False))
        assert found == pytest.approx(want)
    lanes = tr.vmap(lambda w: of(w, True))(np.array([1.0, 2.0])).numpy()
    np.testing.assert_allclose(lanes, [of(1.0, False).item(), of(2.0, False).item()])


def test_constants_and_no_variables() -> None:
    assert laplacian(lambda x: 2.0)(X).item() == 0.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(laplacian(lambda x: x)(X).numpy(), 0 * X)
    assert laplacian(lambda x: tr.sum(x * x))(np.zeros(0)).item() == 0.0
    assert laplacian(lambda x: tr.sum(x * x), sparse=True)(np.zeros(0)).item() == 0.0


def test_what_does_not_fit() -> None:
    with pytest.raises(GradientError, match="real and imaginary parts"):
        laplacian(lambda x: x)(X + 0j)
    with pytest.raises(GradientError, match="one value is bool"):
        laplacian(lambda x: x > 0)(X)
    with pytest.raises(ArgumentError, match="memory_budget needs sizes that are numbers"):
        tr.trace(laplacian(lambda x: tr.sum(x * x), memory_budget=10), Spec((tr.dim("n"),), X.dtype))
    with pytest.raises(ArgumentError, match="sparse=True needs sizes that are numbers"):
        tr.trace(laplacian(lambda x: tr.sum(x * x), sparse=True), Spec((tr.dim("n"),), X.dtype))


@pytest.mark.parametrize("case", [case for case in CASES if case.xs is not None], ids=str)
def test_every_primitive(case: Case) -> None:
    xs = case.xs or ()
    nums = tuple(range(len(xs)))
    found = laplacian(case.f, nums)(*xs).numpy()
    in_slots = laplacian(case.f, nums, sparse=True, with_jacobian=True)(*xs)
    rows = jacfwd(case.f, nums)(*map(tensor, xs))
    for a, b in zip(in_slots[1], rows, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)
    second = jacfwd(jacfwd(case.f, nums), nums)(*map(tensor, xs))
    want = np.zeros(found.shape, found.dtype)
    for i, x in enumerate(xs):
        h = second[i][i].numpy()
        want = want + h.reshape(*found.shape, x.size, x.size).trace(axis1=-2, axis2=-1)
    for h in (found, in_slots[2].numpy()):
        np.testing.assert_allclose(h, want, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(want).max(initial=0)))
