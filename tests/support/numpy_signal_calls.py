"""Calls of signals and polynomials, for `numpy_calls`."""

import numpy as np

from numpy_call import DOUBLE, EVERY, FLOATS, INEXACT, NUMBERS, Call, call, fixed, spread


def signals() -> dict[str, Call]:
    """Convolutions, interpolation, differences, windows."""
    table = {}
    for mode in ("full", "same", "valid"):
        for n, k in ((5, 3), (3, 6), (4, 4), (1, 3), (70, 41), (6, 2), (2, 5)):
            for name in ("convolve", "correlate"):
                table[f"{name} {mode} {n} {k}"] = call(
                    lambda xp, x, y, f=name, m=mode: getattr(xp, f)(x, y, m), (n,), (k,), dtypes=EVERY
                )
    places, points, values = fixed([-0.6, 2.2, 0.7], [3.1, 0.1, 1.6]), fixed(0.0, 0.5, 1.25, 2.5), (4,)
    phases = lambda dtype: (np.cumsum(np.real(spread(9, low=-5.0, high=5.0)(dtype))) % 6).astype(dtype)
    coordinates = fixed(0.0, 0.3, 1.0, 1.2, 2.0)
    table |= {
        "interp": call(lambda xp, x, p, f: xp.interp(x, p, f), places, points, values, dtypes=DOUBLE),
        "interp ends": call(
            lambda xp, x, p, f: xp.interp(x, p, f, left=-7.0, right=8.0), places, points, values, dtypes=("float64",)
        ),
        "interp period": call(
            lambda xp, x, p, f: xp.interp(x * 2.9, p, f, period=2.2), places, points, values, dtypes=("float64",)
        ),
        "interp at points": call(
            lambda xp, x, p, f: xp.interp(p, p, f), places, points, values, dtypes=("float64",), smooth=False
        ),
        "interp one point": call(
            lambda xp, x, p, f: xp.interp(x, p[1:2], f[1:2], left=3.0), places, points, values, dtypes=("float64",)
        ),
        "interp steps": call(
            lambda xp, x, p, f: xp.interp(x, p, f), places, fixed(0.0, 1.0, 1.0, 2.0), values,
            dtypes=("float64",), smooth=False,
        ),
        "interp of integers": call(
            lambda xp, x: xp.interp(x, xp.asarray([1, 3]), xp.asarray([2, 7])), fixed(0, 1, 2, 3, 4),
            dtypes=("int64",), smooth=False,
        ),
        "gradient": call(lambda xp, x: xp.gradient(x), (5,), dtypes=INEXACT),
        "gradient of integers": call(lambda xp, x: xp.gradient(x), (2, 3), dtypes=("int64",)),
        "gradient spacing": call(lambda xp, x: xp.gradient(x, 0.5), (3, 4), dtypes=INEXACT),
        "gradient spacings": call(lambda xp, x: xp.gradient(x, 0.5, 2, axis=(1, 0)), (3, 4), dtypes=INEXACT),
        "gradient coordinates": call(lambda xp, x, t: xp.gradient(x, t, axis=1), (3, 5), coordinates, dtypes=DOUBLE),
        "gradient second order": call(lambda xp, x: xp.gradient(x, 2, axis=0, edge_order=2), (3, 4), dtypes=INEXACT),
        "gradient second order coordinates": call(
            lambda xp, x, t: xp.gradient(x, t, edge_order=2), (5,), coordinates, dtypes=DOUBLE
        ),
        "gradient two samples": call(lambda xp, x: xp.gradient(x, axis=0), (2, 3), dtypes=INEXACT),
        "trapezoid": call(lambda xp, y: xp.trapezoid(y), (3, 4), dtypes=NUMBERS),
        "trapezoid x": call(lambda xp, y, x: xp.trapezoid(y, x, axis=0), (5, 2), coordinates, dtypes=("float64",)),
        "trapezoid x for each": call(lambda xp, y, x: xp.trapezoid(y, x, axis=0), (3, 2), (3, 2), dtypes=INEXACT),
        "trapezoid dx": call(lambda xp, y: xp.trapezoid(y, dx=0.3), (4,), dtypes=INEXACT),
        "trapezoid empty": call(lambda xp, y: xp.trapezoid(y), (0,), dtypes=("float64",)),
        "ediff1d": call(lambda xp, x: xp.ediff1d(x), (2, 3)),
        "ediff1d ends": call(
            lambda xp, x: xp.ediff1d(x, to_end=xp.asarray([7, 8]), to_begin=xp.asarray([1])), (4,), dtypes=("int64",)
        ),
        "unwrap": call(lambda xp, x: xp.unwrap(x), phases, dtypes=FLOATS),
        "unwrap period": call(lambda xp, x: xp.unwrap(x, period=4), phases, dtypes=("float64", "int64")),
        "unwrap odd period": call(lambda xp, x: xp.unwrap(x, period=5), phases, dtypes=("float64", "int64")),
        "unwrap discont": call(lambda xp, x: xp.unwrap(x, 3.0, axis=0, period=5.0), spread(3, 4), dtypes=("float64",)),
        "unwrap halves": call(
            lambda xp, x: xp.unwrap(x, period=4), fixed(0, 2, 4, 2, 0, -2), dtypes=("int64",), smooth=False
        ),
        "unwrap empty": call(lambda xp, x: xp.unwrap(x), (0,), dtypes=("float64",)),
    }  # fmt: skip
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        for n in (0, 1, 2, 7):
            table[f"{name} {n}"] = call(lambda xp, f=name, n=n: getattr(xp, f)(n), dtypes=("float64",), smooth=False)
    for n in (0, 1, 6):
        table[f"kaiser {n}"] = call(lambda xp, n=n: xp.kaiser(n, 8.6), dtypes=("float64",), smooth=False)
    return table


