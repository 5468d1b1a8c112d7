"""Distributions by rejection: each number has its own stream, from which it draws until it is accepted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime.batching import vmap
from tenferro_runtime.control_flow import while_loop
from tenferro_runtime.random import _stream
from tenferro_runtime.random._drawing import beginning, fused, position
from tenferro_tensor import catalog
from tenferro_tensor.functions import floor, where
from tenferro_tensor_core import float64, uint64

_BOOST: Final = 1 << 32
"""Position of the number that reduces a shape parameter below 1 to that parameter plus 1."""


def elementwise(one: Callable[..., Any], key: Any, start: Any, *operands: Any) -> Any:
    """``one(key, *numbers)`` for each element of the operands, whose keys are words of the streams of `key`."""
    shape = operands[0].spec.shape
    count = (math.prod(shape),)
    keys = catalog.reshape(_stream.bits(key, start, shape=shape[key.ndim :], dtype=uint64), shape=count)
    out = vmap(one)(keys, *[catalog.reshape(x, shape=count) for x in operands])
    return catalog.reshape(out, shape=shape)


def accepted(key: Any, attempt: Callable[[Any, Any], tuple[Any, Any]], like: Any) -> Any:
    """The number of the first attempt that is not rejected.

    Args:
        key: the key of the stream.
        attempt: ``attempt(v, w)``, where v and w return the numbers of the attempt's two words; returns a number and
            whether it is rejected.
        like: a number with the dtype of the result.
    """

    def again(state: Any) -> Any:
        position, _, _ = state
        out, refused = attempt(lambda number: at(key, position, number), lambda number: at(key, position + 1, number))
        return position + 2, out, refused

    first = (beginning(key), like * 0.0, like * 0.0 == 0.0)
    return while_loop(lambda state: state[2], again, first)[1]


def numbers(one: Callable[..., Any]) -> Callable[..., Any]:
    """``sample(key, shape, *parameters)`` of ``one(key, *numbers)``, for keys of any axes."""
    sample = fused(lambda key, start, *parameters: elementwise(one, key, start, *parameters))

    def run(key: Any, shape: Any, *parameters: Any) -> Any:
        lead = tuple(key.spec.shape)
        if lead:
            dims = tuple(range(len(lead), len(lead) + len(shape)))
            parameters = tuple([catalog.broadcast_in_dim(p, shape=(*lead, *shape), dims=dims) for p in parameters])
        return sample(key, beginning(key), *parameters)

    return run


def at(key: Any, position: Any, number: Callable[..., Any]) -> Any:
    """A number at a position of a stream."""
    return number(key, position, shape=(), dtype=float64)


def log_gamma(key: Any, start: Any, a: Any) -> Any:
    """Expansion of `random_loggamma`, after G. Marsaglia, W. W. Tsang, A simple method for gamma variables, 2000."""
    return elementwise(_log_gamma, key, start, a)


def _log_gamma(key: Any, parameter: Any) -> Any:
    a = where((parameter > 0.0) & (parameter < math.inf), parameter, 1.0)
    d = where(a < 1.0, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / catalog.sqrt(d * 9.0)
    log_d = _stream.minus_log(d, most=1023)

    def attempt(v: Any, w: Any) -> Any:
        x, u = v(_stream.normal), w(_stream.uniform)
        root = x * c + 1.0
        inside = root > 0.0
        log_v = where(inside, _stream.minus_log(where(inside, root, 1.0), most=63) * -3.0, -math.inf)
        bound = x * x * 0.5 + d - d * (root * root * root) + d * log_v
        return log_v - log_d, -_stream.minus_log(1.0 - u) >= bound

    out = accepted(key, attempt, d)
    boost = _stream.minus_log(1.0 - at(key, position(key, _BOOST), _stream.uniform)) / a
    out = where(a < 1.0, out - boost, out)
    return where(
        parameter == math.inf, parameter, where(parameter > 0.0, out, where(parameter == 0.0, -math.inf, math.nan))
    )


def poisson(key: Any, lam: Any) -> Any:
    """A Poisson number, by search up to ten, else after W. Hoermann, The transformed rejection method, 1993 (PTRS)."""
    large = lam >= 10.0
    mean = where(large, lam, 10.0)
    root = catalog.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse, bound = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)
    log_mean = catalog.log(mean)

    def attempt(v: Any, w: Any) -> Any:
        u, height = v(_stream.uniform) - 0.5, w(_stream.uniform)
        us = 0.5 - catalog.abs(u)
        k = floor((2.0 * a / us + b) * u + mean + 0.43)
        at_once = (us >= 0.07) & (height <= bound)
        outside = (k < 0.0) | ((us < 0.013) & (height > us))
        density = k * log_mean - mean - _log_factorial(where(k < 0.0, 0.0, k))
        below = catalog.log(height * inverse / (a / (us * us) + b)) <= density
        # Values without attempts are accepted at once, so that they do not delay others.
        return k, large & ~(at_once | (~outside & below))

    out = where(large, accepted(key, attempt, mean), _poisson_by_search(key, where(large, 0.0, lam)))
    return where(lam >= 0.0, where(lam == math.inf, lam, out), math.nan)


def _poisson_by_search(key: Any, lam: Any) -> Any:
    zero = catalog.exp(-lam)
    return _searched(at(key, beginning(key), _stream.uniform), zero, lambda k, p: p * lam / k, 200.0)


def _log_factorial(k: Any) -> Any:
    """The logarithm of a factorial, at least 8!, by Stirling's series, which vectorizes, unlike lgamma."""
    x = k + 1.0
    small = x < 8.0
    product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0)
    y = where(small, x + 8.0, x)
    r = 1.0 / y
    z = r * r
    series = r * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (691 / 360360))))))
    stirling = (y - 0.5) * catalog.log(y) - y + (0.5 * math.log(2.0 * math.pi) + series)
    return where(small, stirling - catalog.log(where(small, product, 1.0)), stirling)


