"""Calls of functions that NumPy has as well, written once for both namespaces.

A call is a function of a namespace and arrays. Operands are shapes, or functions that make an array of a dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from array_oracles import array

Operand = tuple[int, ...] | Callable[[str], np.ndarray[Any, Any]]

NUMBERS: Final = ("float64", "int64", "complex128", "float32")
INEXACT: Final = ("float64", "complex128", "float32")
REALS: Final = ("float64", "int64", "float32")
FLOATS: Final = ("float64", "float32")
DOUBLE: Final = ("float64", "complex128")
EVERY: Final = (*NUMBERS, "bool")


class Call(NamedTuple):
    """A call, and which tests it takes part in.

    Attributes:
        f: a function of a namespace and arrays.
        operands: the arrays.
        dtypes: of the operands that are given by shapes.
        smooth: derivatives can be checked by differences, at these operands.
        traced: it can be compiled and batched.
    """

    f: Callable[..., Any]
    operands: tuple[Operand, ...]
    dtypes: tuple[str, ...]
    smooth: bool
    traced: bool

    def arrays(self, dtype: str) -> list[np.ndarray[Any, Any]]:
        """The operands in a dtype."""
        return [o(dtype) if callable(o) else array(o, dtype, seed) for seed, o in enumerate(self.operands)]


def call(
    f: Callable[..., Any],
    *operands: Operand,
    dtypes: tuple[str, ...] = NUMBERS,
    smooth: bool = True,
    traced: bool = True,
) -> Call:
    """A call that takes part in every test that is not excluded."""
    return Call(f, operands, dtypes, smooth and traced, traced)


def fixed(*values: Any) -> Callable[[str], np.ndarray[Any, Any]]:
    """An operand that does not depend on the dtype."""
    return lambda dtype: np.asarray(values)


def spread(*shape: int, low: float = 0.5, high: float = 4.0, seed: int = 0) -> Callable[[str], np.ndarray[Any, Any]]:
    """Positive distinct numbers in no order, away from kinks; whole ones for integers."""

    def make(dtype: str) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng(seed)
        count = int(np.prod(shape))
        if np.dtype(dtype).kind in "iu":
            return rng.permutation(count).astype(dtype).reshape(shape)
        real = rng.permutation(np.linspace(low, high, count))
        imag = 0.3j * rng.permutation(np.linspace(low, high, count)) if np.dtype(dtype).kind == "c" else 0.0
        return (real + imag).astype(dtype).reshape(shape)

    return make


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


def signals() -> dict[str, Call]:
    """Convolutions, interpolation, differences, windows."""
    table = {}
    for mode in ("full", "same", "valid"):
        for n, k in ((5, 3), (3, 6), (4, 4), (1, 3), (70, 41), (6, 2), (2, 5)):
            for name in ("convolve", "correlate"):
                table[f"{name} {mode} {n} {k}"] = call(
                    lambda xp, x, y, f=name, m=mode: getattr(xp, f)(x, y, m), (n,), (k,), dtypes=EVERY
                )
    places, points, values = fixed([-0.6, 2.2, 0.7], [3.1, 0.1, 1.6]), fixed(0.0, 0.5, 1.25, 2.5), (4,)
    phases = lambda dtype: (np.cumsum(np.real(spread(9, low=-5.0, high=5.0)(dtype))) % 6).astype(dtype)
    coordinates = fixed(0.0, 0.3, 1.0, 1.2, 2.0)
    table |= {
        "interp": call(lambda xp, x, p, f: xp.interp(x, p, f), places, points, values, dtypes=DOUBLE),
        "interp ends": call(
            lambda xp, x, p, f: xp.interp(x, p, f, left=-7.0, right=8.0), places, points, values, dtypes=("float64",)
        ),
        "interp period": call(
            lambda xp, x, p, f: xp.interp(x * 2.9, p, f, period=2.2), places, points, values, dtypes=("float64",)
        ),
        "interp at points": call(
            lambda xp, x, p, f: xp.interp(p, p, f), places, points, values, dtypes=("float64",), smooth=False
        ),
        "interp one point": call(
            lambda xp, x, p, f: xp.interp(x, p[1:2], f[1:2], left=3.0), places, points, values, dtypes=("float64",)
        ),
        "interp steps": call(
            lambda xp, x, p, f: xp.interp(x, p, f), places, fixed(0.0, 1.0, 1.0, 2.0), values,
            dtypes=("float64",), smooth=False,
        ),
        "interp of integers": call(
            lambda xp, x: xp.interp(x, xp.asarray([1, 3]), xp.asarray([2, 7])), fixed(0, 1, 2, 3, 4),
            dtypes=("int64",), smooth=False,
        ),
        "gradient": call(lambda xp, x: xp.gradient(x), (5,), dtypes=INEXACT),
        "gradient of integers": call(lambda xp, x: xp.gradient(x), (2, 3), dtypes=("int64",)),
        "gradient spacing": call(lambda xp, x: xp.gradient(x, 0.5), (3, 4), dtypes=INEXACT),
        "gradient spacings": call(lambda xp, x: xp.gradient(x, 0.5, 2, axis=(1, 0)), (3, 4), dtypes=INEXACT),
        "gradient coordinates": call(lambda xp, x, t: xp.gradient(x, t, axis=1), (3, 5), coordinates, dtypes=DOUBLE),
        "gradient second order": call(lambda xp, x: xp.gradient(x, 2, axis=0, edge_order=2), (3, 4), dtypes=INEXACT),
        "gradient second order coordinates": call(
            lambda xp, x, t: xp.gradient(x, t, edge_order=2), (5,), coordinates, dtypes=DOUBLE
        ),
        "gradient two samples": call(lambda xp, x: xp.gradient(x, axis=0), (2, 3), dtypes=INEXACT),
        "trapezoid": call(lambda xp, y: xp.trapezoid(y), (3, 4), dtypes=NUMBERS),
        "trapezoid x": call(lambda xp, y, x: xp.trapezoid(y, x, axis=0), (5, 2), coordinates, dtypes=("float64",)),
        "trapezoid x for each": call(lambda xp, y, x: xp.trapezoid(y, x, axis=0), (3, 2), (3, 2), dtypes=INEXACT),
        "trapezoid dx": call(lambda xp, y: xp.trapezoid(y, dx=0.3), (4,), dtypes=INEXACT),
        "trapezoid empty": call(lambda xp, y: xp.trapezoid(y), (0,), dtypes=("float64",)),
        "ediff1d": call(lambda xp, x: xp.ediff1d(x), (2, 3)),
        "ediff1d ends": call(
            lambda xp, x: xp.ediff1d(x, to_end=xp.asarray([7, 8]), to_begin=xp.asarray([1])), (4,), dtypes=("int64",)
        ),
        "unwrap": call(lambda xp, x: xp.unwrap(x), phases, dtypes=FLOATS),
        "unwrap period": call(lambda xp, x: xp.unwrap(x, period=4), phases, dtypes=("float64", "int64")),
        "unwrap odd period": call(lambda xp, x: xp.unwrap(x, period=5), phases, dtypes=("float64", "int64")),
        "unwrap discont": call(lambda xp, x: xp.unwrap(x, 3.0, axis=0, period=5.0), spread(3, 4), dtypes=("float64",)),
        "unwrap halves": call(
            lambda xp, x: xp.unwrap(x, period=4), fixed(0, 2, 4, 2, 0, -2), dtypes=("int64",), smooth=False
        ),
        "unwrap empty": call(lambda xp, x: xp.unwrap(x), (0,), dtypes=("float64",)),
    }  # fmt: skip
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        for n in (0, 1, 2, 7):
            table[f"{name} {n}"] = call(lambda xp, f=name, n=n: getattr(xp, f)(n), dtypes=("float64",), smooth=False)
    for n in (0, 1, 6):
        table[f"kaiser {n}"] = call(lambda xp, n=n: xp.kaiser(n, 8.6), dtypes=("float64",), smooth=False)
    return table


CALLS: Final = {**joining(), **places(), **signals()}


def of_arrays() -> dict[str, Call]:
    """The first call of each function of arrays."""
    found: dict[str, Call] = {}
    for title, each in CALLS.items():
        name = title.partition(" ")[0]
        if name not in NO_ARRAYS:
            found.setdefault(name, each)
    return found


def of_data() -> list[str]:
    """Functions whose results have sizes that depend on data."""
    return [name for name, each in of_arrays().items() if not each.traced]


NO_ARRAYS: Final = frozenset(
    "bartlett blackman diag_indices hamming hanning indices kaiser mask_indices tri tril_indices triu_indices".split()
)
"""Functions that take shapes and numbers only."""
