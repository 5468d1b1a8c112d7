"""Derivatives at the points where automatic differentiation usually goes wrong, with their exact values.

Where a derivative exists it is never NaN; where it does not, a documented value stands in.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tenferro_ad import grad, jvp, vjp
from tenferro_tensor import catalog as c
from tenferro_tensor import tensor

INF = math.inf


class Trap(NamedTuple):
    """A function, where, and its gradient summed over the outputs."""

    name: str
    f: Callable[..., Any]
    at: Any
    gradient: Any


def guarded(p: Any, good: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function where it is defined, 0 elsewhere."""
    return lambda x: c.select(good(x), p(x), 0.0)


def exponent(y: Any) -> Callable[[Any], Any]:
    return lambda x: x ** tensor(np.asarray(y, dtype=float))


def sorted_by(x: Any, descending: bool) -> Any:
    return c.sort(x, axis=0, descending=descending)


MASKED = [
    Trap("sqrt", guarded(c.sqrt, lambda x: x > 0), [0.0, -1.0, 4.0], [0, 0, 0.25]),
    Trap("rsqrt", guarded(c.rsqrt, lambda x: x > 0), [0.0, -1.0, 4.0], [0, 0, -1 / 16]),
    Trap("cbrt", guarded(c.cbrt, lambda x: x != 0), [0.0, 8.0], [0, 1 / 12]),
    Trap("log", guarded(c.log, lambda x: x > 0), [0.0, -1.0, 4.0], [0, 0, 0.25]),
    Trap("log2", guarded(c.log2, lambda x: x > 0), [0.0, 1.0], [0, 1 / math.log(2)]),
    Trap("log10", guarded(c.log10, lambda x: x > 0), [0.0, 1.0], [0, 1 / math.log(10)]),
    Trap("log1p", guarded(c.log1p, lambda x: x > -1), [-1.0, -2.0, 1.0], [0, 0, 0.5]),
    Trap("reciprocal", guarded(lambda x: 1.0 / x, lambda x: x != 0), [0.0, 2.0], [0, -0.25]),
    Trap("asin", guarded(c.asin, lambda x: abs(x) < 1), [1.0, 2.0, 0.0], [0, 0, 1]),
    Trap("acos", guarded(c.acos, lambda x: abs(x) < 1), [1.0, 2.0, 0.0], [0, 0, -1]),
    Trap("acosh", guarded(c.acosh, lambda x: x > 1), [1.0, -2.0], [0, 0]),
    Trap("atanh", guarded(c.atanh, lambda x: abs(x) < 1), [1.0, 2.0, 0.0], [0, 0, 1]),
    Trap("erfinv", guarded(c.erfinv, lambda x: abs(x) < 1), [1.0, 2.0], [0, 0]),
    Trap("lgamma", guarded(c.lgamma, lambda x: x > 0), [0.0, -1.0], [0, 0]),
    Trap("digamma", guarded(c.digamma, lambda x: x > 0), [0.0, -1.0], [0, 0]),
    Trap("negative power", guarded(lambda x: x**-1.5, lambda x: x > 0), [0.0, -1.0, 1.0], [0, 0, -1.5]),
    Trap("overflowing exp", guarded(c.exp, lambda x: x < 1), [1000.0, 0.0], [0, 1]),
    Trap("overflowing exp2", guarded(c.exp2, lambda x: x < 1), [2000.0, 0.0], [0, math.log(2)]),
    Trap("overflowing expm1", guarded(c.expm1, lambda x: x < 1), [1000.0, 0.0], [0, 1]),
    Trap("overflowing sinh", guarded(c.sinh, lambda x: x < 1), [1000.0, 0.0], [0, 1]),
    Trap("overflowing cosh", guarded(c.cosh, lambda x: x < 1), [1000.0, 0.0], [0, 0]),
    Trap("sqrt of a masked operand", lambda x: c.sqrt(c.select(x > 0, x, 0.0)), [-1.0, 4.0], [0, 0.25]),
    Trap("sqrt of a maximum", lambda x: c.sqrt(c.maximum(x, 0.0)), [-1.0, 4.0], [0, 0.25]),
    Trap("log of a clamp", lambda x: c.log(c.clamp(x, 0.0, 1.0)), [-1.0, 0.5], [0, 2]),
    Trap("sum of an extremum", lambda x: c.sqrt(c.reduce_max(x, axes=(0,)) - 1.0), [0.5, 1.25], [0, 1]),
]

