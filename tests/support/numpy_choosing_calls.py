"""Calls that choose, edit and compare elements, for `numpy_calls`."""

from __future__ import annotations

import numpy as np

from numpy_call import EVERY, NUMBERS, REALS, Call, call, fixed, spread


def choosing() -> dict[str, Call]:
    """Selection by conditions and indices, and order."""
    some, numbers = spread(3, 4), fixed([0, 2, 1], [1, 1, 0])
    flags, keys = fixed([True, False, True], [False, False, True]), fixed([2, 1, 2, 0], [3, 3, 1, 2], [1, 1, 0, 0])
    table = {
        "select": call(
            lambda xp, x, y: xp.select([x > 3, x < 1], [x * y, y], 7), some, some, dtypes=REALS
        ),
        "select broadcast": call(
            lambda xp, x, y: xp.select([x > 1, xp.asarray(True)], [x, y[:1, :1]]), some, some, dtypes=("float64",)
        ),
        "piecewise": call(
            lambda xp, x: xp.piecewise(x, [x < 1, x > 2], [lambda x: -x, lambda x: x * x, 3.0]), some,
            dtypes=("float64",),
        ),
        "piecewise overlap": call(
            lambda xp, x: xp.piecewise(x, [x > 0, x > 2], [lambda x, a: a * x, 1.0], 2.0), some, dtypes=("float64",)
        ),
        "piecewise one": call(
            lambda xp, x: xp.piecewise(x, x > 2, [lambda x: x + 1]), spread(5), dtypes=("float64", "int64")
        ),
        "choose": call(
            lambda xp, i, x, y: xp.choose(i, [x, y, x * 2]), numbers, (2, 3), (3,), dtypes=("float64", "int64")
        ),
        "choose wrap": call(
            lambda xp, i, x: xp.choose(i * 3 - 2, x, mode="wrap"), numbers, (2, 3), dtypes=("float64",)
        ),
        "choose clip": call(
            lambda xp, i, x: xp.choose(i * 3 - 2, x, mode="clip"), numbers, (2, 3), dtypes=("float64",)
        ),
        "extract": call(lambda xp, m, x: xp.extract(m, x), flags, (2, 3), traced=False, dtypes=EVERY),
        "lexsort": call(lambda xp, k: xp.lexsort(k), keys, dtypes=("int64",), smooth=False),
        "lexsort pair": call(lambda xp, k: xp.lexsort((k[1], k)[:1], axis=0), keys, dtypes=("int64",), smooth=False),
        "lexsort stack": call(
            lambda xp, x, y: xp.lexsort((x, y), axis=0), (3, 2), (3, 2), dtypes=("int64",), smooth=False
        ),
        "partition": call(lambda xp, x: xp.partition(x, 1, axis=0)[1], some, dtypes=NUMBERS),
        "partition several": call(lambda xp, x: xp.partition(x, (1, -1), axis=None)[[1, -1]], some, dtypes=REALS),
        "argpartition": call(lambda xp, x: xp.argpartition(x, 2)[..., 2], some, dtypes=REALS, smooth=False),
    }  # fmt: skip
    return table