def polynomials() -> dict[str, Call]:
    """Arithmetic of polynomials."""
    three, four = (3,), (4,)
    table = {
        "polyadd": call(lambda xp, p, q: xp.polyadd(p, q), three, four),
        "polyadd number": call(lambda xp, p: xp.polyadd(p, 2), three, dtypes=NUMBERS[:3]),
        "polysub": call(lambda xp, p, q: xp.polysub(p, q), four, three),
        "polymul": call(lambda xp, p, q: xp.polymul(p, q), spread(3), spread(4, seed=1), dtypes=INEXACT),
        "polymul zeros": call(lambda xp, p: xp.polymul(p, p), fixed(0, 0, 2, 0, 1), traced=False, dtypes=("int64",)),
        "polydiv": call(lambda xp, p, q: xp.polydiv(p, q)[0], four, spread(2), dtypes=INEXACT),
        "polydiv short": call(lambda xp, p, q: xp.polydiv(p, q)[0], spread(2), spread(3), dtypes=INEXACT),
        "polydiv rest": call(lambda xp, p, q: xp.polydiv(p, q), spread(5), spread(3), dtypes=INEXACT, traced=False),
        "polydiv exact": call(
            lambda xp, p, q: xp.polydiv(p, q), fixed(1.0, 3.0, 2.0), fixed(1.0, 1.0), traced=False, dtypes=("float64",)
        ),
        "polyval": call(lambda xp, p, x: xp.polyval(p, x), four, (2, 3)),
        "polyval at a number": call(lambda xp, p, x: xp.polyval(p, x), four, ()),
        "polyval of nothing": call(lambda xp, p, x: xp.polyval(p, x), (0,), (2,), dtypes=("float64",)),
        "vander": call(lambda xp, x: xp.vander(x), four, dtypes=NUMBERS[:3]),
        "vander wide": call(lambda xp, x: xp.vander(x, 5, increasing=True), three, dtypes=NUMBERS[:3]),
        "vander one": call(lambda xp, x: xp.vander(x, 1), three, dtypes=NUMBERS[:3]),
        "vander none": call(lambda xp, x: xp.vander(x, 0), three, dtypes=NUMBERS[:3]),
    }
    for m in range(4):
        table[f"polyder {m}"] = call(lambda xp, p, m=m: xp.polyder(p, m), three, dtypes=NUMBERS[:3])
        table[f"polyint {m}"] = call(lambda xp, p, m=m: xp.polyint(p, m), three, dtypes=DOUBLE)
    table["polyint constants"] = call(
        lambda xp, p, k: xp.polyint(p, 2, k), three, (2,), dtypes=("float64", "complex128")
    )
    table["polyint constant"] = call(lambda xp, p: xp.polyint(p, 2, 3), three, dtypes=("float64", "int64"))
    return table
