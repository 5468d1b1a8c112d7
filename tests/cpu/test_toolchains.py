"""Toolchains of third parties: found by entry points, chosen by name, and used by eager kernels and whole programs."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cxx_toolchain
import tenferro_runtime as tr
from host_kernels import COMPILER
from installed_plugins import MODULE, Installed
from tenferro_ad import grad
from tenferro_cpu import device
from tenferro_runtime.running import fusion
from tenferro_tensor import clear_plans, entry_points
from tenferro_tensor.device_model import _offered
from tenferro_tensor_core import ArgumentError, RegistryError

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a compiler of C++")
GROUP = "tenferro.toolchains"
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.2, 0.9, (5, 4)), RNG.uniform(0.2, 0.9, (5, 4))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """Entry points of toolchains; those of other groups are as they are."""
    with pytest.MonkeyPatch.context() as patch:
        found = Installed(patch)
    monkeypatch.setitem(sys.modules, MODULE, found.module)
    monkeypatch.setattr(_offered, "_made", {})
    scanned = entry_points._scanned
    monkeypatch.setattr(entry_points, "_scanned", lambda group: found.points if group == GROUP else scanned(group))
    entry_points._groups.pop(GROUP, None)
    yield found
    entry_points._groups.pop(GROUP, None)


@pytest.fixture
def cxx(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> Iterator[cxx_toolchain.CxxCompiler]:
    """The toolchain, chosen by the environment."""
    installed.offer(GROUP, "cxx", cxx_toolchain.make)
    monkeypatch.setenv("TENFERRO_CPU_TOOLCHAIN", "cxx")
    clear_plans()
    yield cxx_toolchain.compiler()
    monkeypatch.undo()
    clear_plans()


def loop(x: Any) -> Any:
    total, rows = tr.scan(lambda c, v: (0.5 * c + tr.sin(v), c * v), tr.asarray(0.1), x[:, 0])
    return total, rows, tr.while_loop(lambda c: c < 20.0, lambda c: c * c + 1.5, x[0, 0])


CASES: dict[str, Callable[..., Any]] = {
    "element-wise": lambda x, y: (tr.exp(x) * y - tr.tanh(x) / y, tr.where(x > y, x, 2.0), tr.atan2(x, y)),
    "reductions": lambda x, y: (tr.sum(x * y, axis=0), tr.max(tr.sin(x) + y, axis=1), tr.mean(x * x + y)),
    "scans and sorts of axes": lambda x, y: (tr.cumulative_sum(x * y, axis=1), (x * 2.0).mT + 1.0, x[::2] * y[::2]),
    "complex numbers": lambda x, y: tr.abs(tr.exp(x + 1j * y) * (x - 1j)),
    "integers": lambda x, y: tr.astype(x * 10, tr.int32) // 3 + tr.astype(y * 10, tr.int32) % 4,
    "a loop": lambda x, y: loop(x * y),
    "a gradient": lambda x, y: grad(lambda x: tr.sum(tr.exp(x * y) * tr.sin(x)))(x),
    "a gradient of a loop": lambda x, y: grad(lambda x: loop(x)[0] * tr.sum(loop(x)[1]))(x),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_programs_agree_and_are_kept_by_content(name: str, cxx: cxx_toolchain.CxxCompiler) -> None:
    f, x, y = CASES[name], tr.asarray(X), tr.asarray(Y)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TENFERRO_CPU_TOOLCHAIN")
        clear_plans()
        want = tr.tree_leaves(f(x, y))
    clear_plans()
    native, compiled = fusion.kernel_stats()["native"], cxx.compiled
    for _ in range(2):
        run = tr.compile(f)
        for _ in range(3):
            got = tr.tree_leaves(run(x, y))
            fusion.wait()
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-13, atol=1e-13)
            assert a.dtype == b.dtype
        found, compiled = cxx.compiled - compiled, cxx.compiled
    assert found == 0, "the second function has the code of the first"
    assert fusion.kernel_stats()["native"] > native


def test_other_sizes_and_donated_memory(cxx: cxx_toolchain.CxxCompiler) -> None:
    run = tr.compile(lambda x, y: (x + tr.exp(y), tr.sum(x, axis=1)), donate=(0,))
    for shape in ((3, 4), (7, 2), (0, 3), (1, 1), (3, 4)):
        for _ in range(3):
            a, b = np.full(shape, 2.0), np.linspace(0, 1, int(np.prod(shape))).reshape(shape)
            got = run(tr.asarray(a.copy()), tr.asarray(b))
            np.testing.assert_allclose(got[0].numpy(), a + np.exp(b), rtol=1e-14)
            np.testing.assert_allclose(got[1].numpy(), a.sum(axis=1), rtol=1e-14)
            fusion.wait()


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int16"])
def test_eager_kernels_are_its_own(dtype: str, cxx: cxx_toolchain.CxxCompiler) -> None:
    before, x = cxx.compiled, (10 * X).astype(dtype)
    for f, numpy in ((tr.square, np.square), (tr.add, np.add), (tr.less, np.less), (tr.cos, np.cos)):
        if (dtype == "complex128" and f is tr.less) or (dtype == "int16" and f is tr.cos):
            continue
        arrays = (x, x[::-1].copy()) if f in (tr.add, tr.less) else (x,)
        close = 1e-5 if dtype == "float32" else 1e-13
        for cut in (np.s_[:], np.s_[:, ::2], np.s_[:0]):
            got = f(*[tr.asarray(a[cut], copy=False) for a in arrays])
            want = numpy(*[a[cut] for a in arrays])
            np.testing.assert_allclose(got.numpy(), want, rtol=close)
            assert got.dtype == want.dtype
    assert cxx.compiled >= before + 3


def test_what_is_not_offered_is_named(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.offer(GROUP, "cxx", cxx_toolchain.make)
    installed.offer(GROUP, "three", lambda: 3)
    with pytest.raises(ArgumentError, match="cpu has no toolchain 'gold'; it has llvm, numpy, cxx, three"):
        device().toolchain("gold")
    with pytest.raises(RegistryError, match="the toolchain 'three' of .*plugin.* is 3, which is not a Toolchain"):
        device().toolchain("three")
    monkeypatch.setattr(cxx_toolchain.CxxRenderer, "device", "cuda")
    with pytest.raises(ArgumentError, match="the toolchain 'cxx' is for cuda, not for cpu"):
        device().toolchain("cxx")
    monkeypatch.setenv("TENFERRO_CPU_TOOLCHAIN", "gold")
    with pytest.raises(ArgumentError, match="no toolchain 'gold'"):
        device().toolchain()
    with pytest.raises(ArgumentError, match="no toolchain 'gold'"):
        tr.compile(lambda x: tr.sin(x) * x)(tr.asarray(X))