CONVENTIONS = [
    Trap("abs at 0", c.abs, [0.0, -0.0, -2.0], [0, 0, -1]),
    Trap("abs of complex 0", c.abs, [0j, 3 + 4j], [0, 0.6 + 0.8j]),
    Trap("sqrt at 0", c.sqrt, [0.0, 4.0], [INF, 0.25]),
    Trap("cbrt at 0", c.cbrt, [0.0], [INF]),
    Trap("log at 0", c.log, [0.0], [INF]),
    Trap("relu at 0", lambda x: c.maximum(x, 0.0), [0.0, 1.0, -1.0], [0.5, 1, 0]),
    Trap("minimum, tied with a number", lambda x: c.minimum(x, 0.0), [0.0, 1.0, -1.0], [0.5, 0, 1]),
    Trap("maximum of x and x", lambda x: c.maximum(x, x), [3.0], [1]),
    Trap("clamp at its ends", lambda x: c.clamp(x, -1.0, 1.0), [-1.0, 0.0, 1.0, 2.0], [0.5, 1, 0.5, 0]),
    Trap("clamp to a point", lambda x: c.clamp(x, 1.0, 1.0), [1.0], [0.25]),
    Trap("reduce_max tied", lambda x: c.reduce_max(x, axes=(0,)), [2.0, 1.0, 2.0], [0.5, 0, 0.5]),
    Trap("reduce_min tied", lambda x: c.reduce_min(x, axes=(0,)), [1.0] * 4, [0.25] * 4),
    Trap("reduce_max of infinities", lambda x: c.reduce_max(x, axes=(0,)), [-INF, -INF], [0.5, 0.5]),
    Trap("cummax tied: the first", lambda x: c.cummax(x, axis=0, reverse=False), [2.0, 2.0, 1.0], [3, 0, 0]),
    Trap("cummin reversed, tied", lambda x: c.cummin(x, axis=0, reverse=True), [1.0, 2.0, 1.0], [0, 0, 3]),
    Trap("cummax from 0", lambda x: c.cummax(x, axis=0, reverse=False), [0.0, -1.0, 3.0], [2, 0, 1]),
    Trap("floor, ceil, round, trunc", lambda x: c.floor(x) + c.ceil(x) + c.round(x) + c.trunc(x), [1.0], [0]),
    Trap("stop_gradient", lambda x: x * c.stop_gradient(x), [3.0], [3]),
    Trap("nextafter", lambda x: c.nextafter(x, 9.0), [3.0], [1]),
    Trap("sign", lambda x: c.sign(x) * x, [2.0, 0.0], [1, 0]),
    Trap("copysign at 0", lambda x: c.copysign(x, -1.0), [0.0, 2.0, -2.0], [0, -1, 1]),
    Trap("hypot(0, 0)", lambda x: c.hypot(x, 0.0), [0.0, 3.0, -3.0], [0, 1, -1]),
    Trap("atan2 at the origin", lambda x: c.atan2(x, 0.0), [0.0, 1.0], [0, 0]),
]  # fmt: skip

POWERS = [
    Trap("x ** 0", lambda x: x**0, [0.0, -2.0], [0, 0]),
    Trap("x ** 0.0", lambda x: x**0.0, [0.0, -2.0], [0, 0]),
    Trap("x ** 1", lambda x: x**1, [0.0, -2.0], [1, 1]),
    Trap("x ** 2", lambda x: x**2, [0.0, -3.0], [0, -6]),
    Trap("x ** 3", lambda x: x**3, [0.0, -2.0], [0, 12]),
    Trap("x ** -1", lambda x: x**-1, [-2.0], [-0.25]),
    Trap("x ** array", exponent([0, 0, 1, 2, 3, 3]), [0.0, -2.0, 0.0, 0.0, 0.0, -2.0], [0, 0, 1, 0, 0, 12]),
    Trap("0 ** y", lambda y: 0.0**y, [1.0, 2.0], [0, 0]),
    Trap("array 0 ** y", lambda y: tensor([0.0, 0.0]) ** y, [1.0, 2.0], [0, 0]),
    Trap("2 ** y", lambda y: 2.0**y, [0.0], [math.log(2)]),
    Trap("complex x ** 2 at 0", lambda x: x**2, [0j], [0]),
]

