"""Parentheses, trees, many axes, labels of any kind; what decides in which order operands are joined."""

import copy
import itertools
import json
import pickle
import sys
from typing import Any

import numpy as np
import opt_einsum
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_einsum import contract_path, einsum, inner, kron, load_paths, outer, plan, save_paths, tensordot
from tenferro_einsum._search import PATHS
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")


def square(n=2):
    return Spec((n, n), F8)


@pytest.mark.parametrize(
    ("subscripts", "pairs"),
    [
        ("(ij,jk),kl->il", ["ij,jk->ik", "ik,kl->il"]),
        ("ij,(jk,kl)->il", ["jk,kl->jl", "ij,jl->il"]),
        ("((ij),(jk,kl))->il", ["jk,kl->jl", "ij,jl->il"]),
        ("(ij,kl),(jk,lm)->im", ["ij,kl->ijkl", "jk,lm->jklm", "ijkl,jklm->im"]),
    ],
)
def test_parentheses_fix_the_order(subscripts, pairs):
    count = subscripts.count(",") + 1
    prepared = plan(subscripts, *[square()] * count)
    assert [s.equation for s in prepared.report.steps] == pairs
    xs = [np.random.default_rng(i).standard_normal((2, 2)) for i in range(count)]
    plain = subscripts.replace("(", "").replace(")", "")
    np.testing.assert_allclose(einsum(subscripts, *xs)._concrete(), np.einsum(plain, *xs))


@given(st.data())
def test_random_groups_give_the_same_value(data):
    count = data.draw(st.integers(2, 6))
    terms = [data.draw(st.text("abcd", min_size=1, max_size=2)) for _ in range(count)]

    def nest(items):
        if len(items) < 3 or data.draw(st.booleans()):
            return ",".join(items)
        cut = data.draw(st.integers(1, len(items) - 1))
        return f"({nest(items[:cut])}), ({nest(items[cut:])})"

    out = "".join(sorted({*"".join(terms)}))[:2]
    xs = [np.random.default_rng(i).standard_normal((2,) * len(t)) for i, t in enumerate(terms)]
    got = einsum(f"{nest(terms)}->{out}", *xs)
    np.testing.assert_allclose(got._concrete(), einsum(f"{','.join(terms)}->{out}", *xs)._concrete(), atol=1e-12)


def test_a_tree_is_an_order_too():
    prepared = plan("ab,bc,cd,de->ae", *[square()] * 4, optimize=((0, 1), (2, 3)))
    assert prepared.path == ((0, 1), (0, 1), (0, 1))
    assert [s.operands for s in prepared.report.steps] == [(0, 1), (2, 3), (4, 5)]


def test_trees_are_deeper_than_pythons_stack():
    """As parentheses, and as a tree of numbers in lists."""
    count = 1500
    m = tensor(np.array([[0.0, 1.0], [1.0, 0.0]]))
    left = "(" * (count - 2) + "ij,jk" + "),kk" * (count - 2) + "->ik"
    assert einsum(left, *[m] * count).shape == (2, 2)
    tree = 0
    for k in range(1, count):
        tree = [tree, k]
    prepared = plan(*[v for k in range(count) for v in (m, [k, k + 1])], [0, count], optimize=tree)
    assert prepared.steps[:2] == ((0, 1), (count, 2))
    np.testing.assert_array_equal(prepared(*[m] * count)._concrete(), np.eye(2))


def test_a_path_of_numpy_is_taken_and_numbers_of_numpy_are():
    x = np.random.default_rng(3).standard_normal((3, 3))
    path = np.einsum_path("ab,bc,cd->ad", x, x, x)[0]
    assert path[0] == "einsum_path"
    assert plan("ab,bc,cd->ad", x, x, x, optimize=path).path == tuple(path[1:])
    tree = (np.int64(0), [np.int64(1), np.int64(2)])
    assert plan("ab,bc,cd->ad", x, x, x, optimize=tree, memory_budget=np.int64(10_000)).path == ((1, 2), (0, 1))  # type: ignore[arg-type]  # an integer of NumPy


