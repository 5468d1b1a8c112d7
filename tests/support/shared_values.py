"""Random programs whose loops, branches and updates share values with each other, drawn as data: what fails is printed.

A program works on a pool of square matrices. Every step takes matrices of the pool, which stay in it, so that several
steps start from one value, capture it and return it, under several names. Elements stay near 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

import tenferro_runtime as tr

Matrices = list[Any]


class Do(NamedTuple):
    """One step.

    Attributes:
        name: a key of `STEPS` or `NESTS`.
        at: positions in the pool of three matrices, modulo its length.
        p: an index of a row, a number of iterations, or a choice of a branch.
        body: the steps inside a loop or a branch.
        returns: positions of the values that a body returns, from the end of its pool.
    """

    name: str
    at: tuple[int, int, int]
    p: int
    body: tuple[Any, ...] = ()
    returns: tuple[int, int] = (0, 0)


class Shared(NamedTuple):
    """A program: `run` is a function of one matrix of 5 rows and columns."""

    steps: tuple[Do, ...]
    outputs: tuple[int, ...]

    def run(self, a: Any) -> tuple[Any, ...]:
        """What is traced."""
        pool = done(self.steps, [a, a * 2.0 - a * 0.5], 1)
        return tuple([pool[-1 - k % len(pool)] for k in self.outputs])


def done(steps: tuple[Do, ...], pool: Matrices, i: Any) -> Matrices:
    """The pool after some steps; `i` is an index, of the loop around them."""
    for step in steps:
        x, y, z = (pool[-1 - k % len(pool)] for k in step.at)
        found = NESTS[step.name](step, pool, x, y, z) if step.name in NESTS else STEPS[step.name](x, y, z, i, step.p)
        pool = [*pool, *(found if isinstance(found, tuple) else (found,))]
    return pool


def small(x: Any) -> Any:
    return tr.tanh(x)


STEPS: dict[str, Callable[[Any, Any, Any, Any, int], Any]] = {
    # ------------------------------------------------------------------ other names of a value, which are simplified
    "times one": lambda x, y, z, i, p: x * 1.0,
    "negated twice": lambda x, y, z, i, p: -(-x),
    "same shape": lambda x, y, z, i, p: tr.reshape(tr.reshape(x, (-1,)), x.shape),
    "same dtype": lambda x, y, z, i, p: tr.real(tr.astype(x, tr.float64)),
    "transposed twice": lambda x, y, z, i, p: x.T.T,
    "copied": lambda x, y, z, i, p: tr.copy(x),
    # ------------------------------------------------------------------ views
    "transposed": lambda x, y, z, i, p: x.T,
    "flipped": lambda x, y, z, i, p: tr.flip(x, axis=p % 2),
    "repeated row": lambda x, y, z, i, p: tr.broadcast_to(x[p], x.shape),
    # ------------------------------------------------------------------ new values
    "sum": lambda x, y, z, i, p: x * 0.5 + y * 0.25,
    "bounded": lambda x, y, z, i, p: small(x - z),
    "product": lambda x, y, z, i, p: small(x @ y),
    # ------------------------------------------------------------------ updates
    "row set": lambda x, y, z, i, p: x.at[p].set(y[4 - p]),
    "row set at the index": lambda x, y, z, i, p: x.at[i].set(y[4 - i] * 0.5),
    "row added at the index": lambda x, y, z, i, p: small(x.at[(i + p) % 5].add(y[i])),
    "rows set": lambda x, y, z, i, p: x.at[1:].set(y[:-1]),
    "rows permuted": lambda x, y, z, i, p: x.at[tr.asarray([3, 0, 4, 2, 1])].set(y * 0.5),
    "column scaled": lambda x, y, z, i, p: x.at[:, p].multiply(y[0]),
    "window": lambda x, y, z, i, p: tr.dynamic_update_slice(x, y[:2, :3], (i, p)),
    "assigned": lambda x, y, z, i, p: _assigned(x, y, i, p),
}


def _assigned(x: Any, y: Any, i: Any, p: int) -> Any:
    w = x.copy()
    w[i] = y[p]
    w[p] = w[i] * 0.5
    return w


def _body(step: Do, pool: Matrices) -> Callable[..., tuple[Any, Any]]:
    """A body: it captures the pool, and takes and returns two matrices."""

    def body(i: Any, x: Any, y: Any) -> tuple[Any, Any]:
        inside = done(step.body, [*pool, x, y], i)
        return inside[-1 - step.returns[0] % len(inside)], inside[-1 - step.returns[1] % len(inside)]

    return body


def _fori(step: Do, pool: Matrices, x: Any, y: Any, z: Any) -> Any:
    body = _body(step, pool)
    return tr.fori_loop(0, step.p, lambda i, c: body(i, *c), (x, y))


def _single(step: Do, pool: Matrices, x: Any, y: Any, z: Any) -> Any:
    body = _body(step, pool)
    return tr.fori_loop(0, step.p, lambda i, c: body(i, c, y)[0], x)


def _scan(step: Do, pool: Matrices, x: Any, y: Any, z: Any) -> Any:
    body = _body(step, pool)

    def one(c: Any, over: Any) -> Any:
        i, row = over
        new, other = body(i, c, c.at[i].set(row))
        return new, other[i]

    return tr.scan(one, x, (tr.arange(5), y), reverse=bool(step.p % 2))


def _while(step: Do, pool: Matrices, x: Any, y: Any, z: Any) -> Any:
    body = _body(step, pool)
    found = tr.while_loop(
        lambda c: (c[0] < step.p) & (tr.sum(z) < 1e9), lambda c: (c[0] + 1, body(c[0] % 5, *c[1])), (0, (x, y))
    )
    return found[1]


def _cond(step: Do, pool: Matrices, x: Any, y: Any, z: Any) -> Any:
    body = _body(step, pool)
    return tr.cond(z[0, 0] < 0.1 * step.p, lambda x, y: body(step.p, x, y), lambda x, y: (y, x), x, y)


NESTS: dict[str, Callable[[Do, Matrices, Any, Any, Any], Any]] = {
    "loop": _fori,
    "loop of one": _single,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}

_ats = st.tuples(*[st.integers(0, 5)] * 3)
_simple = st.builds(Do, st.sampled_from(sorted(STEPS)), _ats, st.integers(0, 3), st.just(()), st.just((0, 0)))


def _nested(inner: st.SearchStrategy[Do]) -> st.SearchStrategy[Do]:
    return st.builds(
        Do,
        st.sampled_from(sorted(NESTS)),
        _ats,
        st.integers(0, 3),
        st.lists(inner, min_size=1, max_size=3).map(tuple),
        st.tuples(st.integers(0, 4), st.integers(0, 4)),
    )


_once = _nested(_simple)
_steps = st.one_of(_simple, _once, _nested(st.one_of(_simple, _once)))


def shared_programs() -> st.SearchStrategy[Shared]:
    """Programs of one to five steps."""
    return st.builds(
        Shared,
        st.lists(_steps, min_size=1, max_size=5).map(tuple),
        st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple),
    )
