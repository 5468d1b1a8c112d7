"""Fixed points, roots and linear equations inside of loops, programs, lanes and other transforms."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tenferro_runtime as tr
from equations import (
    A,
    by_jacobian,
    close,
    dense,
    explicit,
    limit,
    matrix,
    richardson,
    root_of,
    scipy_root,
    size,
    size_of,
    solved_by,
    unrolled,
    unrolled_limit,
    vector,
)
from tenferro_ad import (
    checkpoint,
    custom_linear_solve,
    custom_root,
    fixed_point,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)


def test_inside_of_scan_and_branches():
    def walk(f: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            y = tr.cond(a > 0.5, lambda a: f(a + c), lambda a: a * c, a)
            return y, y * y

        return lambda xs: (lambda c, ys: c + tr.sum(ys))(*tr.scan(step, tr.asarray(0.2), xs))  # type: ignore[arg-type]

    ways: list[Any] = [lambda f: f(A), lambda f: grad(f)(A), lambda f: jvp(f, (A,), (A,)), lambda f: hessian(f)(A)]
    expected = [way(walk(lambda a: unrolled_limit(a, 80))) for way in ways]  # carries are added to the numbers
    for g in (walk(limit), tr.compile(walk(limit))):
        close([way(g) for way in ways], expected)
    close(tr.compile(grad(walk(limit)))(A), expected[1])


@pytest.mark.stepwise
def test_inside_of_a_while_loop_and_a_checkpoint():
    def loop(f: Any) -> Any:
        return lambda a: tr.sum(
            tr.while_loop(lambda s: s[1] < 3, lambda s: (f(s[0]), s[1] + 1), (a, tr.asarray(0)), max_steps=5)[0]
        )

    expected = loop(unrolled_limit)
    slope, pushed = grad(expected)(A), jvp(expected, (A,), (A,))
    for g in (tr.compile(loop(limit)), checkpoint(loop(limit)), loop(checkpoint(limit))):
        close(grad(g)(A), slope)
        close(jvp(g, (A,), (A,)), pushed)
    close(hessian(size_of(checkpoint(limit)))(A), hessian(size_of(unrolled_limit))(A))


def test_one_equation_inside_of_another():
    def outer(f: Any) -> Any:
        return lambda a: f(lambda x, a: 0.3 * f(lambda y, x: 0.4 * tr.sin(y + x * a), 0.1, x) + 0.5 * a, 0.2, a)

    def plain(f: Any, x: Any, a: Any) -> Any:
        for _ in range(24):
            x = f(x, a)
        return x

    g, expected = outer(fixed_point), outer(plain)
    for order in (grad, lambda f: grad(grad(f)), lambda f: jacfwd(grad(f)), lambda f: grad(grad(grad(f)))):
        close(order(g)(0.7), order(expected)(0.7))
    close(tr.compile(grad(grad(g)))(0.7), grad(grad(expected))(0.7))


def test_the_other_transforms():
    y, push = linearize(limit, A)
    close((y, push(A)), jvp(unrolled_limit, (A,), (A,)))
    y, pull = vjp(limit, A)
    close((y, pull(A)), (unrolled_limit(A), vjp(unrolled_limit, A)[1](A)))
    close(tr.compile(pull)(A), pull(A))
    close(tr.compile(push)(A), push(A))
    close(jacrev(limit)(A), jacfwd(limit)(A))


def test_one_program_serves_all_sizes(tmp_path):
    f = tr.compile(lambda a: size(limit(a)))
    g = tr.compile(grad(lambda a: size(limit(a))))
    for n in (3, 1, 0, 7):
        a = tr.linspace(0.1, 1.2, n)
        slope = grad(lambda a: size(unrolled_limit(a)))(a)
        close(f(a), size(unrolled_limit(a)))
        close(g(a), slope)
        close(grad(f)(a), slope)
    assert g.cache_info().traces == 1
    f.save(tmp_path / "limit", A)
    loaded = tr.load(tmp_path / "limit")
    close(grad(loaded)(A), g(A))
    close(hessian(loaded)(A), hessian(lambda a: size(unrolled_limit(a)))(A))


def test_deterministic_programs():
    f = tr.compile(limit, deterministic=True)
    close(f(A), unrolled_limit(A))
    close(jacfwd(f)(A), jacfwd(unrolled_limit)(A))


@pytest.mark.parametrize("compiled", [False, True])
def test_zero_sizes(compiled):
    empty = tr.zeros((0,))
    f = lambda b: custom_linear_solve(lambda x: 2 * x, b, richardson, richardson)
    g = lambda b: custom_root(lambda x: x - b, b, lambda f, x: x - f(x))
    for h in (f, g, limit, lambda b: {"x": f(b), "none": custom_root(lambda x: {}, {}, lambda f, x: {})}["x"]):
        h = tr.compile(h) if compiled else h
        assert h(empty).shape == (0,)
        assert grad(size_of(h))(empty).shape == (0,)
        assert jacfwd(h)(empty).shape == (0, 0)


LANES = tr.asarray(np.linspace(0.1, 1.2, 12).reshape(4, 3))


def each(f: Any) -> Any:
    return lambda xs: tr.stack([f(x) for x in xs])


@pytest.mark.stepwise
def test_lanes_of_fixed_points():
    some, none = LANES[:3], LANES[:0]
    pushed = lambda f: lambda a: jvp(f, (a,), (a,))[1]
    pulled = lambda f: lambda a: vjp(f, a)[1](a)[0]
    for made in (lambda f: f, pushed, pulled, lambda f: hessian(size_of(f))):
        inside = tr.vmap(made(limit))
        compiled = tr.compile(inside)
        found = inside(some)
        close((found, compiled(some)), (each(made(unrolled_limit))(some),) * 2)
        assert inside(none).shape == compiled(none).shape == (0, *found.shape[1:])
    total = lambda f: lambda xs: tr.sum(tr.vmap(size_of(f))(xs))
    outside = grad(total(limit))
    compiled = tr.compile(outside)
    for xs in (some, none):
        close((outside(xs), compiled(xs)), (grad(total(unrolled_limit))(xs),) * 2)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 1)])
def test_lanes_of_linear_equations(axes):
    a = tr.stack([matrix("float64", shift=2.0, seed=k) for k in range(3)], axis=axes[0] or 0)
    b = tr.stack([vector("float64", seed=k) for k in range(3)], axis=axes[1] or 0)
    a = a if axes[0] is not None else a[0]
    b = b if axes[1] is not None else b[0]
    for solve in (dense, richardson, lambda f, b: by_jacobian(f, b)):
        f, expected = solved_by(solve), explicit
        g, reference = grad(size_of(f), (0, 1)), grad(size_of(expected), (0, 1))
        close(tr.vmap(f, axes)(a, b), tr.vmap(expected, axes)(a, b))
        close(tr.vmap(g, axes)(a, b), tr.vmap(reference, axes)(a, b))
        outer = lambda f, axes=axes: grad(lambda a, b: tr.sum(tr.vmap(size_of(f), axes)(a, b)), (0, 1))
        close(outer(f)(a, b), outer(expected)(a, b))


def test_lanes_within_lanes_and_within_loops():
    xs = tr.stack([LANES, 0.5 * LANES])
    g = grad(size_of(limit))
    close(tr.vmap(tr.vmap(g))(xs), tr.vmap(tr.vmap(grad(size_of(unrolled_limit))))(xs))
    scanned = lambda f: lambda xs: tr.scan(lambda c, x: (c + tr.vmap(f)(x), tr.sum(c)), tr.zeros((4, 3)), xs)
    close(tr.compile(scanned(g))(xs), scanned(grad(size_of(unrolled_limit)))(xs))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_lanes_of_a_solver_that_runs_on_elements(order):
    def kepler(e: Any) -> Any:
        f = lambda x: x - e * tr.sin(x) - 1.0
        return custom_root(f, 1.0, lambda f, x: scipy.optimize.brentq(lambda x: float(f(x)), 0, 7, xtol=1e-14))

    f = kepler
    for _ in range(order):
        f = grad(f)
    e = tr.asarray([0.1, 0.2, 0.3])
    close(tr.vmap(f)(e), each(f)(e))


def test_each_lane_ends_where_it_converges():
    rate = tr.asarray([0.1, 0.9])
    f = lambda r: fixed_point(lambda x, r: r * x, 1.0, r, has_status=True)
    _, status = tr.vmap(f)(rate)
    assert [int(n) for n in status.steps] == [int(f(r)[1].steps) for r in rate]


# --- solvers that run on elements, in programs -----------------------------------------------------------------------


def kepler(e: Any) -> Any:
    f = lambda x: x - e * tr.sin(x) - 1.0
    return custom_root(f, 1.0, lambda f, x: scipy.optimize.brentq(lambda x: float(f(x)), 0, 7, xtol=1e-15))


def test_scipy_in_compiled_programs():
    def summed(e: Any) -> Any:
        return tr.scan(lambda c, e: (c + kepler(e) ** 2, kepler(e)), 0.0, e)

    e = tr.asarray([0.1, 0.2, 0.3])
    first = lambda e: summed(e)[0]
    cases: list[tuple[Any, Any]] = [
        (tr.vmap(kepler), e), (tr.vmap(grad(kepler)), e), (kepler, 0.3), (grad(grad(kepler)), 0.3),
        (grad(first), e), (summed, e), (lambda e: jvp(first, (e,), (e,)), e),
    ]  # fmt: skip
    for f, x in cases:
        close(tr.compile(f)(x), f(x))
    close(grad(tr.compile(first))(e), grad(first)(e))


def test_scipy_serves_programs_of_all_sizes():
    p = lambda q: 0.1 * q[:, None] * q
    f = lambda q: root_of(p(q), q, scipy_root)
    found = [tr.compile(g) for g in (f, jacfwd(f), jacrev(f), hessian(size_of(f)))]
    g = lambda q: unrolled(p(q), q)
    for n in (4, 2, 5):
        q = tr.linspace(0.1, 0.9, n)
        for a, b in zip(found, (g, jacfwd(g), jacrev(g), hessian(size_of(g))), strict=True):
            close(a(q), b(q))
            assert a.cache_info().traces == 1