def binomial(key: Any, n: Any, p: Any) -> Any:
    """A binomial number, by search up to ten, else after W. Hoermann, Generation of binomial variates, 1993 (BTRS)."""
    flipped = p > 0.5
    least = where(flipped, 1.0 - p, p)
    large = n * least >= 10.0
    count, small = where(large, n, 40.0), where(large, least, 0.5)
    spread = catalog.sqrt(count * small * (1.0 - small))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * small
    centre, bound, alpha = count * small + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread
    odds, mode = catalog.log(small / (1.0 - small)), floor((count + 1.0) * small)
    top = _log_factorial(mode) + _log_factorial(count - mode)

    def attempt(v: Any, w: Any) -> Any:
        u, height = v(_stream.uniform) - 0.5, w(_stream.uniform)
        us = 0.5 - catalog.abs(u)
        k = floor((2.0 * a / us + b) * u + centre)
        at_once = (us >= 0.07) & (height <= bound)
        inside = (k >= 0.0) & (k <= count)
        safe = where(inside, k, mode)
        density = top - _log_factorial(safe) - _log_factorial(count - safe) + (safe - mode) * odds
        below = catalog.log(height * alpha / (a / (us * us) + b)) <= density
        return k, large & ~(inside & (at_once | below))

    few, seldom = where(large, 1.0, n), where(large, 0.5, least)
    ratio = seldom / (1.0 - seldom)
    none = catalog.exp(few * catalog.log1p(-seldom))
    u = at(key, beginning(key), _stream.uniform)
    searched = _searched(u, none, lambda k, q: q * ratio * (few - k + 1.0) / k, few)
    out = where(large, accepted(key, attempt, count), searched)
    out = where(flipped, n - out, out)
    return where((n >= 0.0) & (p >= 0.0) & (p <= 1.0), out, math.nan)


