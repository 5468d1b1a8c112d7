"""Calls that move elements and make indices, for `numpy_calls`."""

from __future__ import annotations

from numpy_call import EVERY, REALS, Call, call, fixed, spread


def joining() -> dict[str, Call]:
    """Joining, cutting, turning."""
    pair = ((2, 3), (2, 3))
    table = {
        "vstack": call(lambda xp, x, y: xp.vstack([x, y]), *pair, dtypes=EVERY),
        "vstack of vectors": call(lambda xp, x, y: xp.vstack((x, y)), (3,), (3,)),
        "vstack of numbers": call(lambda xp, x, y: xp.vstack((x, y)), (), ()),
        "vstack dtype": call(lambda xp, x: xp.vstack([x, x], dtype=xp.complex128), (3,), dtypes=REALS),
        "vstack empty": call(lambda xp, x, y: xp.vstack([x, y]), (0, 3), (2, 3)),
        "vstack mixed": call(lambda xp, x, y: xp.vstack([x, y]), (3,), (2, 3)),
        "hstack": call(lambda xp, x, y: xp.hstack([x, y]), *pair, dtypes=EVERY),
        "hstack of vectors": call(lambda xp, x, y: xp.hstack((x, y)), (3,), (2,)),
        "hstack of numbers": call(lambda xp, x, y: xp.hstack((x, y)), (), ()),
        "dstack": call(lambda xp, x, y: xp.dstack([x, y]), *pair),
        "dstack of vectors": call(lambda xp, x, y: xp.dstack([x, y]), (3,), (3,)),
        "column_stack": call(lambda xp, x, y: xp.column_stack([x, y]), (2,), (2, 3)),
        "column_stack of numbers": call(lambda xp, x, y: xp.column_stack([x, y]), (), ()),
        "block": call(lambda xp, x, y, z: xp.block([[x, y], [z]]), (2, 2), (2, 1), (3,)),
        "block of one": call(lambda xp, x: xp.block(x), (2, 2)),
        "block deep": call(lambda xp, x, y: xp.block([[[x, x]], [[y]]]), (2, 1), (2, 2)),
        "block wide": call(lambda xp, x: xp.block([x, x]), (2, 1, 2)),
        "array_split": call(lambda xp, x: xp.array_split(x, 3), (7, 2), dtypes=EVERY),
        "array_split many": call(lambda xp, x: xp.array_split(x, 5, axis=-1), (2, 3)),
        "array_split cuts": call(lambda xp, x: xp.array_split(x, [1, 3], axis=0), (5,)),
        "hsplit": call(lambda xp, x: xp.hsplit(x, 2), (2, 4)),
        "hsplit vector": call(lambda xp, x: xp.hsplit(x, [1]), (3,)),
        "vsplit": call(lambda xp, x: xp.vsplit(x, 2), (4, 3)),
        "dsplit": call(lambda xp, x: xp.dsplit(x, [1, 1]), (2, 1, 3)),
        "fliplr": call(lambda xp, x: xp.fliplr(x), (2, 3), dtypes=EVERY),
        "flipud": call(lambda xp, x: xp.flipud(x), (3,)),
        "rot90 back": call(lambda xp, x: xp.rot90(x, -1, axes=(2, 0)), (2, 2, 3)),
    }
    for k in range(5):
        table[f"rot90 {k}"] = call(lambda xp, x, k=k: xp.rot90(x, k), (2, 3))
    for axis in (-3, 0, 1, 2):
        for start in (-2, 0, 1, 3):
            table[f"rollaxis {axis} {start}"] = call(
                lambda xp, x, a=axis, s=start: xp.rollaxis(x, a, s), (2, 3, 4), dtypes=("float64",)
            )
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for shape in ((), (3,), (2, 3), (2, 1, 2), (0,)):
            table[f"{name} {shape}"] = call(lambda xp, x, n=name: getattr(xp, n)(x), shape)
        table[f"{name} of several"] = call(lambda xp, x, y, n=name: getattr(xp, n)(x, y), (), (2,))
    return table


