"""einsum against a loop over all index values, for every spelling and every odd pattern of labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from einsum_oracles import by_loops
from tenferro_einsum import contract_path, einsum, plan, tensordot
from tenferro_tensor import Spec, tensor


def draw(rng, shape, dtype=np.float64):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


PATTERNS = [
    "ij,jk->ik", "ij,jk->ki", "i,i->", "i,j->ij", "ij->ji", "ij->i", "ij->", "->", ",->", "ii->i", "ii->", "iii->i",
    "i->ii", "i->iii", "ij->iji", "iij,j->", "iij,jk->ikk", "bij,bjk->bik", "ij,ij->ij", "ij,ij->i", "i,ij,j->",
    "ij,jk,kl->il", "ab,ac,ad->abcd", "ab,ac,ad->bcd", "a,a,a->a", "a,a,a->", "ijk,jl,lki->", "ab,bc,cd,de,ea->",
    "ij,k->ijk", "ij,kl->", "ab,cd,bc->ad", "i,i,j,j->ij", "aab,bcc->ac", "xy,yx->x",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("subscripts", PATTERNS)
def test_patterns_agree_with_the_definition(subscripts, dtype):
    rng = np.random.default_rng(len(subscripts))
    extent = dict(zip("abcdeijklxy", [2, 3, 2, 4, 2, 3, 4, 2, 3, 2, 3], strict=True))
    arrays = [draw(rng, [extent[x] for x in t], dtype) for t in subscripts.split("->")[0].split(",")]
    want = by_loops(subscripts, *arrays)
    got = einsum(subscripts, *map(tensor, arrays))
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(
        got._concrete(), want, rtol=1e-4 if dtype in ("float32", "complex64") else 1e-12, atol=1e-6
    )


@given(st.data())
def test_random_networks_agree_with_the_definition(data):
    labels = "abcde"
    extent = {x: data.draw(st.integers(0, 3), label=x) for x in labels}
    terms = data.draw(st.lists(st.text(labels, min_size=0, max_size=3), min_size=1, max_size=4))
    used = sorted(set("".join(terms)))
    out = "".join(data.draw(st.lists(st.sampled_from(used), max_size=3)) if used else [])
    rng = np.random.default_rng(0)
    arrays = []
    for t in terms:
        stretched = data.draw(st.booleans())
        arrays.append(draw(rng, [1 if stretched and len(t) == 1 else extent[x] for x in t]))
    subscripts = f"{','.join(terms)}->{out}"
    for optimize in ("auto", False):
        got = einsum(subscripts, *arrays, optimize=optimize)
        np.testing.assert_allclose(got._concrete(), by_loops(subscripts, *arrays), atol=1e-12)


def test_the_three_spellings_mean_the_same():
    rng = np.random.default_rng(1)
    x, y = draw(rng, (2, 3)), draw(rng, (3, 4))
    want = x @ y
    b = object()
    for got in (
        einsum("ij,jk->ik", x, y),
        einsum("ij , jk", x, y),
        einsum(x, ["row", b], y, [b, "column"], ["row", "column"]),
        einsum(x, [0, 1], y, [1, 2]),
        einsum("αβ,βγ->αγ", x, y),
    ):
        np.testing.assert_allclose(got._concrete(), want)


def test_an_implicit_output_is_sorted_and_leaves_out_repeats():
    x = draw(np.random.default_rng(2), (2, 3))
    np.testing.assert_allclose(einsum("ba", x)._concrete(), x.T)
    assert einsum("ii", np.eye(3)).item() == 3.0


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i...,i...->...", [(3, 2, 4), (3, 1)]),
        ("...,...->...", [(2, 3), (3,)]),
        ("...i->i...", [(2, 3, 4)]),
        ("ij...,jk->...ik", [(2, 3, 4), (3, 5)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("...ij,jk", [(2, 3, 4), (4, 5)]),
    ],
)
def test_an_ellipsis_broadcasts_like_numpys(subscripts, shapes):
    rng = np.random.default_rng(3)
    arrays = [draw(rng, s) for s in shapes]
    np.testing.assert_allclose(einsum(subscripts, *arrays)._concrete(), np.einsum(subscripts, *arrays), atol=1e-12)


def test_an_extent_of_one_stretches():
    rng = np.random.default_rng(4)
    x, y = draw(rng, (2, 3)), draw(rng, (1, 4))
    np.testing.assert_allclose(einsum("ij,jk->ik", x, y)._concrete(), np.einsum("ij,jk->ik", x, y.repeat(3, 0)))
    np.testing.assert_allclose(einsum("jk,ij->ik", y, x)._concrete(), np.einsum("ij,jk->ik", x, y.repeat(3, 0)))


def test_more_labels_than_letters():
    count = 120
    rng = np.random.default_rng(5)
    chain = [draw(rng, (2, 2)) / 2 for _ in range(count)]
    args = [v for i, m in enumerate(chain) for v in (m, [i, i + 1])]
    want = chain[0]
    for m in chain[1:]:
        want = want @ m
    np.testing.assert_allclose(einsum(*args, [0, count])._concrete(), want, atol=1e-12)


def test_dtypes_promote_and_integers_are_exact():
    assert einsum("i,i->", np.array([1, 2], "f4"), np.array([1j, 1], "c8")).dtype == np.complex64
    big = np.array([2**53 + 1, 1])
    assert einsum("i,i->", big, np.array([1, 0])).item() == 2**53 + 1
    assert einsum("ij,jk->ik", np.eye(2, dtype=bool), np.ones((2, 2), bool)).dtype == np.bool_


def test_strided_and_read_only_operands():
    base = draw(np.random.default_rng(6), (6, 8))
    view = base[::-2, 1::3].T
    view.flags.writeable = False
    np.testing.assert_allclose(einsum("ij,ik->jk", view, view)._concrete(), view.T @ view)


@pytest.mark.parametrize(
    "optimize",
    ["auto", "greedy", "optimal", "dp", True, False, [(1, 2), (0, 1)], [(0, 1, 2)], (0, (1, 2)), ((2, 0), 1)],
)
def test_every_path_gives_the_same_result(optimize):
    rng = np.random.default_rng(7)
    arrays = [draw(rng, s) for s in [(2, 3), (3, 4, 2), (4, 2)]]
    got = einsum("ab,bcd,cd->a", *arrays, optimize=optimize)
    np.testing.assert_allclose(got._concrete(), np.einsum("ab,bcd,cd->a", *arrays))


def test_a_plan_runs_many_times_and_a_path_reports_its_cost():
    rng = np.random.default_rng(8)
    prepared = plan("ij,jk,kl->il", *[Spec((3, 3), np.dtype("float64"))] * 3)
    for _ in range(3):
        m = draw(rng, (3, 3))
        np.testing.assert_allclose(prepared(*[tensor(m)] * 3)._concrete(), m @ m @ m)
    path, report = contract_path("ij,jk,kl->il", *[np.ones((3, 3))] * 3)
    assert len(path) == 2
    assert report.flops == 2 * 2 * 27


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 1], [1, 0]), ([-1], [0]), ([], [])])
def test_tensordot_agrees_with_numpy(axes):
    x, y = draw(np.random.default_rng(9), (3, 3, 3)), draw(np.random.default_rng(10), (3, 3))
    np.testing.assert_allclose(tensordot(x, y, axes=axes)._concrete(), np.tensordot(x, y, axes), atol=1e-12)


@pytest.mark.parametrize(("dtype", "batch", "n"), [("float64", 32, 8), ("float32", 8, 16), ("complex128", 50, 8)])
def test_outer_products_in_whole_runs_keep_the_order_of_their_labels(dtype, batch, n):
    rng = np.random.default_rng(n)
    x, y = [rng.normal(size=(batch, n, n)).astype(dtype) for _ in range(2)]
    for operands in ((x, y), (x, y.swapaxes(1, 2)), (x[::-1], y[:, ::-1])):
        found = einsum("bij,bkl->bikjl", *map(tensor, operands))
        assert found._data.flags.c_contiguous
        np.testing.assert_array_equal(np.asarray(found), np.einsum("bij,bkl->bikjl", *operands))