def editing() -> dict[str, Call]:
    """Entries removed, put in and added."""
    table = {
        "append": call(lambda xp, x, y: xp.append(x, y), (2, 3), (2,)),
        "append axis": call(lambda xp, x, y: xp.append(x, y, axis=1), (2, 3), (2, 1), dtypes=EVERY),
        "resize": call(lambda xp, x: xp.resize(x, (3, 3)), (2, 2), dtypes=EVERY),
        "resize less": call(lambda xp, x: xp.resize(x, (3,)), (2, 2)),
        "resize nothing": call(lambda xp, x: xp.resize(x, (2, 2)), (0,)),
        "resize to nothing": call(lambda xp, x: xp.resize(x, (0, 2)), (3,)),
        "trim_zeros": call(lambda xp, x: xp.trim_zeros(x), fixed(0.0, 0.0, 1.5, 0.0, 2.0, 0.0), traced=False),
        "trim_zeros front": call(lambda xp, x: xp.trim_zeros(x, "f"), fixed(0, 1, 0), traced=False),
        "trim_zeros back": call(lambda xp, x: xp.trim_zeros(x, "b"), fixed(0, 1, 0), traced=False),
        "trim_zeros of zeros": call(lambda xp, x: xp.trim_zeros(x), fixed(0, 0), traced=False),
        "trim_zeros of a matrix": call(
            lambda xp, x: xp.trim_zeros(x, axis=1), fixed([0, 0, 1], [0, 3, 0]), traced=False
        ),
    }
    removed = {"one": 1, "last": -1, "slice": slice(None, None, 2), "several": [0, 2, 2], "none": []}
    for title, at in removed.items():
        table[f"delete {title}"] = call(lambda xp, x, at=at: xp.delete(x, at, axis=1), (2, 3), dtypes=EVERY)
        table[f"delete {title} flat"] = call(lambda xp, x, at=at: xp.delete(x, at), (2, 3))
    mask = np.asarray([True, False, True])
    table["delete mask"] = call(lambda xp, x: xp.delete(x, mask, axis=1), (2, 3))
    for title, at in {"one": 1, "end": 3, "last": -1, "several": [0, 3, 1], "twice": [1, 1], "slice": slice(2)}.items():
        table[f"insert {title}"] = call(lambda xp, x, at=at: xp.insert(x, at, 2, axis=1), (2, 3))
        table[f"insert {title} flat"] = call(lambda xp, x, at=at: xp.insert(x, at, 2), (3,))
    table |= {
        "insert entries": call(lambda xp, x, y: xp.insert(x, 1, y, axis=1), (2, 3), (2,)),
        "insert rows": call(lambda xp, x, y: xp.insert(x, 1, y, axis=0), (2, 3), (4, 3)),
        "insert single of a list": call(lambda xp, x, y: xp.insert(x, [1], y, axis=1), (2, 3), (2, 1)),
        "insert entries each": call(lambda xp, x, y: xp.insert(x, [2, 0], y, axis=1), (2, 3), (2, 2)),
    }
    return table


def sets() -> dict[str, Call]:
    """Distinct elements."""
    ties, others = fixed([3, 1, 3], [2, 1, 7]), fixed(7, 3, 9, 3)
    rows = fixed([1, 2], [0, 5], [1, 2])
    table = {}
    for dtype in ("int64", "float64", "complex128"):
        made = lambda ignored, dtype=dtype: ties("").astype(dtype)
        table[f"unique {dtype}"] = call(lambda xp, x: xp.unique(x), made, traced=False, dtypes=(dtype,))
    every = {"return_index": True, "return_inverse": True, "return_counts": True}
    table |= {
        "unique everything": call(lambda xp, x: xp.unique(x, **every), ties, traced=False, dtypes=("int64",)),
        "unique two": call(lambda xp, x: xp.unique(x, return_counts=True), ties, traced=False, dtypes=("int64",)),
        "unique rows": call(lambda xp, x: xp.unique(x, axis=0, **every), rows, traced=False, dtypes=("int64",)),
        "unique columns": call(lambda xp, x: xp.unique(x, axis=-1), rows, traced=False, dtypes=("int64",)),
        "unique nan": call(
            lambda xp, x: xp.unique(x), fixed(np.nan, 1.0, np.nan), traced=False, dtypes=("float64",)
        ),
        "unique nans": call(
            lambda xp, x: xp.unique(x, equal_nan=False), fixed(np.nan, 1.0, np.nan), traced=False, dtypes=("float64",)
        ),
        "unique empty": call(lambda xp, x: xp.unique(x, return_index=True), (0,), traced=False, dtypes=("float64",)),
        "union1d": call(lambda xp, x, y: xp.union1d(x, y), ties, others, traced=False, dtypes=("int64",)),
        "intersect1d": call(lambda xp, x, y: xp.intersect1d(x, y), ties, others, traced=False, dtypes=("int64",)),
        "intersect1d indices": call(
            lambda xp, x, y: xp.intersect1d(x, y, return_indices=True), ties, others, traced=False, dtypes=("int64",)
        ),
        "setdiff1d": call(lambda xp, x, y: xp.setdiff1d(x, y), ties, others, traced=False, dtypes=("int64",)),
        "setdiff1d unique": call(
            lambda xp, x, y: xp.setdiff1d(x, y, assume_unique=True), fixed(5, 3, 1), others,
            traced=False, dtypes=("int64",),
        ),
        "setxor1d": call(lambda xp, x, y: xp.setxor1d(x, y), ties, others, traced=False, dtypes=("int64",)),
        "setxor1d empty": call(lambda xp, x, y: xp.setxor1d(x, y), (0,), (0,), traced=False, dtypes=("float64",)),
    }  # fmt: skip
    return table
