"""Gather, scatter and dynamic slices against loops that follow StableHLO's definitions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel_check import check, sample
from structural_oracles import ORACLES
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DTYPES

SEEDS = st.integers(0, 2**32 - 1)
INTEGERS = [dt.name for dt in DTYPES if dt.kind in "iu"]


def pick(rng: Any, values: Any, at_least: int = 0) -> tuple[int, ...]:
    """A random subset in ascending order."""
    values = list(values)
    n = int(rng.integers(min(at_least, len(values)), len(values) + 1))
    return tuple(sorted(int(v) for v in rng.permutation(values)[:n]))


def positions(rng: Any, batch: tuple[int, ...], entries: int) -> Any:
    """Index vectors, some of them out of bounds at either end."""
    dtype = rng.choice(["int8", "int64", "uint8", "uint64"])
    return rng.integers(0 if dtype[0] == "u" else -3, 7, (*batch, entries)).astype(dtype)


@given(seed=SEEDS)
def test_gather(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = sample(rng, "float64", tuple(rng.integers(1, 5, rng.integers(0, 4)).tolist()))
    batch = tuple(rng.integers(0, 4, rng.integers(0, 3)).tolist())
    named = tuple(int(v) for v in rng.permutation(x.ndim)[: rng.integers(0, x.ndim + 1)])
    sizes = tuple(int(rng.integers(0, n + 1)) for n in x.shape)
    collapsed = pick(rng, range(x.ndim))
    sizes = tuple(1 if d in collapsed else n for d, n in enumerate(sizes))
    kept = x.ndim - len(collapsed)
    offset = tuple(sorted(int(v) for v in rng.permutation(kept + len(batch))[:kept]))
    check(
        c.gather, ORACLES[c.gather], x, positions(rng, batch, len(named)),
        offset_dims=offset, collapsed_dims=collapsed, start_index_map=named, slice_sizes=sizes,
    )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_gather_along_one_axis(axis: int, batch: tuple[int, ...]) -> None:
    """``take``, the commonest case, which has a kernel of its own."""
    rng = np.random.default_rng(1)
    x = sample(rng, "float64", (3, 4, 2))
    offset = tuple(i if i < axis else i + len(batch) for i in range(2))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    for dtype in INTEGERS:
        check(
            c.gather, ORACLES[c.gather], x, sample(rng, dtype, (*batch, 1), -9, 9),
            offset_dims=offset, collapsed_dims=(axis,), start_index_map=(axis,), slice_sizes=sizes,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [dt.name for dt in DTYPES])
def test_gather_of_every_dtype(dtype: str) -> None:
    rng = np.random.default_rng(2)
    check(
        c.gather, ORACLES[c.gather], sample(rng, dtype, (3, 4)), np.array([[0, 1], [9, 9]]),
        offset_dims=(0, 1), collapsed_dims=(), start_index_map=(1, 0), slice_sizes=(2, 2),
    )  # fmt: skip


def test_large_unsigned_positions_do_not_become_negative() -> None:
    x, far = np.arange(5.0), np.array([[2**64 - 1]], np.uint64)
    gather: Any = {"offset_dims": (), "collapsed_dims": (0,), "start_index_map": (0,), "slice_sizes": (1,)}
    check(c.gather, lambda x, i, **_: [4.0], x, far, **gather)
    scatter: Any = {"update_window_dims": (), "inserted_dims": (0,), "scatter_dims": (0,), "mode": "set"}
    check(c.scatter, lambda x, i, u, **_: x, x, far, np.array([7.0]), **scatter)


def test_the_least_position_overflows_nothing() -> None:
    """A single index vector makes NumPy scalars, which would warn."""
    x, far = np.zeros((5, 3)), np.array([-(2**63)])
    scatter: Any = {"update_window_dims": (0,), "inserted_dims": (0,), "scatter_dims": (0,), "mode": "add"}
    check(c.scatter, lambda x, i, u, **_: x, x, far, np.ones(3), **scatter)


@example(seed=35035)  # an operand without axes
@given(seed=SEEDS)
def test_scatter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = sample(rng, "int64", tuple(rng.integers(1, 5, rng.integers(0, 4)).tolist()))
    batch = tuple(rng.integers(0, 4, rng.integers(0, 3)).tolist())
    named = tuple(int(v) for v in rng.permutation(x.ndim)[: rng.integers(0, x.ndim + 1)])
    inserted = pick(rng, range(x.ndim))
    window = [int(rng.integers(0, n + 1)) for d, n in enumerate(x.shape) if d not in inserted]
    rank = len(window) + len(batch)
    dims = tuple(sorted(int(v) for v in rng.permutation(rank)[: len(window)]))
    wide, rest = iter(window), iter(batch)
    updates = sample(rng, "int64", tuple(next(wide if k in dims else rest) for k in range(rank)))
    for mode in ("add", "mul", "min", "max"):
        check(
            c.scatter, ORACLES[c.scatter], x, positions(rng, batch, len(named)), updates,
            update_window_dims=dims, inserted_dims=inserted, scatter_dims=named, mode=mode,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "mode"),
    [(dt.name, mode) for dt in DTYPES for mode in c.SCATTER_MODES if dt.kind != "c" or mode not in ("min", "max")],
)
def test_scatter_of_every_dtype(dtype: str, mode: str) -> None:
    """Rows 2 and 0 and, dropped, one beyond the end; no row twice, so that ``set`` is determined."""
    rng = np.random.default_rng(3)
    x, updates = sample(rng, dtype, (3, 2)), sample(rng, dtype, (3, 2))
    check(
        c.scatter, ORACLES[c.scatter], x, np.array([[2], [0], [3]]), updates,
        update_window_dims=(1,), inserted_dims=(0,), scatter_dims=(0,), mode=mode,
    )  # fmt: skip


def test_a_window_that_sticks_out_is_dropped_whole() -> None:
    params: Any = {"update_window_dims": (1,), "inserted_dims": (), "scatter_dims": (0,), "mode": "add"}
    x, at, updates = np.zeros(5), np.array([[3], [-1], [1]]), np.ones((3, 3))
    check(c.scatter, lambda *_, **__: [0, 1, 1, 1, 0], x, at, updates, **params)


def test_scatter_adds_up_duplicates() -> None:
    params: Any = {"update_window_dims": (), "inserted_dims": (0,), "scatter_dims": (0,), "mode": "add"}
    x, at, updates = np.zeros(3), np.array([[1], [1], [0], [1]]), np.array([1.0, 2.0, 4.0, 8.0])
    check(c.scatter, lambda *_, **__: [4, 11, 0], x, at, updates, **params)


@given(seed=SEEDS)
def test_dynamic_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = sample(rng, "float64", tuple(rng.integers(0, 5, rng.integers(0, 4)).tolist()))
    sizes = tuple(int(rng.integers(0, n + 1)) for n in x.shape)
    starts = positions(rng, (), x.ndim)
    check(c.dynamic_slice, ORACLES[c.dynamic_slice], x, *starts, sizes=sizes)
    check(c.dynamic_update_slice, ORACLES[c.dynamic_update_slice], x, sample(rng, "float64", sizes), *starts)


@pytest.mark.parametrize("dtype", [dt.name for dt in DTYPES])
def test_dynamic_slices_of_every_dtype(dtype: str) -> None:
    rng = np.random.default_rng(4)
    x, starts = sample(rng, dtype, (3, 4)), np.array([2, 1])
    check(c.dynamic_slice, ORACLES[c.dynamic_slice], x, *starts, sizes=(2, 2))
    check(c.dynamic_update_slice, ORACLES[c.dynamic_update_slice], x, sample(rng, dtype, (2, 2)), *starts)
