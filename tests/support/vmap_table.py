"""What `vmap` does with every public function and primitive, found out by comparing it with a loop over the lanes.

``python3 dev run tests/support/vmap_table.py`` writes the page ``docs/reference/vmap.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_runtime.ir import inner_programs
from tenferro_tensor_core import (
    ArgumentError,
    DTypeError,
    GradientError,
    MissingRuleError,
    TracingError,
    UnsupportedError,
)
from vmap_calls import CALLS, OF_DATA

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "vmap.md"
LANES: Final = 3
DTYPES: Final = (np.dtype("float64"), np.dtype("complex128"))
SHORT: Final = {DTYPES[0]: "f64", DTYPES[1]: "c128"}

Arrays = Sequence[np.ndarray[Any, Any]]
Function = Callable[..., Any]


class NotTakenError(Exception):
    """A single lane has no such result: the function does not take the dtype, or has no derivative."""


def lanes_of(x: np.ndarray[Any, Any], count: int = LANES) -> np.ndarray[Any, Any]:
    """A batch of arrays like one, which are different from each other and keep the order of their elements."""
    return np.stack([x * (1 - k / 16) for k in range(count)]) if count else np.empty((0, *x.shape), x.dtype)


def leaves_of(f: Function) -> Function:
    """The function with its results in a list."""
    return lambda *xs: tr.tree_leaves(f(*xs))


def loop(f: Function, xs: Arrays, axes: Sequence[int | None]) -> list[np.ndarray[Any, Any]]:
    """The results of a function of leaves for each lane, stacked."""
    size = next(x.shape[axis] for x, axis in zip(xs, axes, strict=True) if axis is not None)
    rows = [
        f(*[tr.asarray(x if a is None else np.take(x, k, a)) for x, a in zip(xs, axes, strict=True)])
        for k in range(size)
    ]
    return [np.stack([np.asarray(row[i]) for row in rows]) for i in range(len(rows[0]))]


def agree(found: Sequence[Any], wanted: Sequence[np.ndarray[Any, Any]]) -> None:
    """Raise unless shapes, dtypes and values are the same."""
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert x.shape == y.shape, (x.shape, y.shape)
        assert x.dtype == y.dtype, (x.dtype, y.dtype)
        single = y.dtype in (np.dtype("float32"), np.dtype("complex64"))
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-5 if single else 1e-9, atol=1e-6 if single else 1e-10)


def smooth(f: Function, xs: Arrays) -> Function:
    """The results that have a derivative."""
    outs = f(*map(tr.asarray, xs))
    kept = [i for i, x in enumerate(outs) if np.issubdtype(x.dtype, np.inexact)]
    if not kept:
        raise NotTakenError
    return lambda *args: [f(*args)[i] for i in kept]


def plain(f: Function, xs: Arrays) -> None:
    """All operands have lanes along their first axis; eager and compiled."""
    batches = [lanes_of(x) for x in xs]
    found = tr.vmap(f)(*batches)
    wanted = loop(f, batches, (0,) * len(xs))
    agree(found, wanted)
    agree(tr.compile(tr.vmap(f))(*batches), wanted)


def of_jvp(f: Function, xs: Arrays) -> None:
    """The derivative of each lane along its own tangent."""
    g, n = smooth(f, xs), len(xs)

    def push(*args: Any) -> Any:
        return ad.jvp(g, args[:n], args[n:])[1]

    batches = [lanes_of(x) for x in xs]
    batches += [0.3 * x + 0.1 for x in batches]
    agree(tr.vmap(push)(*batches), loop(push, batches, (0,) * len(batches)))


def vjp_of(f: Function, xs: Arrays) -> None:
    """The derivative of all lanes at once, in reverse."""
    g = smooth(f, xs)

    def pull(h: Function, *args: Any) -> list[Any]:
        outs, back = ad.vjp(h, *args)
        return list(back([tr.ones_like(x) for x in outs]))

    batches = [lanes_of(x) for x in xs]
    found = pull(tr.vmap(g), *map(tr.asarray, batches))
    agree(found, loop(lambda *args: pull(g, *args), batches, (0,) * len(xs)))


def _twice(f: Function, xs: Arrays) -> list[np.ndarray[Any, Any]]:
    axes = (0,) * len(xs)
    return loop(lambda *args: loop(f, [np.asarray(x) for x in args], axes), xs, axes)


def in_scan(f: Function, xs: Arrays) -> None:
    """In each step of a compiled loop."""
    steps = [np.stack([lanes_of(x), 0.875 * lanes_of(x)]) for x in xs]
    found = tr.compile(lambda *xs: tr.scan(lambda c, x: (c, tr.vmap(f)(*x)), 0.0, xs)[1])(*steps)
    agree(found, _twice(f, steps))


def nested(f: Function, xs: Arrays) -> None:
    """Lanes of lanes."""
    twice = [np.stack([lanes_of(x), 0.875 * lanes_of(x)]) for x in xs]
    agree(tr.vmap(tr.vmap(f))(*twice), _twice(f, twice))


def mixed_axes(f: Function, xs: Arrays) -> None:
    """Lanes along the last axis, of all operands and of one alone while the others are shared; put last."""
    batches = [np.moveaxis(lanes_of(x), 0, -1) for x in xs]
    every: list[tuple[int | None, ...]] = [(-1,) * len(xs)]
    if len(xs) > 1:
        every += [tuple([-1 if k == i else None for k in range(len(xs))]) for i in range(len(xs))]
    for axes in every:
        given = [b if axis == -1 else x for b, x, axis in zip(batches, xs, axes, strict=True)]
        found = tr.vmap(f, axes, -1)(*map(tr.asarray, given))
        agree(found, [np.moveaxis(y, 0, -1) for y in loop(f, given, axes)])


def no_lanes(f: Function, xs: Arrays) -> None:
    """A batch of extent 0."""
    one = f(*map(tr.asarray, xs))
    agree(
        tr.vmap(f)(*[lanes_of(x, 0) for x in xs]),
        [np.empty((0, *x.shape), np.asarray(x).dtype) for x in one],
    )


COLUMNS: Final[dict[str, Function]] = {
    "vmap": plain,
    "of jvp": of_jvp,
    "vjp of": vjp_of,
    "in scan": in_scan,
    "nested": nested,
    "in_axes": mixed_axes,
    "no lanes": no_lanes,
}


def outcome(name: str, column: str, dtype: np.dtype[Any]) -> bool:
    """Whether a call agrees with the loop over its lanes; false where one lane alone has no such result.

    Raises:
        AssertionError: it does not agree.
    """
    f = leaves_of(CALLS[name].f)
    xs = _operands(name, f, dtype)
    if xs is None:
        return False
    try:
        COLUMNS[column](f, xs)
    except (NotTakenError, GradientError, MissingRuleError):
        if column not in ("of jvp", "vjp of"):
            raise
        _require_none(f, xs)
        return False
    return True


def _operands(name: str, f: Function, dtype: np.dtype[Any]) -> Arrays | None:
    """What one lane is called on, or ``None`` where it does not take the dtype."""
    try:
        xs = [make(dtype) for make in CALLS[name].operands]
        f(*map(tr.asarray, xs))
    except (ArgumentError, DTypeError):
        return None
    return xs


def _require_none(f: Function, xs: Arrays) -> None:
    """Raise unless one lane alone has no derivative either."""
    try:
        g = smooth(f, xs)
        outs, back = ad.vjp(g, *map(tr.asarray, xs))
        back([tr.ones_like(x) for x in outs])
    except (NotTakenError, GradientError, MissingRuleError):
        return
    raise AssertionError("one lane has a derivative, and all lanes together have none")


def refused(name: str, column: str, dtype: np.dtype[Any]) -> bool:
    """Whether a call whose sizes depend on data is refused with an error that says so; false as for `outcome`."""
    f = leaves_of(CALLS[name].f)
    xs = _operands(name, f, dtype)
    if xs is None:
        return False
    try:
        COLUMNS[column](f, xs)
    except (TracingError, UnsupportedError) as error:
        assert any(said in str(error) for said in ("depends on", "data-dependent")), error
        return True
    except NotTakenError:
        return False
    raise AssertionError("sizes that depend on data differ between lanes, but nothing says so")


def cell(name: str, column: str, known: Collection[str] = ()) -> str:
    """The dtypes for which a column holds, those that are `known` to among them, or how it is refused."""
    check = refused if name in OF_DATA else outcome
    held = [SHORT[dtype] for dtype in DTYPES if SHORT[dtype] in known or check(name, column, dtype)]
    return "–" if not held else "error" if name in OF_DATA else ", ".join(held)


def how(name: str) -> str:
    """Whether the program takes all lanes at once."""
    if name in OF_DATA:
        return "–"
    f = leaves_of(CALLS[name].f)
    xs = next(xs for dtype in DTYPES if (xs := _operands(name, f, dtype)) is not None)
    program = tr.trace(tr.vmap(f), *map(lanes_of, xs))
    marked = [eq for p in _programs(program) for eq in p.equations if eq.where.endswith("lane by lane")]
    return "lane by lane" if marked else "at once"


def _programs(program: Any) -> Iterator[Any]:
    yield program
    for eq in program.equations:
        for inner in inner_programs(eq.op.params):
            yield from _programs(inner)


def row(name: str, known: Mapping[str, Collection[str]] | None = None) -> str:
    """A line of the table, with the dtypes that each column is `known` to hold for."""
    shown = name.partition(".")[2]
    cells = [cell(name, column, known[column] if known else ()) for column in COLUMNS]
    return f"| {' | '.join([f'`{shown}`', *cells, how(name)])} |"


HEAD: Final = """# What vmap does with every function

Every line is a call of a public function or a primitive, compared with a loop over the lanes. The table is written by
`python3 dev run tests/support/vmap_table.py` from the outcome of these comparisons, and the tests compare each line
with the outcome anew.

A cell names the dtypes for which results are equal to those of the loop; – stands where one lane alone has no such
result, because the function does not take the dtype or has no derivative. The columns:

- *vmap*: all operands have lanes, eager and compiled;
- *of jvp*: `vmap` of the derivative along a tangent;
- *vjp of*: the reverse derivative of `vmap`;
- *in scan*: `vmap` in each step of a compiled loop;
- *nested*: `vmap` of `vmap`;
- *in_axes*: lanes along the last axis, of all operands, and of each alone while the others are shared;
- *no lanes*: a batch of extent 0.

*Runs* says whether a program takes all lanes at once, or one after the other. An *error* is a `TracingError` or an
`UnsupportedError`: the size of the result depends on data, and would be another one in each lane.
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for module in dict.fromkeys(name.partition(".")[0] for name in CALLS):
        titles = ["call", *COLUMNS, "runs"]
        lines += [f"\n## {module}\n", f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
        lines += [row(name) for name in CALLS if name.partition(".")[0] == module]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
