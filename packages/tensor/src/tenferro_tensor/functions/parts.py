"""Parts of complex numbers, and the gradient stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "complex",
    "conj",
    "imag",
    "real",
    "stop_gradient",
]

_COMPLEX: Final = catalog.complex.op()
_CONJ: Final = catalog.conj.op()
_IMAG: Final = catalog.imag.op()
_REAL: Final = catalog.real.op()
_STOP_GRADIENT: Final = catalog.stop_gradient.op()


def complex(x1: Any, x2: Any, /) -> Array:
    """The complex numbers ``x1 + 1j * x2`` of real parts `x1` and imaginary parts `x2`.

    Signs of zeros and infinities stay as they are, which the sum of products would not keep.

    >>> tr.complex(tr.asarray([1.0, 2.0]), -1)
    Tensor([1.-1.j, 2.-1.j])
    """
    return _COMPLEX(x1, x2)


def conj(x: Any, /) -> Array:
    """Complex conjugate; real numbers are unchanged.

    >>> tr.conj(tr.asarray([1 + 2j]))
    Tensor([1.-2.j])
    """
    return _CONJ(x)


def imag(x: Any, /) -> Array:
    """Imaginary part; 0 for real numbers.

    >>> tr.imag(tr.asarray([1 + 2j]))
    Tensor([2.])
    """
    return _IMAG(x)


def real(x: Any, /) -> Array:
    """Real part; real numbers are unchanged.

    >>> tr.real(tr.asarray([1 + 2j]))
    Tensor([1.])
    """
    return _REAL(x)


def stop_gradient(x: Any, /) -> Array:
    """`x` itself, but no derivative passes.

    >>> tr.stop_gradient(tr.asarray([1.0]))
    Tensor([1.])
    """
    return _STOP_GRADIENT(x)