def test_subscripts_may_be_broken_into_lines():
    x = np.random.default_rng(4).standard_normal((3, 3))
    np.testing.assert_allclose(einsum("ij,\n\tjk\r\n->  ik", x, x)._concrete(), x @ x)


def test_an_optimizer_without_a_hash_is_taken():
    class Unhashable:
        __hash__ = None

        def __call__(self, inputs, output, extents):
            return [(1, 2), (0, 1)]

    assert plan("ab,bc,cd->ad", *[square()] * 3, optimize=Unhashable()).path == ((1, 2), (0, 1))


def test_scalars_of_python_adapt_to_the_operands():
    x = np.array([1, 2], "float32")
    for scalar, dtype in ((2, "float32"), (2.0, "float32"), (2j, "complex64"), (True, "float32")):
        for got in (einsum("i,->i", x, scalar), einsum(",i,i->i", scalar, x, x), plan("i,->i", x, scalar)(x, scalar)):
            assert got.dtype == dtype
    assert einsum("i,->i", x, np.float64(2)).dtype == "float64"
    assert einsum("i,->i", np.array([1], "int8"), 2.5).dtype == "float64"
    assert einsum(",->", 2, 0.5).item() == 1.0


@pytest.mark.parametrize(
    ("subscripts", "budget"),
    [("ij,jk->ik", None), ("ij,(jk,kl)->il", None), ("...j,jk,kl->...ll", None), ("ij,jk,kl->il", 5000), ("ii", None)],
)
def test_plans_go_to_other_processes(subscripts, budget):
    xs = [np.random.default_rng(i).standard_normal((20, 20)) for i in range(subscripts.count(",") + 1)]
    prepared = plan(subscripts, *xs, memory_budget=budget)
    for sent in (pickle.loads(pickle.dumps(prepared)), copy.deepcopy(prepared)):
        assert (sent.path, sent.specs, sent.peak_bytes) == (prepared.path, prepared.specs, prepared.peak_bytes)
        assert str(sent.report) == str(prepared.report)
        np.testing.assert_allclose(sent(*xs)._concrete(), prepared(*xs)._concrete(), rtol=1e-12, atol=1e-12)


def test_optimizers_of_others_are_taken():
    seen = []

    def optimizer(inputs, output, extents):
        seen.append((len(inputs), output, set(extents.values())))
        return [(1, 2), (0, 1)]

    assert plan("ab,bc,cd->ad", *[square()] * 3, optimize=optimizer).path == ((1, 2), (0, 1))
    assert seen[0][0] == 3
    assert seen[0][2] == {2}
    assert plan("ab,bc,cd->ad", *[square()] * 3, optimize=opt_einsum.RandomGreedy(max_repeats=2)).path


def test_labels_that_nothing_else_needs_are_summed_first():
    report = contract_path("ij,kl->k", Spec((50, 60), F8), Spec((70, 80), F8))[1]
    assert report.flops == 2 * (50 * 60 + 70 * 80 + 70)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 6)), rng.standard_normal((7, 8))
    np.testing.assert_allclose(einsum("ij,kl->k", x, y)._concrete(), x.sum() * y.sum(1))


def test_more_axes_than_numpy_has():
    """Intermediates leave out axes of extent 1; both operands together have 80 labels."""
    rng = np.random.default_rng(1)
    shape = tuple([2, 3] + [1] * 38)
    xs = [rng.standard_normal(shape) for _ in range(3)]
    terms: list[list[Any]] = [[("axis", i, j) for j in range(40)] for i in range(3)]
    terms[1][0] = terms[0][1] = terms[2][0] = "joint"
    xs[1] = rng.standard_normal((3, 3, *[1] * 38))
    xs[2] = rng.standard_normal((3, 3, *[1] * 38))
    got = einsum(*[v for pair in zip(xs, terms, strict=True) for v in pair], [terms[2][1], terms[0][0], terms[0][5]])
    raw = [x.reshape(x.shape[:2]) for x in xs]
    np.testing.assert_allclose(got._concrete(), np.einsum("aj,jb,jc->ca", *raw)[..., None])