def places() -> dict[str, Call]:
    """Diagonals, triangles and index helpers."""
    table = {}
    for k in (-2, 0, 1, 5):
        table[f"diag of vector {k}"] = call(lambda xp, x, k=k: xp.diag(x, k), (3,), dtypes=EVERY)
        table[f"diag of matrix {k}"] = call(lambda xp, x, k=k: xp.diag(x, k), (3, 4), dtypes=EVERY)
        table[f"tri {k}"] = call(lambda xp, x, k=k: x * xp.tri(x.shape[0], x.shape[1], k), (3, 4), dtypes=("float64",))
        table[f"tril_indices {k}"] = call(
            lambda xp, x, k=k: (x[xp.tril_indices(3, k)], x[xp.triu_indices(3, k, 3)]), (3, 3), dtypes=("float64",)
        )
    some = spread(2, 3)
    flags = fixed([False, True, True], [True, False, True])
    at = fixed([0, 5], [3, 2])
    rows, columns = fixed(0, 1, 1), fixed(2, 0, 1)
    table |= {
        "diag of nothing": call(lambda xp, x: xp.diag(x, 1), (0,)),
        "diagflat": call(lambda xp, x: xp.diagflat(x, -1), (2, 2)),
        "diagflat of a number": call(lambda xp, x: xp.diagflat(x), ()),
        "tri square": call(lambda xp, x: xp.tri(x.shape[0], dtype=xp.int32), (3,), smooth=False),
        "diag_indices": call(lambda xp, x: x[xp.diag_indices(x.shape[0])], (3, 3), dtypes=("float64",)),
        "diag_indices_from": call(lambda xp, x: x[xp.diag_indices_from(x)], (2, 2, 2), dtypes=("float64",)),
        "tril_indices_from": call(
            lambda xp, x: x[xp.tril_indices_from(x, -1)], (2, 3), dtypes=("float64",)
        ),
        "triu_indices_from": call(lambda xp, x: x[xp.triu_indices_from(x, 1)], (2, 3), dtypes=("float64",)),
        "mask_indices": call(lambda xp, x: x[xp.mask_indices(3, lambda a, k: xp.triu(a, k=k), 1)], (3, 3)),
        "indices": call(lambda xp, x: xp.indices(x.shape), (2, 3), dtypes=("float64",), smooth=False),
        "indices sparse": call(
            lambda xp, x: xp.indices(x.shape, dtype=xp.int32, sparse=True), (2, 0), dtypes=("float64",), smooth=False
        ),
        "ix_": call(lambda xp, x, i, j: x[xp.ix_(i, j)], (2, 3), rows, columns),
        "ix_ mask": call(
            lambda xp, x, i, j: x[xp.ix_(i, j)], (2, 3), rows, fixed(True, False, True), traced=False
        ),
        "unravel_index": call(lambda xp, i: xp.unravel_index(i, (2, 3)), at, dtypes=("int64",), smooth=False),
        "unravel_index F": call(
            lambda xp, i: xp.unravel_index(i, (2, 3, 4), order="F"), at, dtypes=("int64",), smooth=False
        ),
        "unravel_index vector": call(lambda xp, i: xp.unravel_index(i, (7,)), at, dtypes=("int64",), smooth=False),
        "ravel_multi_index": call(
            lambda xp, i, j: xp.ravel_multi_index((i, j), (2, 3)), rows, columns, dtypes=("int64",), smooth=False
        ),
        "ravel_multi_index F": call(
            lambda xp, i, j: xp.ravel_multi_index((i, j), (2, 3), order="F"), rows, columns,
            dtypes=("int64",), smooth=False,
        ),
        "ravel_multi_index modes": call(
            lambda xp, i, j: xp.ravel_multi_index((i * 3 - 2, j - 1), (2, 2), mode=("wrap", "clip")), rows, columns,
            dtypes=("int64",), smooth=False,
        ),
        "argwhere": call(lambda xp, x: xp.argwhere(x > 2), some, traced=False, dtypes=REALS),
        "argwhere of a number": call(lambda xp, x: xp.argwhere(x), (), traced=False),
        "argwhere flags": call(lambda xp, x: xp.argwhere(x), flags, traced=False, dtypes=("bool",)),
        "flatnonzero": call(lambda xp, x: xp.flatnonzero(x > 2), some, traced=False, dtypes=REALS),
    }  # fmt: skip
    return table
