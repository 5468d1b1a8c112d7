"""custom_root, custom_linear_solve and fixed_point against explicit derivatives and finite differences."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import tenferro_runtime as tr
from tenferro_ad import (
    check_grads,
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
    variable,
    vjp,
)
from tenferro_runtime.trees import flatten
from tenferro_tensor_core import GradientError

DTYPES = ["float32", "float64", "complex64", "complex128"]
N = 4


def matrix(dtype: Any, n: int = N, seed: int = 0, scale: float = 0.25, shift: float = 0.0) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, n)) * scale + shift * np.eye(n)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * scale * rng.normal(size=(n, n))
    return tr.asarray(found.astype(dtype))


def vector(dtype: Any, n: int = N, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=n)
    return tr.asarray((found + 1j * rng.normal(size=n) if np.dtype(dtype).kind == "c" else found).astype(dtype))


def tolerance(dtype: Any) -> dict[str, float]:
    return {"rtol": 2e-3, "atol": 2e-3} if np.finfo(dtype).eps > 1e-10 else {"rtol": 1e-8, "atol": 1e-8}


def close(found: Any, expected: Any, rtol: float = 1e-8, atol: float = 1e-10) -> None:
    for a, b in zip(flatten(found)[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol, atol)


def size(x: Any) -> Any:
    return tr.sum(tr.real(x * tr.conj(x)))


def size_of(f: Any) -> Any:
    return lambda *args: size(f(*args))


# --- linear equations -----------------------------------------------------------------------------------------------


def dense(f: Any, b: Any) -> Any:
    """NumPy's solver on the matrix of a function, column by column."""
    eye = np.eye(b.shape[0], dtype=b.numpy().dtype)
    return np.linalg.solve(np.stack([np.asarray(f(e)) for e in eye], axis=1), b.numpy())


def richardson(f: Any, b: Any) -> Any:
    """A loop that can be recorded, for matrices near twice the identity; its number of steps is not known."""

    def goes_on(state: Any) -> Any:
        _, r, k = state
        return (size(r) > 1e-30 * size(b)) & (k < 400)

    def step(state: Any) -> Any:
        x, r, k = state
        x = x + 0.4 * r
        return x, b - f(x), k + 1

    return tr.while_loop(goes_on, step, (tr.zeros_like(b), b, tr.asarray(0)))[0]


def scipy_gmres(f: Any, b: Any) -> Any:
    n = b.shape[0]
    a = scipy.sparse.linalg.LinearOperator((n, n), matvec=lambda v: np.array(f(v)), dtype=b.numpy().dtype)
    return scipy.sparse.linalg.gmres(a, b.numpy(), rtol=1e-13)[0]


def solved_by(solve: Any) -> Any:
    return lambda a, b: custom_linear_solve(lambda x: a @ x, b, solve, solve)


def explicit(a: Any, b: Any) -> Any:
    return tr.linalg.solve(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solve", [dense, richardson])
def test_linear_solutions_have_the_derivatives_of_solve(dtype, solve):
    a, b = matrix(dtype, shift=2.0), vector(dtype)
    f, how = solved_by(solve), tolerance(dtype)
    close(f(a, b), explicit(a, b), **how)
    for other in (f, tr.compile(f)) if solve is richardson else (f,):
        close(
            grad(size_of(other), (0, 1))(a, b),
            grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b),
            **how,
        )
        close(jvp(other, (a, b), (b[:, None] * b, b)), jvp(explicit, (a, b), (b[:, None] * b, b)), **how)


@pytest.mark.parametrize("compiled", [False, True])
def test_linear_solutions_to_third_order(compiled):
    f = lambda a, b: size(solved_by(richardson)(a, b))
    f = tr.compile(f) if compiled else f
    a, b, u = matrix("float64", shift=2.0), vector("float64"), vector("float64", seed=5)
    third = lambda g: jacfwd(hessian(lambda t: g(a + t * u[:, None] * b, b + t * t * u)))(0.3)
    close(third(f), third(lambda a, b: size(explicit(a, b))), rtol=1e-7)
    check_grads(f, (a, b), order=2)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("convention", ["tenferro", "jax"])