def test_paths_are_found_by_structure_and_saved(tmp_path):
    PATHS.clear()
    misses = PATHS.misses
    contract_path("ab,bc,cd,de->ae", *[square(3)] * 4)
    contract_path("wx,xy,yz,zu->wu", *[square(3)] * 4)
    assert PATHS.misses == misses + 1
    file = tmp_path / "paths.json"
    assert save_paths(file) == 1
    before = dict(PATHS.table)
    PATHS.clear()
    assert load_paths(file) == 1
    assert PATHS.table == before
    held = json.loads(file.read_text())
    for spoilt in ("[]", "no json", json.dumps({**held, "format": "other"}), json.dumps({**held, "paths": [[1, 2]]})):
        file.write_text(spoilt)
        with pytest.raises(ArgumentError, match="is not a file of einsum paths"):
            load_paths(file)
    held["paths"][0][-1] = [[0, 9], [0, 1], [0, 1]]
    file.write_text(json.dumps(held))
    with pytest.raises(ArgumentError, match="positions must be distinct"):
        load_paths(file)


def test_a_search_stops_in_time_and_tells_how_far_it_is():
    terms = [[i, (i * 7 + 3) % 40, "x"] for i in range(40)]
    args = [v for t in terms for v in (Spec((2, 3, 2), F8) if t[0] == -1 else Spec((2, 2, 2), F8), t)]
    told = []
    prepared = plan(*args, [], time_limit=0.2, progress=lambda part, best: told.append((part, best)))
    assert told[-1][0] == 1.0
    assert all(a <= b for (a, _), (b, _) in itertools.pairwise(told))
    assert told[-1][1] <= told[0][1]
    assert len(prepared.path) == 39
    assert prepared.report.flops <= plan(*args, [], optimize="greedy").report.flops


@pytest.mark.parametrize("drawn_by", ["tqdm", "text"])
def test_a_bar_shows_a_search(drawn_by, capsys, monkeypatch):
    if drawn_by == "text":
        monkeypatch.setitem(sys.modules, "tqdm", None)
    else:
        pytest.importorskip("tqdm")
    plan("ab,bc,cd,de->ae", *[square(5 + (drawn_by == "text"))] * 4, time_limit=0.1, progress=True)
    assert "einsum 100%" in capsys.readouterr().err


def test_cotengra_finds_orders():
    pytest.importorskip("cotengra")
    xs = [np.random.default_rng(i).standard_normal((3, 3)) for i in range(5)]
    prepared = plan("ab,bc,cd,de,ea->", *xs, optimize="cotengra", time_limit=0.5)
    np.testing.assert_allclose(prepared(*xs)._concrete(), np.trace(np.linalg.multi_dot(xs)))


def test_a_plan_writes_into_what_it_is_given():
    rng = np.random.default_rng(2)
    for dtype in ("float64", "complex64", "int64"):
        xs = [(10 * rng.standard_normal((3, 3))).astype(dtype) for _ in range(3)]
        for subscripts in ("ij,jk->ik", "ij,jk,kl->li", "ij,jk,kl->ilii"):
            operands = xs[: subscripts.count(",") + 1]
            prepared = plan(subscripts, *operands)
            want = prepared(*operands)
            out = np.full(want.shape, 7, dtype)
            got = prepared(*operands, out=out)
            assert np.shares_memory(got.data, out)
            np.testing.assert_allclose(out, want._concrete(), rtol=1e-6)
    whole = np.zeros((3, 6))
    plan("ij,jk->ik", *[np.eye(3)] * 2)(np.eye(3), np.eye(3), out=whole[:, ::2])
    np.testing.assert_array_equal(whole[:, ::2], np.eye(3))


def test_named_products():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    np.testing.assert_array_equal(inner(x, y)._concrete(), np.inner(x, y))
    np.testing.assert_array_equal(inner(x, 2.0)._concrete(), np.inner(x, 2.0))
    np.testing.assert_array_equal(outer(y, y)._concrete(), np.outer(y, y))
    np.testing.assert_array_equal(kron(x, y)._concrete(), np.kron(x, y))
    np.testing.assert_array_equal(tensordot(x, y, axes=1)._concrete(), x @ y)
    assert tensor(x).shape == (2, 3)
