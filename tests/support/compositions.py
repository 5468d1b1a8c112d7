"""Functions made by transforms in any order, drawn as data: what fails is printed.

Every function takes two arrays of one shape to an array of that shape, so that each transform fits around each other.
`vmap` is compared with `looped`, which calls the function for each lane in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from hypothesis import strategies as st

import tenferro_ad as ad
import tenferro_einsum as te
import tenferro_linalg as tl
import tenferro_runtime as tr

Function = Callable[[Any, Any], Any]
Shape = tuple[int, ...]
Mapper = Callable[..., Function]


@ad.custom_rule(
    jvp=lambda primals, tangents, outs: (2 * tr.cos(primals[0]) * tangents[0],), family="tenferro-tests.bent.v1"
)
def bent(x: Any) -> Any:
    """A sine with twice its derivative."""
    return tr.sin(x)


def _sized(x: Any) -> Any:
    return tr.tanh(0.5 * x)


def _matrix(x: Any) -> Any:
    """A well-conditioned matrix made of a vector."""
    return tr.eye(x.shape[-1]) * 2.0 + 0.3 * tr.outer(tr.sin(x), tr.cos(x))


def _rows(f: Callable[[Any, Any], Any]) -> Function:
    """A function of vectors on arrays of any rank."""

    def g(x: Any, y: Any) -> Any:
        return tr.reshape(f(tr.ravel(x), tr.ravel(y)), x.shape)

    return g


def _product(pair: Any) -> Any:
    return pair[0] * pair[1]


BASES: Final[dict[str, Function]] = {
    "product": lambda x, y: tr.sin(x) * y + x,
    "sum": lambda x, y: x * tr.sum(tr.cos(y)) + tr.mean(x * y),
    "where": lambda x, y: tr.where(x > y, x * y, tr.sin(x)),
    "maximum": lambda x, y: tr.maximum(x, 2 * y) * tr.max(x),
    "bent": lambda x, y: bent(x) * y,
    "sort": _rows(lambda x, y: tr.sort(x) * y),
    "gather": _rows(lambda x, y: x[tr.argsort(y)] * y),
    "scatter": _rows(lambda x, y: tr.zeros_like(x).at[tr.argsort(y)].add(x * y)),
    "cumulative": _rows(lambda x, y: tr.cumulative_sum(x * y) + tr.cumulative_prod(tr.cos(y))),
    "solve": _rows(lambda x, y: tl.solve(_matrix(y), x)),
    "shared solve": _rows(lambda x, y: tl.solve(tr.eye(x.shape[0]) * 2.0 + 0.1, x) * y),
    "einsum": _rows(lambda x, y: te.einsum("ij,j,k,k->i", _matrix(x), y, x, y)),
    "eigenvalues": _rows(lambda x, y: tl.eigvalsh(_matrix(x) + _matrix(x).T + tr.outer(y, y))),
    "slice": _rows(lambda x, y: tr.concat([tr.dynamic_slice(x * y, (tr.argmax(y),), (1,)), x[1:]])),
    "norm": lambda x, y: tr.reshape(tl.vector_norm(tr.ravel(x) + 2.0), ()) * y,
}

INSIDE: Final[dict[str, Callable[[Any], Any]]] = {
    "compile": lambda f: tr.compile(f),
    "checkpoint": lambda f: ad.checkpoint(f),
    "stop_gradient": lambda f: lambda x, y: f(x, tr.stop_gradient(y)) + x,
    "cond": lambda f: lambda x, y: tr.cond(tr.sum(x * y) > 0.1, f, lambda x, y: tr.cos(y) * x, x, y),
    "switch": lambda f: (
        lambda x, y: tr.switch(
            tr.cast(tr.floor(tr.sum(x) * 3), tr.int64) % 3, [f, lambda x, y: x * y, lambda x, y: f(y, x)], x, y
        )
    ),
    "scan": lambda f: lambda x, y: tr.scan(lambda c, t: (_sized(f(c, t)), c * t), x, tr.stack([y, x]))[1][1] + x,
    "fori_loop": lambda f: lambda x, y: tr.fori_loop(0, 2, lambda i, c: _sized(f(c, y) + i), x),
    "while_loop": lambda f: (
        lambda x, y: tr.while_loop(
            lambda c: tr.sum(c * c) < 3.0, lambda c: 1.5 * c + _sized(f(c, y)) + 0.5, x, max_steps=4
        )
    ),
    "map": lambda f: lambda x, y: tr.map(lambda t: _sized(f(t, y)), tr.stack([x, y]))[1],
    "associative_scan": lambda f: (
        lambda x, y: tr.associative_scan(lambda a, b: a * b, tr.stack([x, _sized(f(x, y)), y]))[2]
    ),
    "jvp": lambda f: lambda x, y: ad.jvp(lambda x: f(x, y), (x,), (tr.cos(y),))[1],
    "vjp": lambda f: lambda x, y: ad.vjp(f, x, y)[1](tr.cos(x))[1],
    "grad": lambda f: lambda x, y: ad.grad(lambda x: tr.sum(tr.sin(f(x, y))))(x),
    "value_and_grad": lambda f: lambda x, y: _product(ad.value_and_grad(lambda y: tr.sum(tr.sin(f(x, y))))(y)),
    "linearize": lambda f: lambda x, y: ad.linearize(lambda x: f(x, y), x)[1](tr.sin(y)),
    "jacfwd": lambda f: lambda x, y: _contracted(ad.jacfwd(f)(x, y), y),
    "jacrev": lambda f: lambda x, y: _contracted(ad.jacrev(f, argnums=1)(x, y), x),
    "hessian": lambda f: lambda x, y: _contracted(ad.hessian(lambda x: tr.sum(f(x, y)))(x), y),
}
"""Transforms that keep the shape."""


def _contracted(jacobian: Any, v: Any) -> Any:
    axes = tuple(range(jacobian.ndim - v.ndim, jacobian.ndim))
    return tr.sum(jacobian * v, axis=axes)


def looped(f: Function, in_axes: Any = 0, out_axes: int = 0) -> Function:
    """What `vmap` is, by calls for one lane after the other."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes, in_axes)

    def g(*args: Any) -> Any:
        args = tuple(map(tr.asarray, args))
        size = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
        rows = [f(*[x if a is None else tr.take(x, k, axis=a) for x, a in zip(args, axes, strict=True)])
                for k in range(size)]  # fmt: skip
        return tr.stack(rows, axis=out_axes)

    return g


