"""Every operation, those of families included, on an accelerator that nobody here has heard of."""

from typing import Any

import numpy as np
import pytest

import markdown_blocks
import tenferro_runtime as tr
from device_cases import elementwise, families, structure
from simulated.installed import no_accelerator
from tenferro_ad import grad, jvp
from tenferro_runtime.extension import REGISTRY, Spec, primitive
from tenferro_tensor_core import TracingError
from workspace import ROOT

CASES = [
    *elementwise(("float32", "float64", "complex128", "int64", "bool")),
    *structure(),
    *families("float64"),
    *families("complex128"),
]


@pytest.fixture(autouse=True, scope="module")
def abacus():
    """The accelerator of the documentation."""
    with no_accelerator():
        names = markdown_blocks.run(ROOT / "docs" / "device-runtimes.md")
        yield names["Beads"]


def parts(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("start", range(0, len(CASES), 25))
def test_cases_agree_with_the_cpu(abacus, start):
    with np.errstate(all="ignore"):
        for case in CASES[start : start + 25]:
            wanted = case.run(*map(tr.asarray, case.operands))
            far = [tr.asarray(x, device="abacus:1") for x in case.operands]
            for run in (case.run, tr.compile(case.run)):
                try:
                    found = run(*far)
                except TracingError:
                    assert run is not case.run  # some cases read numbers out of their operands
                    continue
                for y, z in zip(parts(found), parts(wanted), strict=True):
                    assert str(y.device) == "abacus:1" and isinstance(y._data, abacus), case.name
                    assert (y.dtype, y.shape) == (z.dtype, z.shape), case.name
                    near = np.asarray(y.to_device("cpu:0"))
                    np.testing.assert_allclose(near, np.asarray(z), rtol=1e-6, atol=1e-6, err_msg=case.name)


@pytest.mark.parametrize("case", [c for c in families("float64") if len(c.operands) == 1], ids=lambda c: c.name)
def test_derivatives_agree_with_the_cpu(case):
    def loss(x):
        return sum([tr.sum(tr.abs(y) ** 2) for y in parts(case.run(x)) if y.spec.inexact], tr.asarray(0.0, device=at))

    found: list[Any] = []
    for at in ("cpu:0", "abacus:0"):
        x = tr.asarray(case.operands[0], device=at)
        try:
            slopes = (grad(loss)(x), tr.compile(grad(loss))(x), jvp(loss, (x,), (x,))[1])
        except Exception as error:  # no derivative: the error is the same everywhere
            found.append(type(error))
        else:
            assert {str(s.device) for s in slopes} == {at}
            found.append([np.asarray(s.to_device("cpu:0")) for s in slopes])
    if isinstance(found[0], type):
        assert found[0] is found[1]
    else:
        for near, far in zip(*found, strict=True):
            np.testing.assert_allclose(near, far, rtol=1e-6, atol=1e-6)


@primitive(elementwise=True, domain="floating", family="tests.mixed.v1")
def mixed(x: Spec, y: Spec, z: Spec) -> Spec:
    """exp(x) y + z."""
    return x


REGISTRY.expansion(mixed, lambda x, y, z: tr.exp(x) * y + z)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_expansions_of_several_operands_run_without_an_array_library(abacus, dtype):
    """Operands that are equal in shape, broadcast, without axes, empty, or numbers."""
    matrix, row, column = (np.arange(1.0, n + 1).astype(dtype) / n for n in (6, 3, 2))
    matrix, column, one = matrix.reshape(2, 3), column[:, None], np.asarray(0.5, dtype)
    cases: list[tuple[Any, Any, Any]] = [
        (matrix, matrix, matrix), (matrix, row, column), (row, column, one), (one, one, one), (row, 0.5, one),
        (2.0, matrix, 1), (matrix[:0], row, 1.5), (matrix[:, None], row, matrix),
    ]  # fmt: skip
    for case in cases:
        x, y, z = case
        far = [v if isinstance(v, (float, int)) else tr.asarray(v, device="abacus:1") for v in case]
        for run in (mixed, tr.compile(mixed), tr.compile(mixed, deterministic=True)):
            for _ in range(2):
                found = run(*far)
                assert isinstance(found._data, abacus) and str(found.device) == "abacus:1" and str(found.dtype) == dtype
                np.testing.assert_allclose(found.numpy(), np.exp(x) * y + z, rtol=1e-6)
    x, y, z = (tr.asarray(v, device="abacus:0") for v in (matrix, row, column))
    slopes = grad(lambda x, y, z: tr.sum(mixed(x, y, z)), argnums=(0, 1, 2))(x, y, z)
    np.testing.assert_allclose(slopes[1].numpy(), np.exp(matrix).sum(0), rtol=1e-6)
    np.testing.assert_allclose(slopes[2].numpy(), [[3], [3]], rtol=1e-6)
