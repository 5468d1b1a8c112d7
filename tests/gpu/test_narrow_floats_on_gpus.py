"""float16 and bfloat16 on a simulated CuPy: steps on CuPy, and programs as kernels of their own."""

import numpy as np
import pytest

import tenferro_runtime as tr
from host_kernels import COMPILER, HostCompiler
from narrow_floats import NARROW, chain, require_alike, sums
from tenferro_gpu import _machine_code
from tenferro_runtime.lowering import lower
from tenferro_tensor import get_backend


def operands(name):
    rng = np.random.default_rng(0)
    return [tr.asarray(rng.normal(size=(9, 11)), dtype=name) for _ in range(2)]


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("f", [chain, sums])
def test_steps_round_as_on_the_cpu(with_cupy, name, f):
    with_cupy().__version__ = "14.0.1"
    xs = operands(name)
    found = f(*[x.to_device("cuda:0") for x in xs])
    require_alike([y.to_device("cpu:0") for y in found], f(*xs), "cuda", f is sums)


@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")
@pytest.mark.parametrize("name", NARROW)
def test_programs_round_after_every_step(with_cupy, monkeypatch, name):
    with_cupy().__version__ = "14.0.1"
    monkeypatch.setattr(_machine_code, "compiler", lambda kind, architecture, major: HostCompiler())

    def f(x, y):
        z, picked, joined, _, _ = chain(x, y)
        return z, tr.sum(picked * z, axis=0), joined[::-1]

    xs = operands(name)
    far = [x.to_device("cuda:0") for x in xs]
    run = get_backend("cuda").whole(lower(tr.trace(f, *far), kind="cuda")).run
    require_alike([raw.view(np.ndarray) for raw in run((), *[x.data for x in far])], f(*xs), "kernels")
