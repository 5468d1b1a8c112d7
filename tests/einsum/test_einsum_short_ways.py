"""Short ways of contractions of two operands: every kind of value, call after call, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum

EQUATIONS = (
    "ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ij,jk->ki", "ji,kj->ki", "i,j->ij", "i,j->ji", "ij,ij->", "i,i->",
    "ij,ij->ij", "ij,ji->", "ij,j->i", "bij,bjk->bik", "bij,bkj->bki", "ijb,jkb->ikb", "ij,jk->", "ij,k->jki",
    "ii,i->i", "i,->i", "ij,i->ij",
)  # fmt: skip


@given(st.sampled_from(EQUATIONS), st.integers(1, 8), st.sampled_from("fdFD"), st.booleans(), st.integers(0, 1 << 30))
def test_repeated_calls(equation, n, char, turned, seed):
    """The first call plans, the later ones go the short way, with operands that lie in order or turned."""
    rng = np.random.default_rng(seed)
    terms = equation.split("->")[0].split(",")

    def operand(term):
        x = rng.normal(size=[n] * len(term)) + (1j * rng.normal(size=[n] * len(term)) if char in "FD" else 0)
        x = np.asarray(x).astype(char)
        return x.T if turned else x

    for _ in range(4):
        arrays = [operand(term) for term in terms]
        wide = [x.astype("D" if char in "FD" else "d") for x in arrays]
        scale = np.einsum(equation, *[np.abs(x) for x in wide])
        found = np.asarray(einsum(equation, *[tr.asarray(x) for x in arrays]))
        assert found.dtype == char
        tolerance = 1e-5 if char in "fF" else 1e-13
        assert np.all(np.abs(found - np.einsum(equation, *wide)) <= tolerance * scale + 1e-30)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_short_ways_keep_gradients_and_traces(equation):
    """A plan that has run on concrete tensors serves recorded and traced ones."""
    rng = np.random.default_rng(0)
    x, y = (tr.asarray(rng.normal(size=[3] * len(t))) for t in equation.split("->")[0].split(","))
    expected = np.asarray(einsum(equation, x, y))
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(einsum(equation, x, y)), expected, rtol=1e-13)
        compiled = tr.compile(lambda x, y: einsum(equation, x, y))
        np.testing.assert_allclose(np.asarray(compiled(x, y)), expected, rtol=1e-13)
        gx, gy = grad(lambda x, y: tr.sum(einsum(equation, x, y)), argnums=(0, 1))(x, y)
        for g, z in ((gx, x), (gy, y)):  # a form linear in each operand
            np.testing.assert_allclose(np.sum(np.asarray(g) * np.asarray(z)), expected.sum(), rtol=1e-11)
