"""Random chains of operations on matrices that move elements about: slices, positions, joins, loops, branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tenferro_runtime as tr

Step = Callable[[Any], Any]

FIXED = np.array([1, 0, 1, 2])


def _carried(u: Any) -> Any:
    return tr.scan(lambda c, r: (r + 0.5 * c, c * r), u[0], u)[1]


STEPS: dict[str, Step] = {
    "square": lambda u: u * u,
    "tanh": tr.tanh,
    "shift": lambda u: u[1:] * u[:-1],
    "columns": lambda u: u[:, 1:] - u[:, :-1],
    "strided": lambda u: u[::2, ::-1],
    "roll": lambda u: u + tr.roll(u, 1, axis=0),
    "roll flat": lambda u: tr.roll(u, 2),
    "transpose": lambda u: u.T,
    "flat": lambda u: u.reshape(1, -1),
    "columns of two": lambda u: u.reshape(-1, 2) if u.shape[0] * u.shape[1] % 2 == 0 else u,
    "sum": lambda u: u + tr.sum(u, axis=0, keepdims=True),
    "joined": lambda u: tr.concat([u, u * u], axis=0),
    "stacked": lambda u: tr.concat([u, u[:, :1]], axis=1),
    "cumulative": lambda u: tr.cumulative_sum(u, axis=0),
    "reversed cumulative": lambda u: tr.cumulative_sum(u[::-1], axis=0)[::-1],
    "sorted": lambda u: tr.sort(u, axis=1),
    "known rows": lambda u: u[FIXED],
    "known columns": lambda u: u[:, FIXED],
    "computed row": lambda u: u * u[tr.argmax(u[:, 0])],
    "set": lambda u: u.at[1].set(u[0] * u[0]),
    "add": lambda u: u.at[FIXED].add(u[FIXED] ** 2),
    "computed set": lambda u: u.at[tr.argmin(u[:, 0])].set(u[0] * 2),
    "inside": lambda u: u.at[1:-1].add(u[2:] * u[:-2]) if u.shape[0] > 2 else u,
    "product": lambda u: u @ u.T,
    "outer": lambda u: u[:, :1] * u[:1],
    "padded": lambda u: tr.concat([tr.zeros((1, u.shape[1])), u, tr.zeros((2, u.shape[1]))], axis=0),
    "where": lambda u: tr.where(u > 0, u * u, u),
    "choice": lambda u: tr.cond(u[0, 0] > 0, lambda v: v * v, lambda v: tr.roll(v, 1, axis=1), u),
    "loop": lambda u: tr.fori_loop(0, 2, lambda i, v: v + 0.1 * tr.roll(v, 1, axis=0) * v, u),
    "long loop": lambda u: tr.fori_loop(0, 20, lambda i, v: v + 0.01 * tr.roll(v, 1, axis=1), u),
    "indexed loop": lambda u: tr.fori_loop(0, u.shape[0], lambda i, v: v.at[i].multiply(1.5), u),
    "scan": _carried,
    "scan of rows": lambda u: tr.scan(lambda c, r: (r, c * tr.sum(r)), u[0], u)[1].reshape(1, -1),
    "while": lambda u: tr.while_loop(lambda v: tr.max(tr.abs(v)) > 1, lambda v: v * 0.5, u, max_steps=9),
    "lanes": lambda u: tr.vmap(lambda r: tr.cumulative_sum(r * r))(u),
    "compiled": tr.compile(lambda u: u[::-1] * u),
}
"""Steps by name, from a matrix to a matrix; each asks for three rows and columns at most."""


@st.composite
def random_structures(draw: Any, max_steps: int = 5) -> tuple[tuple[str, ...], np.ndarray[Any, Any]]:
    """Names of steps that can be applied in turn, and the matrix to begin with."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    x = rng.uniform(-1, 1, size=draw(st.sampled_from([(3, 4), (4, 3), (5, 6), (3, 3)])))
    names: list[str] = []
    u = tr.asarray(x)
    for name in draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=max_steps)):
        if min(u.shape) < 3 and ("known" in name or name in ("add", "set", "shift", "columns", "computed set")):
            continue
        if u.shape[0] * u.shape[1] > 80:
            break
        u = STEPS[name](u)
        names.append(name)
        if 0 in u.shape or u.shape[0] == 1:
            break
    return tuple(names), x


def applied(names: tuple[str, ...], u: Any) -> Any:
    """The steps in turn."""
    for name in names:
        u = STEPS[name](u)
    return u
