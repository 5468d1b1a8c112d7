"""Kernels of arithmetic and extrema.

Integers wrap around. Integer division by zero follows NumPy: quotient and remainder are 0, with a `RuntimeWarning`.
"""

import cmath
import operator
from typing import Any

import numpy as np

from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.catalog import arithmetic as ops
from tenferro_tensor.narrow import rounded
from tenferro_tensor.reference._table import Kernel, Special, Table, always, any_size, scalar_or, unchanged
from tenferro_tensor_core import ArgumentError


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    def rounding(ufunc: Kernel) -> Any:
        return any_size(lambda ins, outs: ufunc if ins[0].inexact else unchanged)

    @any_size
    def sign(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return _complex_sign if ins[0].cplx else xp.sign

    def _complex_sign(z: Any) -> Any:
        endless = xp.isinf(z)
        re, im = (xp.where(endless, _direction(part), part) for part in (z.real, z.imag))
        size = xp.hypot(re, im)
        # Rescale magnitudes that overflow or are too small to be accurate.
        scale = xp.where(xp.isinf(size), 2.0**-2, xp.where(size < 2.0**-100, 2.0**60, 1.0)).astype(size.dtype)
        re, im = re * scale, im * scale
        size = xp.hypot(re, im)
        nothing = size == 0
        size = xp.where(nothing, 1, size)
        sign = xp.empty(np.shape(z), z.dtype)
        sign.real, sign.imag = (xp.where(nothing, 0, part / size) for part in (re, im))
        return sign

    def _direction(part: Any) -> Any:
        """The direction of a part if one of the parts is infinite: 1 for an infinite part, else 0, with its sign."""
        return xp.where(xp.isnan(part), part, xp.copysign(xp.where(xp.isinf(part), 1, 0), part))

    @any_size
    def floor_divide(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        if not outs[0].inexact:
            return xp.floor_divide  # type: ignore[no-any-return]

        def run(x: Any, y: Any) -> Any:
            # NumPy returns NaN for an infinite x, and -1 for an infinite y of the other sign, to keep
            # x == y * (x // y) + x % y.
            with np.errstate(all="ignore"):
                whole = xp.floor_divide(x, y)
            return xp.where(xp.isinf(x) | xp.isinf(y), x / y, whole)

        return run

    @any_size
    def nextafter(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        if not ins[0].narrow:
            return xp.nextafter  # type: ignore[no-any-return]
        # From a zero towards the zero of the other sign, the result is the latter, as in C.
        dtype = ins[0].dtype

        def run(x: Any, y: Any) -> Any:
            x, y = (rounded(v, dtype) if v.__class__ in SCALARS else v for v in (x, y))
            x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
            return xp.where(x == y, y, xp.nextafter(x, y))

        return run

    @any_size
    def pow(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        # The operator has fast paths for squares, roots and reciprocals that the ufunc lacks.
        return operator.pow if ins[0].inexact else _integer_power

    def _integer_power(x: Any, y: Any) -> Any:
        try:
            return xp.power(x, y)
        except ValueError as cause:
            raise ArgumentError(
                "pow of integers has a negative exponent; convert the base to floating point first", primitive="pow"
            ) from cause

    @any_size
    def absorbing_mul(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        if not outs[0].inexact:
            return xp.multiply  # type: ignore[no-any-return]

        def exact(x: Any, y: Any) -> Any:
            return x * xp.where((x != 0) | xp.isfinite(y), y, outs[0].dtype.type(0))

        if xp is not np:
            return exact  # testing the product would wait for the device

        def run(x: Any, y: Any) -> Any:
            # A plain product is wrong only where it is not finite, which is rare.
            with np.errstate(all="ignore"):
                z = np.multiply(x, y)
                return z if cmath.isfinite(np.add.reduce(z, None)) else exact(x, y)

        return run

    @any_size
    def clamp(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        scalar = outs[0].dtype.type

        def run(x: Any, lo: Any, hi: Any) -> Any:
            if x.__class__ in SCALARS:
                x = scalar(x)  # two Python scalars would be compared in float64
            return xp.minimum(xp.maximum(x, lo), hi)

        return run

    return {
        ops.add: scalar_or(xp.add, operator.add),
        ops.sub: scalar_or(xp.subtract, operator.sub),
        ops.mul: scalar_or(xp.multiply, operator.mul),
        ops.absorbing_mul: absorbing_mul,
        ops.div: scalar_or(xp.true_divide, operator.truediv),
        ops.floor_divide: floor_divide,
        ops.remainder: scalar_or(xp.remainder, operator.mod),
        ops.fmod: always(xp.fmod),
        ops.pow: pow,
        ops.neg: scalar_or(xp.negative, operator.neg),
        ops.abs: scalar_or(xp.absolute, abs),
        ops.sign: sign,
        ops.maximum: always(xp.maximum),
        ops.minimum: always(xp.minimum),
        ops.copysign: always(xp.copysign),
        ops.nextafter: nextafter,
        ops.floor: rounding(xp.floor),
        ops.ceil: rounding(xp.ceil),
        ops.trunc: rounding(xp.trunc),
        ops.round: rounding(xp.rint),
        ops.clamp: clamp,
    }
