"""Families lower their primitives through the registry alone; einsum and fft run whole by XLA."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum
from tenferro_fft import fft, fftn, ifft, ifftn, irfft, irfftn, rfft, rfftn
from tenferro_tensor_core import UnsupportedError
from tenferro_xla import XlaExecutor, lower_to_stablehlo

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4, 4))
Z = X + 1j * RNG.standard_normal(X.shape)

PROGRAMS = {
    "diagonal of two axes": (lambda x: einsum("bii->bi", x), X),
    "trace": (lambda x: einsum("bii->b", x), X),
    "embedded diagonal": (lambda x: einsum("bi->bibi", x[0]), X),
    "fft along each axis": (lambda z: fft(ifft(fft(z, axis=0), axis=1, norm="ortho"), axis=-1, n=6), Z),
    "several axes": (lambda z: fftn(z) + ifftn(z, axes=(0, 2)), Z),
    "half spectra": (lambda x: irfft(rfft(x, axis=1) * 2, n=5, axis=1), X),
    "half spectra of several axes": (lambda x: irfftn(rfftn(x, axes=(1, 0)), s=(4, 3), axes=(1, 0)), X),
    "singular values of a spectrum": (lambda x: tr.linalg.svdvals(tr.real(fft(ifft(x) * 0.5))), X),
    "decomposition of half a spectrum": (lambda x: tr.abs(tr.linalg.qr(tr.imag(rfft(x))).R), X),
    "gradient through spectra": (grad(lambda x: tr.sum(tr.abs(rfft(x, axis=1)) ** 2 * tr.abs(fft(x))[:, :3])), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_families_run_by_xla(name):
    f, x = PROGRAMS[name]
    x = tr.asarray(x)
    want = f(x)
    (got,) = XlaExecutor().run(tr.trace(f, x), x)
    assert got.spec is want.spec
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), atol=1e-11)


def test_a_primitive_without_a_lowering_is_named():
    program = tr.trace(lambda x: tr.special.jv(0.5, x), tr.asarray(X))
    with pytest.raises(UnsupportedError, match=r"jv \(.*test_family_lowerings.py:\d+\) has no StableHLO"):
        lower_to_stablehlo(program)


def test_transforms_over_several_axes_are_one_operation():
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5, 6))
    for axes, count, transposed in (((3, 4), 1, 0), ((2, 3, 4), 1, 0), ((1, 2, 3, 4), 2, 2), ((0, 2), 1, 2)):
        program = tr.trace(lambda x, axes=axes: fftn(x, axes=axes), x)
        text = lower_to_stablehlo(program).text
        assert (text.count("stablehlo.fft"), text.count("stablehlo.transpose")) == (count, transposed)
        (got,) = XlaExecutor().run(program, x)
        np.testing.assert_allclose(np.asarray(got), np.fft.fftn(x, axes=axes), rtol=1e-12, atol=1e-11)


def test_operands_of_contractions_stand_where_nothing_is_transposed():
    """What is summed lies last in the first operand and first in the second, or the smaller one is transposed."""
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal(shape) for shape in ((3, 4, 5), (2, 3), (5, 6), (4, 7, 6))]
    program = tr.trace(lambda a, b, c, d: einsum("xyz,bx,zw,ydw->bd", a, b, c, d), *xs)
    lines = [line for line in lower_to_stablehlo(program).text.splitlines() if "stablehlo.dot_general" in line]
    assert len(lines) == 3
    assert 'dot_general"(%1, %0)' in "".join(lines)  # (b, x) and (x, y, z)
    (got,) = XlaExecutor().run(program, *xs)
    np.testing.assert_allclose(np.asarray(got), np.einsum("xyz,bx,zw,ydw->bd", *xs), rtol=1e-12)