def test_the_convention_says_what_the_transpose_is(dtype, convention):
    a, b = matrix(dtype, shift=2.0), vector(dtype)
    turned = (lambda a: a.T) if convention == "jax" else (lambda a: tr.conj(a.T))
    seen = []

    def transposed(f: Any, b: Any) -> Any:
        seen.append((np.asarray(f(b)), np.asarray(turned(a) @ b)))
        return dense(f, b)

    f = lambda a, b: size(custom_linear_solve(lambda x: a @ x, b, dense, transposed, convention=convention))
    how = tolerance(dtype)
    close(grad(f, (0, 1))(a, b), grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b), **how)
    assert len(seen) == 1
    close(*seen[0], **how)


def test_a_hermitian_equation_needs_one_solver():
    a, b = matrix("complex128", shift=2.0), vector("complex128")
    calls = []

    def solve(f: Any, b: Any) -> Any:
        calls.append(1)
        return dense(f, b)

    f = lambda a, b: size(custom_linear_solve(lambda x: a @ x + tr.conj(a.T) @ x, b, solve, symmetric=True))
    g = lambda a, b: size(explicit(a + tr.conj(a.T), b))
    close(grad(f, (0, 1))(a, b), grad(g, (0, 1))(a, b))
    assert len(calls) == 2


def test_a_function_that_is_linear_over_the_reals_only():
    b = vector("complex128")
    w = tr.asarray(0.3 - 0.4j)

    def conjugating(w: Any, b: Any) -> Any:
        def loop(f: Any, b: Any) -> Any:
            x = b
            for _ in range(100):
                x = x + 0.9 * (b - f(x))
            return x

        return custom_linear_solve(lambda x: x + w * tr.conj(x), b, loop, loop)

    check_grads(conjugating, (w, b), order=2)


def test_scipy_solves_and_is_never_differentiated():
    a, b = matrix("float64", shift=2.0), vector("float64")
    f = lambda a, b: size(solved_by(scipy_gmres)(a, b))
    g = lambda a, b: size(explicit(a, b))
    close(grad(f, (0, 1))(a, b), grad(g, (0, 1))(a, b))
    close(hessian(f, 1)(a, b), hessian(g, 1)(a, b))
    close(jacfwd(jacrev(f))(a, b), jacfwd(jacrev(g))(a, b))
    x, y = variable(a), variable(b)
    f(x, y).backward()
    close((x.grad, y.grad), grad(g, (0, 1))(a, b))


def test_without_a_transposed_solver_there_is_forward_mode():
    a, b = matrix("float64", shift=2.0), vector("float64")
    for f in (
        lambda b: custom_linear_solve(lambda x: a @ x, b, dense),
        tr.compile(lambda b: custom_linear_solve(lambda x: a @ x, b, richardson)),
    ):
        close(jvp(f, (b,), (b,)), jvp(lambda b: explicit(a, b), (b,), (b,)))
        with pytest.raises(GradientError, match="give custom_linear_solve a transpose_solve, or symmetric=True"):
            grad(size_of(f))(b)


