"""One call of each function of SciPy that takes arrays of the standard, as a function of a converter of arrays.

``PROBES[name](a)`` calls the function on ``a(host array)``; with ``a = np.asarray`` it is SciPy on NumPy's arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import (
    cluster,
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    spatial,
    special,
    stats,
)
from scipy.optimize import elementwise

Convert = Callable[[Any], Any]
Probe = Callable[[Convert], Any]


def each(module: Any, names: str, call: Callable[[Any, Convert], Any]) -> dict[str, Probe]:
    """``call(function, a)`` for several functions of a module."""
    return {name: partial(call, getattr(module, name)) for name in names.split()}


_rng = np.random.default_rng(5)
X = _rng.normal(size=24)
Y = _rng.normal(size=24) + 0.3
P = np.abs(X) + 0.1
"""Positive numbers."""
U = np.linspace(0.05, 0.95, 24)
"""Numbers between 0 and 1."""
M = _rng.normal(size=(4, 6))
IMAGE = _rng.normal(size=(7, 8))
MASK = IMAGE > 0
LABELS = np.zeros((7, 8), dtype=np.int64)
LABELS[1:3, 1:4], LABELS[4:6, 4:7] = 1, 2
POINTS = _rng.normal(size=(9, 2))
QUATS = _rng.normal(size=(5, 4))
T = np.linspace(0.0, 1.0, 24)

UNARY_POSITIVE = (
    "cbrt cosdg cosm1 cotdg ellipkm1 entr erf erfc erfcx exp1 exp10 exp2 expi expit exprel gamma "
    "gammaln gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log_ndtr loggamma ndtr psi rgamma sinc sindg spence "
    "tandg y0 y1 zetac"
)
UNARY_UNIT = "ellipk erfinv logit ndtri"


def _special() -> dict[str, Probe]:
    table: dict[str, Probe] = {}
    table |= each(special, UNARY_POSITIVE, lambda f, a: f(a(P)))
    table |= each(special, UNARY_UNIT, lambda f, a: f(a(U)))
    table |= each(
        special,
        "gammainc gammaincc chdtr chdtrc betaln rel_entr kl_div xlogy xlog1py pseudo_huber huber poch boxcox",
        lambda f, a: f(a(P), a(P[::-1].copy())),
    )
    table |= each(special, "gammainccinv gammaincinv chdtri stdtr", lambda f, a: f(a(P + 1.0), a(U)))
    table |= each(special, "inv_boxcox inv_boxcox1p boxcox1p", lambda f, a: f(a(U), a(U[::-1].copy())))
    table |= each(special, "betainc betaincc betaincinv fdtr fdtrc fdtri", lambda f, a: f(a(P), a(P[::-1] + 1.0), a(U)))
    table |= each(special, "gdtr gdtrc", lambda f, a: f(a(P), a(P[::-1].copy()), a(U)))
    return table | {
        "zeta": lambda a: special.zeta(a(P + 1.5), a(P)),
        "polygamma": lambda a: special.polygamma(a(np.asarray([1.0, 2.0])), a(P[:2])),
        "multigammaln": lambda a: special.multigammaln(a(P + 2.0), 2),
        "logsumexp": lambda a: special.logsumexp(a(M), axis=1, b=a(np.abs(M))),
        "softmax": lambda a: special.softmax(a(M), axis=0),
        "log_softmax": lambda a: special.log_softmax(a(M), axis=-1),
        "binom": lambda a: special.binom(a(P * 9), a(P)),
        "expn": lambda a: special.expn(a(np.arange(4)), a(P[:4])),
        "yn": lambda a: special.yn(a(np.arange(4)), a(P[:4])),
        "pdtr": lambda a: special.pdtr(a(np.arange(4.0)), a(P[:4])),
        "pdtrc": lambda a: special.pdtrc(a(np.arange(4.0)), a(P[:4])),
        "bdtr": lambda a: special.bdtr(a(np.arange(4.0)), a(np.full(4, 6)), a(U[:4])),
        "hyp1f1": lambda a: special.hyp1f1(a(P), a(P + 1), a(X)),
        "radian": lambda a: special.radian(a(P), a(P), a(P)),
        "stdtrit": lambda a: special.stdtrit(a(P + 1), a(U)),
    }


FFTS = "fft ifft rfft irfft hfft ihfft dct idct dst idst"
FFTS_2D = "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn hfft2 hfftn ihfft2 ihfftn dctn idctn dstn idstn"


def _fft() -> dict[str, Probe]:
    table: dict[str, Probe] = {}
    table |= each(fft, FFTS, lambda f, a: f(a(M), axis=0))
    table |= each(fft, FFTS_2D, lambda f, a: f(a(M)))
    return table | {
        "fftshift": lambda a: fft.fftshift(a(X)),
        "ifftshift": lambda a: fft.ifftshift(a(M), axes=1),
        "fht": lambda a: fft.fht(a(P), 0.1, 0.5),
        "ifht": lambda a: fft.ifht(a(P), 0.1, 0.5),
    }


PAIRS = (
    "ttest_ind mannwhitneyu ttest_rel wilcoxon pearsonr brunnermunzel mood ansari cramervonmises_2samp "
    "spearmanrho chatterjeexi"
)
SAMPLES = "bartlett levene fligner kruskal friedmanchisquare f_oneway alexandergovern"
ONE = (
    "circmean circstd circvar describe differential_entropy iqr jarque_bera kstat kstatvar kurtosis "
    "kurtosistest lmoment median_abs_deviation normaltest rankdata sem sigmaclip skew skewtest tmax tmean "
    "tmin tsem tstd tvar variation zscore"
)


def _stats() -> dict[str, Probe]:
    table: dict[str, Probe] = {}
    table |= each(stats, PAIRS, lambda f, a: f(a(X), a(Y)))
    table |= each(stats, SAMPLES, lambda f, a: f(a(X), a(Y), a(P)))
    table |= each(stats, ONE, lambda f, a: f(a(X)))
    table |= each(stats, "gmean hmean gstd entropy gzscore", lambda f, a: f(a(P)))
    return table | {
        "describe over rows": lambda a: stats.describe(a(M), axis=1),
        "skew over rows": lambda a: stats.skew(a(M), axis=1, bias=False),
        "zscore over rows": lambda a: stats.zscore(a(M), axis=1, ddof=1),
        "rankdata over rows": lambda a: stats.rankdata(a(M), axis=1),
        "entropy of two": lambda a: stats.entropy(a(P), a(P[::-1].copy())),
        "pmean": lambda a: stats.pmean(a(P), 2.5),
        "moment": lambda a: stats.moment(a(X), [1, 2, 3]),
        "mode": lambda a: stats.mode(a(np.asarray([1, 2, 2, 3, 3, 3]))),
        "ttest_1samp": lambda a: stats.ttest_1samp(a(X), 0.1),
        "ttest_ind over rows": lambda a: stats.ttest_ind(a(M), a(M[::-1] + 0.5), axis=1, equal_var=False),
        "ttest_ind_from_stats": lambda a: stats.ttest_ind_from_stats(a(1.0), a(2.0), 9, a(1.5), a(2.1), 8),
        "ks_1samp": lambda a: stats.ks_1samp(a(X), special.ndtr),
        "cramervonmises": lambda a: stats.cramervonmises(a(X), special.ndtr),
        "chisquare": lambda a: stats.chisquare(a(P / P.sum()), a(np.full(24, 1 / 24))),
        "power_divergence": lambda a: stats.power_divergence(a(P), lambda_="log-likelihood"),
        "combine_pvalues": lambda a: stats.combine_pvalues(a(U), method="fisher"),
        "false_discovery_control": lambda a: stats.false_discovery_control(a(U)),
        "boxcox_llf": lambda a: stats.boxcox_llf(0.5, a(P)),
        "yeojohnson_llf": lambda a: stats.yeojohnson_llf(0.5, a(X)),
        "directional_stats": lambda a: stats.directional_stats(a(M)),
        "epps_singleton_2samp": lambda a: stats.epps_singleton_2samp(a(X), a(Y)),
        "zmap": lambda a: stats.zmap(a(X), a(Y)),
        "trim_mean": lambda a: stats.trim_mean(a(X), 0.1),
        "quantile": lambda a: stats.quantile(a(X), a(np.asarray([0.2, 0.5]))),
        "permutation_test": lambda a: (
            stats.permutation_test(
                (a(X[:6]), a(Y[:6])),
                lambda x, y, axis: stats.ttest_ind(x, y, axis=axis).statistic,
                vectorized=True,
                n_resamples=20,
                rng=np.random.default_rng(1),
            ).statistic
        ),
        "bootstrap": lambda a: (
            stats.bootstrap(
                (a(X),),
                lambda x, axis: _mean(x, axis),
                vectorized=True,
                n_resamples=20,
                rng=np.random.default_rng(1),
                method="percentile",
            ).confidence_interval
        ),
        "monte_carlo_test": lambda a: (
            stats.monte_carlo_test(
                a(X),
                lambda size: a(np.random.default_rng(0).normal(size=size)),
                lambda x, axis: _mean(x, axis),
                vectorized=True,
                n_resamples=20,
            ).statistic
        ),
    }


def _mean(x: Any, axis: int) -> Any:
    xp = np if isinstance(x, np.ndarray) else x.__array_namespace__()
    return xp.mean(x, axis=axis)


def _namespace(a: Convert) -> dict[str, Any]:
    """The argument of functions that make arrays of no arrays."""
    return {} if a is np.asarray else {"xp": a(X).__array_namespace__()}


FILTERS: dict[str, Probe] = {
    "butter": lambda a: signal.butter(3, a(np.asarray(0.2))),
    "bessel": lambda a: signal.bessel(3, a(np.asarray(0.2))),
    "cheby1": lambda a: signal.cheby1(3, 1.0, a(np.asarray(0.2))),
    "cheby2": lambda a: signal.cheby2(3, 20.0, a(np.asarray(0.2))),
    "ellip": lambda a: signal.ellip(3, 1.0, 20.0, a(np.asarray([0.2, 0.5])), btype="bandpass"),
    "iirnotch": lambda a: signal.iirnotch(0.3, 30.0, **_namespace(a)),
    "iirpeak": lambda a: signal.iirpeak(0.3, 30.0, **_namespace(a)),
    "firwin": lambda a: signal.firwin(9, a(np.asarray([0.2, 0.5]))),
    "firwin2": lambda a: signal.firwin2(9, a(np.asarray([0.0, 0.5, 1.0])), a(np.asarray([1.0, 0.5, 0.0]))),
    "firls": lambda a: signal.firls(9, a(np.asarray([0.0, 0.3, 0.5, 1.0])), a(np.asarray([1.0, 1.0, 0.0, 0.0]))),
    "remez": lambda a: signal.remez(9, a(np.asarray([0.0, 0.1, 0.2, 0.5])), a(np.asarray([1.0, 0.0]))),
    "buttord": lambda a: signal.buttord(a(np.asarray(0.2)), a(np.asarray(0.4)), 1.0, 20.0),
    "minimum_phase": lambda a: signal.minimum_phase(a(signal.firwin(9, 0.3))),
}
B, A_ = signal.cheby2(3, 20.0, 0.2)
Z, POLES, K = signal.cheby2(3, 20.0, 0.2, output="zpk")
SOS = signal.butter(4, 0.2, output="sos")
BINARY_1D = "convolve correlate fftconvolve oaconvolve"
BINARY_2D = "convolve2d correlate2d fftconvolve convolve"


def _signal() -> dict[str, Probe]:
    table: dict[str, Probe] = dict(FILTERS)
    table |= each(signal, BINARY_1D, lambda f, a: f(a(X), a(Y[:7]), mode="same"))
    on_images = each(signal, BINARY_2D, lambda f, a: f(a(IMAGE), a(IMAGE[:3, :3])))
    table |= {f"{name} of images": probe for name, probe in on_images.items()}
    table |= each(signal, "lp2bp lp2bs lp2hp lp2lp", lambda f, a: f(a(B), a(A_)))
    table |= each(signal, "lp2bp_zpk lp2bs_zpk lp2hp_zpk lp2lp_zpk", lambda f, a: f(a(Z), a(POLES), K))
    return table | {
        "deconvolve": lambda a: signal.deconvolve(a(np.convolve(X, Y[:4])), a(Y[:4])),
        "detrend": lambda a: signal.detrend(a(M), axis=1),
        "envelope": lambda a: signal.envelope(a(X)),
        "hilbert": lambda a: signal.hilbert(a(M), axis=1),
        "hilbert2": lambda a: signal.hilbert2(a(IMAGE)),
        "medfilt": lambda a: signal.medfilt(a(X), 3),
        "medfilt2d": lambda a: signal.medfilt2d(a(IMAGE), 3),
        "order_filter": lambda a: signal.order_filter(a(IMAGE), a(np.ones((3, 3))), 1),
        "wiener": lambda a: signal.wiener(a(IMAGE), (3, 3)),
        "resample": lambda a: signal.resample(a(X), 36),
        "resample_poly": lambda a: signal.resample_poly(a(X), 3, 2),
        "savgol_filter": lambda a: signal.savgol_filter(a(X), 5, 2),
        "upfirdn": lambda a: signal.upfirdn(a(Y[:4]), a(X), 2, 1),
        "lfilter": lambda a: signal.lfilter(a(B), a(A_), a(X)),
        "lfilter_zi": lambda a: signal.lfilter_zi(a(B), a(A_)),
        "lfiltic": lambda a: signal.lfiltic(a(B), a(A_), a(X[:3]), a(Y[:3])),
        "filtfilt": lambda a: signal.filtfilt(a(B), a(A_), a(X)),
        "sosfilt": lambda a: signal.sosfilt(a(SOS), a(X)),
        "sosfilt_zi": lambda a: signal.sosfilt_zi(a(SOS)),
        "sosfiltfilt": lambda a: signal.sosfiltfilt(a(SOS), a(X)),
        "freqz": lambda a: signal.freqz(a(B), a(A_), 16),
        "freqs": lambda a: signal.freqs(a(B), a(A_), a(P)),
        "freqz_zpk": lambda a: signal.freqz_zpk(a(Z), a(POLES), K, 16),
        "freqs_zpk": lambda a: signal.freqs_zpk(a(Z), a(POLES), K, a(P)),
        "freqz_sos": lambda a: signal.freqz_sos(a(SOS), 16),
        "group_delay": lambda a: signal.group_delay((a(B), a(A_)), 16),
        "bilinear": lambda a: signal.bilinear(a(B), a(A_), 2.0),
        "bilinear_zpk": lambda a: signal.bilinear_zpk(a(Z), a(POLES), K, 2.0),
        "normalize": lambda a: signal.normalize(a(B), a(A_ * 2)),
        "tf2zpk": lambda a: signal.zpk2tf(*signal.tf2zpk(a(B), a(A_))),
        "tf2sos": lambda a: signal.tf2sos(a(B), a(A_)),
        "zpk2tf": lambda a: signal.zpk2tf(a(Z), a(POLES), K),
        "zpk2sos": lambda a: signal.zpk2sos(a(Z), a(POLES), K),
        "sos2tf": lambda a: signal.sos2tf(a(SOS)),
        "sos2zpk": lambda a: signal.sos2zpk(a(SOS)),
        "vectorstrength": lambda a: signal.vectorstrength(a(P), a(np.asarray(2.0))),
        "cspline1d": lambda a: signal.cspline1d(a(X)),
        "qspline1d": lambda a: signal.qspline1d(a(X)),
        "cspline1d_eval": lambda a: signal.cspline1d_eval(a(X), a(U * 9)),
        "gauss_spline": lambda a: signal.gauss_spline(a(X), 3),
        "abcd_normalize": lambda a: signal.abcd_normalize(
            a(np.eye(2)), a(np.ones((2, 1))), a(np.ones((1, 2))), a(np.zeros((1, 1)))
        ),
    }


MORPHOLOGY = (
    "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening "
    "binary_propagation"
)
GREY = (
    "black_tophat white_tophat grey_closing grey_dilation grey_erosion grey_opening morphological_gradient "
    "morphological_laplace"
)
SIZED = "maximum_filter minimum_filter median_filter uniform_filter"
ALONG = "maximum_filter1d minimum_filter1d uniform_filter1d"
PLAIN = "laplace prewitt sobel spline_filter spline_filter1d"
SMOOTH = "gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace"
LABELLED = (
    "center_of_mass extrema maximum maximum_position mean median minimum minimum_position standard_deviation "
    "sum_labels variance"
)


def _ndimage() -> dict[str, Probe]:
    table: dict[str, Probe] = {}
    table |= each(ndimage, MORPHOLOGY, lambda f, a: f(a(MASK)))
    table |= each(ndimage, f"{GREY} {SIZED}", lambda f, a: f(a(IMAGE), size=3))
    table |= each(ndimage, ALONG, lambda f, a: f(a(IMAGE), 3, axis=0))
    table |= each(ndimage, PLAIN, lambda f, a: f(a(IMAGE)))
    table |= each(ndimage, SMOOTH, lambda f, a: f(a(IMAGE), 1.2))
    table |= each(ndimage, LABELLED, lambda f, a: f(a(IMAGE), a(LABELS), a(np.asarray([1, 2]))))
    return table | {
        "affine_transform": lambda a: ndimage.affine_transform(a(IMAGE), a(np.asarray([[1.0, 0.1], [0.0, 0.9]]))),
        "map_coordinates": lambda a: ndimage.map_coordinates(a(IMAGE), a(np.abs(M[:2]))),
        "rotate": lambda a: ndimage.rotate(a(IMAGE), 30.0),
        "shift": lambda a: ndimage.shift(a(IMAGE), 0.5),
        "zoom": lambda a: ndimage.zoom(a(IMAGE), 1.5),
        "convolve": lambda a: ndimage.convolve(a(IMAGE), a(IMAGE[:3, :3])),
        "convolve1d": lambda a: ndimage.convolve1d(a(IMAGE), a(X[:3])),
        "correlate": lambda a: ndimage.correlate(a(IMAGE), a(IMAGE[:3, :3])),
        "correlate1d": lambda a: ndimage.correlate1d(a(IMAGE), a(X[:3])),
        "distance_transform_edt": lambda a: ndimage.distance_transform_edt(a(MASK)),
        "distance_transform_cdt": lambda a: ndimage.distance_transform_cdt(a(MASK)),
        "fourier_gaussian": lambda a: ndimage.fourier_gaussian(a(IMAGE + 0j), 1.0),
        "fourier_shift": lambda a: ndimage.fourier_shift(a(IMAGE + 0j), 1.0),
        "fourier_uniform": lambda a: ndimage.fourier_uniform(a(IMAGE + 0j), 2.0),
        "label": lambda a: ndimage.label(a(MASK)),
        "percentile_filter": lambda a: ndimage.percentile_filter(a(IMAGE), 30, size=3),
        "rank_filter": lambda a: ndimage.rank_filter(a(IMAGE), 2, size=3),
        "generic_filter": lambda a: ndimage.generic_filter(a(IMAGE), np.max, size=3),
        "histogram": lambda a: ndimage.histogram(a(IMAGE), -1, 1, 4),
        "vectorized_filter": lambda a: ndimage.vectorized_filter(a(IMAGE), _mean, size=3),
    }


def _integrate() -> dict[str, Probe]:
    return {
        "trapezoid": lambda a: integrate.trapezoid(a(Y), a(T)),
        "cumulative_trapezoid": lambda a: integrate.cumulative_trapezoid(a(Y), a(T), initial=0),
        "cumulative_simpson": lambda a: integrate.cumulative_simpson(a(Y), x=a(T)),
        "romb": lambda a: integrate.romb(a(X[:17])),
        "tanhsinh": lambda a: integrate.tanhsinh(lambda x: x * x, a(np.zeros(3)), a(P[:3])).integral,
        "cubature": lambda a: integrate.cubature(lambda x: x[:, 0] ** 2, a(np.zeros(1)), a(np.ones(1))).estimate,
        "nsum": lambda a: integrate.nsum(lambda k: 1 / k**2, a(np.asarray(1.0)), a(np.asarray(9.0))).sum,
    }


def _interpolate() -> dict[str, Probe]:
    values = np.outer(T[:6], T[:8])
    return {
        "BSpline": lambda a: interpolate.BSpline(a(np.arange(8.0)), a(X[:4]), 3)(a(np.asarray([3.2, 3.9]))),
        "make_interp_spline": lambda a: interpolate.make_interp_spline(a(T), a(Y))(a(U)),
        "make_smoothing_spline": lambda a: interpolate.make_smoothing_spline(a(T), a(Y))(a(U)),
        "make_lsq_spline": lambda a: interpolate.make_lsq_spline(a(T), a(Y), a(np.r_[[0.0] * 4, 0.5, [1.0] * 4]))(a(U)),
        "make_splrep": lambda a: interpolate.make_splrep(a(T), a(Y), s=1.0)(a(U)),
        "CubicSpline": lambda a: interpolate.CubicSpline(a(T), a(Y))(a(U)),
        "CubicHermiteSpline": lambda a: interpolate.CubicHermiteSpline(a(T), a(Y), a(X))(a(U)),
        "PchipInterpolator": lambda a: interpolate.PchipInterpolator(a(T), a(Y))(a(U)),
        "Akima1DInterpolator": lambda a: interpolate.Akima1DInterpolator(a(T), a(Y))(a(U)),
        "PPoly": lambda a: interpolate.PPoly(a(M[:, :3]), a(np.arange(4.0)))(a(U * 3)),
        "BPoly": lambda a: interpolate.BPoly(a(M[:, :3]), a(np.arange(4.0)))(a(U * 3)),
        "RegularGridInterpolator": lambda a: interpolate.RegularGridInterpolator((a(T[:6]), a(T[:8])), a(values))(
            a(np.asarray([[0.1, 0.1], [0.05, 0.2]]))
        ),
        "RBFInterpolator": lambda a: interpolate.RBFInterpolator(a(POINTS), a(X[:9]))(a(POINTS[:3] + 0.1)),
        "NdBSpline": lambda a: interpolate.NdBSpline((a(np.arange(8.0)),), a(X[:4]), 3)(a(np.asarray([[3.2], [3.9]]))),
    }


TREE = cluster.hierarchy.linkage(POINTS, "average")
LINKAGES = "average centroid complete median single ward weighted"


def _cluster() -> dict[str, Probe]:
    h = cluster.hierarchy
    distances = spatial.distance.pdist(POINTS)
    table: dict[str, Probe] = each(h, LINKAGES, lambda f, a: f(a(distances)))
    table |= each(
        h,
        "inconsistent maxdists leaves_list is_monotonic is_valid_linkage num_obs_linkage to_mlab_linkage",
        lambda f, a: f(a(TREE)),
    )
    return table | {
        "linkage": lambda a: h.linkage(a(POINTS), "ward"),
        "cophenet": lambda a: h.cophenet(a(TREE), a(distances)),
        "fcluster": lambda a: h.fcluster(a(TREE), 3, criterion="maxclust"),
        "fclusterdata": lambda a: h.fclusterdata(a(POINTS), 1.0),
        "optimal_leaf_ordering": lambda a: h.optimal_leaf_ordering(a(TREE), a(distances)),
        "is_isomorphic": lambda a: h.is_isomorphic(a(np.asarray([1, 1, 2])), a(np.asarray([2, 2, 1]))),
        "whiten": lambda a: cluster.vq.whiten(a(POINTS)),
        "vq": lambda a: cluster.vq.vq(a(POINTS), a(POINTS[:3])),
        "kmeans": lambda a: cluster.vq.kmeans(a(POINTS), a(POINTS[:3])),
        "kmeans2": lambda a: cluster.vq.kmeans2(a(POINTS), a(POINTS[:3]), minit="matrix"),
    }


def _spatial() -> dict[str, Probe]:
    rotation = spatial.transform.Rotation
    rigid = spatial.transform.RigidTransform
    made = lambda a: rotation.from_quat(a(QUATS))
    moved = lambda a: rigid.from_components(a(M[:, :3]), rotation.from_quat(a(QUATS[:4])))
    return {
        "from_quat": lambda a: made(a).as_quat(),
        "from_matrix": lambda a: rotation.from_matrix(a(rotation.from_quat(QUATS).as_matrix())).as_quat(),
        "from_rotvec": lambda a: rotation.from_rotvec(a(M[:, :3])).as_quat(),
        "from_mrp": lambda a: rotation.from_mrp(a(M[:, :3])).as_quat(),
        "from_euler": lambda a: rotation.from_euler("xyz", a(M[:, :3])).as_quat(),
        "as_matrix": lambda a: made(a).as_matrix(),
        "as_rotvec": lambda a: made(a).as_rotvec(),
        "as_mrp": lambda a: made(a).as_mrp(),
        "as_euler": lambda a: made(a).as_euler("zyx"),
        "inv": lambda a: made(a).inv().as_quat(),
        "compose": lambda a: (made(a) * made(a)).as_quat(),
        "power": lambda a: (made(a) ** 0.5).as_quat(),
        "apply": lambda a: made(a)[:4].apply(a(M[:, :3])),
        "magnitude": lambda a: made(a).magnitude(),
        "mean": lambda a: made(a).mean().as_matrix(),
        "rotations[i]": lambda a: made(a)[1:3].as_quat(),
        "approx_equal": lambda a: made(a).approx_equal(made(a)),
        "concatenate": lambda a: rotation.concatenate([made(a), made(a)]).as_quat(),
        "align_vectors": lambda a: rotation.align_vectors(a(M[:, :3]), a(M[:, 3:]))[0].as_matrix(),
        "reduce": lambda a: made(a).reduce().as_quat(),
        "rigid as_matrix": lambda a: moved(a).as_matrix(),
        "rigid inv": lambda a: moved(a).inv().as_matrix(),
        "rigid compose": lambda a: (moved(a) * moved(a)).as_matrix(),
        "rigid apply": lambda a: moved(a).apply(a(M[:, :3])),
        "rigid as_exp_coords": lambda a: moved(a).as_exp_coords(),
        "rigid as_dual_quat": lambda a: moved(a).as_dual_quat(),
        "rigid from_exp_coords": lambda a: rigid.from_exp_coords(a(M)).as_matrix(),
    }


def _others() -> dict[str, dict[str, Probe]]:
    find_root, find_minimum, brackets = elementwise.find_root, elementwise.find_minimum, elementwise.bracket_root
    return {
        "optimize": {
            "rosen": lambda a: optimize.rosen(a(X)),
            "rosen_der": lambda a: optimize.rosen_der(a(X)),
            "rosen_hess": lambda a: optimize.rosen_hess(a(X)),
            "rosen_hess_prod": lambda a: optimize.rosen_hess_prod(a(X), a(Y)),
            "find_root": lambda a: find_root(lambda x: x**3 - 2, (a(np.zeros(3)), a(P[:3] + 2))).x,
            "find_minimum": lambda a: (
                find_minimum(lambda x: (x - 1) ** 2, (a(np.zeros(3)), a(np.full(3, 0.5)), a(P[:3] + 2))).x
            ),
            "bracket_root": lambda a: brackets(lambda x: x**3 - 2, a(np.zeros(3)), a(np.ones(3))).bracket,
            "bracket_minimum": lambda a: elementwise.bracket_minimum(lambda x: (x - 1) ** 2, a(np.zeros(3))).bracket,
        },
        "differentiate": {
            "derivative": lambda a: differentiate.derivative(lambda x: x**3, a(P[:3])).df,
            "jacobian": lambda a: differentiate.jacobian(lambda x: x**3, a(P[:3])).df,
            "hessian": lambda a: differentiate.hessian(lambda x: (x**3).sum(axis=0), a(P[:3])).ddf,
        },
        "linalg": {
            "block_diag": lambda a: linalg.block_diag(a(np.eye(2)), a(M)),
            "fiedler": lambda a: linalg.fiedler(a(X)),
            "orthogonal_procrustes": lambda a: linalg.orthogonal_procrustes(a(M.T.copy()), a(M.T[::-1].copy())),
        },
        "constants": {
            "convert_temperature": lambda a: constants.convert_temperature(a(X), "Celsius", "Kelvin"),
            "lambda2nu": lambda a: constants.lambda2nu(a(P)),
        },
    }


def _windows() -> dict[str, Probe]:
    names = (
        "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann lanczos nuttall "
        "parzen taylor triang tukey"
    )
    windows = signal.windows
    table = each(windows, names, lambda f, a: f(9, **_namespace(a)))
    return table | {
        "gaussian": lambda a: windows.gaussian(9, 2.0, **_namespace(a)),
        "kaiser": lambda a: windows.kaiser(9, 5.0, **_namespace(a)),
        "chebwin": lambda a: windows.chebwin(9, 60.0, **_namespace(a)),
        "exponential": lambda a: windows.exponential(9, tau=2.0, **_namespace(a)),
        "general_hamming": lambda a: windows.general_hamming(9, 0.6, **_namespace(a)),
        "get_window": lambda a: windows.get_window("hann", 9, **_namespace(a)),
    }


PROBES: dict[str, Probe] = {
    f"{part}: {name}": probe
    for part, table in {
        "special": _special(),
        "fft": _fft(),
        "stats": _stats(),
        "signal": _signal(),
        "signal.windows": _windows(),
        "ndimage": _ndimage(),
        "integrate": _integrate(),
        "interpolate": _interpolate(),
        "cluster": _cluster(),
        "spatial": _spatial(),
        **_others(),
    }.items()
    for name, probe in table.items()
}


def leaves(found: Any) -> list[Any]:
    """Arrays and numbers of a result, in order."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [leaf for x in found for leaf in leaves(x)]
    if isinstance(found, (np.ndarray, np.generic, bool, int, float, complex)) or hasattr(found, "spec"):
        return [found]
    if hasattr(found, "__dict__") and not callable(found):
        return [leaf for k, x in sorted(vars(found).items()) if not k.startswith("_") for leaf in leaves(x)]
    return []
