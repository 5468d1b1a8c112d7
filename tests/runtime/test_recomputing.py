"""Light steps that are done again for readers after a reduction: where, where not, and that nothing else changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_cpu.native import available
from tenferro_runtime import fusion
from tenferro_runtime.fusion._candidates import Candidates
from tenferro_runtime.fusion._recomputing import recomputed
from tenferro_runtime.passes import optimise
from tenferro_runtime.running._execute import lowered
from tenferro_tensor import Spec, catalog, tensor

pytestmark = pytest.mark.skipif(not available(), reason="nothing is fused without machine code")

N, M = tr.dim("n"), tr.dim("m")
MATRIX, ROW = Spec((N, M), np.dtype("float64")), Spec((M,), np.dtype("float64"))


def normalised(x, axis=1):
    d = x - tr.mean(x, axis=axis, keepdims=True)
    return d / tr.sqrt(tr.mean(d * d, axis=axis, keepdims=True) + 1e-5)


def copies(f, *specs):
    """Number of steps that are done again."""
    program = optimise(tr.trace(f, *specs))
    return len(recomputed(program, Candidates(program, False)).equations) - len(program.equations)


def test_a_difference_is_not_kept_for_the_end_of_a_sum():
    program = optimise(tr.trace(lambda x: normalised(x, 0), MATRIX))
    again = recomputed(program, Candidates(program, False))
    differences = [eq for eq in again.equations if eq.op.primitive is catalog.sub]
    assert len(differences) == 2
    assert differences[0].operands == differences[1].operands
    assert differences[0].source == differences[1].source
    run = lowered(program)
    assert [v for eq in run.equations for v in eq.results if run.specs[v].shape == (N, M)] == [*run.output_ids]


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x, r: x - r, 0),
        (lambda x, r: (x - r) * tr.sum((x - r) * r, axis=0), 1),
        (lambda x, r: tr.exp(x - r) * tr.sum(tr.exp(x - r), axis=0), 0),  # not light
        (lambda x, r: (x - r, (x - r) * tr.sum(x - r, axis=0)), 0),  # written anyway
        (lambda x, r: (tr.exp(x) - r) * tr.sum(tr.exp(x) - r, axis=0), 0),  # an operand that is not in memory
        (lambda x, r: (x - tr.cumulative_sum(x, axis=0)) * tr.sum(x - tr.cumulative_sum(x, axis=0)), 0),  # two large
        (lambda x, r: tr.matrix_transpose(x - r) @ (x - r) * tr.sum(x - r), 0),  # needed in memory
    ],
    ids=["one reader", "light", "heavy", "result", "fresh operand", "two large", "product"],
)
def test_only_light_steps_are_done_again(f, count):
    assert copies(f, MATRIX, ROW) == count


@settings(max_examples=25, deadline=None)
@given(shape=st.tuples(st.integers(1, 9), st.integers(1, 40)), axis=st.sampled_from([0, 1]))
def test_results_and_gradients_are_those_of_single_steps(shape, axis):
    x = tensor(np.random.default_rng(sum(shape)).standard_normal(shape))
    with tr.Runtime(fusion=False):
        plain = tr.compile(value_and_grad(lambda x: tr.sum(tr.sin(normalised(x, axis)))))
        wanted = plain(x)
    found = tr.compile(value_and_grad(lambda x: tr.sum(tr.sin(normalised(x, axis)))))
    for _ in range(2):
        for got, want in zip(found(x), wanted, strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-9)
        fusion.wait()