def test_the_solver_may_use_the_differentiated_matrix():
    a, b = matrix("float64", shift=2.0), vector("float64")

    def f(a: Any, b: Any) -> Any:
        solve = lambda _, b: tr.linalg.solve(a, b)
        turned = lambda _, b: tr.linalg.solve(a.T, b)
        return size(custom_linear_solve(lambda x: a @ x, b, solve, turned))

    expected = grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b)
    for g in (grad(f, (0, 1)), tr.compile(grad(f, (0, 1))), grad(tr.compile(f), (0, 1))):
        close(g(a, b), expected)
    close(hessian(f, 1)(a, b), hessian(lambda a, b: size(explicit(a, b)), 1)(a, b))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_comes_beside_the_solution(compiled):
    a, b = matrix("float64", shift=2.0), vector("float64")

    def solve(f: Any, b: Any) -> Any:
        return richardson(f, b), {"rhs": tr.sum(b)}

    def f(a: Any, b: Any) -> Any:
        x, aux = custom_linear_solve(lambda x: a @ x, b, solve, solve, has_aux=True)
        return size(x), aux

    g = lambda a, b: grad(f, (0, 1), has_aux=True)(a, b)
    found, aux = (tr.compile(g) if compiled else g)(a, b)
    close(found, grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b))
    close(aux["rhs"], tr.sum(b))
    close(f(a, b)[1]["rhs"], tr.sum(b))


class Pair(NamedTuple):
    u: Any
    v: Any


@pytest.mark.parametrize("compiled", [False, True])
def test_linear_equations_of_trees(compiled):
    def f(k: Any, b: Any) -> Any:
        def matvec(x: Any) -> Any:
            return {"p": Pair(2 * x["p"].u + k * x["c"], x["p"].v), "c": 3 * x["c"] - k * x["p"].u}

        return custom_linear_solve(matvec, b, tree_solver, tree_solver)

    def tree_solver(g: Any, b: Any) -> Any:
        x = b
        for _ in range(60):
            r = g(x)
            step = lambda x, b, r: x + 0.4 * (b - r)
            x = {
                "p": Pair(step(x["p"].u, b["p"].u, r["p"].u), step(x["p"].v, b["p"].v, r["p"].v)),
                "c": step(x["c"], b["c"], r["c"]),
            }
        return x

    b = {"p": Pair(vector("float64", 3), tr.asarray(np.ones((2, 2), "float32"))), "c": vector("float64", 3, seed=3)}
    f = tr.compile(f) if compiled else f
    found = f(0.5, b)
    close(2 * found["p"].u + 0.5 * found["c"], b["p"].u)
    check_grads(
        lambda k, u, c: f(k, {"p": Pair(u, b["p"].v), "c": c}), (0.5, b["p"].u, b["c"]), order=1 if compiled else 2
    )


# --- roots ----------------------------------------------------------------------------------------------------------


def jacobian(f: Any) -> Any:
    return lambda x: jacfwd(f, holomorphic=x.spec.cplx)(x)


def newton(f: Any, x: Any) -> Any:
    for _ in range(30):
        x = x - tr.linalg.solve(jacobian(f)(x), f(x))
    return x


def recorded_newton(f: Any, x: Any) -> Any:
    step = lambda s: (s[0] - tr.linalg.solve(jacobian(f)(s[0]), f(s[0])), s[1] + 1)
    return tr.while_loop(lambda s: (size(f(s[0])) > 1e-28) & (s[1] < 30), step, (x, tr.asarray(0)))[0]


def scipy_root(f: Any, x: Any) -> Any:
    return scipy.optimize.root(lambda v: np.array(f(v)), x.numpy(), tol=1e-13).x


def by_jacobian(g: Any, y: Any) -> Any:
    return tr.linalg.solve(jacobian(g)(y), y)


def system(p: Any, q: Any) -> Any:
    """A nonlinear system near the identity, with parameters of two shapes."""
    return lambda x: x + 0.2 * tr.sin(p @ x) - q


def root_of(p: Any, q: Any, solve: Any, *rest: Any) -> Any:
    return custom_root(system(p, q), tr.zeros_like(q), solve, *rest)