MAPPED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "vmap": lambda f, v: v(f),
    "vmap x": lambda f, v: lambda x, y: v(f, (0, None))(x, y[0]),
    "vmap y": lambda f, v: lambda x, y: v(f, (None, 0))(x[-1], y),
    "vmap last": lambda f, v: lambda x, y: tr.moveaxis(v(f, (-1, 0), -1)(tr.moveaxis(x, 0, -1), y), -1, 0),
}
"""Maps over a new leading axis: of both arrays, of one of them while all lanes share the other, along other axes."""


class Composition(NamedTuple):
    """A function and the transforms around it, the innermost first.

    Attributes:
        base: a key of `BASES`.
        transforms: keys of `INSIDE` and `MAPPED`.
        shape: of the arrays that the base takes.
        lanes: number of lanes of each map, in order.
    """

    base: str
    transforms: tuple[str, ...]
    shape: Shape
    lanes: tuple[int, ...]

    def function(self, mapper: Mapper) -> Function:
        """The function, its maps made by `mapper`."""
        f = BASES[self.base]
        for name in self.transforms:
            f = MAPPED[name](f, mapper) if name in MAPPED else INSIDE[name](f)
            f = _bounded(f)
        return f

    def arguments(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Arrays that the function takes; distinct numbers away from kinks."""
        count = sum(name in MAPPED for name in self.transforms)
        shape = (*reversed(self.lanes[:count]), *self.shape)
        rng = np.random.default_rng(len(self.transforms))
        size = int(np.prod(shape))
        x, y = (rng.permutation(np.linspace(-1.1, 1.3, size + 1)[:size]).reshape(shape) for _ in range(2))
        return x, y + 0.017


def _bounded(f: Function) -> Function:
    return lambda x, y: _sized(f(x, y))


@st.composite
def compositions(draw: Any, most: int = 4) -> Composition:
    """Up to `most` transforms, at least one of them a map."""
    names = draw(st.lists(st.sampled_from([*INSIDE, *MAPPED]), max_size=most - 1))
    at = draw(st.integers(0, len(names)))
    transforms = (*names[:at], draw(st.sampled_from([*MAPPED])), *names[at:])
    lanes = tuple([draw(st.sampled_from([2, 3, 1])) for _ in transforms])
    return Composition(draw(st.sampled_from([*BASES])), transforms, draw(st.sampled_from([(2,), (3,), (1,)])), lanes)