PRODUCTS = [
    Trap("prod, one zero", lambda x: c.reduce_prod(x, axes=(0,)), [2.0, 0.0, 3.0], [0, 6, 0]),
    Trap("prod, two zeros", lambda x: c.reduce_prod(x, axes=(0,)), [0.0, 0.0, 3.0], [0, 0, 0]),
    Trap("prod of one", lambda x: c.reduce_prod(x, axes=(0,)), [0.0], [1]),
    Trap("cumprod, one zero", lambda x: c.cumprod(x, axis=0, reverse=False), [2.0, 0.0, 3.0], [1, 8, 0]),
    Trap("cumprod reversed", lambda x: c.cumprod(x, axis=0, reverse=True), [2.0, 0.0, 3.0], [0, 9, 1]),
]

INFINITIES = [
    Trap("logaddexp(x, -inf)", lambda x: c.logaddexp(x, tensor([-INF, -INF])), [1.0, -INF], [1, 0.5]),
    Trap("logaddexp(x, inf)", lambda x: c.logaddexp(x, tensor([INF, INF])), [1.0, INF], [0, 0.5]),
    Trap("logaddexp at -inf", lambda x: c.logaddexp(x, 0.0), [-INF, 0.0, 800.0], [0, 0.5, 1]),
    Trap("cumlogsumexp with -inf", lambda x: c.cumlogsumexp(x, axis=0, reverse=False), [-INF, 0.0], [1, 1]),
    Trap("exp at -inf", c.exp, [-INF], [0]),
    Trap("tanh far out", c.tanh, [1000.0, -1000.0, INF], [0, 0, 0]),
    Trap("erf far out", c.erf, [100.0, -INF], [0, 0]),
    Trap("atan at infinity", c.atan, [INF, -INF], [0, 0]),
    Trap("atan2(inf, 1)", lambda x: c.atan2(x, 1.0), [INF], [0]),
    Trap("x / inf", lambda x: x / tensor([INF]), [1.0], [0]),
    Trap("1 / inf", lambda x: 1.0 / x, [INF], [0]),
    Trap("remainder(x, inf)", lambda x: c.remainder(x, tensor([INF])), [1.0], [1]),
    Trap("remainder(1, inf)", lambda y: c.remainder(tensor([1.0]), y), [INF], [0]),
    Trap("fmod(-1, inf)", lambda y: c.fmod(tensor([-1.0]), y), [INF], [0]),
    Trap("hypot overflowing inside", lambda x: c.hypot(x, 1.0), [1e300], [1]),
    Trap("expm1 far below", c.expm1, [-50.0], [math.exp(-50)]),
]

WRITING = [
    Trap(
        "scatter max, tied",
        lambda x: c.scatter(
            x, tensor([[0], [0]]), tensor([2.0, 1.0]),
            update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode="max",
        ),
        [2.0, 5.0], [0.5, 1],
    ),
    Trap(
        "scatter min, updates tied",
        lambda u: c.scatter(
            tensor([2.0, 5.0]), tensor([[0], [0], [1]]), u,
            update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode="min",
        ),
        [1.0, 1.0, 7.0], [0.5, 0.5, 0],
    ),
    Trap(
        "scatter mul, zeros on one place",
        lambda u: c.scatter(
            tensor([2.0, 5.0]), tensor([[0], [0], [1]]), u,
            update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode="mul",
        ),
        [0.0, 3.0, 0.0], [6, 0, 5],
    ),
    Trap("sort, tied", lambda x: sorted_by(x, False) * tensor([1.0, 2.0]), [3.0, 3.0], [1, 2]),
    Trap("sort descending, tied", lambda x: sorted_by(x, True) * tensor([1.0, 2.0]), [3.0, 3.0], [1, 2]),
    Trap("NaN last", lambda x: sorted_by(x, True) * tensor([1.0, 2.0, 4.0]), [math.nan, 1.0, 2.0], [4, 2, 1]),
]  # fmt: skip