def unrolled(p: Any, q: Any) -> Any:
    x = q
    for _ in range(60):
        x = q - 0.2 * tr.sin(p @ x)
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rest", [(), (by_jacobian,)])
def test_roots_have_the_derivative_of_the_implicit_function(dtype, rest):
    p, q = matrix(dtype), vector(dtype)
    how = tolerance(dtype)
    f = lambda p, q: root_of(p, q, recorded_newton, *rest)
    for other in (f, tr.compile(f)):
        close(other(p, q), unrolled(p, q), **how)
        close(jvp(other, (p, q), (p, q)), jvp(unrolled, (p, q), (p, q)), **how)
        close(
            grad(size_of(other), (0, 1))(p, q),
            grad(lambda p, q: size(unrolled(p, q)), (0, 1))(p, q),
            **how,
        )


@pytest.mark.parametrize("solve", [newton, recorded_newton, scipy_root])
def test_roots_by_any_solver_to_second_order(solve):
    p, q = matrix("float64"), vector("float64")
    f = lambda q: size(root_of(p, q, solve))
    close(hessian(f)(q), hessian(lambda q: size(unrolled(p, q)))(q), rtol=1e-7)
    close(jacrev(jacrev(f))(q), hessian(f)(q))


@pytest.mark.parametrize("where", ["eager", "inside", "outside"])
def test_roots_to_third_order(where):
    def cube_root(a: Any) -> Any:
        step = lambda x: x - (x**3 - a) / (3 * x * x)
        solve = lambda f, x: tr.while_loop(lambda x: tr.abs(f(x)) > 1e-13, step, x)
        return custom_root(lambda x: x**3 - a, 1.0, solve, lambda g, y: y / g(1.0))

    f = tr.compile(cube_root) if where == "inside" else cube_root
    third = grad(grad(grad(f)))
    third = tr.compile(third) if where == "outside" else third
    close(third(8.0), 10 / 27 * 8 ** (-8 / 3))
    close(jvp(grad(lambda a: jvp(f, (a,), (1.0,))[1]), (8.0,), (1.0,))[1], 10 / 27 * 8 ** (-8 / 3))
    close(jacfwd(jacfwd(jacfwd(jacrev(f))))(8.0), -80 / 81 * 8 ** (-11 / 3))


def test_a_tangent_solver_that_knows_the_matrix_is_transposed():
    a = tr.asarray([[2.0, 1.0], [0.0, 3.0]])
    rest = lambda g, y: tr.linalg.solve(a, y)  # of tangents; J^H is another matrix
    f = lambda b: custom_root(lambda x: a @ x - b, tr.zeros(2), lambda f, x: tr.linalg.solve(a, -f(x)), rest)
    b = tr.asarray([1.0, 2.0])
    close(jacfwd(f)(b), tr.linalg.inv(a))
    close(jacrev(f)(b), tr.linalg.inv(a))
    close(tr.compile(jacrev(f))(b), tr.linalg.inv(a))


def test_derivatives_reach_closures_of_every_level():
    f = lambda a, x: custom_root(lambda y: y**3 + a * y - x, 1.0, lambda f, y: scalar_newton(f, y))
    both = lambda a: grad(lambda x: f(a, x * a) ** 2)(2.0)
    cubic = lambda a, x: (lambda d: tr.cbrt(x / 2 + d) - tr.cbrt(d - x / 2))(tr.sqrt(x * x / 4 + a**3 / 27))
    expected = lambda a: grad(lambda x: cubic(a, x * a) ** 2)(2.0)
    close(both(1.5), expected(1.5))
    close(grad(both)(1.5), grad(expected)(1.5), rtol=1e-7)
    close(jvp(both, (1.5,), (1.0,)), jvp(expected, (1.5,), (1.0,)), rtol=1e-7)


def scalar_newton(f: Any, x: Any) -> Any:
    for _ in range(40):
        x = x - f(x) / grad(f)(x)
    return x


def test_the_first_guess_has_no_derivative():
    f = lambda x0: custom_root(lambda x: x * x - 2.0, x0, scalar_newton)
    assert float(grad(f)(1.0)) == 0
    assert float(jvp(f, (1.0,), (1.0,))[1]) == 0
    assert float(tr.compile(grad(lambda x0: fixed_point(lambda x: 0.5 * (x + 2 / x), x0)))(1.0)) == 0


