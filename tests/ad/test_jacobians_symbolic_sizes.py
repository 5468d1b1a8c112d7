"""Jacobians in programs with symbolic sizes: traced once for each size, because their columns are."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import hessian, jacfwd, jacrev
from tenferro_tensor import Spec, tensor

n, m = tr.dim("n"), tr.dim("m")
FUNCTIONS = {
    "jacfwd": lambda x: jacfwd(lambda v: tr.sin(v) * tr.sum(v))(x),
    "jacrev": lambda x: jacrev(lambda v: tr.sum(tr.sin(v), axis=0) * v[0])(x),
    "hessian": lambda x: hessian(lambda v: tr.sum(tr.sin(v) * v) ** 2)(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_specialise(name: str) -> None:
    f = FUNCTIONS[name]
    x = np.random.default_rng(0).normal(size=(3, 2))
    program = tr.trace(f, Spec((n, m), x.dtype), examples={"n": 3, "m": 2})
    assert {f"{g.lhs} {g.op} {g.rhs}" for g in program.guards} >= {"m == 2"}
    assert any("a Jacobian" in str(g) for g in program.guards)
    np.testing.assert_allclose(program.run(x)[0].numpy(), f(tensor(x)).numpy())
