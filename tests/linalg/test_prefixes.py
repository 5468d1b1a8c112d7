"""Terms of the derivative of QR that only dependent columns have: values, derivatives, and programs without them."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from linalg_checks import adjoint, assert_derivatives, inner, numbers
from tenferro_linalg import _algebra, _prefixes
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import tensor

KINDS = ("float64", "complex128")
PREFIXES = ((1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0))
SHAPE = (2, 5, 3)


def star(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def terms(prefix: Any) -> dict[str, tuple[Any, Any, int]]:
    """By name: the primitive with a prefix, the formula with NumPy, and the number of operands."""
    p, flags = np.asarray(prefix), tensor(np.broadcast_to(prefix, (2, 3)).copy())
    r = 1 - p
    return {
        "rows": (lambda a: adjoint(_prefixes.masked_(adjoint(a), flags, along="rows")), lambda a: a * p, 1),
        "columns": (lambda a: _prefixes.masked_(a, flags, along="columns"), lambda a: a * p, 1),
        "leading": (
            lambda a: _prefixes.leading_(_algebra.mm(adjoint(a), a), flags),
            lambda a: p[:, None] * (star(a) @ a) * p + np.diag(r),
            1,
        ),
        "kept": (
            lambda g, q: _prefixes.kept_(g, q, flags),
            lambda g, q: g * p - (q * r) @ star(g * r) @ (q * p),
            2,
        ),
        "across": (
            lambda a, b, c: _prefixes.across_(a, b, c, flags, flipped=False),
            lambda a, b, c: (a * r) @ star(b) @ (c * p),
            3,
        ),
        "flipped": (
            lambda a, b, c: _prefixes.across_(a, b, c, flags, flipped=True),
            lambda a, b, c: (a * p) @ star(b) @ (c * r),
            3,
        ),
        "inner": (lambda a, b: _prefixes.beyond_(a, b, flags, inner=True), lambda a, b: (a * r) @ star(b), 2),
        "outer": (
            lambda a, b: _prefixes.beyond_(a, _algebra.mm(adjoint(b), b), flags, inner=False),
            lambda a, b: a @ (star(b) @ b) * r,
            2,
        ),
    }


def operands(count: int, dtype: str) -> list[Any]:
    return [numbers(k, SHAPE, dtype) for k in range(count)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", list(terms(PREFIXES[0])))
def test_values_and_programs(name: str, prefix: tuple[float, ...], dtype: str) -> None:
    f, formula, count = terms(prefix)[name]
    xs = operands(count, dtype)
    expected = formula(*xs)
    given = [tensor(x) for x in xs]
    np.testing.assert_allclose(f(*given)._concrete(), expected, atol=1e-12)
    compiled = tr.compile(f)
    for _ in range(2):  # step by step, and as one native function
        np.testing.assert_allclose(compiled(*given)._concrete(), expected, atol=1e-12)
        wait()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("prefix", PREFIXES[:2])
@pytest.mark.parametrize("name", list(terms(PREFIXES[0])))
def test_derivatives(name: str, prefix: tuple[float, ...], dtype: str) -> None:
    f, formula, count = terms(prefix)[name]
    xs = operands(count, dtype)
    b = numbers(9, formula(*xs).shape, dtype)
    for k in range(count):

        def loss(x: Any, k: int = k) -> Any:
            return inner(f(*[x if i == k else tensor(y) for i, y in enumerate(xs)]), b)

        assert_derivatives(loss, xs[k], numbers(7, SHAPE, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("transposed", [False, True])
def test_hermitian(transposed: bool, dtype: str) -> None:
    x, b = numbers(0, (2, 4, 4), dtype), numbers(1, (2, 4, 4), dtype)
    f = lambda x: _algebra.hermitian_(x, transposed=transposed)
    on = np.eye(4, dtype=bool)
    low = np.tril(x + star(x), -1) if transposed else np.tril(x, -1) + star(np.tril(x, -1))
    np.testing.assert_array_equal(f(tensor(x))._concrete(), low + np.where(on, x.real, 0))
    np.testing.assert_array_equal(tr.compile(f)(tensor(x))._concrete(), low + np.where(on, x.real, 0))
    assert_derivatives(lambda x: inner(f(x), b), x, numbers(2, x.shape, dtype))
