"""Derivatives of reads and writes at traced indices: updates and reads of one element or block."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad
from tenferro_runtime import Spec
from tenferro_runtime.passes.dead_code import remove_dead_code

F8, I8 = np.dtype("float64"), np.dtype("int64")
X = np.linspace(-1.0, 1.5, 12).reshape(3, 4)

FUNCTIONS = {
    "element": lambda x, i: x[i, i + 1] ** 2,
    "row": lambda x, i: tr.sum(x[i] ** 2),
    "window": lambda x, i: tr.sum(x[i : i + 2, 1:] ** 2 * x[1:, 1:]),
    "dynamic slice": lambda x, i: tr.sum(tr.dynamic_slice(x, [i, -2], [2, 1]) ** 2),
    "dynamic update": lambda x, i: tr.sum(tr.dynamic_update_slice(x, x[:1] * x[1:2], [i, 0]) ** 2),
    "roll": lambda x, i: tr.sum(tr.roll(x, i, axis=1) ** 2 * x),
    "set": lambda x, i: tr.sum(x.at[i, 1].set(x[0, 0] ** 2) * x),
    "add": lambda x, i: tr.sum(x.at[i].add(x[0] ** 2) ** 2),
    "multiply": lambda x, i: tr.sum(x.at[i, 1:3].multiply(x[0, 0] * x[i, 1:3]) ** 2),
    "min": lambda x, i: tr.sum(x.at[i : i + 1, 1:3].min(x[i, 1:3] ** 2) ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("i", [0, 1])
def test_finite_differences(name, known, i):
    f = FUNCTIONS[name]
    compiled = tr.compile(lambda x, i: f(x, i & 1 if known else i))
    check_grads(lambda x: compiled(x, i), (X,), order=2)
    want = grad(lambda x: f(x, i))(X)
    np.testing.assert_allclose(tr.compile(grad(lambda x, i: f(x, i & 1 if known else i)))(X, i), want, rtol=1e-13)


def steps(f, *specs):
    return [eq.op.primitive.name for eq in remove_dead_code(tr.trace(grad(f), *specs)).equations]


def test_the_gradient_of_a_read_is_an_update():
    assert steps(lambda x, i: x[i & 1, 0], Spec((3, 4), F8), Spec((), I8)) == ["bitwise_and", "dynamic_update_slice"]


def test_the_gradient_of_a_loop_updates_elements():
    def f(x):
        n = x.shape[0]
        return tr.sum(tr.fori_loop(1, n - 1, lambda i, c: c.at[i].set(c[i - 1] * x[i] + tr.sin(c[i + 1])), x))

    program = tr.trace(grad(f), Spec((tr.dim("n", min=3),), F8))
    *_, back = [eq.op.params["body"] for eq in program.equations if eq.op.primitive.name == "scan"]
    made = [eq.op.primitive.name for eq in back.equations]
    assert not {"pad", "scatter", "gather", "select", "broadcast_in_dim"} & set(made)
    whole = [eq for eq in back.equations if any(back.specs[v].ndim and back.specs[v].size != 1 for v in eq.results)]
    assert {eq.op.primitive.name for eq in whole} == {"dynamic_update_slice"}
