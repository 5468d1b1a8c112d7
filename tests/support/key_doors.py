"""Values that Python holds for equal, or for unequal to themselves, through every function that takes a user's number.

Run as a program it prints one pickle: for each door, way and value, the outcome in a process that has met no other
value, and the outcomes in processes that have met all of them: once in this order, and twice in reverse.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad, jvp
from tenferro_einsum import einsum
from tenferro_fft import fft, fftfreq
from tenferro_linalg import matrix_norm, matrix_power, pinv, vector_norm
from tenferro_runtime.extension import REGISTRY, primitive
from tenferro_tensor import Spec
from thorough import THOROUGH

Door = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Options:
    """Metadata as plug-ins have them."""

    number: Any


NAN = float("nan")
VALUES: list[Any] = [
    1, True, 1.0, np.int64(1), np.float32(1), 1 + 0j, 0, False, 0.0, -0.0, complex(-0.0, 0.0), complex(0.0, -0.0),
    NAN, -NAN,
]  # fmt: skip
if THOROUGH:
    VALUES += [
        np.uint8(1), np.float64(1), np.bool_(True), complex(1, -0.0), 0j, np.float64(-0.0), np.float32(0.0),
        np.float64(NAN), complex(NAN, 0),
    ]  # fmt: skip


def kind(value: Any) -> float:
    """A number that tells all of `VALUES` apart but for the signs of NaN."""
    if isinstance(value, tuple):
        return sum((i + 1) * kind(v) for i, v in enumerate(value))
    if isinstance(value, Options):
        return 3 * kind(value.number)
    classes = [int, bool, float, np.int64, np.uint8, np.float32, np.float64, np.bool_, complex]
    parts = [complex(value).real, complex(value).imag]
    code = sum(10**i * (5 if p != p else int(p != 0) + 2 * int(np.signbit(p))) for i, p in enumerate(parts))
    return 100.0 * classes.index(value.__class__) + code


@primitive(family="tests.told_apart.v1")
def told_apart(x: Spec, *, number: Any, options: Any = 0, pair: tuple[Any, ...] = ()) -> Spec:
    """An operation of a plug-in whose result depends on the kinds of its metadata."""
    return x


def _kernel(ins: Any, outs: Any, *, number: Any, options: Any, pair: Any) -> Any:
    return lambda x: x + kind(number) + 1e4 * kind(options) + 1e8 * kind(pair)


REGISTRY.kernel(told_apart, "cpu", _kernel)

X = np.array([[1.5, 0.0, -2.0], [0.25, -0.0, 3.0], [1.0, 2.0, -1.0]])

DOORS: dict[str, Door] = {
    "add": lambda x, v: x + v,
    "add from the left": lambda x, v: v + x,
    "sub": lambda x, v: x - v,
    "mul": lambda x, v: x * v,
    "div": lambda x, v: x / v,
    "div from the left": lambda x, v: v / x,
    "pow": lambda x, v: x**v,
    "two sums": lambda x, v: (x + v) * (x + True) - (x + 1.0) * (x - 0.0) + (x + -0.0),
    "integers": lambda x, v: tr.astype(tr.abs(tr.round(x)), tr.int32) * v,
    "less": lambda x, v: tr.real(x) < v,
    "equal": lambda x, v: x == v,
    "where": lambda x, v: tr.where(x == 0, v, x),
    "where, other side": lambda x, v: tr.where(x == 0, x, v),
    "clip from below": lambda x, v: tr.clip(x, v, None),
    "clip from above": lambda x, v: tr.clip(x, None, v),
    "maximum": lambda x, v: tr.maximum(x, v),
    "copysign": lambda x, v: tr.copysign(x, v),
    "full": lambda x, v: tr.full((2,), v),
    "full_like": lambda x, v: tr.full_like(x, v),
    "full, typed": lambda x, v: tr.full((2,), v, dtype=tr.complex128),
    "asarray": lambda x, v: tr.asarray([v, v]),
    "set": lambda x, v: x.at[0].set(v),
    "added at": lambda x, v: x.at[1:, 0].add(v),
    "pad": lambda x, v: tr.pad(x, 1, constant_values=v),
    "index": lambda x, v: x[v],
    "index and slice": lambda x, v: x[v, 1:],
    "slice from": lambda x, v: x[v:],
    "slice to": lambda x, v: x[:v],
    "slice by": lambda x, v: x[::v],
    "index and axis": lambda x, v: x[v, None],
    "sum over": lambda x, v: tr.sum(x, axis=v),
    "sum, kept": lambda x, v: tr.sum(x, axis=0, keepdims=v),
    "cumulative sum": lambda x, v: tr.cumulative_sum(x, axis=v),
    "argmax": lambda x, v: tr.argmax(tr.real(x), axis=v),
    "var": lambda x, v: tr.var(x, axis=0, correction=v),
    "roll": lambda x, v: tr.roll(x, v, axis=0),
    "repeat": lambda x, v: tr.repeat(x, v, axis=0),
    "tile": lambda x, v: tr.tile(x, (v, 2)),
    "expand": lambda x, v: tr.expand_dims(x, axis=v),
    "take": lambda x, v: tr.take(x, v, axis=0),
    "flip": lambda x, v: tr.flip(x, axis=v),
    "sort": lambda x, v: tr.sort(tr.real(x), descending=v),
    "tril": lambda x, v: tr.tril(x, k=v),
    "eye": lambda x, v: tr.eye(3, k=v),
    "arange": lambda x, v: tr.arange(v, 4),
    "linspace": lambda x, v: tr.linspace(v, 3, 4),
    "zeros": lambda x, v: tr.zeros((v, 2)),
    "reshape": lambda x, v: tr.reshape(x, (v, 9)),
    "broadcast": lambda x, v: tr.broadcast_to(x, (v, 3, 3)),
    "vector norm": lambda x, v: vector_norm(x, ord=v),
    "matrix norm": lambda x, v: matrix_norm(x, ord=v),
    "matrix power": lambda x, v: matrix_power(x, v),
    "pinv": lambda x, v: pinv(x, rtol=v),
    "fft": lambda x, v: fft(x, n=v),
    "fft along": lambda x, v: fft(x, axis=v),
    "fftfreq": lambda x, v: fftfreq(4, d=v),
    "einsum": lambda x, v: einsum("ij,->ij", x, v),
    "einsum, order": lambda x, v: einsum("ij,jk,kl->il", x, x, x, optimize=v),
    "einsum, limit": lambda x, v: einsum("ij,jk,kl->il", x, x, x, time_limit=v),
    "plug-in": lambda x, v: told_apart(x, number=v),
    "plug-in, object": lambda x, v: told_apart(x, number=0, options=Options(v)),
    "plug-in, tuple": lambda x, v: told_apart(x, number=0, pair=(2, (v, v))),
    "scan": lambda x, v: tr.scan(lambda c, row: (c * v + row, c), x[0], x)[0],
    "scan, reversed": lambda x, v: tr.scan(lambda c, row: (c * 2 + row, c), x[0], x, reverse=v)[0],
    "cond": lambda x, v: tr.cond(v, lambda y: y + 1, lambda y: y * 2, x),
    "key of a dict": lambda x, v: tr.compile(lambda d: next(iter(d.values())) + kind(next(iter(d))))({v: x}),
}
"""Functions of a matrix and of a user's number."""

