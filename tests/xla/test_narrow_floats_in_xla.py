"""float16 and bfloat16 in StableHLO: the types, and roundings between steps that XLA must not leave out."""

import numpy as np
import pytest

import tenferro_runtime as tr
from narrow_floats import NARROW, bits, chain, require_alike, sums
from tenferro_tensor_core import dtype
from tenferro_xla import XlaExecutor, lower_to_stablehlo


@pytest.fixture(scope="module")
def xla():
    return XlaExecutor()


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("f", [chain, sums])
def test_xla_rounds_after_every_step(xla, name, f):
    rng = np.random.default_rng(0)
    x, y = (tr.asarray(rng.normal(size=(33, 47)), dtype=name) for _ in range(2))
    require_alike(xla.run(tr.trace(f, x, y), x, y), f(x, y), "xla", f is sums)


@pytest.mark.parametrize(("name", "element"), [("float16", "f16"), ("bfloat16", "bf16")])
def test_modules_have_the_types_and_compute_in_float32(name, element):
    third = np.asarray([1 / 3], dtype(name))
    text = str(lower_to_stablehlo(tr.trace(lambda x: x[::-1] + third, tr.zeros(4, dtype=name))))
    assert f"func.func public @main(%0: tensor<4x{element}>) -> (tensor<4x{element}>)" in text
    assert f'"stablehlo.reverse"(%0) {{dimensions = array<i64: 0>}} : (tensor<4x{element}>)' in text
    assert text.count("stablehlo.add") == text.count(": (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>") == 1


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("source", ["float32", "float64", "int32"])
def test_conversions_round_as_numpy_does(xla, name, source):
    rng = np.random.default_rng(2)
    x = np.concatenate([1 + rng.integers(0, 1 << 12, 2000) * 2.0**-12 + d for d in (0, 2.0**-40, -(2.0**-40))])
    x = (x * rng.choice([1.0, -3.0, 2.0**-20, 2.0**20], x.size)).astype(source)
    with np.errstate(over="ignore"):
        want = x.astype(dtype(name))
    (got,) = xla.run(tr.trace(lambda x: tr.astype(x, name), x), x)
    assert bits(got) == bits(want)
