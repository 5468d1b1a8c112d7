"""Statistics, NaN-ignoring functions, counts and histograms give what NumPy's functions of these names give."""

import itertools
import warnings

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, TracingError

DTYPES = {"f": ("float32", "float64"), "c": ("complex64", "complex128"), "i": ("int32", "uint8"), "b": ("bool",)}
SHAPES = [(4, 5), (7,), (2, 3, 2)]
AXES = [None, 0, -1, (0, -1)]

REDUCTIONS = {
    "nansum": "fcib", "nanprod": "fcib", "nanmean": "fcib", "nanvar": "fci", "nanstd": "fci", "nanmin": "fi",
    "nanmax": "fi", "median": "fci", "nanmedian": "fi", "ptp": "fi", "amax": "fib", "amin": "fib", "average": "fcib",
}  # fmt: skip


def numbers(shape, dtype, seed=0, holes=False):
    """Distinct numbers in no order, of both signs where the dtype has them; with `holes`, some are NaN."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) > 0.5
    if kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    x = rng.normal(size=shape)
    x = (x + 1j * rng.normal(size=shape) if kind == "c" else x).astype(dtype)
    if holes:
        x[rng.random(shape) < 0.3] = np.nan
        x[(0,) * x.ndim] = 0.25
    return x


def expected(f, *args, **keywords):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return f(*args, **keywords)


def same(found, wanted, ulps=64):
    found, wanted = (y if isinstance(y, (tuple, list)) else [y] for y in (found, wanted))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        y = np.asarray(y)
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        eps = np.finfo(y.dtype).eps if y.dtype.kind in "fc" else 0
        np.testing.assert_allclose(np.asarray(x), y, rtol=ulps * eps, atol=ulps * eps / 8)


def cases(kinds):
    return [d for kind in kinds for d in DTYPES[kind]]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    f, g = getattr(tr, name), getattr(np, name)
    for dtype, shape in itertools.product(cases(REDUCTIONS[name]), SHAPES):
        for axis, keepdims in itertools.product(AXES, (False, True)):
            if axis == (0, -1) and len(shape) == 1:
                continue
            for holes in (False, True) if dtype == "float64" else (False,):
                x = numbers(shape, dtype, holes=holes)
                same(f(tr.asarray(x), axis, keepdims=keepdims), expected(g, x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_positions(name):
    x = numbers((4, 5), "float64", holes=True)
    x[:, 1] = [np.inf, -np.inf, 1.0, np.nan]
    for axis, keepdims in itertools.product((None, 0, 1), (False, True)):
        same(getattr(tr, name)(x, axis, keepdims=keepdims), getattr(np, name)(x, axis, keepdims=keepdims))
    same(getattr(tr, name)(np.asarray([3, 1, 2])), getattr(np, name)(np.asarray([3, 1, 2])))
    with pytest.raises(ArgumentError, match=f"{name} found only NaN along axis 0; replace it first"):
        getattr(tr, name)(tr.asarray([[np.nan]]), 0)
    assert tr.compile(getattr(tr, name))(tr.asarray([np.nan, np.nan])).tolist() == -1


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod", "cumsum", "cumprod"])
def test_cumulative(name):
    for dtype, axis in itertools.product(cases("fcib"), (None, 0, -1)):
        x = numbers((3, 4), dtype, holes=np.dtype(dtype).kind == "f" and "nan" in name)
        same(getattr(tr, name)(tr.asarray(x), axis), getattr(np, name)(x, axis))
        if "nan" not in name:
            same(getattr(tr.asarray(x), name)(axis), getattr(x, name)(axis))


def test_spread_with_a_correction():
    x = numbers((3, 5), "float64", holes=True)
    x[1] = np.nan
    x[2, 1:] = np.nan
    for name, ddof in itertools.product(("nanvar", "nanstd"), (0, 1, 2)):
        wanted = expected(getattr(np, name), x, axis=1, ddof=ddof)
        same(getattr(tr, name)(x, axis=1, ddof=ddof), wanted)
        same(getattr(tr, name)(x, axis=1, correction=ddof), wanted)


METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method):
    q = np.asarray([[0.0, 0.1, 0.25], [0.5, 0.875, 1.0]])
    for shape, dtype in itertools.product(SHAPES[:3], ("float64", "int32")):
        x = numbers(shape, dtype)
        for axis, keepdims in ((None, False), (0, True), ((-1, 0) if len(shape) > 1 else 0, True)):
            same(tr.quantile(x, q, axis, method=method, keepdims=keepdims),
                 np.quantile(x, q, axis, method=method, keepdims=keepdims))  # fmt: skip
    x = numbers((5, 6), "float64", holes=True)
    x[2] = np.nan
    same(tr.quantile(x, 0.3, 1, method=method), expected(np.quantile, x, 0.3, 1, method=method))
    same(tr.nanquantile(x, q, 1, method=method), expected(np.nanquantile, x, q, 1, method=method))
    same(tr.percentile(x, [10, 90.0], method=method), expected(np.percentile, x, [10, 90.0], method=method))
    same(tr.nanpercentile(x, 40, (1, 0), method=method), expected(np.nanpercentile, x, 40, (1, 0), method=method))


def test_quantiles_with_weights():
    x = numbers((4, 6), "float64")
    w = np.asarray([0.0, 1.0, 2.0, 0.5, 0.0, 3.0])
    q = np.asarray([0.0, 0.2, 0.5, 0.9, 1.0])
    same(tr.quantile(x, q, 1, method="inverted_cdf", weights=w),
         np.quantile(x, q, 1, method="inverted_cdf", weights=w))  # fmt: skip
    same(tr.percentile(x, 30, 1, method="inverted_cdf", weights=w),
         np.percentile(x, 30, 1, method="inverted_cdf", weights=w))  # fmt: skip
    w = np.abs(numbers((4, 6), "float64", seed=3))
    same(tr.quantile(x, q, method="inverted_cdf", weights=w), np.quantile(x, q, method="inverted_cdf", weights=w))
    x[0, :3], x[2, 5] = np.nan, np.nan
    same(tr.nanquantile(x, q, 1, method="inverted_cdf", weights=w),
         np.nanquantile(x, q, 1, method="inverted_cdf", weights=w))  # fmt: skip


def test_dtypes_of_quantiles():
    single = tr.asarray([1.0, 2.0, 4.0], dtype=tr.float32)
    assert tr.quantile(single, 0.3).dtype == np.quantile(np.asarray(single), 0.3).dtype == np.float32
    assert tr.quantile(single, [0.3]).dtype == np.quantile(np.asarray(single), [0.3]).dtype == np.float64
    assert tr.quantile(tr.asarray([1, 2]), 0.3, method="lower").dtype == np.int64


def test_infinities_are_not_mixed_into_quantiles():
    x = tr.asarray([-np.inf, 1.0, np.inf, np.inf])
    assert tr.quantile(x, [0.0, 1 / 3, 1.0]).tolist() == [-np.inf, 1.0, np.inf]
    assert tr.median(x[1:]).tolist() == np.inf


def test_of_nothing():
    none = tr.zeros((0, 3))
    for f in (tr.median, tr.nanmedian, lambda x, a: tr.quantile(x, 0.5, a), lambda x, a: tr.nanpercentile(x, 5, a)):
        assert np.isnan(np.asarray(f(none, 0))).tolist() == [True] * 3
        assert f(none, 1).shape == (0,)
    assert tr.nansum(none, 0).tolist() == [0.0] * 3 and tr.nanprod(none, 0).tolist() == [1.0] * 3
    assert tr.histogram(tr.zeros(0), 2)[1].tolist() == [0.0, 0.5, 1.0]
    assert tr.bincount(tr.zeros(0, dtype=tr.int64), minlength=2).tolist() == [0, 0]
    with pytest.raises(ShapeError, match="has no element to choose from"):
        tr.quantile(tr.zeros((0,), dtype=tr.int64), 0.5, method="lower")


def test_weighted_means():
    x, w = numbers((3, 5), "float64"), np.abs(numbers((3, 5), "float64", 1))
    for keywords in (
        {}, {"axis": 1}, {"axis": (0, 1)}, {"axis": 0, "weights": w}, {"axis": 1, "weights": w[0]},
        {"axis": (1, 0), "weights": w.T}, {"weights": w, "returned": True}, {"axis": 1, "returned": True},
        {"axis": 1, "weights": w[0], "returned": True, "keepdims": True},
    ):  # fmt: skip
        same(tr.average(x, **keywords), np.average(x, **keywords))
    same(tr.average(np.arange(4), weights=np.arange(4)), np.average(np.arange(4), weights=np.arange(4)))
    with pytest.raises(ShapeError, match="average needs weights of the shape of the array, .*, or one weight for each"):
        tr.average(x, axis=0, weights=w[0])


def test_covariances():
    x, w = numbers((3, 5), "float64"), np.abs(numbers((5,), "float64", 1))
    counts = np.asarray([1, 2, 0, 3, 1])
    for v in (x, numbers((3, 5), "complex128"), x[0], (x * 4).astype(int)):
        for keywords in (
            {}, {"bias": True}, {"ddof": 3}, {"y": v[::-1]}, {"fweights": counts}, {"aweights": w},
            {"fweights": counts, "aweights": w}, {"fweights": counts, "aweights": w, "ddof": 0},
        ):  # fmt: skip
            same(tr.cov(v, **keywords), np.cov(v, **keywords))
        same(tr.cov(v, rowvar=False), expected(np.cov, v, rowvar=False))
        same(tr.corrcoef(v), np.corrcoef(v))
        same(tr.corrcoef(v, v[::-1]), np.corrcoef(v, v[::-1]))
    with pytest.raises(ShapeError, match="needs one of aweights for each of the observations"):
        tr.cov(x, aweights=w[:2])


def test_histograms():
    x, w = numbers((40,), "float64"), np.abs(numbers((40,), "float64", 1))
    x[3], x[4] = x.min(), x.max()
    edges = np.asarray([-1.0, -0.5, 0.0, 0.25, 2.0])
    for keywords in (
        {}, {"bins": 3}, {"bins": edges}, {"bins": 4, "range": (-1, 1)}, {"bins": "auto"}, {"bins": "fd"},
        {"density": True}, {"weights": w}, {"bins": edges, "weights": w, "density": True}, {"bins": [0, 1]},
    ):  # fmt: skip
        same(tr.histogram(x, **keywords), np.histogram(x, **keywords))
        if "density" not in keywords:
            same(tr.histogram_bin_edges(x, **keywords), np.histogram_bin_edges(x, **keywords))
    for v in (np.asarray([3, 1, 1, 7]), np.asarray([2.0, 2.0]), x.reshape(4, 10), np.asarray([True, False])):
        same(tr.histogram(v, 4), np.histogram(v, 4) if v.dtype != bool else np.histogram(v.astype(int), 4))
    broken = np.asarray([0.5, np.nan, 2.0])
    same(tr.histogram(broken, 2, (0, 1)), np.histogram(broken, 2, (0, 1)))


def test_histograms_of_points():
    p, w = numbers((30, 2), "float64"), np.abs(numbers((30,), "float64", 1))
    edges = np.asarray([-1.0, 0.0, 0.5, 2.0])
    for keywords in (
        {}, {"bins": 3}, {"bins": (2, edges)}, {"bins": 4, "range": [(-1, 1), (0, 2)]}, {"weights": w},
        {"bins": [edges, 3], "weights": w, "density": True}, {"range": [None, (0, 1)]},
    ):  # fmt: skip
        found, wanted = tr.histogramdd(p, **keywords), np.histogramdd(p, **keywords)
        same([found[0], *found[1]], [wanted[0], *wanted[1]])
        same(tr.histogram2d(p[:, 0], p[:, 1], **keywords), np.histogram2d(p[:, 0], p[:, 1], **keywords))
    same(tr.histogram2d(p[:, 0], p[:, 1], edges), np.histogram2d(p[:, 0], p[:, 1], edges))
    found, wanted = tr.histogramdd([p[:, 0], p[:, 1], w], (2, 3, 4)), np.histogramdd([p[:, 0], p[:, 1], w], (2, 3, 4))
    same([found[0], *found[1]], [wanted[0], *wanted[1]])


def test_counts():
    x, w = np.asarray([1, 5, 1, 0]), np.asarray([0.5, 1.0, 2.0, 0.25])
    same(tr.bincount(x), np.bincount(x))
    same(tr.bincount(x.astype(np.uint8), minlength=9), np.bincount(x, minlength=9))
    same(tr.bincount(x, w), np.bincount(x, w))
    same(tr.bincount(x, [1, 2, 3, 4]), np.bincount(x, [1, 2, 3, 4]))
    assert tr.bincount(x, w * 1j).tolist() == (np.bincount(x, w) * 1j).tolist()
    assert tr.bincount(x, length=3).tolist() == [1, 2, 0]
    with pytest.raises(ArgumentError, match="bincount counts integers from 0 on, got -1"):
        tr.bincount(tr.asarray([-1]))


@pytest.mark.parametrize("n", [0, 1, 2047, 2048, 5000])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("step", [1, 3, -1])
def test_counts_of_read_only_values(n, dtype, step):
    """Both sides of the size from which memory is lent to NumPy, contiguous and not; nothing is written to it."""
    rng = np.random.default_rng(n)
    x, w = rng.integers(0, 100, n * abs(step)).astype(dtype), rng.normal(size=n * abs(step))
    tx, tw = tr.asarray(x.copy())[::step], tr.asarray(w.copy())[::step]
    x, w = x[::step], w[::step]
    same(tr.bincount(tx), np.bincount(x))
    same(tr.bincount(tx, tw), np.bincount(x, w).astype(np.float64))
    same(tr.bincount(tx, tw, 200), np.bincount(x, w, 200).astype(np.float64))
    for length in (0, 1, 40, 100, 150):  # shorter than the largest integer, and not
        same(tr.bincount(tx, length=length), np.bincount(x, minlength=length)[:length])
        same(tr.bincount(tx, tw, length=length), np.bincount(x, w, length)[:length].astype(np.float64))
        same(tr.compile(lambda x, w, k=length: tr.bincount(x, w, length=k))(tx, tw), tr.bincount(tx, tw, length=length))
    assert tx.tolist() == x.tolist() and tw.tolist() == w.tolist()


def test_negative_integers_are_not_counted_silently():
    x = tr.asarray(np.r_[np.zeros(3000, np.int64), -1])
    for keywords in ({}, {"length": 4}, {"minlength": 4}):
        with pytest.raises(ArgumentError, match="bincount counts integers from 0 on, got -1"):
            tr.bincount(x, **keywords)


@pytest.mark.parametrize("right", [False, True])
def test_bins_of_numbers(right):
    x = np.asarray([0.2, 6.4, 3.0, 1.0, 10.0, -1.0, 11.0, np.nan])
    bins = np.asarray([0.0, 1.0, 2.5, 4.0, 10.0])
    for edges in (bins, bins[::-1], bins[:1], bins[:0]):
        same(tr.digitize(x, edges, right), np.digitize(x, edges, right))
        same(tr.compile(lambda x, e: tr.digitize(x, e, right))(x, edges), np.digitize(x, edges, right))


def test_traced_with_open_sizes():
    x = numbers((4, 5), "float64", holes=True)
    plain = np.nan_to_num(x)
    for f, g, v in (
        (lambda x: tr.nanmedian(x, 0), lambda x: np.nanmedian(x, 0), x),
        (lambda x: tr.median(x, 1), lambda x: np.median(x, 1), plain),
        (lambda x: tr.quantile(x, [0.2, 0.7]), lambda x: np.quantile(x, [0.2, 0.7]), plain),
        (lambda x: tr.nanquantile(x, 0.7, axis=0), lambda x: np.nanquantile(x, 0.7, axis=0), x),
        (lambda x: tr.nanstd(x, axis=1), lambda x: np.nanstd(x, axis=1), x),
        (lambda x: tr.average(x, 0, x[:, 0] ** 2), lambda x: np.average(x, 0, x[:, 0] ** 2), plain),
        (tr.cov, np.cov, plain),
        (lambda x: tr.histogram(x, 3)[0], lambda x: np.histogram(x, 3)[0], plain),
    ):
        n, m = tr.dim("n"), tr.dim("m")
        program = tr.trace(f, tr.Spec((n, m), v.dtype))
        for part in (v, v[:3], v[:, :4]):
            same(program.run(part)[0], expected(g, part))


def test_counts_of_a_compiled_program():
    f = tr.compile(lambda x: tr.bincount(x) * 2)
    assert f(tr.asarray([1, 3, 1])).tolist() == [0, 4, 0, 2]
    assert f(tr.asarray([0, 0, 1])).tolist() == [4, 2]
    assert tr.compile(lambda x: tr.bincount(x, length=2))(tr.asarray([1, 3, -1])).tolist() == [0, 1]
    with pytest.raises(TracingError, match="pass the number of bins, or their edges"):
        tr.compile(lambda x: tr.histogram(x, "auto"))(tr.asarray([1.0, 2.0]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tr.quantile(tr.zeros(2), 1.5), ArgumentError, "probabilities from 0 to 1, got 1.5"),
        (lambda: tr.percentile(tr.zeros(2), [-1]), ArgumentError, r"probabilities from 0 to 100, got \[-1\]"),
        (lambda: tr.quantile(tr.zeros(2), 0.5, method="best"), ArgumentError, "knows the methods .*, got 'best'"),
        (lambda: tr.quantile(tr.zeros(2), 0.5, weights=tr.ones(2)), ArgumentError, "for the method 'inverted_cdf'"),
        (lambda: tr.quantile(tr.asarray([1j]), 0.5), DTypeError, "orders its elements and takes real numbers"),
        (lambda: tr.ptp(tr.asarray([True])), DTypeError, "subtracts elements"),
        (lambda: tr.histogram(tr.zeros(2), 0), ArgumentError, "at least one bin, got 0"),
        (lambda: tr.histogram(tr.zeros(2), [2, 1]), ArgumentError, "edges of bins as a vector in ascending order"),
        (lambda: tr.histogram(tr.asarray([np.nan])), ArgumentError, "cannot divide the range from nan to nan"),
        (lambda: tr.histogram(tr.zeros(2), 2, (1, 0)), ArgumentError, "a range that ascends, got one from 1.0 to 0.0"),
        (lambda: tr.histogram(tr.zeros(2), weights=tr.zeros(3)), ShapeError, "weights of the shape of its numbers"),
        (lambda: tr.bincount(tr.zeros(2)), DTypeError, "bincount counts integers"),
        (lambda: tr.digitize(1.0, [0, 2, 1]), ArgumentError, "in ascending or descending order; sort them first"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_of_as_many_elements_as_data_say():
    x = tr.asarray([0.0, 5.0, 3.0, 4.0, -2.0])
    for f in (tr.median, tr.nanmedian, lambda y: tr.quantile(y, 0.3), tr.nanmean, lambda y: tr.histogram(y, 2)[0]):

        def chosen(x, f=f):
            y = tr.compress(x, x > 1)
            tr.assume(y.shape[0] >= 1)
            return f(y)

        assert tr.allclose(tr.compile(chosen)(x), f(tr.asarray([5.0, 3.0, 4.0])))
