"""One table of differentiable calls that covers the catalog: what each rule is checked on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from operations import OPERATIONS
from tenferro_tensor import HOST, Primitive, tensor
from tenferro_tensor import catalog as c

R = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """A differentiable call.

    Attributes:
        primitive: whose rule it checks.
        f: the call as a function of its differentiated operands.
        xs: the operands, real double precision.
        zs: complex operands, or ``None`` for a primitive of real numbers only.
        note: which circumstance of the primitive this is.
        single: whether single precision is accurate enough to compare.
    """

    primitive: Primitive
    f: Callable[..., Any]
    xs: tuple[np.ndarray, ...] | None
    zs: tuple[np.ndarray, ...] | None = None
    note: str = ""
    single: bool = True

    def __str__(self) -> str:
        return f"{self.primitive.name}{' ' if self.note else ''}{self.note}"


def within(low: float, high: float, *shape: int) -> np.ndarray:
    """Uniform numbers, in no order."""
    return R.uniform(low, high, shape)


def apart(*shape: int) -> np.ndarray:
    """Numbers no two of which are closer than a step of differences could tell."""
    n = int(np.prod(shape))
    return (R.permutation(n) * 0.37 - 0.41 * n / 3).reshape(shape)


def cplx(*shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Complex numbers with real parts in an interval and imaginary parts well away from 0."""
    imaginary = R.uniform(0.3, 0.9, shape) * R.choice([-1.0, 1.0], shape)
    return R.uniform(low, high, shape) + 1j * imaginary


def index(values: Any) -> Any:
    return tensor(np.asarray(values, dtype=np.int64))


def unary(p: Primitive, low: float, high: float, *, of_complex: bool) -> Case:
    zs = (cplx(2, 3, low=low, high=high),) if of_complex else None
    return Case(p, p, (within(low, high, 2, 3),), zs)


def binary(p: Primitive, x: np.ndarray, y: np.ndarray, *, of_complex: bool = False, note: str = "") -> Case:
    return Case(p, p, (x, y), (cplx(*x.shape), cplx(*y.shape)) if of_complex else None, note)


def structural(
    p: Primitive, f: Callable[..., Any], *shapes: tuple[int, ...], note: str = "", of_complex: bool = True
) -> Case:
    """A call that takes arrays of the given shapes, real or complex."""
    xs = tuple(within(-2, 2, *s) for s in shapes)
    return Case(p, f, xs, tuple(cplx(*s) for s in shapes) if of_complex else None, note)


def real_only(p: Primitive, f: Callable[..., Any], *xs: np.ndarray, note: str = "") -> Case:
    return Case(p, f, xs, None, note)


def scattering(mode: str, indices: Any, *, note: str, updates: tuple[int, ...] = (3,)) -> Case:
    """A scatter into (4,) or, with windows, (4, 3)."""
    window = len(updates) - 1
    params: dict[str, Any] = {
        "update_window_dims": (1,) if window else (),
        "inserted_dims": (0,),
        "scatter_dims": (0,),
        "mode": mode,
    }
    at = index(indices)
    into = (4, 3) if window else (4,)

    def f(x: Any, u: Any) -> Any:
        return c.scatter(x, at, u, **params)

    if mode in ("min", "max"):
        values = apart(int(np.prod(into) + np.prod(updates)))
        return real_only(
            c.scatter, f, values[: int(np.prod(into))].reshape(into), values[int(np.prod(into)) :].reshape(updates),
            note=f"{mode} {note}",
        )  # fmt: skip
    return structural(c.scatter, f, into, updates, note=f"{mode} {note}")


def gathering(note: str, shape: tuple[int, ...], indices: Any, **params: Any) -> Case:
    at = index(indices)
    return structural(c.gather, lambda x: c.gather(x, at, **params), shape, note=note)


def scans(p: Primitive, make: Callable[..., np.ndarray], *, of_complex: bool) -> list[Case]:
    found = []
    for axis, reverse in ((0, False), (1, True)):
        zs = (cplx(3, 5),) if of_complex else None
        found.append(
            Case(
                p,
                lambda x, axis=axis, reverse=reverse: p(x, axis=axis, reverse=reverse),
                (make(3, 5),),
                zs,
                f"along {axis}{' reversed' if reverse else ''}",
            )
        )
    return found


def zeroed(x: np.ndarray, *places: Any) -> np.ndarray:
    x = x.copy()
    for place in places:
        x[place] = 0
    return x


