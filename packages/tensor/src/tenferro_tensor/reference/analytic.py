"""Kernels of analytic and special functions."""

import math
from typing import Any

import numpy as np

from tenferro_tensor._primitive import Primitive
from tenferro_tensor._registry import KernelMaker
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import analytic as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, always, any_size
from tenferro_tensor_core import UnsupportedError

MAX_ORDER = 170
"""Largest order of `polygamma`; the factorial of a larger one overflows float64."""


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp` and the module of special functions that `special` loads."""

    def rsqrt(x: Any) -> Any:
        return 1 / xp.sqrt(x)

    @any_size
    def expm1(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return _complex_expm1 if ins[0].cplx else xp.expm1

    def _complex_expm1(z: Any) -> Any:
        # NumPy multiplies an infinity by the sine of a real number, which is 0.
        whole = xp.exp(z)
        with np.errstate(all="ignore"):
            half = xp.sin(z.imag / 2)
            near = xp.expm1(z.real) * xp.cos(z.imag) - 2 * half * half
        less = xp.empty(np.shape(z), z.dtype)
        less.real, less.imag = xp.where(xp.abs(z.real) < 1, near, whole.real - 1), whole.imag
        return less

    def _at_infinity(ufunc: Any, turned: bool) -> KernelMaker:
        """A tangent whose zero at infinity has the sign of the operand, as the array API standard requires."""

        def run(z: Any) -> Any:
            found = xp.asarray(ufunc(z))
            far, near = (z.imag, z.real) if turned else (z.real, z.imag)
            zero = found.real if turned else found.imag
            zero[...] = xp.where(xp.isinf(far) & xp.isfinite(near), xp.copysign(0, near), zero)
            return found

        return any_size(lambda ins, outs: run if ins[0].cplx else ufunc)

    def from_special(name: str) -> KernelMaker:
        @any_size
        def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
            return getattr(special(), name)  # type: ignore[no-any-return]

        return make

    @any_size
    def polygamma(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, order: int) -> Kernel:
        if order > MAX_ORDER:
            raise UnsupportedError(
                f"polygamma of order {order} leaves the range of float64; use an order of at most {MAX_ORDER}",
                order=order,
            )
        if order == 0:
            return special().digamma  # type: ignore[no-any-return]
        zeta, dtype = special().zeta, outs[0].dtype
        factor = -float(math.factorial(order)) if order % 2 == 0 else float(math.factorial(order))
        # float32 is computed in float64, too: the factor alone may overflow float32.
        return lambda x: (factor * zeta(order + 1.0, x.astype("float64"))).astype(dtype)

    plain: dict[Primitive, Any] = {
        ops.sqrt: xp.sqrt, ops.rsqrt: rsqrt, ops.cbrt: xp.cbrt,
        ops.exp: xp.exp, ops.exp2: xp.exp2,
        ops.log: xp.log, ops.log1p: xp.log1p, ops.log2: xp.log2, ops.log10: xp.log10,
        ops.sin: xp.sin, ops.cos: xp.cos,
        ops.asin: xp.arcsin, ops.acos: xp.arccos, ops.atan: xp.arctan,
        ops.sinh: xp.sinh, ops.cosh: xp.cosh,
        ops.asinh: xp.arcsinh, ops.acosh: xp.arccosh, ops.atanh: xp.arctanh,
        ops.atan2: xp.arctan2, ops.hypot: xp.hypot, ops.logaddexp: xp.logaddexp,
    }  # fmt: skip
    return {
        **{primitive: always(ufunc) for primitive, ufunc in plain.items()},
        ops.expm1: expm1,
        ops.tan: _at_infinity(xp.tan, True),
        ops.tanh: _at_infinity(xp.tanh, False),
        ops.erf: from_special("erf"),
        ops.erfc: from_special("erfc"),
        ops.erfinv: from_special("erfinv"),
        ops.lgamma: from_special("gammaln"),
        ops.digamma: from_special("digamma"),
        ops.polygamma: polygamma,
    }
