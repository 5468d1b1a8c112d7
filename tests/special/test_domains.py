"""Every function of SciPy's name on operands in and out of its domain: negative, zero, fractions, infinities, NaN.

`scipy.special.f(tensor)` runs the function of this library, so that SciPy's own answers must not change by it.
"""

import itertools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special

import tenferro_runtime as tr

INF, NAN = np.inf, np.nan
GRIDS = {
    1: [-INF, -1e300, -7.0, -2.5, -2.0, -1.0, -0.5, -0.0, 0.0, 1e-8, 0.25, 0.5, 1.0, 1.5, 3.0, 10.0, 170.5, 1e3, INF,
        NAN],
    2: [-INF, -3.0, -1.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 1.5, 3.0, 7.5, INF, NAN],
    3: [-INF, -2.0, -0.5, 0.0, 0.4, 1.0, 1.5, 3.0, INF, NAN],
    4: [-0.5, 0.0, 0.5, 1.0, 2.5],
}  # fmt: skip


class Difference(NamedTuple):
    """Where a function may differ from SciPy's, and why."""

    reason: str
    where: Callable[..., Any]


def _infinite(*xs: Any) -> Any:
    return np.logical_or.reduce(np.broadcast_arrays(*[np.isinf(x) for x in xs]))


_LIMIT = Difference("NaN stands for a limit at an infinite operand", _infinite)
_LARGE = Difference("series of moderate arguments", lambda x: (np.abs(x) > 700) | (np.abs(x) < 1e-6))
_REAL = Difference(
    "the real functions, infinite at 0 and NaN below; SciPy continues them", lambda v, x: (x <= 0) | _infinite(v)
)
_POLE = Difference("NaN or infinite at the logarithmic pole, where SciPy stops short", lambda x: x <= 0)

DIFFERENCES: dict[str, Difference] = {
    **dict.fromkeys(("beta", "betaln", "inv_boxcox", "inv_boxcox1p", "kl_div"), _LIMIT),
    **dict.fromkeys(("bei", "beip", "ber", "berp"), _LARGE),
    **dict.fromkeys(("hankel1", "hankel2"), _REAL),
    **dict.fromkeys(("ker", "kerp", "kei"), _POLE),
    "keip": Difference("as kei; and SciPy is inexact near 0", lambda x: x < 1e-6),
    "boxcox": Difference("NaN stands for limits; 0 with power 0", lambda x, p: _infinite(x, p) | ((x == 0) & (p == 0))),
    "boxcox1p": Difference("as boxcox", lambda x, p: _infinite(x, p) | ((x == -1) & (p == 0))),
    "expn": Difference("order 0 is exp(-x) / x for negative x too", lambda n, x: (n == 0) & (x < 0)),
    "fdtr": Difference("NaN for infinite degrees of freedom throughout", lambda m, n, x: _infinite(m, n)),
    "fdtrc": Difference("NaN for infinite degrees of freedom throughout", lambda m, n, x: _infinite(m, n)),
    "hyperu": Difference("has values where SciPy has none", lambda a, b, x: (a == -0.5) & (b == 0) & (x > 0)),
    "nbdtri": Difference(
        "NaN where there is no distribution, also for probability 0 and 1", lambda k, n, y: (y == 0) | (y == 1)
    ),
    "pdtr": Difference("NaN for a count that is NaN, also if the mean is 0", lambda k, m: np.isnan(k) & (m == 0)),
    "pdtrc": Difference("NaN for a count that is NaN, also if the mean is 0", lambda k, m: np.isnan(k) & (m == 0)),
    "pseudo_huber": Difference(
        "NaN stands for limits, and propagates", lambda d, r: _infinite(d, r) | np.isnan(d) | np.isnan(r)
    ),
    "voigt_profile": Difference("needs a positive standard deviation", lambda x, s, g: (s <= 0) | _infinite(s, g, x)),
}

SCIPY_HANGS = ("hyp1f1", "lpmv")
"""SciPy does not return for some infinite operands."""


def ufunc(name: str) -> Any:
    """SciPy's function; some are wrapped by its support of other array libraries."""
    f = getattr(scipy.special, name, None)
    return f if isinstance(f, np.ufunc) else getattr(scipy.special._ufuncs, name, None)


def names() -> list[str]:
    found = []
    for name in tr.special.__all__:  # type: ignore[attr-defined]  # not for type checkers
        f = ufunc(name)
        if isinstance(f, np.ufunc) and f.nin in GRIDS:
            found.append(name)
    return found


@pytest.mark.parametrize("name", names())
def test_answers_are_those_of_scipy(name: str) -> None:
    reference = ufunc(name)
    columns = [np.array(c) for c in zip(*itertools.product(GRIDS[reference.nin], repeat=reference.nin), strict=True)]
    integers = 2 if name == "lpmv" else int(name.startswith("eval_") or name in ("yn", "kn"))
    for i in range(integers):
        columns = [c[np.isfinite(columns[i])] for c in columns]
        columns[i] = np.trunc(columns[i]).astype(np.int64)
    if name in SCIPY_HANGS:
        finite = ~_infinite(*columns)
        columns = [c[finite] for c in columns]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns that it truncates counts
        want = reference(*columns)
        got = getattr(tr.special, name)(*[tr.asarray(c) for c in columns])
        wrong = np.zeros(columns[0].shape, bool)
        outs = (want, got) if isinstance(want, tuple) else ((want,), (got,))
        for w, o in zip(*outs, strict=True):
            o = np.asarray(o)
            near = np.abs(o - w) <= 1e-9 * np.abs(w) + 1e-290
            wrong |= ~((o == w) | (np.isnan(o) & np.isnan(w)) | near)
    known = DIFFERENCES.get(name)
    allowed = np.broadcast_to(known.where(*columns), wrong.shape) if known else np.zeros_like(wrong)
    bad = np.flatnonzero(wrong & ~allowed)
    assert not bad.size, (bad.size, [[c[i].item() for c in columns] for i in bad[:40]])
    assert known is None or wrong.any(), f"{name} agrees with SciPy; remove it from DIFFERENCES"
