"""Slices on MPI workers, run by a test as a script: ``mpiexec -n 3 python -m mpi4py.futures einsum_on_mpi.py``."""

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import plan, run_on


def main() -> None:
    """Value and gradients come from the workers, equal to those made here."""
    from mpi4py.futures import MPIPoolExecutor  # type: ignore[import-not-found, unused-ignore]

    xs = [tr.asarray(np.random.default_rng(seed).standard_normal((10, 10, 3))) for seed in range(3)]
    whole = plan("abi,bcj,cak->ijk", *xs)
    cut = plan("abi,bcj,cak->ijk", *xs, memory_budget=whole.backward_peak_bytes // 2)
    gradient = grad(lambda *xs: tr.sum(cut(*xs) ** 2), argnums=(0, 1, 2))
    want = gradient(*xs)
    told: list[float] = []
    with MPIPoolExecutor() as pool, run_on(pool, tasks=4, progress=lambda part, count: told.append(part)):
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)), rtol=1e-12)
        found = gradient(*xs)
        workers = pool.num_workers
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)
    print(workers, "workers", told[-4:])


if __name__ == "__main__":
    main()
