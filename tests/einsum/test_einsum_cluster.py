"""Slices on a Dask cluster of this machine: results, gradients, and a worker that is lost."""

from functools import partial

import numpy as np
import pytest

import einsum_tasks
import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import _branches as branches
from tenferro_einsum import _jobs as jobs
from tenferro_einsum import einsum, plan, run_on

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def client():
    """A cluster for one test: some lose workers of it."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def draw(seed):
    return tr.asarray(np.random.default_rng(seed).standard_normal((10, 10, 3)))


def test_values_and_gradients_come_from_the_cluster(client):
    xs = [draw(i) for i in range(3)]
    whole = plan("abi,bcj,cak->ijk", *xs)
    cut = plan("abi,bcj,cak->ijk", *xs, memory_budget=whole.backward_peak_bytes // 2)
    gradient = grad(lambda *xs: tr.sum(cut(*xs) ** 2), argnums=(0, 1, 2))
    want = gradient(*xs)
    told = []
    with run_on(client.get_executor(), tasks=4, progress=lambda part, count: told.append(count)):
        found = gradient(*xs)
    assert told[:4] == [1.0, 2.0, 3.0, 4.0]
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def test_a_lost_worker_is_made_up_for(client):
    xs = [draw(i) for i in range(3)]
    cut = plan("abi,bcj,cak->ijk", *xs, memory_budget=plan("abi,bcj,cak->ijk", *xs).peak_bytes // 2)
    lost = []

    def lose(part, count):
        if not lost:
            lost.append(next(iter(client.scheduler_info()["workers"])))
            client.retire_workers(lost, close_workers=True)

    with run_on(client.get_executor(), tasks=cut.slicing.count, progress=lose):
        found = cut(*xs)
    np.testing.assert_allclose(np.asarray(found), np.asarray(plan("abi,bcj,cak->ijk", *xs)(*xs)))


def test_a_worker_that_is_killed_in_its_task_is_made_up_for(client, tmp_path, monkeypatch):
    """The process ends in the middle of a slice; the cluster or `run_on` sends the task again."""
    xs = [draw(i) for i in range(3)]
    whole = plan("abi,bcj,cak->ijk", *xs)
    cut = plan("abi,bcj,cak->ijk", *xs, memory_budget=whole.peak_bytes // 2)
    mark = tmp_path / "mark"
    monkeypatch.setattr(jobs, "work", partial(einsum_tasks.dying_once, str(mark)))
    with run_on(client.get_executor(), tasks=cut.slicing.count):
        found = cut(*xs)
    assert mark.exists()
    np.testing.assert_allclose(np.asarray(found), np.asarray(whole(*xs)))


def test_branches_and_their_gradients_come_from_the_cluster(client, tmp_path, monkeypatch):
    """Halves of a chain, also where a worker is killed in one of them."""
    monkeypatch.setattr(branches, "BRANCH_MIN_MULTIPLICATIONS", 0)
    xs = [tr.asarray(np.random.default_rng(i).standard_normal((40, 40))) for i in range(6)]
    terms = [[i, i + 1] for i in range(6)]
    tree = (((0, 1), 2), ((3, 4), 5))
    contract = lambda *xs: einsum(*[v for pair in zip(xs, terms, strict=True) for v in pair], [0, 6], optimize=tree)
    gradient = grad(lambda *xs: tr.sum(contract(*xs) ** 2), argnums=tuple(range(6)))
    want = gradient(*xs)
    told = []
    monkeypatch.setattr(jobs, "work", partial(einsum_tasks.dying_once, str(tmp_path / "mark")))
    with run_on(client.get_executor(), progress=lambda part, count: told.append(part)):
        found = gradient(*xs)
    assert (tmp_path / "mark").exists()
    assert told == [0.5, 1.0] * 3  # values, values again for the gradient, gradients
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)
