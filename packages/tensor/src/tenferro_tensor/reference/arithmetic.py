"""Kernels of arithmetic and extrema.

Integers wrap. Integer division by zero is NumPy's: quotient and remainder are 0, with a `RuntimeWarning`.
"""

import cmath
import operator
from typing import Any

import numpy as np

from tenferro_tensor._primitive import SCALARS
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import arithmetic as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, always, any_size, scalar_or, unchanged
from tenferro_tensor_core import ArgumentError


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    def rounding(ufunc: Kernel) -> Any:
        return any_size(lambda ins, outs: ufunc if ins[0].inexact else unchanged)

    @any_size
    def sign(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return _complex_sign if ins[0].cplx else xp.sign

    def _complex_sign(x: Any) -> Any:
        size = xp.absolute(x)
        return x / xp.where(size == 0, 1, size)

    @any_size
    def pow(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        # The operator has short cuts for squares, roots and reciprocals that the ufunc lacks.
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
            return exact  # a look at the product would wait for the device

        def run(x: Any, y: Any) -> Any:
            # Non-finite elements are rare, and all that a plain product can have wrong.
            with np.errstate(all="ignore"):
                z = np.multiply(x, y)
                return z if cmath.isfinite(np.add.reduce(z, None)) else exact(x, y)

        return run

    @any_size
    def clamp(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        scalar = outs[0].dtype.type

        def run(x: Any, lo: Any, hi: Any) -> Any:
            if x.__class__ in SCALARS:
                x = scalar(x)  # two Python scalars would meet as float64
            return xp.minimum(xp.maximum(x, lo), hi)

        return run

    return {
        ops.add: scalar_or(xp.add, operator.add),
        ops.sub: scalar_or(xp.subtract, operator.sub),
        ops.mul: scalar_or(xp.multiply, operator.mul),
        ops.absorbing_mul: absorbing_mul,
        ops.div: scalar_or(xp.true_divide, operator.truediv),
        ops.floor_divide: scalar_or(xp.floor_divide, operator.floordiv),
        ops.remainder: scalar_or(xp.remainder, operator.mod),
        ops.fmod: always(xp.fmod),
        ops.pow: pow,
        ops.neg: scalar_or(xp.negative, operator.neg),
        ops.abs: scalar_or(xp.absolute, abs),
        ops.sign: sign,
        ops.maximum: always(xp.maximum),
        ops.minimum: always(xp.minimum),
        ops.copysign: always(xp.copysign),
        ops.nextafter: always(xp.nextafter),
        ops.floor: rounding(xp.floor),
        ops.ceil: rounding(xp.ceil),
        ops.trunc: rounding(xp.trunc),
        ops.round: rounding(xp.rint),
        ops.clamp: clamp,
    }
