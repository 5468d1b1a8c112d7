"""Branches of contractions on workers: the same values and gradients as in one piece."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad
from tenferro_einsum import _branches as branches
from tenferro_einsum import _jobs as jobs
from tenferro_einsum import einsum, plan, run_on
from tenferro_einsum._slices import contract_slices


def draw(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return tr.asarray((x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype))


def matrices(count, n, dtype="float64"):
    """A chain, contracted in pairs, then pairs of pairs."""
    terms = [[i, i + 1] for i in range(count)]
    xs = [draw((n, n), dtype, i) for i in range(count)]
    path = [(0, 1)] * (count - 1)
    return xs, [*[v for pair in zip(xs, terms, strict=True) for v in pair], [0, count]], path


@pytest.fixture
def everything_is_heavy(monkeypatch):
    monkeypatch.setattr(branches, "BRANCH_MIN_MULTIPLICATIONS", 0)
    monkeypatch.setattr(branches, "BRANCH_MAX_REMAINING", 2.0)


@given(st.data())
def test_any_tree_may_be_split(data):
    """All cuts of random trees: diagonals, hyper-edges, operands that are summed alone."""
    labels = "abcd"
    count = data.draw(st.integers(3, 7))
    terms = [tuple(data.draw(st.text(labels, min_size=1, max_size=3))) for _ in range(count)]
    have = sorted({x for t in terms for x in t})
    out = data.draw(st.permutations(have))[: data.draw(st.integers(0, len(have)))]
    extent = {x: data.draw(st.integers(0, 3)) for x in labels}
    xs = [draw([extent[x] for x in t], seed=i) for i, t in enumerate(terms)]
    p = plan(*[v for pair in zip(xs, terms, strict=True) for v in pair], out)
    params = {"inputs": p._labels, "output": p._output, "steps": p.steps, "sliced": ()}
    whole = contract_slices.op(**params)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(branches, "BRANCH_MIN_MULTIPLICATIONS", 0)
        patch.setattr(branches, "BRANCH_MAX_REMAINING", 10.0)
        parted = contract_slices.op(**params, branches=True)
        weigh = np.random.default_rng(9).standard_normal(whole(*xs).shape)
        loss = lambda op: grad(lambda *xs: tr.sum(op(*xs) * weigh), argnums=tuple(range(count)))(*xs)
        with run_on(pool, tasks=data.draw(st.integers(1, 4))):
            found, gradients = parted(*xs), loss(parted)
        np.testing.assert_allclose(np.asarray(found), np.asarray(whole(*xs)), atol=1e-12)
        for a, b in zip(gradients, loss(whole), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.usefixtures("everything_is_heavy")
def test_branches_have_all_derivatives(dtype):
    xs, args, path = matrices(4, 3, dtype)
    contract = lambda *xs: einsum(*[v for x, t in zip(xs, args[1::2]) for v in (x, t)], args[-1], optimize=path)
    want = np.asarray(contract(*xs))
    told = []
    with ThreadPoolExecutor(2) as pool, run_on(pool, progress=lambda part, n: told.append((part, n))):
        np.testing.assert_allclose(np.asarray(contract(*xs)), want)
        assert told == [(0.5, 1.0), (1.0, 2.0)]
        check_grads(contract, tuple(xs), order=2)


def test_what_is_worth_it_is_split():
    """Two halves of a balanced chain; nothing of a chain from left to right, and nothing that is small."""
    found = [plan(*args, optimize=path) for _, args, path in (matrices(4, 300), matrices(4, 20))]
    cut = [branches.split(p._labels, p._output, p.steps, p._extents, 2) for p in found]  # type: ignore[arg-type]  # sizes are numbers
    assert [b.operands for b in cut[0].branches] == [(0, 1), (2, 3)]
    assert cut[0].trunk.operands == (4, 5)
    assert cut[1] is None
    _, args, _ = matrices(4, 300)
    one_by_one = plan(*args, optimize=False)
    assert branches.split(one_by_one._labels, one_by_one._output, one_by_one.steps, one_by_one._extents, 2) is None  # type: ignore[arg-type]  # sizes are numbers


@pytest.mark.usefixtures("everything_is_heavy")
def test_budgets_and_traces_are_not_split(monkeypatch):
    """Branches would take more memory than the budget says; programs are made for any place where they run."""
    xs, args, path = matrices(4, 4)
    sent = []
    monkeypatch.setattr(jobs, "each_job", lambda *rest: sent.append(rest) or iter(()))
    with ThreadPoolExecutor(1) as pool, run_on(pool):
        whole = einsum(*args, optimize=path, memory_budget=10**9)
        f = lambda *xs: einsum(*[v for x, t in zip(xs, args[1::2]) for v in (x, t)], args[-1], optimize=path)
        program = tr.trace(f, *[x.spec for x in xs])
    assert not sent
    np.testing.assert_allclose(np.asarray(program.run(*xs)[0]), np.asarray(whole))


@pytest.mark.usefixtures("everything_is_heavy")
def test_an_exception_of_progress_ends_the_call():
    _, args, path = matrices(4, 4)

    def stop(part, count):
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt), run_on(pool, progress=stop):
        einsum(*args, optimize=path)