ELEMENTWISE = [
    *[unary(p, *row.smooth, of_complex="c" in row.kinds) for p, row in OPERATIONS.items() if row.smooth],
    # arithmetic
    binary(c.add, within(-2, 2, 2, 3), within(-2, 2, 2, 3), of_complex=True),
    binary(c.sub, within(-2, 2, 2, 3), within(-2, 2, 2, 3), of_complex=True),
    binary(c.mul, within(-2, 2, 2, 3), within(-2, 2, 2, 3), of_complex=True),
    binary(c.absorbing_mul, within(-2, 2, 2, 3), within(-2, 2, 2, 3), of_complex=True),
    binary(c.div, within(-2, 2, 2, 3), within(0.5, 2, 2, 3), of_complex=True),
    binary(c.pow, within(0.5, 2, 2, 3), within(-2, 3, 2, 3), of_complex=True),
    structural(c.add, lambda x, y: c.add(x, y), (2, 3), (3,), note="broadcast"),
    structural(c.mul, lambda x, y: c.mul(x, y), (2, 1), (3,), note="broadcast both"),
    structural(c.div, lambda x: 2.0 / (x + 4.0), (3,), note="number over x"),
    structural(c.div, lambda x: x / 3.0, (3,), note="x over number"),
    *[
        Case(c.pow, lambda x, n=n: x**n, (within(-2, -0.5, 4),), (cplx(4),), f"literal {n}")
        for n in (0, 1, 2, 3, -1, -2, 2.0)
    ],
    Case(c.pow, lambda x: x**2.5, (within(0.5, 2, 4),), (cplx(4),), "literal 2.5"),
    Case(c.pow, lambda y: 2.0**y, (within(-2, 2, 4),), (cplx(4),), "of number 2.0"),
    Case(c.remainder, c.remainder, (np.array([5.3, -5.3, 5.3, -5.3]), np.array([2.1, 2.1, -2.1, -2.1]))),
    Case(c.fmod, c.fmod, (np.array([5.3, -5.3, 5.3, -5.3]), np.array([2.1, 2.1, -2.1, -2.1]))),
    Case(c.copysign, c.copysign, (np.array([5.3, -5.3, 5.3, -5.3]), np.array([2.1, 2.1, -2.1, -2.1]))),
    Case(c.nextafter, c.nextafter, (within(1, 2, 3), within(3, 4, 3))),
    Case(c.abs, c.abs, (np.array([1.5, -2.5, 0.3]),), (cplx(2, 3),)),
    Case(c.sign, c.sign, (np.array([1.5, -2.5, 0.3]),), (cplx(2, 3),)),
    # extrema and selection
    Case(c.maximum, c.maximum, (np.array([1.0, 4.0, -1.0]), np.array([2.0, 3.0, -3.0]))),
    Case(c.minimum, c.minimum, (np.array([1.0, 4.0, -1.0]), np.array([2.0, 3.0, -3.0]))),
    Case(c.maximum, lambda x: c.maximum(x, 0.5), (np.array([1.0, -4.0, 0.0]),), None, "with number"),
    Case(
        c.clamp,
        lambda x, lo, hi: c.clamp(x, lo, hi),
        (np.array([0.0, 1.0, 2.0, 1.0]), np.array([0.5, 0.5, 0.5, 3.0]), np.array([1.5, 1.5, 1.5, 2.0])),
    ),
    Case(c.clamp, lambda x: c.clamp(x, -1.0, 1.0), (np.array([0.0, 1.5, -2.0]),), None, "to numbers"),
    structural(c.select, lambda x, y: c.select(tensor([True, False, True]), x, y), (3,), (3,)),
    structural(c.select, lambda x: c.select(tensor([True, False, True]), x, 1.0), (3,), note="with number"),
    # sums of exponentials
    Case(c.logaddexp, c.logaddexp, (within(-2, 2, 4), within(-2, 2, 4))),
    Case(c.logaddexp, lambda x: c.logaddexp(x, 0.0), (within(-2, 2, 4),), None, "with number"),
    # roots and lengths
    Case(c.cbrt, c.cbrt, (np.array([1.5, -2.5, 0.3]),)),
    Case(c.hypot, c.hypot, (np.array([1.5, -2.5, 0.3]), np.array([1.0, -2.0, -3.0]))),
    Case(c.hypot, lambda x: c.hypot(x, 2.0), (within(-2, 2, 4),), None, "with number"),
    # angles
    Case(c.atan2, c.atan2, (np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, -2.0, 2.0, -2.0]))),
    Case(c.atan2, lambda x: c.atan2(x, 2.0), (within(-2, 2, 4),), None, "over number"),
    # gamma functions
    *[
        Case(c.polygamma, lambda x, k=k: c.polygamma(x, order=k), (within(1, 4, 4),), None, f"order {k}")
        for k in (0, 1, 2)
    ],
    # complex numbers and dtypes
    Case(c.complex, c.complex, (within(-2, 2, 3), within(-2, 2, 3))),
    Case(c.complex, lambda x: c.complex(x, 2.0), (within(-2, 2, 3),), None, "with number"),
    Case(
        c.convert,
        lambda x: c.convert(x, dtype=np.dtype("complex128")),
        (within(-2, 2, 3),), (cplx(3),), "to complex", single=False,
    ),
    Case(
        c.convert,
        lambda x: c.convert(x, dtype=np.dtype("float64")),
        (within(-2, 2, 3),), (cplx(3),), "to real", single=False,
    ),
]  # fmt: skip

