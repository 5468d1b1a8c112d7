"""Slices on a Dask cluster of this machine: results, gradients, and a worker that is lost."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import plan, run_on

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
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
