"""An operation that has an expansion and no kernel runs on a GPU, a simulated one, as on the CPU."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_gpu import download
from tenferro_runtime.extension import REGISTRY, Spec, primitive

X = np.linspace(0.5, 2.0, 6).reshape(2, 3)


@primitive(elementwise=True, domain="floating", family="tests.saturated.v1")
def saturated(x: Spec, y: Spec, *, rate: float) -> Spec:
    """Of two operands, for broadcasting."""
    return x


@primitive(family="tests.weighted.v1")
def weighted(x: Spec) -> Spec:
    """Times the number of the column; makes an array of its own."""
    return x


REGISTRY.expansion(saturated, lambda x, y, rate: x / (1 + tr.exp(-rate * x)) * y)
REGISTRY.expansion(weighted, lambda x: x * tr.arange(x.shape[-1]).astype(x.dtype))

FUNCTIONS = {
    "element-wise": lambda x: saturated(x, x[:1], rate=2.0),
    "with a number": lambda x: saturated(x, 0.5, rate=2.0),
    "with its own array": lambda x: weighted(x) + 1.0,
    "gradient": grad(lambda x: tr.sum(saturated(weighted(x), x, rate=0.5))),
    "loop": lambda x: tr.scan(lambda c, row: (weighted(c) / 2 + row, None), x[0], x)[0],
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_expansion_is_the_kernel_of_every_device(with_cupy, f):
    with_cupy()
    want = np.asarray(f(tr.asarray(X)))
    x = tr.asarray(X, device="cuda:1")
    for run in (f, tr.compile(f)):
        found = run(x)
        assert str(found.device) == "cuda:1"
        np.testing.assert_allclose(np.asarray(download(found)), want, rtol=1e-12)