STRUCTURE = [
    structural(c.broadcast_in_dim, lambda x: c.broadcast_in_dim(x, shape=(4, 2, 3), dims=(1, 2)), (2, 3)),
    structural(
        c.broadcast_in_dim,
        lambda x: c.broadcast_in_dim(x, shape=(3, 4, 2), dims=(2, 0)),
        (2, 3),
        note="and transpose",
    ),
    structural(c.broadcast_in_dim, lambda x: c.broadcast_in_dim(x, shape=(4, 2), dims=()), (), note="of a number"),
    structural(c.reshape, lambda x: c.reshape(x, shape=(3, 2)), (2, 3)),
    structural(c.transpose, lambda x: c.transpose(x, permutation=(2, 0, 1)), (2, 3, 4)),
    structural(c.reverse, lambda x: c.reverse(x, axes=(0, 2)), (2, 3, 2)),
    structural(c.slice_, lambda x: c.slice_(x, start=(1, 0), limit=(4, 7), stride=(1, 1)), (5, 7)),
    structural(c.slice_, lambda x: c.slice_(x, start=(1, 0), limit=(4, 7), stride=(2, 3)), (5, 7), note="strided"),
    structural(c.slice_, lambda x: c.slice_(x, start=(2, 5), limit=(2, 6), stride=(2, 3)), (5, 7), note="empty"),
    *[
        structural(
            c.update_slice,
            lambda x, u, mode=mode: c.update_slice(x, u, start=(1, 0), stride=(2, 3), mode=mode),
            (4, 7),
            (2, 3),
            note=mode,
        )
        for mode in ("set", "add")
    ],
    structural(c.pad, lambda x, v: c.pad(x, v, low=(1, 2), high=(0, 1), interior=(0, 0)), (2, 3), (), note="outside"),
    structural(c.pad, lambda x, v: c.pad(x, v, low=(1, 0), high=(0, 2), interior=(2, 1)), (2, 3), (), note="interior"),
    structural(
        c.pad, lambda x, v: c.pad(x, v, low=(-1, 2), high=(1, -2), interior=(0, 0)), (2, 3), (), note="cropping"
    ),
    structural(
        c.pad, lambda x, v: c.pad(x, v, low=(-2, 1), high=(1, -2), interior=(2, 1)), (3, 3), (), note="all at once"
    ),
    structural(c.concatenate, lambda x, y, z: c.concatenate(x, y, z, axis=1), (2, 1), (2, 3), (2, 2)),
    structural(
        c.concatenate,
        lambda x: c.concatenate(x, x * 2.0, axis=0),
        (2,),
        note="of one operand twice",
    ),
    structural(c.transfer, lambda x: c.transfer(x, place=HOST), (3,)),
]

