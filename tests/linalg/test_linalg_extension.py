"""The family as a guest: cheap to import, complete in the registry, and with device kernels that follow the host's."""

import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import numbers
from tenferro_linalg import (
    _algebra,
    _cholesky,
    _degeneracy,
    _det,
    _eig,
    _eigh,
    _nonnormal,
    _norms,
    _pinv,
    _qr,
    _solve,
    _spectral,
    _svd,
)
from tenferro_runtime.extension import REGISTRY, Primitive, check_family_id, check_rule

PAGES = (_algebra, _cholesky, _degeneracy, _det, _eig, _eigh, _nonnormal, _norms, _pinv, _qr, _solve, _spectral, _svd)
PRIMITIVES = sorted(
    {p for page in PAGES for p in vars(page).values() if isinstance(p, Primitive) and p.extension == "linalg"},
    key=lambda p: p.name,
)


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_every_primitive_is_registered(primitive):
    check_family_id(primitive.family)
    assert primitive.family == f"tenferro-linalg.{primitive.family.split('.')[1]}.v1"
    assert REGISTRY.find("kernel", primitive, "cpu") is not None
    assert REGISTRY.backends_of(primitive) == ("cpu", "cuda", "rocm")
    check_rule(primitive, REGISTRY.find("rule", primitive))
    assert primitive.__doc__


def test_the_count_of_primitives_is_not_zero():
    assert len(PRIMITIVES) > 20


def test_importing_the_family_is_cheap():
    code = "import sys, tenferro_linalg; print([m for m in ('scipy', 'cupy', 'jax', 'llvmlite') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_registering_the_family_does_not_import_the_solvers():
    code = (
        "import sys; from tenferro_runtime.extension import Registry; from tenferro_linalg._extension import register; "
        "register(Registry()); print([m for m in ('scipy', 'cupy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.fixture
def device():
    """The provider of accelerators with NumPy and SciPy in the place of CuPy: its logic, not its speed."""
    import scipy.linalg

    class Module(types.ModuleType):
        def __getattr__(self, name):
            return getattr(np, name)

    cupy: Any = Module("cupy")
    cupy.asnumpy = np.asarray
    cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(is_hip=True))  # without the calls of cuBLAS
    from tenferro_linalg._array_provider import CupyProvider

    return CupyProvider({"numpy": cupy, "scipy.linalg": scipy.linalg}.__getitem__)


@pytest.mark.parametrize("shape", [(9, 9), (2, 9, 9)])
def test_the_device_provider_agrees_with_the_host(device, shape):
    from tenferro_linalg._host import HostProvider

    host = HostProvider()
    x = numbers(1, shape, "complex128") + 3 * np.eye(9)
    h = x @ x.conj().swapaxes(-1, -2)
    b = numbers(2, (*shape[:-1], 2), "complex128")
    calls: list[tuple[Any, ...]] = [
        ("svd", x, False), ("svd", x, True), ("svdvals", x), ("eig", x), ("eigvals", x), ("eigh", h), ("eigvalsh", h),
        ("qr", x, "reduced"), ("qr", x, "complete"), ("cholesky", h), ("solve", x, b), ("inv", x, "inv"), ("det", x),
        ("slogdet", x), ("solve_triangular", x, b, True, False, True), ("finite", "svd", x),
    ]  # fmt: skip
    for name, *args in calls:
        got, expected = getattr(device, name)(*args), getattr(host, name)(*args)
        for g, e in zip(got, expected) if isinstance(expected, tuple) else [(got, expected)]:
            np.testing.assert_allclose(g, e, atol=1e-12)
    for adjoint in (False, True):
        factors = [p.lu_factor(x) for p in (device, host)]
        got, expected = (p.lu_solve(x, *f, b, adjoint) for p, f in zip((device, host), factors))
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_the_device_provider_names_failures(device):
    from tenferro_tensor_core import NumericalError

    with pytest.raises(NumericalError, match=r"operand contains nan or inf at index \(0, 1\)"):
        device.finite("svd", np.array([[0.0, np.nan]]))
    with pytest.raises(NumericalError, match=r"inv: matrix \(1,\) of the stack is singular"):
        found = np.array([np.eye(2), np.full((2, 2), np.inf)])
        device._checked("inv", found, (found,), "is singular; use pinv")


def test_public_names_are_documented_and_complete():
    standard = {
        "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
        "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
        "tensordot", "trace", "vecdot", "vector_norm",
    }  # fmt: skip
    assert standard < set(la.__all__)
    for name in la.__all__:
        assert getattr(la, name).__doc__
