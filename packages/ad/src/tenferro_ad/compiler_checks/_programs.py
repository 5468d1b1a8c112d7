"""Small programs, each with arguments, on which compilers are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

import tenferro_runtime as tr

Elements = np.ndarray[Any, Any]


class Trial(NamedTuple):
    """A program.

    Attributes:
        what: the program in words.
        f: the function.
        arrays: elements of its arguments.
    """

    what: str
    f: Callable[..., Any]
    arrays: tuple[Elements, ...]


M: Final = np.linspace(-1.5, 2.0, 12).reshape(3, 4)
V: Final = np.array([0.3, -0.7, 1.1, 0.2])
S: Final = np.array(0.75)

RESULTS: Final = (
    Trial("element-wise operations", lambda x: tr.exp(x) * x - 2.0, (M,)),
    Trial("an operation of no axes", lambda s: tr.sin(s) + 1.0, (S,)),
    Trial("broadcasting", lambda x, v, s: x * v + s, (M, V, S)),
    Trial("a reduction to a number", lambda x: tr.sum(x * x), (M,)),
    Trial("reductions along axes", lambda x: (tr.max(x, axis=0), tr.mean(x, axis=1, keepdims=True)), (M,)),
    Trial("a matrix product", lambda x, v: x @ v, (M, V)),
    Trial("a batch of matrix products", lambda x: tr.matmul(x[None], tr.stack([x.mT, 2.0 * x.mT])), (M,)),
    Trial("stacks of stacks of products", lambda x: tr.reshape(x, (2, 2, 1, 3)) @ tr.reshape(x, (2, 2, 3, 1)), (M,)),
    Trial("quotients of negative numbers", lambda x: (x % 0.7, x // 0.7, x % -0.7), (M,)),
    Trial("quotients of negative integers", lambda i: (i % 4, i // 4, i % -3), (np.array([-7, -4, -1, 0, 3, 9]),)),
    Trial("bounds in the wrong order", lambda x: tr.clip(x, 1.0, 0.5), (M,)),
    Trial("a triangle", lambda x: tr.triu(x), (M,)),
    Trial("running sums", lambda x: tr.cumsum(x, axis=1), (M,)),
    Trial("a window beyond the end", lambda x, i: tr.dynamic_slice(x, (i, 1 - i), (2, 2)), (M, np.array(7))),
    Trial("moved axes", lambda x: tr.permute_dims(tr.reshape(x, (2, 3, 2)), (2, 0, 1)), (M,)),
    Trial("slices and joins", lambda x: tr.concat([x[:, ::-2], x[1:2, :2], x[::2, 1:3]]), (M,)),
    Trial("reading at indices", lambda x: tr.take(x, tr.asarray([2, 0, 0]), axis=1), (M,)),
    Trial("sorting", lambda v: (tr.sort(v), tr.argsort(v)), (V,)),
    Trial("two results", lambda x, v: (x + v, x - v), (M, V)),
    Trial("one value as two results", lambda x: (x * 2.0,) * 2, (M,)),
    Trial("arguments as results", lambda x, v: (v, x, tr.sum(x)), (M, V)),
    Trial("a constant as a result", lambda x: (tr.ones((2, 3), device=x.device), x + 1.0), (M,)),
    Trial("an argument that is not used", lambda x, v: v * 2.0, (M, V)),
    Trial("no results", lambda x: (), (M,)),
)
"""Numbers, kinds and origins of results."""

NUMBERS: Final = ("float64", "float32", "complex128", "complex64", "int64", "int32", "uint8", "bool")
"""Dtypes; on each of them runs `arithmetic`."""


def arithmetic(x: Any) -> Any:
    """Operations that all dtypes have, and some whose results have another one."""
    number = (
        tr.astype(x, tr.float64) if x.dtype == tr.bool else tr.real(x) if tr.isdtype(x.dtype, "complex floating") else x
    )
    total = tr.sum(number, axis=0, dtype=number.dtype)
    single = tr.astype(number, tr.float32)
    return tr.where(x == x[0], x, x[::-1]), number > 0, tr.sum(x, axis=0), total, number * 2 + 1, single, single * 2.5


def _powers(x: Any) -> Any:
    return tr.while_loop(lambda c: tr.sum(c[0]) < 50.0, lambda c: (c[0] * c[0] + 1.0, c[1] + 1.0), (x, x[0] * 0.0))


def _narrow(x: Any) -> Any:
    return tr.scan(lambda c, row: (c * 0.5 + row, (c * 1.5, c > 0.25, tr.sum(c))), x[0], x)


CONTROL_FLOW: Final = (
    Trial("a branch", lambda x: tr.cond(tr.sum(x) > 0.0, lambda: x * 2.0, lambda: tr.sin(x)), (V,)),
    Trial("the other branch", lambda x: tr.cond(tr.sum(x) > 9.0, lambda: (x, x[0]), lambda: (-x, x[1])), (V,)),
    Trial("one of three branches", lambda i, x: tr.switch(i, [tr.sin, tr.cos, tr.exp], x), (np.array(2), V)),
    Trial("a branch beyond the last", lambda i, x: tr.switch(i, [tr.sin, tr.cos], x), (np.array(7), V)),
    Trial("a branch before the first", lambda i, x: tr.switch(i, [tr.sin, tr.cos, tr.exp], x), (np.array(-2), V)),
    Trial(
        "a branch of float32 numbers", lambda x: tr.cond(tr.sum(x) > 0.0, lambda: x * 2.5, lambda: x), (V.astype("f4"),)
    ),
    Trial("a scan of float32 numbers", _narrow, (M.astype("f4"),)),
    Trial(
        "a scan of complex64 numbers",
        lambda x: tr.scan(lambda c, r: (c * 0.5j + r, c * 1.5), x[0], x),
        (M.astype("c8"),),
    ),
    Trial("a counted loop", lambda x: tr.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), (V,)),
    Trial("a loop of no rounds", lambda x: tr.scan(lambda c, row: (c * 0.5 + row, c), x[0], x[:0]), (M,)),
    Trial("a loop with a condition", _powers, (V,)),
    Trial(
        "a loop of bounded length",
        lambda x: tr.while_loop(lambda c: c[1] < 9.0, lambda c: (c[0] * 0.5, c[1] + 1.0), (x, x[0] * 0.0), max_steps=3),
        (V,),
    ),
    Trial(
        "exchanged carries",
        lambda x: tr.while_loop(lambda c: c[2] < 3.0, lambda c: (c[1], c[0], c[2] + 1.0), (x, x * 2.0, x[0] * 0.0)),
        (V,),
    ),
    Trial("a scan", lambda x: tr.scan(lambda c, row: (c + row, c * row), x[0] * 0.0, x), (M,)),
    Trial("a scan backwards", lambda x: tr.scan(lambda c, r: (c * 0.5 + r, c), x[1], x, reverse=True), (M,)),
    Trial(
        "a loop in a loop with a branch",
        lambda x: tr.fori_loop(
            0,
            3,
            lambda i, c: tr.fori_loop(0, 2, lambda j, d: tr.cond(j > i, lambda: d * 0.5, lambda: tr.sin(d)), c),
            x,
        ),
        (V,),
    ),
)
"""Branches and loops."""


def scalar_loss(x: Any) -> Any:
    """A smooth function without control flow."""
    return tr.sum(tr.tanh(x) * tr.exp(-x * x))


def looping_loss(x: Any) -> Any:
    """A smooth function that loops and branches."""
    y, rows = tr.scan(lambda c, r: (tr.sin(c) + r, c * r), x[0], x)
    return tr.sum(tr.cond(tr.sum(x) > 0.0, lambda: y * y, lambda: y)) + tr.sum(rows)


def piecewise_loss(x: Any) -> Any:
    """Overlapping slices, running sums, and roots where there are some."""
    roots = tr.where(x > 1.0, tr.sqrt(x - 1.0), 0.0)
    return tr.sum(x[:, :2] ** 2) + x[0, 0] * tr.sum(x[:, 1:] ** 3) + tr.sum(tr.cumsum(x, axis=1) * x) + tr.sum(roots)


LOSSES: Final = (
    ("a smooth function", scalar_loss),
    ("a function with a loop", looping_loss),
    ("a function of slices and roots", piecewise_loss),
)


def _moved(x: Any, y: Any) -> Any:
    z = x * y
    return z.mT, tr.sin(z)


DONATED: Final = (
    Trial("a sum that may take the memory of its argument", lambda x, y: x + y, (M, M[::-1].copy())),
    Trial("two results of one donated argument", lambda x, y: (x + 1.0, x * y), (M, M + 3.0)),
    Trial("a reversed argument added to itself", lambda x, y: (x[::-1] + x, y), (M, M + 3.0)),
    Trial("exchanged arguments", lambda x, y: (y, x), (M, M + 3.0)),
    Trial("a donated argument as a result, and a sum with it", lambda x, y: (x, x + y), (M, M + 3.0)),
    Trial("a smaller result", lambda x, y: tr.sum(x * y, axis=0), (M, M + 3.0)),
    Trial("a matrix product", lambda x, y: x.mT @ y, (M, M + 3.0)),
    Trial("moved axes of a donated argument, and a sum with it", lambda x, y: (x.mT, x + y), (M, M + 3.0)),
    Trial("moved axes of a value, and its sine", _moved, (M, M + 3.0)),
)
"""Programs whose first argument, or both, are donated: results must not be written before arguments are read."""


def _in_a_loop(see: Callable[[Any], None], x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        tr.debug_callback(see, carry)
        return carry + row, None

    total, _ = tr.scan(step, x[0] * 0.0, x)
    tr.debug_callback(see, total)
    return total


def _in_a_branch(see: Callable[[Any], None], x: Any) -> Any:
    def chosen() -> Any:
        tr.debug_callback(see, x)
        return x * 2.0

    return tr.cond(tr.sum(x) > 0.0, chosen, lambda: x)


def _unused(see: Callable[[Any], None], x: Any) -> Any:
    tr.debug_callback(see, tr.exp(x))
    y = x * 2.0
    tr.debug_callback(see, y)
    tr.debug_callback(see, x)
    return y


EFFECTS: Final = (
    ("callbacks in a row", _unused, (V,)),
    ("a callback in a loop", _in_a_loop, (V,)),
    ("a callback in a branch", _in_a_branch, (V,)),
)
"""Programs with effects, in words; each takes what its callbacks call, and its arguments."""
