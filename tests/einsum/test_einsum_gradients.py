"""Derivatives of contractions: both modes, first and second order, four dtypes, eager and compiled."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, value_and_grad, variable
from tenferro_einsum import einsum, tensordot

EXTENT = dict(zip("abcdeijklxy", [2, 3, 2, 4, 2, 3, 4, 2, 3, 2, 3], strict=True))

PATTERNS = [
    "ij,jk->ik", "i,i->", "i,j->ij", "ij->ji", "ij->", "ii->i", "ii->", "i->ii", "i->iii", "iij,j->", "iij,jk->ikk",
    "bij,bjk->bik", "ij,ij->ij", "i,ij,j->", "ij,jk,kl->il", "ab,ac,ad->abcd", "a,a,a->a", "ab,bc,cd,de,ea->",
    "aab,bcc->ac", "...ij,...jk->...ik",
]  # fmt: skip


def operands(subscripts, dtype, seed=0):
    rng = np.random.default_rng(seed)
    arrays = []
    for term in subscripts.split("->")[0].split(","):
        x = rng.standard_normal([2] * ("..." in term) + [EXTENT[c] for c in term.replace("...", "")])
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.standard_normal(x.shape)
        arrays.append(tr.asarray(x.astype(dtype)))
    return tuple(arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("subscripts", PATTERNS)
def test_both_modes_against_differences(subscripts, dtype):
    order = 2 if dtype in ("float64", "complex128") else 1
    check_grads(lambda *xs: einsum(subscripts, *xs), operands(subscripts, dtype), order=order)


def test_a_stretched_extent_collects_the_gradient():
    x, y = operands("ij,jk->ik", "float64")
    check_grads(lambda x, y: einsum("ij,jk->ik", x, y), (x, y[:1]), order=2)


def test_operands_of_different_dtypes():
    x, y = tr.asarray(np.array([1.0, 2.0])), tr.asarray(np.array([1j, 2.0 - 1j]))
    gx, gy = grad(lambda x, y: tr.sum(tr.abs(einsum("i,i->i", x, y))), argnums=(0, 1))(x, y)
    assert (gx.dtype, gy.dtype) == (np.float64, np.complex128)
    np.testing.assert_allclose(np.asarray(gx), np.abs(np.asarray(y)))


def test_gradients_of_a_long_chain_equal_the_environments():
    rng = np.random.default_rng(1)
    chain = [tr.asarray(rng.standard_normal((3, 3)) / 2) for _ in range(12)]
    terms = [[i, i + 1] for i in range(12)]
    args = lambda ms: [v for m, t in zip(ms, terms, strict=True) for v in (m, t)]
    loss = lambda *ms: tr.sum(einsum(*args(ms), [0, 12]))
    value, grads = value_and_grad(loss, argnums=tuple(range(12)))(*chain)
    raw = [np.asarray(m) for m in chain]
    np.testing.assert_allclose(float(value), np.linalg.multi_dot(raw).sum())
    for k, g in enumerate(grads):
        left = np.linalg.multi_dot([np.ones((1, 3)), *raw[:k], np.eye(3)])
        right = np.linalg.multi_dot([np.eye(3), *raw[k + 1 :], np.ones((3, 1))])
        np.testing.assert_allclose(np.asarray(g), (right @ left).T, atol=1e-12)
    for way in (tr.compile(grad(loss)), grad(tr.compile(loss))):
        np.testing.assert_allclose(np.asarray(way(*chain)), np.asarray(grads[0]), atol=1e-12)


def test_backward_accumulates_into_every_operand():
    x, y = map(variable, operands("ij,jk->ik", "float64"))
    tr.sum(einsum("ij,jk->ik", x, y)).backward()
    tr.sum(tensordot(x, y, axes=1)).backward()
    ones = np.ones((3, 2))
    np.testing.assert_allclose(np.asarray(x.grad), 2 * ones @ np.asarray(y.detach()).T)
    np.testing.assert_allclose(np.asarray(y.grad), 2 * np.asarray(x.detach()).T @ ones)