INDEXING = [
    gathering(
        "rows", (4, 3), [[1], [0], [1]],
        offset_dims=(1,), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1, 3),
    ),
    gathering(
        "elements", (4, 3), [[[1, 0], [3, 2]]],
        offset_dims=(), collapsed_dims=(0, 1), start_index_map=(0, 1), slice_sizes=(1, 1),
    ),
    gathering(
        "windows, axes crossed", (4, 5), [[0, 1], [2, 2]],
        offset_dims=(0, 2), collapsed_dims=(), start_index_map=(1, 0), slice_sizes=(2, 3),
    ),
    gathering(
        "positions outside, clamped", (4, 3), [[-2], [7], [1]],
        offset_dims=(1,), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1, 3),
    ),
    *[
        scattering(mode, places, note=note)
        for mode in ("set", "add", "mul", "min", "max")
        for note, places in (
            ("apart", [[2], [0], [3]]),
            ("on one place", [[1], [1], [2]]),
            ("partly outside", [[1], [9], [-1]]),
        )
    ],
    *[scattering(mode, [[2], [2]], note="rows", updates=(2, 3)) for mode in ("set", "add", "mul", "min", "max")],
    structural(c.dynamic_slice, lambda x: c.dynamic_slice(x, *map(index, (1, 0)), sizes=(2, 3)), (4, 3)),
    structural(
        c.dynamic_slice, lambda x: c.dynamic_slice(x, *map(index, (9, -1)), sizes=(2, 2)), (4, 3), note="clamped"
    ),
    *[
        structural(
            c.dynamic_update_slice,
            lambda x, u, at=at: c.dynamic_update_slice(x, u, *map(index, at)), (4, 3), (2, 2), note=note,
        )
        for note, at in (("inside", (1, 0)), ("clamped", (9, 0)))
    ],
]  # fmt: skip

REDUCTION = [
    *[
        structural(c.reduce_sum, lambda x, a=a: c.reduce_sum(x, axes=a), (2, 3, 2), note=f"over {a}")
        for a in ((), (1,), (0, 2))
    ],
    *[
        structural(c.reduce_prod, lambda x, a=a: c.reduce_prod(x, axes=a), (2, 3, 2), note=f"over {a}")
        for a in ((), (1,), (0, 2), (2, 0, 1))
    ],
    Case(
        c.reduce_prod,
        lambda x: c.reduce_prod(x, axes=(0,)),
        (zeroed(within(-2, 2, 4, 3), (1, 0), (0, 1), (2, 1)),),
        (zeroed(cplx(4, 3), (1, 0), (0, 1), (2, 1)),),
        "with zeros",
    ),
    *[
        real_only(p, lambda x, p=p, a=a: p(x, axes=a), apart(2, 3, 2), note=f"over {a}")
        for p in (c.reduce_max, c.reduce_min)
        for a in ((), (1,), (0, 2))
    ],
]

SCAN = [
    *scans(c.cumsum, lambda *s: within(-2, 2, *s), of_complex=True),
    *scans(c.cumprod, lambda *s: within(-2, 2, *s), of_complex=True),
    *scans(c.cummax, apart, of_complex=False),
    *scans(c.cummin, apart, of_complex=False),
    *scans(c.cumlogsumexp, lambda *s: within(-2, 2, *s), of_complex=False),
    Case(
        c.cumprod,
        lambda x: c.cumprod(x, axis=0, reverse=False),
        (zeroed(within(-2, 2, 5, 2), (1, 0), (3, 0), (0, 1)),),
        (zeroed(cplx(5, 2), (1, 0), (3, 0), (0, 1)),),
        "with zeros",
    ),
]

SORTING = [
    *[
        Case(
            c.sort,
            lambda x, a=a, d=d: c.sort(x, axis=a, descending=d),
            (apart(3, 4),),
            (apart(3, 4) + 1j * within(-1, 1, 3, 4),),
            f"along {a}{' descending' if d else ''}",
        )
        for a, d in ((0, False), (1, True))
    ],
]

CONTRACTION = [
    structural(
        c.dot_general,
        lambda x, y, contract=contract, batch=batch: c.dot_general(x, y, contract=contract, batch=batch),
        *shapes,
        note=note,
    )
    for note, shapes, contract, batch in (
        ("matrices", ((2, 3), (3, 4)), ((1,), (0,)), ((), ())),
        ("vectors", ((3,), (3,)), ((0,), (0,)), ((), ())),
        ("outer", ((2,), (3,)), ((), ()), ((), ())),
        ("batch", ((2, 3, 4), (4, 2, 5)), ((2,), (0,)), ((0,), (1,))),
        ("batch axes crossed", ((2, 3, 4), (3, 4, 2)), ((2,), (1,)), ((1, 0), (0, 2))),
        ("two axes crossed", ((2, 3, 4), (4, 5, 2)), ((0, 2), (2, 0)), ((), ())),
    )
]

CASES = [*ELEMENTWISE, *STRUCTURE, *INDEXING, *REDUCTION, *SCAN, *SORTING, *CONTRACTION]
