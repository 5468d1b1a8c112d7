"""Functions of matrices and their derivatives beside values of 25 digits, on matrices that are hard for rounding."""

from typing import Any

import mpmath
import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import numbers
from tenferro_ad import grad, jvp
from tenferro_tensor import tensor

HARD = {
    "jordan": np.diag(np.full(4, 1.5)) + np.diag([1.0, 1.0, 1.0], 1),
    "long jordan": np.diag(np.full(3, 0.5)) + np.diag([30.0, 30.0], 1),
    "nearly defective": np.array([[1.0, 1.0, 0.0], [0.0, 1.0 + 1e-7, 1.0], [0.0, 1e-9, 2.0]]),
    "not normal": np.array([[1.0, 1e3, 0.0], [0.0, 2.0, 1e3], [0.0, 0.0, 3.0]]),
    "rotation": np.array([[0.2, 5.0], [-5.0, 0.2]]),
}
SLOW = {("logm", "not normal"), ("logm", "jordan")}
"""What takes seconds in many digits."""

NAMES = ("expm", "cosm", "sinm", "logm", "sqrtm")
CASES = [(name, case) for name in NAMES for case in HARD if (name, case) not in SLOW]


def exact(name: str, x: Any) -> Any:
    """The function of the matrix in 25 digits."""
    with mpmath.workdps(25):
        return np.array(getattr(mpmath, name)(mpmath.matrix(x.tolist())).tolist(), dtype=complex)


def exact_along(name: str, x: Any, e: Any) -> Any:
    """The derivative along `e`: the corner of the function of the block matrix."""
    n = len(x)
    whole = np.block([[x, e], [np.zeros_like(x), x]])
    return exact(name, whole)[:n, n:]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_values_and_first_derivatives(name: str, case: str) -> None:
    """Errors relative to the derivative are below what a rounding of the matrix changes, times a modest factor."""
    x = HARD[case]
    e = numbers(1, x.shape)
    f = getattr(la, name)
    expected, along = exact(name, x).real, exact_along(name, x, e).real
    moved = max(np.abs(exact_along(name, x, x * s)).max() for s in numbers(2, (1, *x.shape)))
    eps = np.finfo(float).eps
    np.testing.assert_allclose(f(tensor(x))._concrete(), expected, atol=50 * eps * (np.abs(expected).max() + moved))
    value, found = (y._concrete() for y in jvp(f, (tensor(x),), (tensor(e),)))
    np.testing.assert_allclose(found, along, atol=1e-10 * np.abs(along).max())
    weights = numbers(3, x.shape)
    pulled = grad(lambda y: (f(y) * tensor(weights)).sum())(tensor(x))._concrete()
    np.testing.assert_allclose((pulled * e).sum(), (along * weights).sum(), atol=1e-10 * np.abs(pulled).max() * 10)
    np.testing.assert_allclose(value, expected, atol=50 * eps * (np.abs(expected).max() + moved))
