"""Array functions are differentiable to second order, in both modes, because they are compositions of primitives."""

import numpy as np
import pytest

import tenferro_runtime as tr
from array_cases import CASES, matrix
from tenferro_ad import check_grads, grad


@pytest.mark.parametrize("name", sorted(n for n, c in CASES.items() if c.smooth))
def test_derivatives(name):
    check_grads(CASES[name].f, (matrix(),), order=2)


def test_data_dependent_sizes_pass_derivatives():
    x = tr.asarray([3.0, 1.0, 3.0, -2.0])
    assert grad(lambda v: tr.sum(v[v > 0] ** 2))(x).tolist() == [6.0, 2.0, 6.0, 0.0]
    assert grad(lambda v: tr.sum(tr.unique_values(v) ** 2))(x).tolist() == [6.0, 2.0, 0.0, -4.0]
    assert grad(lambda v: tr.sum(v[tr.nonzero(v > 1)] * 2))(x).tolist() == [2.0, 0.0, 2.0, 0.0]


def test_nested_sequences_keep_derivatives():
    g = grad(lambda v: tr.sum(tr.asarray([[v[0], 2.0], [v[1] * v[0], v[1]]]) ** 2))(tr.asarray([2.0, 3.0]))
    np.testing.assert_allclose(g.numpy(), [2 * 2 + 2 * 6 * 3, 2 * 6 * 2 + 2 * 3])


def test_bounds_of_linspace_and_fill_values_pass_derivatives():
    assert float(grad(lambda a: tr.sum(tr.linspace(a, 1.0, 3)))(tr.asarray(0.0))) == 1.5
    assert float(grad(lambda a: tr.sum(tr.full((2, 3), a)))(tr.asarray(0.0))) == 6.0


IGNORING_NAN = {
    **{f.__name__: f for f in (
        tr.nansum, tr.nanprod, tr.nanmean, tr.nanvar, tr.nanstd, tr.nanmax, tr.nanmin, tr.nanmedian,
    )},
    "nanquantile": lambda x: tr.nanquantile(x, 0.3),
    "nanpercentile": lambda x: tr.nanpercentile(x, 80, method="hazen"),
    "nancumsum": lambda x: tr.nancumsum(x)[-1] ** 2,
    "nancumprod": lambda x: tr.nancumprod(x)[-1],
    "fmax": lambda x: tr.sum(tr.fmax(x, x[0]) ** 2) - tr.count_nonzero(tr.isnan(x)) * x[0] ** 2,
    "fmin": lambda x: tr.sum(tr.fmin(x[0], x) ** 2) - tr.count_nonzero(tr.isnan(x)) * x[0] ** 2,
}  # fmt: skip


@pytest.mark.parametrize("f", IGNORING_NAN.values(), ids=IGNORING_NAN)
def test_functions_that_ignore_nan_have_the_derivative_of_the_other_elements(f):
    x = np.asarray([1.5, np.nan, -0.5, 2.25, np.nan, 0.75])
    known = ~np.isnan(x)
    found = grad(f)(tr.asarray(x)).numpy()
    assert (found[~known] == 0).all()
    less = grad(f)(tr.asarray(x[known])).numpy()
    np.testing.assert_allclose(found[known], less, rtol=1e-13)
    second = grad(lambda v: tr.sum(grad(f)(v) * tr.asarray(np.arange(6.0))))(tr.asarray(x)).numpy()
    assert np.isfinite(second).all() and (second[~known] == 0).all()


@pytest.mark.parametrize("f", [tr.nanmean, tr.nanvar, tr.nanstd, tr.nanmax, tr.nanmin, tr.nanmedian])
def test_where_all_elements_are_nan_derivatives_are_zero(f):
    x = tr.asarray([[np.nan, np.nan], [1.0, 3.0]])
    out = grad(lambda v: f(v, 1)[1])(x).tolist()
    assert out[0] == [0.0, 0.0] and np.isfinite(out[1]).all()
    assert grad(lambda v: f(v, 1)[0])(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_derivatives_at_removable_singularities():
    for f, second in ((tr.sinc, -(np.pi**2) / 3), (tr.i0, 0.5)):
        zero = tr.asarray(0.0)
        assert float(grad(f)(zero)) == 0.0
        assert float(grad(grad(f))(zero)) == pytest.approx(second, rel=1e-14)
    assert grad(lambda w: tr.sum(tr.bincount(np.asarray([0, 2, 0]), w) ** 2))(tr.asarray([1.0, 2.0, 3.0])).tolist() == [
        8.0, 4.0, 8.0,
    ]  # fmt: skip