KNOWN = [
    # A product is not guarded: that would double the cost of the commonest operation. Its slope is an operand, so NaN
    # arises only where an operand is itself infinite or NaN; select inside, as in x * log(select(x > 0, x, 1)).
    Trap("masked x log x", guarded(lambda x: x * c.log(x), lambda x: x > 0), [0.0, 1.0], [0, 1]),
]

TRAPS = [*MASKED, *CONVENTIONS, *POWERS, *PRODUCTS, *INFINITIES, *WRITING]


def by_name(trap: Trap) -> str:
    return trap.name


@pytest.mark.parametrize("trap", KNOWN, ids=by_name)
@pytest.mark.xfail(strict=True, reason="products are not guarded against infinite operands")
def test_known_limits(trap: Trap) -> None:
    test_reverse(trap)


@pytest.mark.parametrize("trap", TRAPS, ids=by_name)
def test_reverse(trap: Trap) -> None:
    x = np.asarray(trap.at)
    with np.errstate(all="ignore"):
        y, pull = vjp(trap.f, tensor(x))
        (got,) = pull(tensor(np.ones(y.shape, dtype=y.dtype)))
    np.testing.assert_allclose(np.asarray(got.data), trap.gradient, rtol=1e-14, atol=0)


@pytest.mark.parametrize("trap", TRAPS, ids=by_name)
def test_forward(trap: Trap) -> None:
    x = np.asarray(trap.at)
    for k, want in enumerate(np.asarray(trap.gradient, dtype=complex)):
        for direction, part in ((1.0, want.real), (1j, want.imag)):
            if direction == 1j and x.dtype.kind != "c":
                continue
            t = np.zeros_like(x)
            t[k] = direction
            with np.errstate(all="ignore"):
                pushed = np.asarray(jvp(trap.f, (tensor(x),), (tensor(t),))[1].data)
            np.testing.assert_allclose(pushed.sum().real, part, rtol=1e-14, atol=1e-300)


SECOND = [
    # An exactly vanishing cotangent must not cut off what depends on it: (sqrt(x) - 1)^2 has curvature 1/2 at 1.
    Trap("cotangent passes through 0", lambda x: (c.sqrt(x) - 1.0) ** 2, [1.0, 4.0], [0.5, 0.0625]),
    Trap("log passing through 0", lambda x: c.log(x) ** 2, [1.0], [2]),
    Trap("quotient passing through 0", lambda x: (1.0 / x - 1.0) ** 2, [1.0], [2]),
    Trap("masked sqrt", guarded(c.sqrt, lambda x: x > 0), [0.0, -1.0, 4.0], [0, 0, -1 / 32]),
    Trap("masked log", guarded(c.log, lambda x: x > 0), [0.0, -1.0, 2.0], [0, 0, -0.25]),
    Trap("masked reciprocal", guarded(lambda x: 1.0 / x, lambda x: x != 0), [0.0, 2.0], [0, 0.25]),
    Trap("x ** 2 at 0", lambda x: x**2, [0.0, -1.0], [2, 2]),
    Trap("x ** 3 at 0", lambda x: x**3, [0.0, -1.0], [0, -6]),
    Trap("x ** 1 at 0", lambda x: x**1, [0.0], [0]),
    Trap("x ** 0 at 0", lambda x: x**0, [0.0], [0]),
    Trap("x ** array", exponent([0, 1, 2, 3, 2]), [0.0, 0.0, 0.0, 0.0, -1.0], [0, 0, 2, 0, 2]),
    Trap("abs at 0", lambda x: abs(x) * x, [0.0, 2.0, -2.0], [0, 2, -2]),
    Trap("relu squared", lambda x: c.maximum(x, 0.0) ** 2, [1.0, -1.0], [2, 0]),
    Trap("logaddexp at a tie", lambda x: c.logaddexp(x, 0.0), [0.0], [0.25]),
    Trap("logaddexp of arrays at a tie", lambda x: c.logaddexp(x, tensor([0.0])), [0.0], [0.25]),
]


