"""Parts of complex numbers, and the gradient stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor._steps import IMAGINARY, REAL
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.views import linked, view

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "complex",
    "conj",
    "imag",
    "real",
    "stop_gradient",
]


def __dir__() -> list[str]:
    return __all__.copy()


_COMPLEX: Final = catalog.complex.op()
_CONJ: Final = catalog.conj.op()
_IMAG: Final = catalog.imag.op()
_REAL: Final = catalog.real.op()
_STOP_GRADIENT: Final = catalog.stop_gradient.op()


def complex(x1: Any, x2: Any, /) -> Array:
    """Complex numbers ``x1 + 1j * x2`` from real and imaginary parts.

    Unlike that expression, it preserves the signs of zeros and infinities.

    Args:
        x1: real parts, real.
        x2: imaginary parts, real; both broadcast.

    Returns:
        complex64 or complex128 array of the broadcast shape.

    Raises:
        DTypeError: a part is complex, or of a narrow dtype.
        ShapeError: the shapes do not broadcast.

    >>> tr.complex(tr.asarray([1.0, 2.0]), -1)
    Tensor([1.-1.j, 2.-1.j])
    """
    return _COMPLEX(x1, x2)


def conj(x: Any, /) -> Array:
    """Complex conjugate; real numbers are unchanged.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape and dtype of `x`.

    >>> tr.conj(tr.asarray([1 + 2j]))
    Tensor([1.-2.j])
    """
    return _CONJ(x)


@direct(lambda x: x.imag if x.dtype.kind == "c" else None, ANY_SIZE, views=True)
def imag(x: Any, /) -> Array:
    """Imaginary part, as a view; zeros for real numbers.

    Args:
        x: array of any shape and dtype.

    Returns:
        Real array of the shape of `x`.

    >>> tr.imag(tr.asarray([1 + 2j]))
    Tensor([2.])
    """
    parts = _IMAG(x)
    return linked(x, parts, IMAGINARY) if hasattr(x, "spec") and x.spec.cplx else parts


@view(lambda x: x.real if x.dtype.kind == "c" else x[...], REAL.put)
def real(x: Any, /) -> Array:
    """Real part, as a view; real numbers are unchanged.

    Args:
        x: array of any shape and dtype.

    Returns:
        Real array of the shape of `x`.

    >>> tr.real(tr.asarray([1 + 2j]))
    Tensor([1.])
    """
    return _REAL(x)


def stop_gradient(x: Any, /) -> Array:
    """`x` itself, as a constant of every differentiation.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape and dtype of `x`.

    >>> tr.stop_gradient(tr.asarray([1.0]))
    Tensor([1.])
    """
    return _STOP_GRADIENT(x)