def hypergeometric(key: Any, good: Any, bad: Any, drawn: Any) -> Any:
    """Number of good items among those drawn without replacement, by search from the most probable number."""
    least = where(drawn > bad, drawn - bad, 0.0)
    most = where(drawn < good, drawn, good)
    mode = floor((drawn + 1.0) * (good + 1.0) / (good + bad + 2.0))

    def log_choose(n: Any, k: Any) -> Any:
        return _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)

    top = catalog.exp(log_choose(good, mode) + log_choose(bad, drawn - mode) - log_choose(good + bad, drawn))
    u = at(key, beginning(key), _stream.uniform)

    def further(state: Any) -> Any:
        up, above, down, below, rest, _ = state
        up, down = up + 1.0, down - 1.0
        above = where(up > most, 0.0, above * (good - up + 1.0) * (drawn - up + 1.0) / (up * (bad - drawn + up)))
        lower = below * (down + 1.0) * (bad - drawn + down + 1.0) / ((good - down) * (drawn - down))
        below = where(down < least, 0.0, lower)
        is_up = rest < above
        return up, above, down, below, rest - above - below, where(is_up, up, down)

    def unfinished(state: Any) -> Any:
        up, _above, down, _below, rest, _ = state
        return (rest >= 0.0) & ((up <= most) | (down >= least))

    return while_loop(unfinished, further, (mode, top, mode, top, u - top, mode))[5]


def _searched(u: Any, p: Any, step: Callable[[Any, Any], Any], most: Any) -> Any:
    """The first number at which the distribution function exceeds `u`; `step` updates the probability."""

    def further(state: Any) -> Any:
        k, p, below = state
        p = step(k + 1.0, p)
        return k + 1.0, p, below + p

    return while_loop(lambda state: (u >= state[2]) & (state[0] < most), further, (p * 0.0, p, p))[0]


def zipf(key: Any, a: Any) -> Any:
    """A number of Zipf's distribution, after L. Devroye, Non-uniform random variate generation, 1986 (chapter X.6)."""
    b = catalog.pow(a * 0.0 + 2.0, a - 1.0)

    def attempt(v: Any, w: Any) -> Any:
        u, height = 1.0 - v(_stream.uniform), w(_stream.uniform)
        x = floor(catalog.pow(u, -1.0 / (a - 1.0)))
        ratio = catalog.pow(1.0 + 1.0 / x, a - 1.0)
        inside = x < 2.0**63
        return x, ~(inside & (height * x * (ratio - 1.0) / (b - 1.0) <= ratio / b))

    return accepted(key, attempt, a)


def von_mises(key: Any, kappa: Any) -> Any:
    """An angle, after D. Best, N. Fisher, Efficient simulation of the von Mises distribution, 1979."""
    tight = kappa > 1e-6
    k = where(tight, kappa, 1.0)
    tau = 1.0 + catalog.sqrt(1.0 + 4.0 * k * k)
    rho = (tau - catalog.sqrt(2.0 * tau)) / (2.0 * k)
    r = (1.0 + rho * rho) / (2.0 * rho)
    # For large kappa the roots cancel; there the distribution is normal of variance 1 / kappa.
    normal = kappa > 1e6

    def attempt(v: Any, w: Any) -> Any:
        u, height = v(_stream.uniform), 1.0 - w(_stream.uniform)
        z = catalog.cos(math.pi * u)
        f = (1.0 + r * z) / (r + z)
        c = k * (r - f)
        fine = (c * (2.0 - c) > height) | (catalog.log(c / height) + 1.0 >= c)
        return f, tight & ~normal & ~fine

    f = accepted(key, attempt, k)
    sign = where(at(key, position(key, _BOOST), _stream.uniform) < 0.5, -1.0, 1.0)
    angle = sign * catalog.acos(where(f > 1.0, 1.0, where(f < -1.0, -1.0, f)))
    flat = math.pi * (2.0 * at(key, position(key, _BOOST + 1), _stream.uniform) - 1.0)
    narrow = at(key, position(key, _BOOST + 2), _stream.normal) / catalog.sqrt(k)
    return where(tight, where(normal, narrow, angle), flat)


poisson_numbers: Final = numbers(poisson)
binomial_numbers: Final = numbers(binomial)
hypergeometric_numbers: Final = numbers(hypergeometric)
zipf_numbers: Final = numbers(zipf)
von_mises_numbers: Final = numbers(von_mises)