@pytest.mark.parametrize("trap", SECOND, ids=by_name)
def test_second_order_of_elementwise_functions(trap: Trap) -> None:
    x = tensor(np.asarray(trap.at))
    ones = tensor(np.ones(x.shape))

    def slope(v: Any) -> Any:
        return vjp(trap.f, v)[1](ones)[0]

    def push(v: Any) -> Any:
        return jvp(trap.f, (v,), (ones,))[1]

    with np.errstate(all="ignore"):
        found = {
            "reverse over reverse": vjp(slope, x)[1](ones)[0],
            "forward over reverse": jvp(slope, (x,), (ones,))[1],
            "forward over forward": jvp(push, (x,), (ones,))[1],
            "reverse over forward": vjp(push, x)[1](ones)[0],
        }
    for mode, got in found.items():
        np.testing.assert_allclose(np.asarray(got.data), trap.gradient, rtol=1e-13, atol=1e-300, err_msg=mode)


def hessian(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    rows = []
    for k in range(len(x)):
        e = np.zeros_like(x)
        e[k] = 1
        rows.append(np.asarray(vjp(grad(f), tensor(x))[1](tensor(e))[0].data))
    return np.array(rows)


def test_mixed_derivatives_of_products_at_zeros() -> None:
    product = hessian(lambda x: c.reduce_prod(x, axes=(0,)), np.array([0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(product, [[0, 3, 0], [3, 0, 0], [0, 0, 0]])
    last = hessian(
        lambda x: c.reduce_sum(c.cumprod(x, axis=0, reverse=False) * tensor([0.0, 0.0, 1.0]), axes=(0,)),
        np.array([0.0, 0.0, 3.0]),
    )
    np.testing.assert_array_equal(last, product)


def test_mixed_derivatives_of_multiplied_updates_at_zeros() -> None:
    def f(u: Any) -> Any:
        written = c.scatter(
            tensor([2.0]), tensor([[0], [0], [0]]), u,
            update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode="mul",
        )  # fmt: skip
        return c.reduce_sum(written, axes=(0,))

    np.testing.assert_array_equal(hessian(f, np.array([0.0, 0.0, 3.0])), [[0, 6, 0], [6, 0, 0], [0, 0, 0]])


def test_mixed_derivative_of_a_power_survives_at_exponent_zero() -> None:
    # d/dy (y x^(y-1)) = x^(y-1) (1 + y log x), which is 1/x at y = 0.
    def base_slope(y: Any) -> Any:
        return vjp(lambda x: x**y, tensor([2.0]))[1](tensor([1.0]))[0]

    (got,) = vjp(base_slope, tensor([0.0]))[1](tensor([1.0]))
    np.testing.assert_allclose(np.asarray(got.data), [0.5], rtol=1e-15)


def test_an_exponent_that_is_not_differentiated_never_sees_the_logarithm() -> None:
    with np.errstate(all="raise"):
        (got,) = vjp(lambda x: x ** tensor([3.0]), tensor([-2.0]))[1](tensor([1.0]))
    np.testing.assert_array_equal(np.asarray(got.data), [12.0])


def test_a_negative_base_has_no_derivative_by_the_exponent() -> None:
    (got,) = vjp(lambda y: tensor([-2.0]) ** y, tensor([3.0]))[1](tensor([1.0]))
    assert np.isnan(got.data).all()


def test_the_winner_of_overlapping_writes_has_the_derivative() -> None:
    def write(x: Any, u: Any) -> Any:
        return c.scatter(
            x, tensor([[1], [1], [1]]), u, update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode="set"
        )

    x, u = tensor([1.0, 2.0]), tensor([5.0, 6.0, 7.0])
    y, pull = vjp(write, x, u)
    to_x, to_u = (np.asarray(v.data) for v in pull(tensor([1.0, 10.0])))
    np.testing.assert_array_equal(to_x, [1, 0])
    np.testing.assert_array_equal(to_u, np.where(np.asarray(u.data) == np.asarray(y.data)[1], 10, 0))
