"""Parts of complex numbers, and the gradient stop."""

from typing import Any, Final

from tenferro_tensor import catalog

__all__ = [
    "conj",
    "imag",
    "real",
    "stop_gradient",
]

_CONJ: Final = catalog.conj.op()
_IMAG: Final = catalog.imag.op()
_REAL: Final = catalog.real.op()
_STOP_GRADIENT: Final = catalog.stop_gradient.op()


def conj(x: Any, /) -> Any:
    """Complex conjugate; real numbers are unchanged.

    >>> tr.conj(tr.asarray([1 + 2j]))
    Tensor([1.-2.j])
    """
    return _CONJ(x)


def imag(x: Any, /) -> Any:
    """Imaginary part; 0 for real numbers.

    >>> tr.imag(tr.asarray([1 + 2j]))
    Tensor([2.])
    """
    return _IMAG(x)


def real(x: Any, /) -> Any:
    """Real part; real numbers are unchanged.

    >>> tr.real(tr.asarray([1 + 2j]))
    Tensor([1.])
    """
    return _REAL(x)


def stop_gradient(x: Any, /) -> Any:
    """`x` itself, but no derivative passes.

    >>> tr.stop_gradient(tr.asarray([1.0]))
    Tensor([1.])
    """
    return _STOP_GRADIENT(x)
