"""Gradients of updates of strided slices stay in their array at symbolic sizes as at known ones."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.extension import optimise
from tenferro_runtime.lowering import lower
from tenferro_tensor.loop_ir import plan_arena
from tenferro_tensor_core import evaluate


def swept(a: Any) -> Any:
    for i, j in ((1, 1), (2, 2)):
        around = a[i - 1 : -2 : 2, j:-1:2] + a[i + 1 :: 2, j:-1:2]
        a = a.at[i:-1:2, j:-1:2].set(0.25 * around)
    return tr.sum(a * a)


def temporaries(n: Any, m: Any) -> int:
    """Bytes of the temporaries of the gradient at 40 by 40."""
    sizes = {"n": 40, "m": 40}
    examples = {name: size for name, size in sizes.items() if not isinstance({"n": n, "m": m}[name], int)}
    x = tr.zeros((40, 40))
    program = tr.trace(grad(swept), x.spec.with_(shape=(n, m)), examples=examples or None)
    return sum([evaluate(size, sizes) for size in plan_arena(lower(optimise(program))).slots])


def test_symbolic_sizes_need_no_padded_arrays() -> None:
    assert temporaries(tr.dim("n"), tr.dim("m")) <= temporaries(40, 40) <= 4 * 40 * 40 * 8


@pytest.mark.parametrize("shapes", [((9, 8), (4, 4), (5, 12)), ((6, 4), (4, 7))])
def test_one_compiled_gradient_serves_all_sizes(shapes: tuple[tuple[int, int], ...]) -> None:
    compiled = tr.compile(grad(swept))
    for shape in shapes:
        x = tr.asarray(np.random.default_rng(2).standard_normal(shape))
        np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(grad(swept)(x)), rtol=1e-14, atol=1e-14)
