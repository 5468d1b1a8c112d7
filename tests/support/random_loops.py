"""Random programs of nested loops and branches that write parts of arrays, drawn as data: what fails is printed.

A recipe works on three arrays of one shape and two numbers, which loops carry, exchange and close over. Integers wrap
and floating-point values stay near 1, so that all ways to run a program agree closely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_tensor import catalog

SHAPES = ((5,), (4, 4), (3, 5), (2,), (1,), (1, 4), (18,), (3, 6), (0,), (0, 3))
DTYPES = ("int64", "float64", "int32", "bool", "complex128", "float32")


class Change(NamedTuple):
    """One array replaced: ``arrays[k] = OPERATIONS[name](arrays[k], arrays[o], arrays[q], index, p)``."""

    name: str
    k: int
    o: int
    q: int
    p: int


class Nest(NamedTuple):
    """A loop or a branch.

    Attributes:
        kind: a key of `NESTS`.
        bodies: what is done inside; loops take the first one.
        times: number of iterations, or the index of a branch.
        carried: which arrays the loop carries; the others are closed over.
        flag: backwards, with a bound, or by data.
    """

    kind: str
    bodies: tuple[tuple[Any, ...], ...]
    times: int
    carried: tuple[int, ...]
    flag: bool


class Recipe(NamedTuple):
    """A program: `run` is a function of three arrays and an index."""

    shape: tuple[int, ...]
    dtype: str
    body: tuple[Change | Nest, ...]
    outputs: tuple[int, ...]

    def run(self, a: Any, b: Any, c: Any, i: Any) -> Any:
        """What is traced."""
        rows: list[Any] = []
        done, numbers = _block(self.body, [a, b, c], [total(a), total(b)], i, rows)
        return [done[k] for k in self.outputs], numbers, rows

    def inputs(self) -> list[np.ndarray[Any, Any]]:
        """Arguments to run it on."""
        rng = np.random.default_rng(3)
        found = []
        for _ in range(3):
            values: Any = rng.uniform(-1, 1, self.shape)
            if self.dtype == "complex128":
                values = values + 1j * rng.uniform(-1, 1, self.shape)
            elif self.dtype == "bool":
                values = values > 0
            elif self.dtype.startswith("int"):
                values = values * 9
            found.append(np.asarray(values).astype(self.dtype))
        return [*found, np.asarray(1)]


# -- arithmetic that keeps to the range of the dtype


def mix(x: Any, y: Any) -> Any:
    """Something between two arrays."""
    kind = np.dtype(x.dtype).kind
    return x ^ y if kind == "b" else x + y if kind == "i" else (x + y) * 0.5


def times(x: Any, y: Any) -> Any:
    """Their product."""
    return x & y if np.dtype(x.dtype).kind == "b" else x * y


def total(x: Any, axis: int | None = None) -> Any:
    """The sum of all elements or along an axis."""
    kind = np.dtype(x.dtype).kind
    if kind == "b":
        return tr.any(x, axis=axis)
    found = tr.sum(x, axis=axis, dtype=x.dtype)
    return found if kind == "i" else found * 0.0625


def added(at: Any, x: Any) -> Any:
    """An update that depends on what is there."""
    return at.max(x) if np.dtype(x.dtype).kind == "b" else at.add(x)


def counters(x: Any) -> Any:
    """0, 1, ... along the first axis."""
    return tr.reshape(tr.arange(x.shape[0]), (x.shape[0],) + (1,) * (x.ndim - 1))


def spread(x: Any, by: int) -> Any:
    """An index for each element of the first axis, some of them more than once."""
    return (tr.arange(x.shape[0]) * by + 1) % x.shape[0]


def cut(x: Any, p: int) -> int:
    """A number below the extent, the same one where that is open and at least 3."""
    n = x.shape[0]
    return p % (min(n, 3) if isinstance(n, int) else 3)


def window(x: Any, start: Any, size: int) -> Any:
    rest = x.shape[1:]
    return catalog.dynamic_slice(x, start, *[start * 0 for _ in rest], sizes=(size, *rest))


def placed(x: Any, part: Any, start: Any) -> Any:
    return catalog.dynamic_update_slice(x, part, start, *[start * 0 for _ in x.shape[1:]])


OPERATIONS: dict[str, Callable[..., Any]] = {
    "mixed": lambda x, y, z, i, p: mix(y, z),
    "product": lambda x, y, z, i, p: times(x, y),
    "copy": lambda x, y, z, i, p: y,
    "number": lambda x, y, z, i, p: tr.where(counters(x) == p, x, tr.zeros_like(x)),
    "shift": lambda x, y, z, i, p: x.at[1:].set(mix(y[:-1], x[1:])),
    "inner": lambda x, y, z, i, p: x.at[1:-1].set(mix(y[:-2], y[2:])),
    "own inner": lambda x, y, z, i, p: x.at[1:-1].set(mix(x[:-2], x[2:])),
    "accumulated": lambda x, y, z, i, p: added(x.at[1:], times(x[:-1], y[1:])),
    "element": lambda x, y, z, i, p: x.at[i % x.shape[0]].set(total(times(y, z), 0)),
    "changed element": lambda x, y, z, i, p: x.at[i % x.shape[0]].set(mix(x[i % x.shape[0]], y[i % x.shape[0]])),
    "any element": lambda x, y, z, i, p: added(x.at[i - 2], y[(i * 7 + p) % x.shape[0]]),
    "own element": lambda x, y, z, i, p: x.at[i % x.shape[0]].set(x[(i + p) % x.shape[0]]),
    "flipped": lambda x, y, z, i, p: tr.flip(y),
    "mixed with flipped": lambda x, y, z, i, p: mix(tr.flip(y), x),
    "where": lambda x, y, z, i, p: tr.where(counters(x) < i, y, x),
    "window": lambda x, y, z, i, p: x.at[cut(x, p) :].set(mix(y[cut(x, p) :], x[: x.shape[0] - cut(x, p)])),
    "colours": lambda x, y, z, i, p: x.at[1:-1:2].set(mix(x[:-2:2], x[2::2])),
    "backwards": lambda x, y, z, i, p: added(x.at[::-2], times(y[::2], x[::2])),
    "every other": lambda x, y, z, i, p: x.at[::2].set(tr.flip(x, axis=0)[::2]),
    "reversed": lambda x, y, z, i, p: x.at[::-1].set(mix(x, y)),
    "every other from the end": lambda x, y, z, i, p: added(x.at[::-2], y[::2]),
    "joined": lambda x, y, z, i, p: tr.concat([y[cut(x, p) :], x[: cut(x, p)]]),
    "rolled": lambda x, y, z, i, p: tr.roll(y, p, axis=0),
    "padded": lambda x, y, z, i, p: tr.concat([x[1:], tr.zeros_like(x)[:1]]),
    "gathered": lambda x, y, z, i, p: tr.take(y, spread(x, p), axis=0),
    "scattered": lambda x, y, z, i, p: added(x.at[spread(x, p)], y),
    "own scattered": lambda x, y, z, i, p: added(x.at[spread(x, p)], tr.flip(x, axis=0)),
    "sliced": lambda x, y, z, i, p: placed(x, window(y, i, cut(x, p) + 1), i + 1),
    "own slice": lambda x, y, z, i, p: placed(x, window(x, i, cut(x, p) + 1), i + 1),
    "summed": lambda x, y, z, i, p: mix(x, total(y, 0)),
    "cumulative": lambda x, y, z, i, p: mix(x, _cumulative(y)),
    "sorted": lambda x, y, z, i, p: x if np.dtype(x.dtype).kind == "c" else tr.sort(mix(x, y), axis=0),
    "rearranged": lambda x, y, z, i, p: tr.reshape(tr.reshape(y, (-1,))[::-1], x.shape),
    "largest": lambda x, y, z, i, p: x.at[_argmax(y) % x.shape[0]].set(y[i % x.shape[0]]),
}
MATRICES: dict[str, Callable[..., Any]] = {
    "column": lambda x, y, z, i, p: x.at[:, i % x.shape[1]].set(y[:, (i + p) % x.shape[1]]),
    "own column": lambda x, y, z, i, p: x.at[:, i % x.shape[1]].set(x[:, (i + p) % x.shape[1]]),
    "cell": lambda x, y, z, i, p: added(x.at[i % x.shape[0], p % x.shape[1]], x[p % x.shape[0], i % x.shape[1]]),
    "block": lambda x, y, z, i, p: x.at[1:, :-1].set(x[:-1, 1:]),
    "all columns": lambda x, y, z, i, p: mix(x, total(y, 1)[:, None]),
    "flipped columns": lambda x, y, z, i, p: x.at[:, ::-1].set(mix(x, y)),
}
SQUARES: dict[str, Callable[..., Any]] = {
    "transposed": lambda x, y, z, i, p: y.T,
    "mixed with transposed": lambda x, y, z, i, p: mix(x, y.T),
    "rows from columns": lambda x, y, z, i, p: x.at[1:].set(x.T[:-1]),
    "row from column": lambda x, y, z, i, p: x.at[i % x.shape[0]].set(x[:, (i + p) % x.shape[0]]),
    "matrix product": lambda x, y, z, i, p: x if np.dtype(x.dtype).kind == "b" else mix(x @ y, z),
}

EMPTY = ("mixed", "product", "copy", "flipped", "mixed with flipped", "where", "cumulative")
"""Operations for arrays without elements."""


def _cumulative(y: Any) -> Any:
    kind = np.dtype(y.dtype).kind
    return y if kind == "b" else tr.cumulative_sum(y * (1 if kind == "i" else 0.25), axis=0, dtype=y.dtype)


def _argmax(y: Any) -> Any:
    x = tr.real(y) if np.dtype(y.dtype).kind == "c" else y
    return tr.argmax(tr.astype(tr.reshape(x, (-1,)), "int64" if np.dtype(x.dtype).kind == "b" else x.dtype))


def _block(body: Any, arrays: list[Any], numbers: list[Any], i: Any, rows: list[Any]) -> tuple[list[Any], list[Any]]:
    arrays, numbers = list(arrays), list(numbers)
    for step in body:
        if isinstance(step, Nest):
            arrays, numbers = NESTS[step.kind](step, arrays, numbers, i, rows)
        elif step.name == "exchanged":
            arrays[step.k], arrays[step.o] = arrays[step.o], arrays[step.k]
            numbers = numbers[::-1]
        elif step.name == "shared":
            arrays[step.k] = arrays[step.o] = _cumulative(mix(arrays[step.k], arrays[step.q]))
        elif step.name == "to number":
            numbers[step.p % 2] = total(times(arrays[step.k], arrays[step.o]))
        elif step.name == "from number":
            arrays[step.k] = mix(arrays[step.k], numbers[step.p % 2])
        else:
            x, y, z = arrays[step.k], arrays[step.o], arrays[step.q]
            made = (OPERATIONS | MATRICES | SQUARES)[step.name](x, y, z, i, step.p)
            arrays[step.k] = tr.astype(made, x.dtype)
    return arrays, numbers


def _carrying(step: Nest, arrays: list[Any], numbers: list[Any]) -> tuple[tuple[Any, ...], Callable[..., list[Any]]]:
    """What a loop carries, and all arrays from that."""

    def all_of(carried: Any) -> list[Any]:
        found = list(arrays)
        for k, x in zip(step.carried, carried, strict=True):
            found[k] = x
        return found

    return tuple([arrays[k] for k in step.carried]), all_of


def _scan(step: Nest, arrays: list[Any], numbers: list[Any], i: Any, rows: list[Any]) -> Any:
    carried, all_of = _carrying(step, arrays, numbers)

    def body(carry: Any, j: Any) -> Any:
        inside, now = _block(step.bodies[0], all_of(carry[0]), carry[1], j + i, [])
        return (tuple([inside[k] for k in step.carried]), now), (inside[0][:2], now[0])

    (carried, numbers), made = tr.scan(body, (carried, numbers), tr.arange(step.times), reverse=step.flag)
    rows.extend(made)
    return all_of(carried), numbers


def _over_slices(step: Nest, arrays: list[Any], numbers: list[Any], i: Any, rows: list[Any]) -> Any:
    """A loop over the slices of two of the arrays, the second one made on the way."""
    carried, all_of = _carrying(step, arrays, numbers)
    over = (arrays[0], tr.flip(mix(arrays[1], arrays[2]), axis=0))

    def body(carry: Any, parts: Any) -> Any:
        inside, now = _block(step.bodies[0], all_of(carry[0]), carry[1], i + 1, [])
        row = times(parts[1], inside[2][0]) if arrays[0].shape[0] != 0 else parts[1]
        return (tuple([inside[k] for k in step.carried]), [total(parts[0]), now[0]]), row

    (carried, numbers), made = tr.scan(body, (carried, numbers), over, reverse=step.flag)
    arrays = all_of(carried)
    arrays[step.times % 3] = made
    return arrays, numbers


def _while(step: Nest, arrays: list[Any], numbers: list[Any], i: Any, rows: list[Any]) -> Any:
    carried, all_of = _carrying(step, arrays, numbers)

    def test(carry: Any) -> Any:
        more = carry[0] < step.times
        return more & (total(tr.real(carry[1][0])) < 1.0) if step.flag and arrays[0].dtype != np.bool_ else more

    def body(carry: Any) -> Any:
        inside, now = _block(step.bodies[0], all_of(carry[1]), carry[2], carry[0] * 3 + i, [])
        return carry[0] + 1, tuple([inside[k] for k in step.carried]), now

    bound = 2 if step.flag else None
    _, carried, numbers = tr.while_loop(test, body, (tr.asarray(0), carried, numbers), max_steps=bound)
    return all_of(carried), numbers


def _switch(step: Nest, arrays: list[Any], numbers: list[Any], i: Any, rows: list[Any]) -> Any:
    def branch(body: Any) -> Callable[..., Any]:
        return lambda arrays, numbers: _block(body, arrays, numbers, i + 1, [])

    ways = [branch(body) for body in step.bodies]
    if step.flag:
        return tr.cond((i + step.times) % 2 == 0, ways[0], ways[-1], arrays, numbers)
    return tr.switch((i + step.times) % 4 - 1, ways, arrays, numbers)


NESTS: dict[str, Callable[..., Any]] = {
    "scan": _scan, "over slices": _over_slices, "while": _while, "switch": _switch,
}  # fmt: skip


def _changes(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    names = ["exchanged", "shared", "to number", "from number", *OPERATIONS]
    names += [*MATRICES] if len(shape) == 2 else []
    names += [*SQUARES] if len(shape) == 2 and shape[0] == shape[1] else []
    if shape[0] == 0:
        names = "exchanged|to number|from number|mixed|product|copy|flipped|mixed with flipped|where|cumulative".split(
            "|"
        )
    which = st.integers(0, 2)
    return st.builds(Change, st.sampled_from(names), which, which, which, st.integers(0, 5))


def _blocks(shape: tuple[int, ...], depth: int) -> st.SearchStrategy[Any]:
    change = _changes(shape)
    step = change
    if depth:
        inner = _blocks(shape, depth - 1)
        nest = st.builds(
            Nest,
            st.sampled_from(sorted(NESTS)),
            st.lists(inner, min_size=1, max_size=3).map(tuple),
            st.integers(0, 3),
            st.sampled_from([(0, 1, 2), (1, 2), (2, 0), (1,)]),
            st.booleans(),
        )
        step = st.one_of(change, change, nest)
    return st.lists(step, min_size=1, max_size=4).map(tuple)


@st.composite
def recipes(draw: Any, shapes: tuple[tuple[int, ...], ...] = SHAPES, depth: int = 2) -> Recipe:
    """Programs of up to `depth` nested loops and branches."""
    shape = draw(st.sampled_from(shapes))
    body = draw(_blocks(shape, depth))
    outputs = draw(st.sampled_from([(0, 1, 2), (2, 0, 0), (1,)]))
    return Recipe(shape, draw(st.sampled_from(DTYPES)), body, outputs)
