"""Kernels of complex parts and conversions."""

from typing import Any

import numpy as np

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import numbers as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, always, any_size, unchanged


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @any_size
    def conj(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return xp.conjugate if ins[0].cplx else unchanged

    @any_size
    def real(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return _real_part if ins[0].cplx else unchanged

    @any_size
    def imag(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return _imaginary_part if ins[0].cplx else xp.zeros_like

    @any_size
    def complex_(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        dtype = outs[0].dtype

        def run(re: Any, im: Any) -> Any:
            # ``re + 1j * im`` would lose the signs of zeros and turn infinities into NaN.
            z = xp.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), dtype)
            z.real, z.imag = re, im
            return z

        return run

    @any_size
    def convert(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, dtype: np.dtype[Any]) -> Kernel:
        if ins[0].dtype == dtype:
            return unchanged
        if ins[0].cplx and dtype.kind not in "bc":
            return lambda x: x.real.astype(dtype)
        return lambda x: x.astype(dtype)

    return {
        ops.conj: conj,
        ops.real: real,
        ops.imag: imag,
        ops.complex: complex_,
        ops.convert: convert,
        ops.stop_gradient: always(unchanged),
    }


def _real_part(z: Any) -> Any:
    return z.real


def _imaginary_part(z: Any) -> Any:
    return z.imag
