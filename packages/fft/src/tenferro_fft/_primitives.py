"""The three linear primitives of the family: complex to complex, real to half spectrum, half spectrum to real.

None of them scales. Under the pairing Re(conj(a) b), the transpose of a transform is its conjugate transform: ``c2c``
with the other sign, and for half spectra the opposite half transform with weights, because each coefficient between
the first and the last also represents its mirror image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tenferro_runtime.batching import shifting
from tenferro_runtime.extension import Linear, Providers, Registry, Spec, get_backend, primitive
from tenferro_tensor import catalog
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    DimLike,
    DTypeError,
    ask,
    complex_of,
    floordiv,
    real_of,
    require_equal,
)

FORWARD: Final = -1
BACKWARD: Final = +1
"""Sign of the exponent."""


def _checked(what: str, x: Spec, axes: tuple[int, ...]) -> None:
    if len(set(axes)) < len(axes) or not all(0 <= a < x.ndim for a in axes):
        raise AxisError(f"{what} needs distinct axes below {x.ndim}, got {axes}", axes=axes, ndim=x.ndim)
    for a in axes:
        require_points(what, x, a, x.shape[a])


def require_points(what: str, x: Spec, a: int, n: DimLike) -> None:
    """Raise unless an axis has points."""
    if ask(n, "<", 1):
        raise ArgumentError(
            f"{what} needs at least one point along axis {a}, but the shape is {x.shape}; pass n to pad it", axis=a
        )


@primitive(family="tenferro-fft.c2c.v1", extension="fft")
def c2c(x: Spec, *, axes: tuple[int, ...], sign: int) -> Spec:
    """Discrete Fourier transform over `axes`, ``sum_j x[j] exp(sign * 2 pi i j k / n)``, unscaled.

    Real input costs half the work.
    """
    if not x.inexact or x.narrow:
        raise DTypeError(f"c2c needs complex or real floating-point input, got {x!r}", dtype=str(x.dtype))
    _checked("a Fourier transform", x, axes)
    return x if x.cplx else x.with_(dtype=complex_of(x.dtype))


@primitive(family="tenferro-fft.r2c.v1", extension="fft")
def r2c(x: Spec, *, axis: int) -> Spec:
    """First half (``n // 2 + 1`` coefficients) of the forward transform of real input along `axis`, unscaled."""
    if x.dtype.kind != "f" or x.narrow:
        raise DTypeError(
            f"r2c needs real floating-point input, got {x!r}; use fft for complex input", dtype=str(x.dtype)
        )
    _checked("a real Fourier transform", x, (axis,))
    return x.with_(shape=_resized(x, axis, half(x.shape[axis])), dtype=complex_of(x.dtype))


@primitive(family="tenferro-fft.c2r.v1", extension="fft")
def c2r(x: Spec, *, axis: int, n: DimLike) -> Spec:
    """Real signal of `n` points whose half spectrum along `axis` is `x`, unscaled; inverse of `r2c` up to ``1 / n``.

    The imaginary parts of the first coefficient and, for even `n`, of the last are ignored.
    """
    if not x.cplx:
        raise DTypeError(f"c2r needs complex input, got {x!r}; convert it first", dtype=str(x.dtype))
    _checked("a real inverse Fourier transform", x, (axis,))
    require_points("a real inverse Fourier transform", x, axis, n)
    require_equal(x.shape[axis], half(n), f"half spectrum of {n} points along axis {axis}")
    return x.with_(shape=_resized(x, axis, n), dtype=real_of(x.dtype))


def half(n: DimLike) -> DimLike:
    """Number of coefficients that determine the spectrum of `n` real points."""
    return floordiv(n, 2) + 1


def _resized(x: Spec, axis: int, n: DimLike) -> tuple[DimLike, ...]:
    return (*x.shape[:axis], n, *x.shape[axis + 1 :])


def _mirror_weights(spec: Spec, axis: int, n: DimLike) -> Any:
    """The number of coefficients of the full spectrum that each coefficient of the half spectrum represents: 1 or 2."""
    dtype = real_of(spec.dtype)
    k = catalog.iota(shape=spec.shape, dtype=dtype, axis=axis, place=spec.place)
    # k = 0 and, for even n, k = n / 2 are their own mirror images.
    last = float(n) if isinstance(n, int) else catalog.convert(catalog.dim_value(size=n, place=spec.place), dtype=dtype)
    alone = (k == 0.0) | (k * 2.0 == last)
    return catalog.select(alone, 1.0, 2.0).astype(dtype)


def _c2c_transpose(g: Any, x_spec: Spec, axes: tuple[int, ...], sign: int) -> Any:
    y = c2c(g, axes=axes, sign=-sign)
    return y if x_spec.cplx else catalog.real(y)


def _r2c_transpose(g: Any, x_spec: Spec, axis: int) -> Any:
    n = x_spec.shape[axis]
    return c2r(g / _mirror_weights(g.spec, axis, n), axis=axis, n=n)


def _c2r_transpose(g: Any, x_spec: Spec, axis: int, n: DimLike) -> Any:
    y = r2c(g, axis=axis)
    return y * _mirror_weights(y.spec, axis, n)


def _result_shape(ins: Any, outs: Any, **_: Any) -> tuple[Any, ...]:
    return (outs[0].shape,)


def _make_c2c(lib: Any, ins: Any, outs: Any, *, axes: tuple[int, ...], sign: int) -> Callable[..., Any]:
    if len(axes) == 1:  # the one-dimensional functions have less overhead
        (axis,) = axes
        if sign == FORWARD:
            return _nonempty(lambda x, shape: lib.fft(x, axis=axis), outs[0])
        return _nonempty(lambda x, shape: lib.ifft(x, axis=axis, norm="forward"), outs[0])
    if sign == FORWARD:
        return _nonempty(lambda x, shape: lib.fftn(x, axes=axes), outs[0])
    return _nonempty(lambda x, shape: lib.ifftn(x, axes=axes, norm="forward"), outs[0])


def _make_r2c(lib: Any, ins: Any, outs: Any, *, axis: int) -> Callable[..., Any]:
    return _nonempty(lambda x, shape: lib.rfft(x, axis=axis), outs[0])


def _make_c2r(lib: Any, ins: Any, outs: Any, *, axis: int, n: DimLike) -> Callable[..., Any]:
    return _nonempty(lambda x, shape: lib.irfft(x, n=shape[axis], axis=axis, norm="forward"), outs[0])


def _nonempty(run: Callable[..., Any], out: Spec) -> Callable[..., Any]:
    """Handle empty batches, which the libraries refuse."""
    dtype = out.dtype

    def guarded(x: Any, shape: tuple[int, ...]) -> Any:
        return run(x, shape) if x.size else x.real.astype(dtype).reshape(-1)[:0].reshape(shape)

    return guarded


def _library(backend: str) -> Any:
    return get_backend(backend).library("scipy.fft")


class _Copying:
    """ROCm's transforms, with a copy for `irfft`, because hipFFT clears imaginary parts of its operand in place."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_library("rocm"), name)

    def irfft(self, x: Any, **told: Any) -> Any:
        return _library("rocm").irfft(x.copy(), **told)


PROVIDERS: Final = Providers(
    "fft", {"cpu": partial(_library, "cpu"), "cuda": partial(_library, "cuda"), "rocm": _Copying}
)
"""Functions with the interface of ``scipy.fft``, by backend; kernels choose norms that do not scale."""


def register(registry: Registry) -> None:
    """Register kernels by SciPy and CuPy, and the rules."""
    PROVIDERS.kernels(registry, c2c, _make_c2c, sizes=_result_shape)
    PROVIDERS.kernels(registry, r2c, _make_r2c, sizes=_result_shape)
    PROVIDERS.kernels(registry, c2r, _make_c2r, sizes=_result_shape)
    registry.rule(c2c, Linear(x=_c2c_transpose))
    registry.rule(r2c, Linear(x=_r2c_transpose))
    registry.rule(c2r, Linear(x=_c2r_transpose))
    registry.batching(c2c, shifting(c2c, "axes"))
    registry.batching(r2c, shifting(r2c, "axis"))
    registry.batching(c2r, shifting(c2r, "axis"))
