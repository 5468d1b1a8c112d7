"""Parts and kinds of numbers: complex parts, conversion between dtypes, and the gradient stop."""

from typing import Any

import numpy as np

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import DTypeError, complex_of, real_of
from tenferro_tensor_core import dtype as known_dtype

__all__ = ["complex", "conj", "convert", "imag", "real", "stop_gradient"]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive(elementwise=True, widens=False)
def conj(x: Spec) -> Spec:
    """Complex conjugate; real numbers are unchanged."""
    return x


@primitive(elementwise=True, widens=False)
def real(x: Spec) -> Spec:
    """Real part; real numbers are unchanged."""
    return x.with_(dtype=real_of(x.dtype)) if x.cplx else x


@primitive(elementwise=True, widens=False)
def imag(x: Spec) -> Spec:
    """Imaginary part; 0 for real numbers."""
    return x.with_(dtype=real_of(x.dtype)) if x.cplx else x


@primitive(elementwise=True, domain="floating")
def complex(re: Spec, im: Spec) -> Spec:
    """Complex number with the given real and imaginary parts; narrow dtypes are an error."""
    if re.narrow:
        raise DTypeError(
            f"complex is not defined for {re.dtype.name}, which has no complex type; convert to float32 first",
            dtype=str(re.dtype),
        )
    return re.with_(dtype=complex_of(re.dtype))


@primitive(elementwise=True, widens=False)
def convert(x: Spec, *, dtype: np.dtype[Any]) -> Spec:
    """`x` in another dtype, even if the conversion loses information.

    Complex to real keeps the real part, floating point to integer truncates, anything to boolean compares with zero.
    The public functions `astype`, `convert` and `cast` check what a user may request; this primitive performs it.

    Args:
        x: operand.
        dtype: dtype object of the result.

    Returns:
        Spec of `x` with the dtype.
    """
    if known_dtype(dtype) != dtype:
        raise DTypeError(f"convert needs a dtype object, got {dtype!r}", dtype=repr(dtype))
    return x.with_(dtype=dtype)


@primitive(elementwise=True, widens=False)
def stop_gradient(x: Spec) -> Spec:
    """`x` itself, as a constant of every differentiation."""
    return x
