"""Special functions, their definitions in mpmath, and where they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
from scipy import special

HALF = mp.mpf(1) / 2


class SpecialCase(NamedTuple):
    """A function and where it is tried.

    Attributes:
        reference: its definition in mpmath.
        points: operands, a tuple for each point.
        active: positions of the operands that it has derivatives by.
        ulps: bound of the error of values, in units in the last place of float64.
        rtol: bound of the relative error of derivatives.
    """

    reference: Callable[..., Any]
    points: list[tuple[float, ...]]
    active: tuple[int, ...] = (0,)
    ulps: float = 8
    rtol: float = 1e-12


def _line(*xs: float) -> list[tuple[float, ...]]:
    return [(x,) for x in xs]


def _grid(first: tuple[float, ...], second: tuple[float, ...]) -> list[tuple[float, ...]]:
    return [(a, b) for a in first for b in second]


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _beta_rest(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, x, 1, regularized=True)


def _erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def _log_ndtr(x: Any) -> Any:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def _spence(x: Any) -> Any:
    return mp.re(mp.polylog(2, 1 - x))


def _boxcox(x: Any, power: Any) -> Any:
    return mp.log(x) if power == 0 else mp.expm1(power * mp.log(x)) / power


def _inverse_boxcox(y: Any, power: Any) -> Any:
    return mp.exp(y) if power == 0 else mp.exp(mp.log1p(power * y) / power)


def _inverse(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The inverse of a function by its last operand, near the root that SciPy finds."""

    def inverse(*operands: Any) -> Any:
        near = float(getattr(special, name)(*map(float, operands)))
        *rest, value = operands
        return mp.findroot(lambda x: function(*rest, x) - value, (mp.mpf(near), mp.mpf(near * (1 + 1e-6))))

    return inverse