VALUE: Any = None
_global: dict[str, Any] = {name: tr.compile(lambda x, door=door: door(x, VALUE)) for name, door in DOORS.items()}
_static: dict[str, Any] = {name: tr.compile(door, static_argnums=1) for name, door in DOORS.items()}
_inside: dict[str, Any] = {
    name: tr.compile(lambda x, o, door=door: door(x, o.number), static_argnums=1) for name, door in DOORS.items()
}
_dynamic: dict[str, Any] = {name: tr.compile(door) for name, door in DOORS.items()}


def _by_global(name: str, x: Any, v: Any) -> Any:
    global VALUE
    VALUE = v
    return _global[name](x)


def _loss(door: Door, v: Any) -> Callable[[Any], Any]:
    return lambda x: tr.sum(tr.real(door(x, v)))


WAYS: dict[str, Callable[[str, Any, Any], Any]] = {
    "eager": lambda name, x, v: DOORS[name](x, v),
    "global": _by_global,
    "static": lambda name, x, v: _static[name](x, v),
    "field of a static argument": lambda name, x, v: _inside[name](x, Options(v)),
    "argument": lambda name, x, v: _dynamic[name](x, v),
    "gradient": lambda name, x, v: grad(_loss(DOORS[name], v))(x),
    "tangent": lambda name, x, v: jvp(lambda y: DOORS[name](y, v), (x,), (tr.ones_like(x),))[1],
}


def outcome(way: str, name: str, value: Any) -> Any:
    """What comes of it, as plain data: an array, or the class of the error."""
    try:
        found = WAYS[way](name, tr.asarray(X), value)
        return "nothing" if found is None else np.array(found)
    except Exception as error:
        return type(error).__name__


def asked(name: str, way: str, number: int) -> bool:
    """Whether a door is asked in a way for a value: of ones, of zeros and of NaNs in turn, and in thorough runs of all.

    Every door meets every value and every way, and every way every value; values that Python confuses stay together.
    """
    alike = 2 if VALUES[number] != VALUES[number] else int(VALUES[number] == 0)
    return THOROUGH or ([*DOORS].index(name) + [*WAYS].index(way)) % 3 == alike


def met(values: Sequence[int], rounds: int = 1) -> dict[tuple[str, str, int], list[Any]]:
    """Outcomes of all doors and ways for values one after the other, and all of it again."""
    found: dict[tuple[str, str, int], list[Any]] = {}
    for _ in range(rounds):
        for number in values:
            for name in DOORS:
                for way in WAYS:
                    if asked(name, way, number):
                        found.setdefault((name, way, number), []).append(outcome(way, name, VALUES[number]))
    return found


def in_child(values: Sequence[int], rounds: int = 1) -> dict[tuple[str, str, int], list[Any]]:
    """`met` in a fork of this process, which has met no value yet."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(met(values, rounds), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(data)


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for library in ("opt_einsum", "scipy.fft", "scipy.linalg"):
        importlib.import_module(library)  # once, not in each child
    every = range(len(VALUES))
    fresh: dict[Any, Any] = {}
    for number in every:
        fresh |= in_child([number])
    pickle.dump((fresh, in_child(every), in_child(every[::-1], 2)), sys.stdout.buffer)


if __name__ == "__main__":
    main()
