"""Sparse matrices as operands of `einsum`, `matmul`, `dot`, `tensordot` and `solve`, against their dense matrices."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, jvp
from tenferro_einsum import contract_path, einsum, plan
from tenferro_runtime.extension import ArgumentError, ShapeError, UnsupportedError

RNG = np.random.default_rng(11)

DTYPES = ["float32", "float64", "complex64", "complex128"]

SUBSCRIPTS = [
    "ij,j->i", "ij,i->j", "ij,jk->ik", "ij,kj->ki", "ij,bjk->bik", "ij,bik->kbj", "ij->ji", "ij->i", "ij->j", "ij->",
    "ij", "ij,ij->ij", "ij,ij->i", "ij,bij->bj", "ij,ij->", "ij,bij->b", "ij,i->ij", "ij,k->kij", "ij,k->ik", "ij,k->",
    "ij,j,i->", "ij,ik,jk->ij", "ij,ik,jk->", "ij,jk,kl->il", "ij,jk,k->i", "ij,(jk,k)->i", "ij,i,j->ij", "ij,->ij",
    "ij,kk->ij", "ij,jj->i", "ij,j->ijj", "ij,...j->...i",
]  # fmt: skip


def values(shape, dtype):
    """Small integers, so that sums of any order are exact; zeros among them."""
    x = RNG.integers(-3, 4, shape)
    return (x + 1j * RNG.integers(-3, 4, shape) if dtype.startswith("complex") else x).astype(dtype)


def sparse(m, n, count, dtype):
    """A matrix of entries at random positions, some of which coincide, some of which are zero."""
    count *= m > 0 and n > 0
    rows, columns = RNG.integers(0, max(m, 1), count), RNG.integers(0, max(n, 1), count)
    return tr.linalg.coo_array((values(count, dtype), (rows, columns)), (m, n))


@given(
    st.sampled_from(SUBSCRIPTS), st.tuples(*[st.integers(0, 4)] * 2), st.integers(0, 9), st.sampled_from(DTYPES),
    st.sampled_from(DTYPES), st.booleans(),
)  # fmt: skip
def test_einsum_is_that_of_the_dense_matrix(subscripts, shape, count, of_entries, of_others, compiled):
    """Every kind of subscripts, dtype and shape, empty matrices among them; equal to the dense result."""
    terms = subscripts.partition("->")[0].replace("(", "").replace(")", "").replace("...", "b").split(",")
    extents = dict(zip("ij", shape, strict=True)) | {"k": 3, "l": 2, "b": 2}
    if "jj" in terms:
        extents["j"] = extents["i"]
    a = sparse(extents["i"], extents["j"], count, of_entries)
    others = [values([extents[x] for x in t], of_others) for t in terms[1:]]
    function = (
        tr.compile(lambda a, *xs: einsum(subscripts, a, *xs)) if compiled else lambda *xs: einsum(subscripts, *xs)
    )
    found, expected = function(a, *others), einsum(subscripts, a.todense(), *others)
    assert found.dtype == expected.dtype and np.array_equal(found, expected)


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,ik->jk", "ij,ij->i", "ij,ij->", "ij,i->ij", "ij,jk,ik->", "ii,i->i", "ii,ij->j"]
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives(subscripts, dtype):
    """By the entries and by the arrays: both modes to second order, and the gradient is sparse."""
    a, terms = sparse(3, 3, 5, dtype), subscripts.partition("->")[0].split(",")
    others = [values((3,) * len(t), dtype) for t in terms[1:]]

    def loss(d, *xs):
        return tr.sum(tr.abs(einsum(subscripts, a.with_data(d), *xs) + 1.5) ** 2)

    check_grads(loss, (a.data, *map(tr.asarray, others)), order=2)

    def of_matrix(a):
        return tr.sum(tr.abs(einsum(subscripts, a, *others) + 1.5) ** 2)

    slope, dense = grad(of_matrix)(a), grad(of_matrix)(a.todense())
    assert slope.structure == a.structure and np.allclose(slope.data, dense.numpy()[a.coords])
    moved = jvp(of_matrix, (a,), (a.with_data(tr.ones_like(a.data)),))[1]
    pushed = jvp(of_matrix, (a.todense(),), (a.with_data(tr.ones_like(a.data)).todense(),))[1]
    assert np.allclose(moved, pushed)


def test_batches():
    """Lanes of entries and of arrays, also of a gradient."""
    a, data, xs = sparse(4, 3, 6, "float64"), values((5, 9), "float64"), values((5, 3), "float64")
    data = data[:, : a.nnz]
    dense = np.stack([a.with_data(d).todense().numpy() for d in data])
    for subscripts, x, expected in (
        ("ij,j->i", xs, np.einsum("bij,bj->bi", dense, xs)),
        ("ij,j->ij", xs, np.einsum("bij,bj->bij", dense, xs)),
        ("ij,ij->i", dense, np.einsum("bij,bij->bi", dense, dense)),
    ):
        function = tr.vmap(lambda d, x, s=subscripts: einsum(s, a.with_data(d), x))
        assert np.array_equal(function(data, x), expected)
        slopes = tr.vmap(grad(lambda d, x, s=subscripts: tr.sum(einsum(s, a.with_data(d), x) ** 2)))(data, x)
        one = grad(lambda d, s=subscripts, x=x[1]: tr.sum(einsum(s, a.with_data(d), x) ** 2))(tr.asarray(data[1]))
        assert np.array_equal(slopes[1], one)


def test_several_sparse_operands():
    """They meet arrays first, or each other; the result is dense."""
    a, b, x = sparse(4, 3, 5, "float64"), sparse(3, 5, 6, "float64"), values(5, "float64")
    for subscripts, operands in (
        ("ij,jk,k->i", (a, b, x)), ("ij,jk->ik", (a, b)), ("ij,ij->", (a, a)), ("ij,kj->ik", (a, a)),
        ("ij,kl->", (a, b)), ("jk,ij->ik", (b, a)), ("ij,kj,kl,l->i", (a, a, values((4, 5), "float64"), x)),
    ):  # fmt: skip
        dense = [y.todense() if isinstance(y, tr.linalg.SparseArray) else y for y in operands]
        assert np.array_equal(einsum(subscripts, *operands), einsum(subscripts, *dense)), subscripts
    slopes = grad(lambda ab: tr.sum(einsum("ij,jk->ik", *ab) ** 2))((a, b))
    expected = grad(lambda ab: tr.sum((ab[0] @ ab[1]) ** 2))((a.todense(), b.todense()))
    assert np.allclose(slopes[0].data, expected[0].numpy()[a.coords])
    assert np.allclose(slopes[1].data, expected[1].numpy()[b.coords])


def test_forms_of_einsum():
    """Labels in lists, explicit orders, numbers as operands, an extent of 1 that stretches, the order's methods."""
    a, x = sparse(4, 3, 6, "float32"), values((3, 2), "float32")
    m = a.todense().numpy()
    assert np.array_equal(einsum(a, ["r", 0], x, [0, "c"], ["r", "c"]), m @ x)
    assert np.array_equal(einsum("ij,jk,k->i", a, x, x[0], optimize=[(1, 2), (0, 1)]), m @ (x @ x[0]))
    twice = einsum(",ij->ij", 2.0, a)
    assert twice.dtype == np.float32 and np.array_equal(twice, 2 * m)
    row = sparse(1, 3, 2, "float64")
    assert np.array_equal(einsum("ij,ij->i", row, m), (row.todense().numpy() * m).sum(1))
    assert np.array_equal(einsum("ij,ij->i", a, m[:1]), (m * m[:1]).sum(1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_by_name(dtype):
    """`matmul`, `dot` and `tensordot` from both sides with stacks, and NumPy's `matmul`."""
    a, x, stack = sparse(4, 3, 6, dtype), values(3, dtype), values((2, 3, 5), dtype)
    m, left = a.todense().numpy(), values((2, 5, 4), dtype)
    for found, expected in (
        (tr.matmul(a, x), m @ x), (tr.matmul(a, stack), m @ stack), (tr.matmul(left, a), left @ m),
        (tr.matmul(left[0, 0], a), left[0, 0] @ m), (tr.dot(a, x), m @ x), (tr.dot(a, stack), np.dot(m, stack)),
        (tr.dot(left, a), np.dot(left, m)), (tr.tensordot(a, x, 1), m @ x), (tr.tensordot(a, m), (m * m).sum()),
        (tr.tensordot(a, x, 0), np.tensordot(m, x, 0)), (tr.tensordot(left, a, ([2], [0])), left @ m),
        (tr.tensordot(a, stack, ([-1], [1])), np.tensordot(m, stack, ([-1], [1]))), (np.matmul(a, x), m @ x),
        (np.matmul(left, a), left @ m), (np.matmul(tr.asarray(left), a), left @ m),
    ):  # fmt: skip
        assert isinstance(found, tr.Tensor) and found.dtype == expected.dtype and np.array_equal(found, expected)
    assert np.array_equal((m.dtype.type(2) * a).todense(), 2 * m)
    assert np.array_equal((m * a).todense(), m * m)


def test_solve():
    """`solve` factors a sparse matrix; with derivatives."""
    a = sparse(4, 4, 6, "float64") + tr.linalg.coo_array((np.full(4, 20.0), (range(4), range(4))), (4, 4))
    b = tr.asarray(values((4, 2), "float64"))
    np.testing.assert_allclose(tr.linalg.solve(a, b), np.linalg.solve(a.todense(), b), rtol=1e-12, atol=1e-14)
    check_grads(lambda d, b: tr.sum(tr.linalg.solve(a.with_data(d), b) ** 2), (a.data, b), order=2)


ONE: Any = tr.linalg.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), (2, 3))


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: einsum("ij,j->i", ONE, np.ones(4)), ShapeError, "label 'j' has extent 3"),
        (lambda: einsum("ii->i", ONE), ShapeError, "label 'i' has extent 2"),
        (lambda: einsum("ijk->i", ONE), ShapeError, "operand 0 has 2 axes"),
        (lambda: einsum("ij,j->i", ONE, np.ones(3), memory_budget=10**6), UnsupportedError, "with arrays only"),
        (lambda: einsum("ij,j->i", ONE, "x"), ArgumentError, "operand 1 is a str, not a tensor"),
        (lambda: plan("ij,j->i", ONE, np.ones(3)), ArgumentError, "operand 0 is a SparseArray, .* give its Spec"),
        (lambda: contract_path("ij,j->i", ONE, np.ones(3)), ArgumentError, "give its Spec"),
        (lambda: tr.matmul(ONE, ONE.T), UnsupportedError, "matmul takes a SparseArray and an array"),
        (lambda: tr.matmul(ONE, np.ones(2)), ShapeError, "does not fit the array of shape"),
        (lambda: tr.matmul(ONE, np.ones(())), ShapeError, "at least one axis"),
        (lambda: tr.matmul(ONE, "x"), ArgumentError, "a str is neither a tensor"),
        (lambda: tr.dot(np.ones((4, 4)), ONE), ShapeError, r"does not fit the array of shape \(4, 4\)"),
        (lambda: tr.tensordot(ONE, np.ones(3), 2), ArgumentError, "tensordot cannot pair 2 axes of SparseArray"),
        (lambda: tr.linalg.solve(ONE, np.ones(2)), ShapeError, "takes a square matrix"),
    ],
)
def test_errors(call, error, text):
    """Forms that do not exist name the operand and what to do."""
    with pytest.raises(error, match=text):
        call()