def test_roots_of_systems_that_conjugate():
    f = lambda a: custom_root(
        lambda z: z + 0.3 * tr.conj(z) - a + 0.1 * z * tr.abs(z) ** 2, 0j, lambda f, z: relaxed(f, z)
    )
    check_grads(f, (1.0 + 0.5j,), order=3)


def relaxed(f: Any, z: Any) -> Any:
    for _ in range(200):
        z = z - 0.5 * f(z)
    return z


# --- inside of other transforms -------------------------------------------------------------------------------------


def contraction(x: Any, a: Any) -> Any:
    return 0.5 * tr.cos(a * x) + 0.1 * a


def limit(a: Any) -> Any:
    return fixed_point(contraction, tr.zeros_like(a), a)


def unrolled_limit(a: Any) -> Any:
    x = tr.zeros_like(a)
    for _ in range(80):
        x = contraction(x, a)
    return x


A = tr.asarray([0.3, 0.8, 1.1])


def test_inside_of_scan_and_branches():
    def walk(f: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            y = tr.cond(a > 0.5, lambda a: f(a + c), lambda a: a * c, a)
            return y, y * y

        return lambda xs: (lambda c, ys: c + tr.sum(ys))(*tr.scan(step, tr.asarray(0.2), xs))

    for g in (walk(limit), tr.compile(walk(limit))):
        close(g(A), walk(unrolled_limit)(A))
        close(grad(g)(A), grad(walk(unrolled_limit))(A))
        close(jvp(g, (A,), (A,)), jvp(walk(unrolled_limit), (A,), (A,)))
        close(hessian(g)(A), hessian(walk(unrolled_limit))(A))
    close(tr.compile(grad(walk(limit)))(A), grad(walk(unrolled_limit))(A))


def test_inside_of_a_while_loop_and_a_checkpoint():
    def loop(f: Any) -> Any:
        return lambda a: tr.sum(
            tr.while_loop(lambda s: s[1] < 3, lambda s: (f(s[0]), s[1] + 1), (a, tr.asarray(0)), max_steps=5)[0]
        )

    expected = loop(unrolled_limit)
    for g in (tr.compile(loop(limit)), checkpoint(loop(limit)), loop(checkpoint(limit))):
        close(grad(g)(A), grad(expected)(A))
        close(jvp(g, (A,), (A,)), jvp(expected, (A,), (A,)))
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
        close(f(a), size(unrolled_limit(a)))
        close(g(a), grad(lambda a: size(unrolled_limit(a)))(a))
        close(grad(f)(a), grad(lambda a: size(unrolled_limit(a)))(a))
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


# --- lanes ----------------------------------------------------------------------------------------------------------

LANES = tr.asarray(np.linspace(0.1, 1.2, 12).reshape(4, 3))


def each(f: Any) -> Any:
    return lambda xs: tr.stack([f(x) for x in xs])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("lanes", [4, 0])
def test_lanes_of_fixed_points(compiled, lanes):
    xs = LANES[:lanes]
    pushed = lambda f: lambda a: jvp(f, (a,), (a,))[1]
    pulled = lambda f: lambda a: vjp(f, a)[1](a)[0]
    for made in (lambda f: f, pushed, pulled, lambda f: hessian(size_of(f))):
        inside = tr.vmap(made(limit))
        found = (tr.compile(inside) if compiled else inside)(xs)
        if lanes:
            close(found, each(made(unrolled_limit))(xs))
        assert found.shape[0] == lanes
    total = lambda f: lambda xs: tr.sum(tr.vmap(size_of(f))(xs))
    outside = grad(total(limit))
    close((tr.compile(outside) if compiled else outside)(xs), grad(total(unrolled_limit))(xs))


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