def _student(df: Any, t: Any) -> Any:
    tail = _beta(df / 2, HALF, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def _quotient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mp.mpf(1) if x == 0 else f(x) / x


def _binomial(n: Any, k: Any) -> Any:
    return mp.gamma(n + 1) * mp.rgamma(k + 1) * mp.rgamma(n - k + 1)


CASES: dict[str, SpecialCase] = {
    # -- gamma functions ----------------------------------------------------------------------------------------
    "gamma": SpecialCase(mp.gamma, _line(-2.5, -0.3, 0.2, 1.0, 3.7, 20.5, 150.0), ulps=16),
    "loggamma": SpecialCase(mp.loggamma, _line(0.2, 0.9, 1.6, 8.0, 1e4), ulps=32),
    "gammaln": SpecialCase(lambda x: mp.log(abs(mp.gamma(x))), _line(-2.5, 0.2, 0.9, 1.6, 8.0, 1e4), ulps=32),
    "rgamma": SpecialCase(mp.rgamma, _line(-3.0, -2.5, -1.0, 0.0, 0.3, 1.0, 6.5, 30.0), ulps=16),
    "digamma": SpecialCase(lambda x: mp.psi(0, x), _line(-2.4, 0.1, 1.0, 3.7, 1e3)),
    "poch": SpecialCase(
        lambda z, m: mp.gamma(z + m) * mp.rgamma(z), [*_grid((0.3, 2.0, 30.0), (0.5, 2.5, 1e-3)), (0.0, 2.5)],
        (0, 1), ulps=64,
    ),
    "factorial": SpecialCase(mp.factorial, _line(0.0, 0.5, 4.0, 20.5), ulps=16),
    "beta": SpecialCase(mp.beta, _grid((0.2, 1.0, 7.5), (0.5, 3.0, 200.0)), (0, 1), ulps=128),
    "betaln": SpecialCase(
        lambda a, b: mp.log(mp.beta(a, b)), _grid((0.2, 1.5, 7.5), (0.5, 3.0, 200.0, 1e5)), (0, 1), ulps=16
    ),
    "binom": SpecialCase(_binomial, [*_grid((5.0, 9.5, 40.0), (0.5, 3.0, 4.0)), (2.0, 3.0), (4.0, -1.0)], (0, 1), 64),
    "zeta": SpecialCase(mp.zeta, _line(-6.5, -2.0, -0.5, 0.0, 0.5, 1.5, 2.0, 7.0, 30.0), ulps=64),
    # -- incomplete gamma and beta functions --------------------------------------------------------------------
    "gammainc": SpecialCase(
        _lower, [(0.01, 0.5), (0.3, 1e-4), (0.7, 0.4), (1.0, 2.5), (2.5, 1.0), (2.5, 6.0), (20.0, 17.0),
         (150.0, 190.0)],
        (0, 1), ulps=64,
    ),
    "gammaincc": SpecialCase(_upper, [(0.3, 1e-4), (0.7, 3.0), (2.5, 1.0), (20.0, 37.0)], (0, 1), ulps=64),
    "gammaincinv": SpecialCase(
        _inverse("gammaincinv", _lower), [(0.7, 0.4), (2.5, 0.8), (20.0, 0.1)], (0, 1), 64, 1e-11
    ),
    "gammainccinv": SpecialCase(_inverse("gammainccinv", _upper), [(2.5, 0.8)], (0, 1), 64, 1e-11),
    "betainc": SpecialCase(
        _beta, [(0.2, 0.3, 0.6), (0.5, 4.0, 0.01), (2.0, 3.0, 0.3), (2.0, 0.5, 0.9), (30.0, 40.0, 0.5)],
        (0, 1, 2), ulps=64,
    ),
    "betaincc": SpecialCase(_beta_rest, [(0.2, 0.3, 0.6), (2.0, 3.0, 0.8)], (0, 1, 2), ulps=64),
    "betaincinv": SpecialCase(_inverse("betaincinv", _beta), [(2.0, 3.0, 0.3)], (0, 1, 2), 64, 1e-11),
    "chdtr": SpecialCase(lambda v, x: _lower(v / 2, x / 2), [(1.0, 0.4), (5.0, 7.0)], (0, 1), 64),
    "chdtrc": SpecialCase(lambda v, x: _upper(v / 2, x / 2), [(1.0, 0.4), (5.0, 7.0)], (0, 1), 64),
    "gdtr": SpecialCase(lambda a, b, x: _lower(b, a * x), [(2.0, 1.5, 0.7)], (0, 1, 2), 64),
    "pdtr": SpecialCase(lambda k, m: _upper(mp.floor(k) + 1, m), [(0.0, 0.4), (5.0, 7.0)], (1,), 64),
    "bdtr": SpecialCase(lambda k, n, p: _beta_rest(k + 1, n - k, p), [(3.0, 8.0, 0.2)], (2,), 64),
    "nbdtr": SpecialCase(lambda k, n, p: _beta(n, k + 1, p), [(3.0, 8.0, 0.6)], (2,), 64),
    "fdtri": SpecialCase(
        _inverse("fdtri", lambda m, n, x: _beta(m / 2, n / 2, m * x / (n + m * x))),
        [(3.0, 5.0, 0.4)], (0, 1, 2), 64, 1e-10,
    ),
    "pdtri": SpecialCase(_inverse("pdtri", lambda k, m: _upper(k + 1, m)), [(3.0, 0.4)], (1,), 64),
    "perm": SpecialCase(lambda n, k: mp.gamma(n + 1) * mp.rgamma(n - k + 1), [(5.0, 2.5), (7.5, 0.5)], (0, 1), 32),
    "fdtr": SpecialCase(
        lambda m, n, x: _beta(m / 2, n / 2, m * x / (n + m * x)), [(3.0, 5.0, 1.2), (1.0, 8.0, 0.3)], (0, 1, 2), 64
    ),
    "fdtrc": SpecialCase(
        lambda m, n, x: _beta_rest(m / 2, n / 2, m * x / (n + m * x)), [(3.0, 5.0, 1.2)], (0, 1, 2), 64
    ),
    "stdtr": SpecialCase(
        _student,
        [(0.1, 5.0), (1.0, -0.5), (1.0, 30.0), (4.0, 0.0), (4.0, 2.5), (3.0, 1e-3), (60.0, -1.5), (60.0, 9.0)],
        (0, 1), 64, 1e-11,
    ),
    "stdtrit": SpecialCase(_inverse("stdtrit", _student), [(3.0, 0.8), (12.0, 0.05)], (0, 1), 64, 1e-10),
    # -- error functions and the normal distribution ------------------------------------------------------------
    "erf": SpecialCase(mp.erf, _line(-3.0, 0.0, 1e-8, 0.5, 2.0)),
    "erfc": SpecialCase(mp.erfc, _line(-3.0, 0.0, 0.5, 2.0, 10.0)),
    "erfcx": SpecialCase(_erfcx, _line(-4.0, -0.5, 0.0, 0.5, 3.0, 50.0, 1e8)),
    "erfi": SpecialCase(mp.erfi, _line(-3.0, 0.0, 0.5, 5.0), ulps=16),
    "erfinv": SpecialCase(mp.erfinv, _line(-0.9, 0.0, 0.3, 0.999)),
    "erfcinv": SpecialCase(lambda y: mp.erfinv(1 - y), _line(0.01, 0.7, 1.0, 1.8)),
    "dawsn": SpecialCase(
        lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), _line(0.0, 0.5, 1.5, 4.0, 9.0, 100.0), rtol=1e-11
    ),
    "ndtr": SpecialCase(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, _line(-20.0, -1.0, 0.0, 2.0), ulps=256),
    "voigt_profile": SpecialCase(
        lambda x, s, g: mp.re(_erfcx((g - 1j * x) / (s * mp.sqrt(2)))) / (s * mp.sqrt(2 * mp.pi)),
        [(0.3, 1.0, 0.5), (-2.0, 0.5, 1.5), (0.0, 2.0, 1e-3)], (0, 1, 2), 32, 1e-9,
    ),
    "log_ndtr": SpecialCase(_log_ndtr, _line(-1e6, -1e3, -20.0, -8.0, -1.0, 0.0, 2.0, 6.0), ulps=32, rtol=1e-11),
    "ndtri": SpecialCase(lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), _line(0.01, 0.5, 0.8)),
    "ndtri_exp": SpecialCase(lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1), _line(-3.0, -0.5, -0.1), ulps=32),
    # -- exponential integrals ----------------------------------------------------------------------------------
    "expi": SpecialCase(mp.ei, _line(-5.0, -0.5, 0.2, 1.0, 30.0), ulps=16),
    "exp1": SpecialCase(mp.e1, _line(0.01, 0.5, 2.0, 40.0), ulps=16),
    "expn": SpecialCase(lambda n, x: mp.expint(int(n), x), _grid((0.0, 1.0, 2.0, 5.0), (0.1, 1.5, 12.0)), (1,), 32),
    "spence": SpecialCase(_spence, _line(0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 8.0), ulps=16),
    "exprel": SpecialCase(_quotient(mp.expm1), _line(-40.0, -1.0, -0.3, 0.0, 0.5, 1.5, 20.0), rtol=1e-11),
    # -- logistic functions, entropies, losses ------------------------------------------------------------------
    "expit": SpecialCase(lambda x: 1 / (1 + mp.exp(-x)), _line(-40.0, -1.0, 0.0, 2.0)),
    "log_expit": SpecialCase(lambda x: -mp.log(1 + mp.exp(-x)), _line(-40.0, -1.0, 0.0, 20.0)),
    "logit": SpecialCase(lambda x: mp.log(x / (1 - x)), _line(1e-10, 0.2, 0.49, 0.75, 0.999)),
    "xlogy": SpecialCase(lambda x, y: x * mp.log(y), _grid((-1.5, 2.0), (0.3, 4.0)), (0, 1)),
    "xlog1py": SpecialCase(lambda x, y: x * mp.log1p(y), _grid((-1.5, 2.0), (1e-12, 4.0)), (0, 1)),
    "entr": SpecialCase(lambda x: -x * mp.log(x), _line(1e-9, 0.3, 4.0)),
    "rel_entr": SpecialCase(lambda x, y: x * mp.log(x / y), _grid((0.2, 2.0), (0.3, 4.0)), (0, 1)),
    "kl_div": SpecialCase(lambda x, y: x * mp.log(x / y) - x + y, _grid((0.2, 2.0), (0.9, 4.0)), (0, 1), 32),
    "pseudo_huber": SpecialCase(
        lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), _grid((0.5, 3.0), (-2.0, 1e-5, 7.0)), (0, 1)
    ),
    # -- powers -------------------------------------------------------------------------------------------------
    "exp10": SpecialCase(lambda x: mp.mpf(10) ** x, _line(-200.0, -0.5, 2.0, 300.0)),
    "cosm1": SpecialCase(lambda x: mp.cos(x) - 1, _line(1e-7, 0.5, 3.0)),
    "powm1": SpecialCase(lambda x, y: x**y - 1, _grid((0.5, 1.0 + 1e-9, 3.0), (-1.5, 1e-7, 2.0)), (0, 1), 16),
    "boxcox": SpecialCase(_boxcox, _grid((0.3, 2.0), (-0.5, 0.0, 1e-9, 0.5)), (0, 1), ulps=16),
    "boxcox1p": SpecialCase(lambda x, p: _boxcox(1 + x, p), _grid((1e-9, 2.0), (-0.5, 0.0, 0.5)), (0, 1), ulps=16),
    "inv_boxcox": SpecialCase(_inverse_boxcox, _grid((-0.5, 2.0), (-0.2, 0.0, 1e-9, 0.5)), (0, 1), ulps=32),
    "inv_boxcox1p": SpecialCase(
        lambda y, p: _inverse_boxcox(y, p) - 1, _grid((-0.5, 1e-5), (-0.2, 0.0, 0.5)), (0, 1), ulps=64
    ),
}  # fmt: skip
"""Functions of real numbers of one output."""
