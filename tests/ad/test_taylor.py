"""Taylor mode: every primitive of the catalog against nested jvp to order 5, and what `taylor` promises besides."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_linalg as tl
import tenferro_runtime as tr
from rule_cases import CASES, Case
from taylor_checks import ORDER, check_taylor, random_terms
from tenferro_ad import (
    check_primitive,
    custom_linear_solve,
    custom_root,
    custom_rule,
    fixed_point,
    grad,
    hessian,
    jvp,
    linearize,
    no_grad,
    taylor,
    taylor_kind,
)
from tenferro_ad.power_series._kinds import PROGRAMS
from tenferro_runtime.control_flow.primitives import budgeted, cond, scan
from tenferro_runtime.extension import (
    REGISTRY,
    ArgumentError,
    General,
    GradientError,
    MissingRuleError,
    RegistryError,
    flatten,
)
from tenferro_tensor import Primitive, Spec, catalog, primitive, tensor
from tenferro_tensor.checking import CheckError

PRIMITIVES = [p for p in vars(catalog).values() if isinstance(p, Primitive)]
V = np.random.default_rng(3).normal(size=4)


@pytest.mark.parametrize("case", [case for case in CASES if case.xs is not None], ids=str)
def test_real_operands(case: Case) -> None:
    """To the highest order for real operands or for complex ones, if there are any."""
    assert case.xs is not None
    check_taylor(case.f, case.xs, ORDER if case.zs is None else ORDER - 1)


@pytest.mark.parametrize("case", [case for case in CASES if case.zs is not None], ids=str)
def test_complex_operands(case: Case) -> None:
    check_taylor(case.f, case.zs)


@pytest.mark.parametrize("case", [case for case in CASES if case.xs is not None and len(case.xs) > 1], ids=str)
def test_one_operand_alone(case: Case) -> None:
    xs = case.xs or ()
    for i in range(len(xs)):
        rest = [*map(tensor, xs)]
        check_taylor(lambda x, i=i, rest=rest: case.f(*rest[:i], x, *rest[i + 1 :]), (xs[i],), 3)


def test_every_primitive_says_how() -> None:
    kinds = {p.name: taylor_kind(p) for p in PRIMITIVES}
    assert {"recurrence", "linear", "derivative rule", "constant"} == set(kinds.values())
    assert kinds["exp"] == kinds["div"] == "recurrence"
    assert kinds["dot_general"] == kinds["add"] == "linear"


STEPS: dict[str, Any] = {
    "sin": tr.sin,
    "exp": lambda x: tr.exp(tr.sin(x)),
    "log": lambda x: tr.log(x * x + 1.5),
    "sqrt": lambda x: tr.sqrt(x * x + 0.5),
    "quotient": lambda x: x / (x * x + 2.0),
    "tanh": tr.tanh,
    "power": lambda x: (x * x + 1.0) ** 1.7,
    "product": lambda x: x * tr.sum(x),
    "maximum": lambda x: tr.maximum(x, x[::-1]),
    "cumulative": lambda x: tr.cumulative_sum(x),
    "atan": tr.atan,
    "matrix": lambda x: tr.outer(x, x) @ tr.sin(x) if hasattr(tr, "outer") else x,
}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5), st.integers(1, 5), st.integers(0, 1000))
def test_random_compositions(names: list[str], order: int, seed: int) -> None:
    def f(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
            x = x / tr.sqrt(1.0 + tr.sum(x * x))  # keeps the sizes of high derivatives together
        return x

    check_taylor(f, (np.random.default_rng(seed).normal(size=3),), order, rtol=1e-7)


# -- programs, rules of users, and other transforms ------------------------------------------------------------------


def loop(x: Any) -> Any:
    return tr.fori_loop(0, 4, lambda i, c: tr.sin(c) * x + 0.1, x)


def growing(x: Any) -> Any:
    return tr.while_loop(lambda c: tr.sum(c * c) < 50.0, lambda c: c * 1.5 + tr.sin(x), x)


def scanned(x: Any, c: Any) -> Any:
    return tr.scan(lambda c, row: (tr.tanh(c + row), c * row), c, x)


def within_budget(x: Any, c: Any) -> Any:
    return tr.scan(lambda c, row: (tr.tanh(c + row), c * row), c, x, memory_budget=64)


def chosen(x: Any, y: Any) -> Any:
    return tr.cond(x[0] > 100, lambda x, y: (tr.sin(x), y), lambda x, y: (x * x * 2.0, x), x, y)


def product(x: Any) -> Any:
    return (tr.sin(x) @ x) * V[0]


A = np.random.default_rng(5).normal(size=(3, 4))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("f", "xs"),
    [(loop, (V,)), (growing, (V,)), (scanned, (A, V)), (within_budget, (A, V)), (chosen, (V, V + 1))],
    ids=["fori_loop", "while_loop", "scan", "scan within a budget", "cond"],
)
def test_branches_and_loops(f: Any, xs: Any, compiled: bool) -> None:
    check_taylor(tr.compile(f) if compiled else f, xs, 3)


def test_coefficients_keep_the_budget_of_a_loop() -> None:
    gradients = []
    for f in (scanned, within_budget):

        def second(x: Any, f: Any = f) -> Any:
            return tr.sum(taylor(lambda c: f(x, c), (V,), ([V, V],))[1][1][0])

        gradients.append(grad(second)(A).numpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-12, atol=1e-14)
    assert taylor_kind(budgeted) == "program"


def test_a_carry_gets_coefficients_in_the_loop() -> None:
    f = tr.compile(lambda x: tr.while_loop(lambda c: c[1] < 9.0, lambda c: (x * c[0], c[1] + tr.sum(x * x)), (V, 0.0)))
    check_taylor(f, (V,), 3)


def test_programs_with_sizes_that_depend_on_data() -> None:
    check_taylor(tr.compile(lambda x: tr.sum(tr.compress(x, x > 0) ** 3)), (V,), 3)


def cube_root(a: Any) -> Any:
    def solve(f: Any, x: Any) -> Any:
        return tr.fori_loop(0, 40, lambda i, x: x - (x**3 - tr.stop_gradient(a)) / (3 * x**2), x)

    return custom_root(lambda x: x**3 - a, tr.ones_like(a), solve, lambda g, y: y / g(tr.ones_like(y)))


def test_solutions_of_equations() -> None:
    a, m = np.abs(V) + 0.5, np.random.default_rng(1).normal(size=(4, 4)) / 4
    check_taylor(cube_root, (a,), 4)
    check_taylor(tr.compile(cube_root), (a,), 3)
    series = ([V, V * 2, None, V],)
    for found, want in zip(taylor(cube_root, (a,), series)[1], taylor(tr.cbrt, (a,), series)[1], strict=True):
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-10)

    def solved(m: Any, b: Any) -> Any:
        shifted = m + 2 * np.eye(4)
        return custom_linear_solve(
            lambda x: shifted @ x, b, lambda f, b: tl.solve(tr.stop_gradient(shifted), b[:, None])[:, 0]
        )

    check_taylor(solved, (m, V), 3)
    check_taylor(lambda b: solved(tensor(m), b), (V,), 3)
    check_taylor(lambda m: fixed_point(lambda x, m: tr.tanh(m @ x) + 0.5, V, m, tol=1e-14), (m,), 3)


@pytest.mark.parametrize("f", [scanned, lambda x, c: chosen(x[0], c)], ids=["scan", "cond"])
def test_primitives_with_programs_go_by_nested_jvp_at_least(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    series = [random_terms(A, 3, 0), random_terms(V, 3, 1)]
    want = taylor(f, (A, V), series)[1]
    for p in (scan, cond):
        monkeypatch.delitem(PROGRAMS, p)
        assert taylor_kind(p) == "nested jvp"
    for a, b in zip(flatten(taylor(f, (A, V), series)[1])[0], flatten(want)[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


def test_transforms_inside() -> None:
    def energy(x: Any) -> Any:
        return tr.sum(tr.sin(x) * x**3)

    check_taylor(grad(energy), (V,), 4)
    check_taylor(tr.compile(grad(tr.compile(energy))), (V,), 3)
    check_taylor(hessian(energy), (V,), 2)
    check_taylor(tr.vmap(product), (A,), 3)
    check_taylor(tr.compile(tr.vmap(growing)), (A,), 2)
    check_taylor(tr.vmap(growing), (A,), 2)
    check_taylor(lambda x: jvp(lambda z: tr.sin(z) * z, (x,), (x * x,)), (V,), 4)
    check_taylor(lambda x: taylor(lambda z: tr.sin(z) * z * x, (x * x,), ([x, x + 1.0],)), (V,), 3)


def curve(x: Any, d: Any) -> list[Any]:
    value, derivatives = taylor(lambda z: tr.exp(tr.sin(z)) / z**2.5, (x,), ([d, d * x, None],))
    return [value, *derivatives]


def test_transforms_outside() -> None:
    x, d = tensor(np.abs(V) + 0.5), tensor(V)
    want = curve(x, d)
    for a, b in zip(tr.compile(curve)(x, d), want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)

    def third(x: Any) -> Any:
        return tr.sum(curve(x, d)[3])

    step = 1e-5 * np.eye(4)[0]
    slope = (third(x + step).item() - third(x - step).item()) / 2e-5
    for f in (grad(third), tr.compile(grad(third)), lambda x: jvp(third, (x,), (np.eye(4)[0],))[1]):
        np.testing.assert_allclose(np.ravel(f(x).numpy())[0], slope, rtol=1e-6)
    stack = np.stack([x, 2 * x])
    for f in (tr.vmap(curve, in_axes=(0, None)), tr.compile(tr.vmap(curve, in_axes=(0, None)))):
        for k, term in enumerate(f(stack, d)):
            lanes = [curve(tensor(row), d)[k].numpy() for row in stack]
            np.testing.assert_allclose(term.numpy(), lanes, rtol=1e-12)
    # The curve alone is differentiated: its coefficients are of a higher level than the values.
    linear = linearize(lambda d: curve(x, d)[1], d)[1]
    np.testing.assert_allclose(linear(d).numpy(), want[1].numpy())


@pytest.mark.parametrize("side", ["jvp", "vjp"])
def test_custom_rules(side: str) -> None:
    rule: Any = {
        "jvp": lambda primals, tangents, outs: (3 * primals[0] ** 2 * tangents[0],),
        "vjp": lambda primals, outs, cotangents: (3 * primals[0] ** 2 * cotangents[0],),
    }[side]

    def cube(x: Any) -> Any:
        return np.power(x.numpy(), 3)

    check_taylor(custom_rule(cube, infer=lambda x: x, **{side: rule}), (V,), 4)


@primitive
def quartered(x: Spec) -> Spec:
    """The cosine of a quarter."""
    return x


REGISTRY.kernel(quartered, "cpu", lambda ins, outs: lambda x: np.cos(x / 4))


def coefficients(x: Any) -> Iterator[Any]:
    sine, cosine = [catalog.sin(x[0] / 4)], [catalog.cos(x[0] / 4)]
    k = 0
    while True:
        yield cosine[k]
        k += 1
        slopes = [(j / (4 * k), x[j], k - j) for j in range(1, k + 1) if x[j] is not None]
        sine.append(sum([n * a * cosine[i] for n, a, i in slopes]))
        cosine.append(-sum([n * a * sine[i] for n, a, i in slopes]))


def test_a_primitive_of_ones_own() -> None:
    with pytest.raises(MissingRuleError, match="quartered"):
        taylor(quartered, (V,), ([V],))
    with pytest.raises(RegistryError, match="the taylor of quartered is called with"):
        REGISTRY.taylor(quartered, lambda x, y: None)
    with REGISTRY.taylor(quartered, coefficients):
        assert taylor_kind(quartered) == "recurrence"
        series = ([V, None, V * 2],)
        found, want = (taylor(f, (V,), series)[1] for f in (quartered, lambda x: catalog.cos(x / 4)))
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_check_primitive_compares_a_recurrence_with_the_derivative() -> None:
    rule = General(jvp=lambda primals, tangents, outs: (catalog.sin(primals[0] / 4) * tangents[0] / -4,))

    def halved(x: Any) -> Iterator[Any]:
        for k, term in enumerate(coefficients(x)):
            yield term if k < 2 else term * 0.5

    left_out = ("files", "costs", "pruning", "lowering", "expansion", "batches", "dtypes")
    with REGISTRY.rule(quartered, rule):
        assert not check_primitive(quartered, V, skip=left_out).failed
        with REGISTRY.taylor(quartered, coefficients):
            assert not check_primitive(quartered, V, skip=left_out).failed
        with (
            REGISTRY.taylor(quartered, halved),
            pytest.raises(CheckError, match=r"power series: derivative 2 along a curve \(recurrence\)"),
        ):
            check_primitive(quartered, V, skip=left_out)


# -- what is given and returned ---------------------------------------------------------------------------------------


def test_containers_and_zeros() -> None:
    def f(p: Any, n: Any) -> Any:
        return {"product": p["a"] * p["b"], "constant": tensor(2.0), "count": n + 1}

    primals = ({"a": 2.0, "b": 3.0}, 4)
    value, derivatives = taylor(f, primals, ([{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}], [None, None]))
    assert value["product"].item() == 6.0
    assert [d["product"].item() for d in derivatives] == [3.0, 2.0]
    assert [d["constant"].item() for d in derivatives] == [0.0, 0.0]
    assert [d["count"] for d in derivatives] == [None, None]


def test_aux_and_order_0() -> None:
    value, derivatives, aux = taylor(lambda x: (x * x, x + 1), (2.0,), ([1.0],), has_aux=True)
    assert (value.item(), derivatives[0].item(), aux.item()) == (4.0, 4.0, 3.0)
    assert taylor(lambda x: x * x, (2.0,), ([],)) == (tensor(4.0), [])


def test_single_precision_stays() -> None:
    x = tensor(np.ones(2, np.float32))
    _, derivatives = taylor(lambda x: tr.exp(x) / (x + 1) + tr.sin(x) ** 2.5, (x,), ([x, x, x, x],))
    assert {d.dtype for d in derivatives} == {np.dtype("float32")}


def test_an_exact_zero_stays_zero_at_a_pole() -> None:
    x, d = tensor([0.0, 4.0]), tensor([0.0, 1.0])
    with np.errstate(divide="ignore"):
        for f in (tr.sqrt, tr.log, lambda x: 1 / x, lambda x: x**-1.5, catalog.rsqrt):
            for term in taylor(f, (x,), ([d, None, None],))[1]:
                assert term[0].item() == 0.0


def test_powers_at_zero() -> None:
    for n, want in ((2, [0, 2, 0]), (3, [0, 0, 6]), (2.5, [0, 0, np.inf])):
        with np.errstate(divide="ignore"):
            found = taylor(lambda x, n=n: x**n, (0.0,), ([1.0, None, None],))[1]
        np.testing.assert_array_equal([d.item() for d in found], want)


def test_no_grad_cuts() -> None:
    def f(x: Any) -> Any:
        with no_grad():
            y = x * x
        return x * y

    assert taylor(f, (3.0,), ([1.0, 0.0],))[1] == [tensor(9.0), tensor(0.0)]


def test_no_derivative_is_lost() -> None:
    with pytest.raises(GradientError, match=r"float\(\) of a Series"):
        taylor(lambda x: x * float(x), (2.0,), ([1.0],))


def test_what_does_not_fit() -> None:
    with pytest.raises(ArgumentError, match="one list of derivatives for each argument"):
        taylor(lambda x, y: x * y, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(ArgumentError, match="tuples of primals and of series"):
        taylor(lambda x: x, 1.0, ([1.0],))  # type: ignore[call-overload]
    with pytest.raises(GradientError, match="the derivative of order 2"):
        taylor(lambda x: x, (1.0,), ([1.0, [1.0, 2.0]],))
