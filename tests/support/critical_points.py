"""Functions at points where a formula divides by zero, compares equal operands or meets an infinity.

`SMOOTH` lists points where every derivative exists, with the function in mpmath; `EDGES` lists points where some do
not, with the values that stand in for the first, second and third derivatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

import tenferro_runtime as tr

S, nn, norm = tr.special, tr.nn, tr.linalg.vector_norm
INF = math.inf
HALF = mp.mpf(1) / 2


class Smooth(NamedTuple):
    """A function of a vector, the same of numbers in mpmath, and points."""

    f: Callable[[Any], Any]
    exact: Callable[..., Any]
    points: list[tuple[float, ...]]


class Edge(NamedTuple):
    """A function of a vector, a point, and its derivatives of order 1, 2 and 3 there; a number fills all of them.

    An order is ``None`` where some modes meet 0 times infinity, which is NaN.
    """

    f: Callable[[Any], Any]
    point: tuple[float, ...]
    first: Any
    second: Any = 0.0
    third: Any = 0.0


def of(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of several numbers as a function of one vector."""
    return lambda v: f(*[v[i] for i in range(v.shape[0])])


def first(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The first element of the result of a function of a vector."""
    return lambda v: f(v)[0]


def _log_sum(*xs: Any) -> Any:
    return mp.log(sum(mp.exp(x) for x in xs))


def _length(*xs: Any) -> Any:
    return mp.sqrt(sum(x * x for x in xs))


def _quotient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mp.mpf(1) if x == 0 else f(x) / x


def _normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _boxcox(x: Any, power: Any) -> Any:
    return mp.log(x) * _quotient(mp.expm1)(power * mp.log(x))


def _student(df: Any, t: Any) -> Any:
    scale = mp.gamma((df + 1) / 2) / (mp.sqrt(mp.pi * df) * mp.gamma(df / 2))
    return HALF + t * scale * mp.hyp2f1(HALF, (df + 1) / 2, 3 * HALF, -t * t / df)


SMOOTH: dict[str, Smooth] = {
    "logaddexp": Smooth(of(tr.logaddexp), _log_sum, [(0.6, 0.6), (0.0, 0.0), (-3.0, -3.0)]),
    "logaddexp2": Smooth(of(tr.logaddexp2), lambda x, y: mp.log(2**x + 2**y, 2), [(0.6, 0.6), (0.0, 0.0), (1.0, 2.0)]),
    "hypot": Smooth(of(tr.hypot), _length, [(1.0, 1.0), (0.0, 2.0), (-3.0, 0.0)]),
    "atan2": Smooth(of(tr.atan2), mp.atan2, [(1.0, 1.0), (0.0, 2.0), (2.0, 0.0), (-2.0, 0.0)]),
    "angle": Smooth(of(lambda x, y: tr.angle(x + 1j * y)), lambda x, y: mp.atan2(y, x), [(1.0, 0.0), (0.0, 1.0)]),
    "sinc": Smooth(of(tr.sinc), lambda x: _quotient(mp.sin)(mp.pi * x), [(0.0,), (1.0,), (1 / math.pi,)]),
    "logsumexp": Smooth(tr.logsumexp, _log_sum, [(1.0, 1.0, 1.0), (1.0, 1.0, 0.0)]),
    "softmax": Smooth(first(tr.softmax), lambda *xs: mp.exp(xs[0] - _log_sum(*xs)), [(1.0, 1.0, 1.0)]),
    "log_softmax": Smooth(first(tr.log_softmax), lambda *xs: xs[0] - _log_sum(*xs), [(1.0, 1.0, 1.0)]),
    "logmeanexp": Smooth(nn.logmeanexp, lambda *xs: _log_sum(*xs) - mp.log(len(xs)), [(1.0, 1.0)]),
    "variance": Smooth(tr.var, lambda x, y: (x - y) ** 2 / 4, [(1.0, 1.0)]),
    "product": Smooth(tr.prod, lambda *xs: mp.fprod(xs), [(0.0, 0.0, 2.0), (0.0, 0.0, 0.0), (0.0, 1.0, 2.0)]),
    "power": Smooth(of(lambda x: x**4), lambda x: x**4, [(0.0,)]),
    "power of arrays": Smooth(of(tr.pow), lambda x, y: x**y, [(1.0, 0.0), (1.0, 1.0), (2.0, 0.0)]),
    "norm": Smooth(norm, _length, [(1.0, 0.0), (1.0, 1.0)]),
    "norm of power 4": Smooth(lambda v: norm(v, ord=4), lambda x, y: mp.root(x**4 + y**4, 4), [(1.0, 0.0)]),
    "i0": Smooth(of(tr.i0), lambda x: mp.besseli(0, x), [(0.0,), (8.0,), (-8.0,)]),
    "xlogy": Smooth(of(S.xlogy), lambda x, y: x * mp.log(y), [(0.0, 2.0), (0.0, 1.0), (2.0, 1.0)]),
    "xlog1py": Smooth(of(S.xlog1py), lambda x, y: x * mp.log1p(y), [(0.0, 2.0), (0.0, 0.0), (2.0, 0.0)]),
    "entr": Smooth(of(S.entr), lambda x: -x * mp.log(x), [(1.0,)]),
    "rel_entr": Smooth(of(S.rel_entr), lambda x, y: x * mp.log(x / y), [(1.0, 1.0), (0.5, 0.5)]),
    "kl_div": Smooth(of(S.kl_div), lambda x, y: x * mp.log(x / y) - x + y, [(1.0, 1.0)]),
    "pseudo_huber": Smooth(
        of(S.pseudo_huber), lambda d, r: d * (_length(d, r) - d), [(1.0, 0.0), (0.0, 1.0), (0.0, 2.0)]
    ),
    "boxcox": Smooth(of(S.boxcox), _boxcox, [(2.0, 0.0), (1.0, 0.0), (1.0, 1.0)]),
    "boxcox1p": Smooth(of(S.boxcox1p), lambda x, y: _boxcox(1 + x, y), [(1.0, 0.0), (0.0, 0.0)]),
    "inv_boxcox": Smooth(
        of(S.inv_boxcox), lambda y, p: mp.exp(y * _quotient(mp.log1p)(p * y)), [(2.0, 0.0), (0.0, 0.0), (0.0, 1.0)]
    ),
    "powm1": Smooth(of(S.powm1), lambda x, y: mp.expm1(y * mp.log(x)), [(1.0, 1.0), (2.0, 0.0), (1.0, 0.0)]),
    "cosm1": Smooth(of(S.cosm1), lambda x: mp.cos(x) - 1, [(0.0,)]),
    "exprel": Smooth(of(S.exprel), _quotient(mp.expm1), [(0.0,), (1.0,), (-1.0,), (1e-9,)]),
    "expit": Smooth(of(S.expit), lambda x: 1 / (1 + mp.exp(-x)), [(0.0,), (40.0,), (-40.0,)]),
    "log_expit": Smooth(of(S.log_expit), lambda x: -mp.log1p(mp.exp(-x)), [(0.0,), (40.0,), (-40.0,)]),
    "logit": Smooth(of(S.logit), lambda x: mp.log(x / (1 - x)), [(0.5,), (0.25,)]),
    "softplus": Smooth(of(S.softplus), lambda x: mp.log1p(mp.exp(x)), [(0.0,)]),
    "log1mexp": Smooth(of(nn.log1mexp), lambda x: mp.log(-mp.expm1(-x)), [(math.log(2.0),)]),
    "gelu": Smooth(of(lambda x: nn.gelu(x, False)), lambda x: x * _normal(x), [(0.0,)]),
    "gelu by tanh": Smooth(
        of(nn.gelu),
        lambda x: x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))),
        [(0.0,)],
    ),
    "silu": Smooth(of(nn.silu), lambda x: x / (1 + mp.exp(-x)), [(0.0,)]),
    "mish": Smooth(of(nn.mish), lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), [(0.0,), (20.0,)]),
    "squareplus": Smooth(of(nn.squareplus), lambda x: (x + mp.sqrt(x * x + 4)) / 2, [(0.0,)]),
    "spence": Smooth(of(S.spence), lambda x: mp.re(mp.polylog(2, 1 - x)), [(1.0,), (1.5,)]),
    "log_ndtr": Smooth(of(S.log_ndtr), lambda x: mp.log(_normal(x)), [(0.0,), (-1.0,), (-5.0,)]),
    "ndtri": Smooth(of(S.ndtri), lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [(0.5,)]),
    "gammaln": Smooth(of(S.gammaln), mp.loggamma, [(1.0,), (2.0,)]),
    "rgamma": Smooth(of(S.rgamma), mp.rgamma, [(0.0,), (-1.0,)]),
    "poch": Smooth(of(S.poch), lambda z, m: mp.gamma(z + m) * mp.rgamma(z), [(2.0, 0.0), (0.0, 1.0)]),
    "j0": Smooth(of(S.j0), lambda x: mp.besselj(0, x), [(0.0,)]),
    "j1": Smooth(of(S.j1), lambda x: mp.besselj(1, x), [(0.0,)]),
    "spherical_jn": Smooth(of(lambda x: S.spherical_jn(0, x)), _quotient(mp.sin), [(0.0,)]),
    "struve": Smooth(of(lambda x: S.struve(0.0, x)), lambda x: mp.struveh(0, x), [(0.0,)]),
    "dawsn": Smooth(of(S.dawsn), lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), [(0.0,)]),
    "lambertw": Smooth(of(lambda x: tr.real(S.lambertw(x))), lambda x: mp.re(mp.lambertw(x)), [(0.0,)]),
    "ellipk": Smooth(of(S.ellipk), mp.ellipk, [(0.0,)]),
    "elliprc": Smooth(of(S.elliprc), mp.elliprc, [(1.0, 1.0), (2.0, 2.0)]),
    "stdtr": Smooth(of(lambda t: S.stdtr(3.0, t)), lambda t: _student(mp.mpf(3), t), [(0.0,)]),
    "eval_chebyt": Smooth(of(lambda x: S.eval_chebyt(4, x)), lambda x: 8 * x**4 - 8 * x * x + 1, [(1.0,), (-1.0,)]),
    "eval_legendre": Smooth(
        of(lambda x: S.eval_legendre(4, x)), lambda x: (35 * x**4 - 30 * x * x + 3) / 8, [(1.0,), (-1.0,)]
    ),
}  # fmt: skip


def _squared(*xs: Any) -> Any:
    return sum(x * x for x in xs)


def _rows(v: Any) -> Any:
    return tr.reshape(v, (2, 2))


def _twice(z: Any) -> Any:
    return tr.abs(z) * tr.abs(z)


_ORIGIN, _OFF = (0.0, 0.0), (3.0, -4.0)
_complex: Callable[[Any], Any] = of(lambda x, y: x + 1j * y)

SMOOTH |= {
    f"square of a length: {name}": Smooth(f, exact, [*points])
    for name, f, exact, points in (
        ("abs(x)**2", of(lambda x: tr.abs(x) ** 2), _squared, [(0.0,), (-2.0,)]),
        ("abs(z)**2", lambda v: tr.abs(_complex(v)) ** 2, _squared, [_ORIGIN, _OFF]),
        ("abs(z) * abs(z)", lambda v: _twice(_complex(v)), _squared, [_ORIGIN]),
        ("hypot**2", of(lambda x, y: tr.hypot(x, y) ** 2), _squared, [_ORIGIN, _OFF]),
        ("square(hypot)", of(lambda x, y: tr.square(tr.hypot(x, y))), _squared, [_ORIGIN]),
        ("norm**2", lambda v: tr.linalg.norm(v) ** 2, _squared, [_ORIGIN, _OFF]),
        ("norm**2.0", lambda v: norm(v) ** 2.0, _squared, [_ORIGIN]),
        ("norm**4", lambda v: norm(v) ** 4, lambda *xs: _squared(*xs) ** 2, [_ORIGIN, _OFF]),
        ("norm * norm", lambda v: norm(v) * norm(v), _squared, [_ORIGIN, _OFF]),
        ("square(vector_norm)", lambda v: tr.square(norm(v, keepdims=True))[0], _squared, [_ORIGIN]),
        ("multiples", lambda v: (2.0 * norm(v)) * (-norm(v) / 4.0), lambda *xs: -_squared(*xs) / 2, [_ORIGIN, _OFF]),
        ("sqrt(sum(v * v))**2", lambda v: tr.sqrt(tr.sum(v * v)) ** 2, _squared, [_ORIGIN, _OFF]),
        ("sqrt(sum(v**2))**2", lambda v: tr.sqrt(tr.sum(v**2)) ** 2, _squared, [_ORIGIN]),
        ("sqrt(v @ v)**2", lambda v: tr.sqrt(v @ v) ** 2, _squared, [_ORIGIN]),
        ("sqrt(x * x + y * y)**2", of(lambda x, y: tr.sqrt(x * x + y * y) ** 2), _squared, [_ORIGIN]),
        ("Frobenius norm", lambda v: tr.linalg.matrix_norm(_rows(v)) ** 2, _squared, [(0.0,) * 4]),
        ("norms of rows", lambda v: tr.sum(norm(_rows(v), axis=1) ** 2), _squared, [(0.0, 0.0, 1.0, 2.0)]),
        (
            "in a loop",
            lambda v: tr.fori_loop(0, 3, lambda i, c: c + norm(v) ** 2, v[0] * 0.0),
            lambda *xs: 3 * _squared(*xs),
            [_ORIGIN],
        ),
        (
            "with a slope",
            of(lambda x, y: tr.hypot(x, y) ** 2 * tr.exp(x) + x),
            lambda x, y: _squared(x, y) * mp.exp(x) + x,
            [_ORIGIN],
        ),
    )
}

_SHARES = [0.5, 0.5]
_FIRST, _SECOND = [1.0, 0.0], [0.0, 1.0]

EDGES: dict[str, Edge] = {
    "abs": Edge(of(tr.abs), (0.0,), 0.0),
    "hypot at the origin": Edge(of(tr.hypot), (0.0, 0.0), 0.0),
    "atan2 at the origin": Edge(of(tr.atan2), (0.0, 0.0), 0.0),
    "norm of zeros": Edge(norm, (0.0, 0.0), 0.0),
    "norm of power 3 of zeros": Edge(lambda v: norm(v, ord=3), (0.0, 0.0), 0.0),
    "norm of power 1 with a zero": Edge(lambda v: norm(v, ord=1), (0.0, 1.0), _SECOND),
    "largest magnitudes, tied": Edge(lambda v: norm(v, ord=INF), (1.0, 1.0), _SHARES),
    "std of equal numbers": Edge(tr.std, (1.0, 1.0, 1.0), 0.0),
    "max, tied": Edge(tr.max, (1.0, 1.0), _SHARES),
    "maximum, tied": Edge(of(tr.maximum), (1.0, 1.0), _SHARES),
    "sqrt": Edge(of(tr.sqrt), (0.0,), INF, -INF, INF),
    "log": Edge(of(tr.log), (0.0,), INF, -INF, INF),
    "entr": Edge(of(S.entr), (0.0,), INF, -INF, INF),
    "xlogy of zeros": Edge(
        of(S.xlogy), (0.0, 0.0), [-INF, 0.0], [[0.0, INF], [0.0, 0.0]], [[[0, 0], [0, -INF]], [[0, 0], [0, 0]]]
    ),
    "rel_entr at x = 0": Edge(
        of(S.rel_entr), (0.0, 2.0), [-INF, 0.0], [[INF, -0.5], [-0.5, 0.0]],
        [[[-INF, 0.0], [0.0, 0.25]], [[0.0, 0.25], [0.25, 0.0]]],
    ),
    "kl_div at x = 0": Edge(
        of(S.kl_div), (0.0, 1.0), [-INF, 1.0], [[INF, -1.0], [-1.0, 0.0]],
        [[[-INF, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]],
    ),
    "rel_entr outside of its domain": Edge(of(S.rel_entr), (1.0, -1.0), 0.0),
    "huber at its kink": Edge(of(S.huber), (1.0, 1.0), _SECOND, [[0.0, 0.0], [0.0, 1.0]]),
    "relu": Edge(of(nn.relu), (0.0,), 0.0),
    "elu": Edge(of(nn.elu), (0.0,), 1.0, 1.0, 1.0),
    "soft_sign": Edge(of(nn.soft_sign), (0.0,), 1.0),
    **{
        f"{name} at {x}": Edge(of(getattr(nn, name)), (x,), float(x > 0))
        for name in ("silu", "gelu", "mish", "softplus")
        for x in (INF, -INF)
    },
    "gelu by erfc at infinity": Edge(of(lambda x: nn.gelu(x, False)), (INF,), 1.0),
    "gelu by erfc at minus infinity": Edge(of(lambda x: nn.gelu(x, False)), (-INF,), 0.0),
    **{
        f"{name} at {point}": Edge(of(getattr(tr, name)), point, slopes)
        for name in ("logaddexp", "logaddexp2")
        for point, slopes in (
            ((INF, INF), _SHARES), ((-INF, -INF), _SHARES), ((INF, 0.0), _FIRST), ((-INF, 0.0), _SECOND),
        )
    },
    **{
        f"{name} at {point}": Edge(first(getattr(tr, name)), point, slopes)
        for name, last in (("softmax", 0.0), ("log_softmax", [1.0, -1.0]))
        for point, slopes in (((INF, INF), 0.0), ((-INF, -INF), 0.0), ((INF, 0.0), 0.0), ((-INF, 0.0), last))
    },
}  # fmt: skip


def _symmetric(n: int, order: int, entries: dict[tuple[int, ...], float]) -> np.ndarray[Any, Any]:
    """Derivatives of one order by n numbers, 0 but for those listed."""
    found = np.zeros((n,) * order)
    for index, value in entries.items():
        for same in itertools.permutations(index):
            found[same] = value
    return found


# Distributions at the ends of their support: with whole shapes they are entire functions, else limits from inside.


def _events(count: int, x: Any) -> Any:
    return mp.exp(-x) * sum(x**k / mp.factorial(k) for k in range(count))


def _successes(least: int, n: int, p: Any) -> Any:
    return sum(mp.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1))


_ENDS = [(0.0,), (1.0,)]

SMOOTH |= {
    f"{name} with shape {shape}": Smooth(of(partial(f, shape)), exact, [(0.0,)])
    for shape in (1, 2, 4)
    for name, f, exact in (
        ("gammainc", lambda a, x: S.gammainc(float(a), x), lambda x, a=shape: 1 - _events(a, x)),
        ("gammaincc", lambda a, x: S.gammaincc(float(a), x), lambda x, a=shape: _events(a, x)),
        ("chdtr", lambda a, x: S.chdtr(2.0 * a, x), lambda x, a=shape: 1 - _events(a, x / 2)),
        ("chdtrc", lambda a, x: S.chdtrc(2.0 * a, x), lambda x, a=shape: _events(a, x / 2)),
        ("gdtr", lambda a, x: S.gdtr(3.0, float(a), x), lambda x, a=shape: 1 - _events(a, 3 * x)),
        ("gdtrc", lambda a, x: S.gdtrc(3.0, float(a), x), lambda x, a=shape: _events(a, 3 * x)),
        ("pdtr", lambda a, x: S.pdtr(a - 1, x), lambda x, a=shape: _events(a, x)),
        ("pdtrc", lambda a, x: S.pdtrc(a - 1, x), lambda x, a=shape: 1 - _events(a, x)),
    )
}

SMOOTH |= {
    f"{name} with shapes {a}, {b}": Smooth(of(partial(f, a, b)), partial(exact, a, b), [*points])
    for a, b in ((1, 1), (2, 3))
    for name, f, exact, points in (
        (
            "betainc",
            lambda a, b, x: S.betainc(float(a), float(b), x),
            lambda a, b, x: _successes(a, a + b - 1, x),
            _ENDS,
        ),
        (
            "betaincc",
            lambda a, b, x: S.betaincc(float(a), float(b), x),
            lambda a, b, x: 1 - _successes(a, a + b - 1, x),
            _ENDS,
        ),
        ("bdtr", lambda a, b, x: S.bdtr(a - 1, a + b - 1, x), lambda a, b, x: 1 - _successes(a, a + b - 1, x), _ENDS),
        ("bdtrc", lambda a, b, x: S.bdtrc(a - 1, a + b - 1, x), lambda a, b, x: _successes(a, a + b - 1, x), _ENDS),
        ("nbdtr", lambda a, b, x: S.nbdtr(b - 1, a, x), lambda a, b, x: _successes(a, a + b - 1, x), _ENDS),
        ("nbdtrc", lambda a, b, x: S.nbdtrc(b - 1, a, x), lambda a, b, x: 1 - _successes(a, a + b - 1, x), _ENDS),
        (
            "fdtr",
            lambda a, b, x: S.fdtr(2.0 * a, 2.0 * b, x),
            lambda a, b, x: _successes(a, a + b - 1, a * x / (b + a * x)),
            [(0.0,)],
        ),
        (
            "fdtrc",
            lambda a, b, x: S.fdtrc(2.0 * a, 2.0 * b, x),
            lambda a, b, x: 1 - _successes(a, a + b - 1, a * x / (b + a * x)),
            [(0.0,)],
        ),
    )
}

SMOOTH |= {
    "betainc by its second shape": Smooth(
        of(lambda b, x: S.betainc(1.0, b, x)), lambda b, x: 1 - (1 - x) ** b, [(3.0, 0.0), (0.5, 0.0)]
    ),
    "betaincc by its second shape": Smooth(
        of(lambda b, x: S.betaincc(2.0, b, x)), lambda b, x: (1 - x) ** b * (1 + b * x), [(3.0, 0.0), (0.5, 0.0)]
    ),
    "betainc by its first shape": Smooth(of(lambda a, x: S.betainc(a, 1.0, x)), lambda a, x: x**a, [(2.5, 1.0)]),
    "betaincc by its first shape": Smooth(
        of(lambda a, x: S.betaincc(a, 2.0, x)), lambda a, x: 1 - x**a * (1 + a * (1 - x)), [(0.5, 1.0)]
    ),
}

EDGES |= {
    f"gammainc at a = {a}, x = 0": Edge(
        of(S.gammainc),
        (a, 0.0),
        [0.0, slope],
        _symmetric(2, 2, {(0, 1): ax, (1, 1): xx}),
        _symmetric(2, 3, {(0, 0, 1): aax, (0, 1, 1): axx, (1, 1, 1): xxx}),
    )
    for a, slope, ax, xx, aax, axx, xxx in (
        (0.5, INF, -INF, -INF, INF, INF, INF),
        (1.0, 1.0, -INF, -1.0, INF, INF, 1.0),
        (1.5, 0.0, 0.0, INF, 0.0, -INF, -INF),
        (2.0, 0.0, 0.0, 1.0, 0.0, -INF, -2.0),
        (2.5, 0.0, 0.0, 0.0, 0.0, 0.0, INF),
    )
}
EDGES |= {
    "betainc at x = 0": Edge(
        of(S.betainc), (0.5, 2.0, 0.0), [0.0, 0.0, INF], _symmetric(3, 2, {(0, 2): -INF, (1, 2): INF, (2, 2): -INF}),
        _symmetric(3, 3, {
            (0, 0, 2): INF, (0, 1, 2): -INF, (1, 1, 2): -INF, (0, 2, 2): INF, (1, 2, 2): -INF, (2, 2, 2): INF,
        }),
    ),
    "betainc of fractional shapes at x = 0": Edge(of(lambda x: S.betainc(0.5, 1.5, x)), (0.0,), INF, -INF, INF),
    "betainc of fractional shapes at x = 1": Edge(of(lambda x: S.betainc(0.5, 1.5, x)), (1.0,), 0.0, -INF, -INF),
}  # fmt: skip

EDGES |= {
    f"{name} of order {v} at 0": Edge(of(partial(getattr(S, name), v)), (0.0,), *limits)
    for name in ("jv", "iv", "ive")
    for v, limits in (
        (0.5, (INF, -INF, INF)), (1.5, (0.0, INF, -INF)), (2.5, (0.0, 0.0, INF)), (3.5, (0.0, 0.0, 0.0)),
        (-0.5, (-INF, INF, -INF)),
    )
}  # fmt: skip
# The exponent counts as constant where the base is 0.
EDGES |= {
    f"power of arrays 0 and {y}": Edge(
        of(tr.pow), (0.0, y), [slope, 0.0], _symmetric(2, 2, {(0, 0): xx}),
        None if xxx is None else _symmetric(2, 3, {(0, 0, 0): xxx}),
    )
    for y, slope, xx, xxx in (
        (0.0, 0.0, 0.0, 0.0), (0.5, INF, -INF, None), (1.0, 1.0, 0.0, 0.0), (1.5, 0.0, INF, None),
        (2.0, 0.0, 2.0, 0.0), (2.5, 0.0, 0.0, INF), (3.0, 0.0, 0.0, 6.0), (4.0, 0.0, 0.0, 0.0),
    )
}  # fmt: skip


def derivatives(case: Smooth, point: tuple[float, ...], order: int, digits: int = 40) -> np.ndarray[Any, Any]:
    """All partial derivatives of one order, computed with many digits."""
    n = len(point)
    found = np.zeros((n,) * order)
    with mp.workdps(digits):
        known: dict[tuple[int, ...], float] = {}
        for index in itertools.product(range(n), repeat=order):
            counts = tuple([index.count(i) for i in range(n)])
            if counts not in known:
                known[counts] = float(mp.re(mp.diff(case.exact, tuple([mp.mpf(p) for p in point]), counts)))
            found[index] = known[counts]
    return found
