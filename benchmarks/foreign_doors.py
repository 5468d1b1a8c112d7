"""The same calls of SciPy, scikit-learn and quimb on tensors and on NumPy arrays: `python3 dev bench foreign_doors`."""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import quimb.tensor as qtn
import sklearn
from scipy import ndimage, signal, special, stats
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import tenferro_runtime as tr

SIZES = 30, 1000


def calls(n: int) -> dict[str, Callable[[Any], Callable[[], Any]]]:
    """Each call for a function that makes arrays, at a size."""
    rng = np.random.default_rng(0)
    line, table, image = rng.random(n * n), rng.random((n, 8)), rng.random((n, n))
    target, kernel = rng.random(n), rng.random(31)
    chain = qtn.MPS_rand_state(8, n // 10, seed=1)

    def prepared(call: Callable[..., Any], *arrays: Any) -> Callable[[Any], Callable[[], Any]]:
        def at(make: Any) -> Callable[[], Any]:
            given = [make(a) for a in arrays]
            return lambda: call(*given)

        return at

    def norm(make: Any) -> Callable[[], Any]:
        state = chain.copy()
        state.apply_to_arrays(make)
        return lambda: (state.H & state).contract(all, optimize="greedy")

    return {
        "special.gammaln": prepared(special.gammaln, line),
        "signal.oaconvolve": prepared(signal.oaconvolve, line, kernel),
        "ndimage.gaussian_filter": prepared(lambda x: ndimage.gaussian_filter(x, 1.0), image),
        "stats.zscore": prepared(stats.zscore, table),
        "Ridge.fit": prepared(lambda x, y: Ridge(solver="svd").fit(x, y).coef_, table, target),
        "PCA.fit": prepared(lambda x: PCA(4, svd_solver="full").fit(x).components_, table),
        "quimb, norm of an MPS": norm,
    }


def main() -> None:
    sklearn.set_config(array_api_dispatch=True)
    print(f"{'':26}{'size':>6}{'NumPy us':>12}{'tensors us':>12}{'ratio':>8}")
    for n in SIZES:
        for name, at in calls(n).items():
            pair = [at(np.asarray), at(tr.asarray)]
            for f in pair:
                f()
            number = max(1, int(0.02 / timeit.timeit(pair[0], number=1)))
            times = np.asarray([[timeit.timeit(f, number=number) / number for f in pair] for _ in range(7)])
            ours, theirs = np.median(times[:, 1]), np.median(times[:, 0])
            print(f"{name:26}{n:6}{theirs * 1e6:12.1f}{ours * 1e6:12.1f}{np.median(times[:, 1] / times[:, 0]):8.2f}")


if __name__ == "__main__":
    main()
