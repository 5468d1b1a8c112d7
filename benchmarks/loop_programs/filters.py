"""Recursive and adaptive filters: every sample needs those before it."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

SECTIONS = ((0.2, 0.3, 0.2, -0.5, 0.3), (0.5, -0.1, 0.4, 0.2, 0.4), (0.9, 0.2, 0.1, -0.3, 0.2))
"""Second-order sections b0, b1, b2, a1, a2, all stable."""

TAPS = 8


def biquad(xp: Namespace, signal: Any) -> Any:
    """A cascade of second-order sections in the transposed direct form, sample by sample."""

    def sample(states: Any, x: Any) -> Any:
        after = []
        for (b0, b1, b2, a1, a2), (s, t) in zip(SECTIONS, states):
            y = b0 * x + s
            after.append((b1 * x - a1 * y + t, b2 * x - a2 * y))
            x = y
        return tuple(after), x

    zero = xp.zeros(())
    return xp.scan(sample, ((zero, zero),) * len(SECTIONS), signal)[1]


def biquad_numpy(signal: Any) -> Any:
    out, states = np.empty_like(signal), [[0.0, 0.0] for _ in SECTIONS]
    for n, x in enumerate(signal):
        for (b0, b1, b2, a1, a2), state in zip(SECTIONS, states):
            y = b0 * x + state[0]
            state[0], state[1] = b1 * x - a1 * y + state[1], b2 * x - a2 * y
            x = y
        out[n] = x
    return out


def smoothed_image(xp: Namespace, image: Any) -> Any:
    """A recursive smoother of second order along the columns, then along the rows, in both directions each."""

    def along(x: Any, reverse: bool) -> Any:
        def step(carry: Any, row: Any) -> Any:
            last, y1, y2 = carry
            y = 0.25 * row + 0.1 * last + 0.7 * y1 - 0.12 * y2
            return (row, y, y1), y

        zero = xp.zeros_like(x[0])
        return xp.scan(step, (zero, zero, zero), x, reverse=reverse)[1]

    for _ in range(2):
        image = (along(image, False) + along(image, True)).T
    return image


def smoothed_image_numpy(image: Any) -> Any:
    def along(x: Any) -> Any:
        out, last, y1, y2 = np.empty_like(x), 0.0, 0.0, 0.0
        for i in range(len(x)):
            out[i] = 0.25 * x[i] + 0.1 * last + 0.7 * y1 - 0.12 * y2
            last, y1, y2 = x[i], out[i], y1
        return out

    for _ in range(2):
        image = (along(image) + along(image[::-1])[::-1]).T
    return image


def smoothing(xp: Namespace, rate: Any, series: Any) -> Any:
    """Holt's smoothing of a level and a trend, and the squares of the errors of its forecasts."""

    def step(carry: Any, x: Any) -> Any:
        level, trend, total = carry
        error = x - level - trend
        new = level + trend + rate[0] * error
        return (new, trend + rate[0] * rate[1] * error, total + error * error), new

    (_, _, total), levels = xp.scan(step, (series[0], xp.zeros(()), xp.zeros(())), series)
    return total, levels


def smoothing_numpy(rate: Any, series: Any) -> Any:
    (a, b), level, trend, total, levels = rate, series[0], 0.0, 0.0, np.empty_like(series)
    for n, x in enumerate(series):
        error = x - level - trend
        level, trend, total = level + trend + a * error, trend + a * b * error, total + error * error
        levels[n] = level
    return total, levels


def adaptive_filter(xp: Namespace, signal: Any, wanted: Any) -> Any:
    """Least mean squares: weights over a window that moves with the sample follow the error."""

    def step(weights: Any, n: Any) -> Any:
        window = xp.dynamic_slice(signal, (n,), (TAPS,))
        error = wanted[n] - xp.sum(weights * window)
        return weights + 0.05 * error * window, error

    return xp.scan(step, xp.zeros((TAPS,)), xp.arange(wanted.shape[0]))


def adaptive_filter_numpy(signal: Any, wanted: Any) -> Any:
    weights, errors = np.zeros(TAPS), np.empty_like(wanted)
    for n in range(len(wanted)):
        window = signal[n : n + TAPS]
        errors[n] = wanted[n] - weights @ window
        weights = weights + 0.05 * errors[n] * window
    return weights, errors


def samples(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=n),)


def image(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n + 3)),)


def sampled_trend(n: int, rng: np.random.Generator) -> Arguments:
    return np.array([0.4, 0.2]), np.linspace(0.0, 1.0, n) + 0.1 * rng.normal(size=n)


def pair(n: int, rng: np.random.Generator) -> Arguments:
    signal = rng.normal(size=n + TAPS)
    return signal, np.convolve(signal, rng.normal(size=TAPS), "valid")[:n]


PROGRAMS = programs(
    "filters",
    (biquad, biquad_numpy, samples, (7, 400, 20_000), (0,)),
    (smoothed_image, smoothed_image_numpy, image, (6, 40, 300), (0,)),
    (smoothing, smoothing_numpy, sampled_trend, (7, 400, 20_000), (0,)),
    (adaptive_filter, adaptive_filter_numpy, pair, (6, 300, 10_000), (0, 1)),
)
