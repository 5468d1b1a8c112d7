"""One linear primitive for the cosine and sine transforms of types 1 to 4.

The matrices of types 1 and 4 are symmetric, and type 3 is the transpose of type 2, except that the first row or column
(for sines the last, for cosines of type 1 both) has weight one half. An orthogonal transform includes these weights, so
its transpose is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from tenferro_fft._primitives import FORWARD, c2c, require_points
from tenferro_runtime.batching import shifting
from tenferro_runtime.extension import Linear, Registry, Spec, get_backend, primitive, sized
from tenferro_tensor import catalog
from tenferro_tensor_core import ArgumentError, AxisError, DimLike, DTypeError, ask, real_of

Kind = Literal["cosine", "sine"]
Scale = Literal["backward", "ortho", "forward"]

TRANSPOSED: Final = {1: 1, 2: 3, 3: 2, 4: 4}
"""Type of the transpose, and of the inverse, of a transform of each type."""


@primitive(family="tenferro-fft.trigonometric.v1", extension="fft")
def trigonometric(x: Spec, *, kind: Kind, type: int, axes: tuple[int, ...], scale: Scale, orthogonal: bool) -> Spec:
    """Cosine or sine transform over `axes`, of real and imaginary parts separately.

    Args:
        x: floating-point array.
        kind: ``"cosine"`` or ``"sine"``.
        type: 1 to 4.
        axes: distinct axes.
        scale: ``"backward"`` does not scale; ``"forward"`` divides by the logical number of points along each axis,
            ``2 (n - 1)`` for cosines of type 1, ``2 (n + 1)`` for sines of type 1, else ``2 n``; ``"ortho"`` by its
            square root.
        orthogonal: whether the first and last elements are weighted so that the scaled matrix is orthogonal.
    """
    if not x.inexact or x.narrow:
        raise DTypeError(f"a cosine or sine transform needs floating-point input, got {x!r}", dtype=str(x.dtype))
    if len(set(axes)) < len(axes) or not all(0 <= a < x.ndim for a in axes):
        raise AxisError(f"a {kind} transform needs distinct axes below {x.ndim}, got {axes}", axes=axes, ndim=x.ndim)
    for a in axes:
        require_points(f"a {kind} transform", x, a, x.shape[a])
        if kind == "cosine" and type == 1 and ask(x.shape[a], "<", 2):
            raise ArgumentError(
                f"a cosine transform of type 1 needs at least two points along axis {a}, but the shape is {x.shape}",
                axis=a,
            )
    return x


def logical(n: DimLike, kind: Kind, type: int) -> DimLike:
    """Number of points of the Fourier transform equivalent to a transform of `n` points."""
    return 2 * n if type != 1 else 2 * (n - 1) if kind == "cosine" else 2 * (n + 1)


def _transpose(g: Any, kind: Kind, type: int, axes: tuple[int, ...], scale: Scale, orthogonal: bool) -> Any:
    found = {"kind": kind, "type": TRANSPOSED[type], "axes": axes, "scale": scale, "orthogonal": orthogonal}
    if orthogonal or type == 4 or (type == 1 and kind == "sine"):
        return trigonometric(g, **found)
    if type == 1:
        return _weighted(trigonometric(_weighted(g, axes, (0, -1), 2.0), **found), axes, (0, -1), 0.5)
    ends = (0,) if kind == "cosine" else (-1,)
    if type == 2:
        return trigonometric(_weighted(g, axes, ends, 2.0), **found)
    return _weighted(trigonometric(g, **found), axes, ends, 0.5)


def _weighted(x: Any, axes: tuple[int, ...], ends: tuple[int, ...], by: float) -> Any:
    """`x` with the first (0) or last (-1) elements along each axis multiplied by a number."""
    for axis in axes:
        at = _index(x, axis)
        alone = None
        for end in ends:
            place = end if end == 0 else catalog.dim_value(size=x.spec.shape[axis] - 1, place=x.spec.place)
            found = catalog.eq(at, place)
            alone = found if alone is None else alone | found
        x = x * _like(catalog.convert(catalog.select(alone, by, 1.0), dtype=real_of(x.dtype)), x, axis)
    return x


def _index(x: Any, axis: int, n: DimLike | None = None) -> Any:
    """The integers below an extent, by default that of `x` along an axis."""
    n = x.spec.shape[axis] if n is None else n
    return catalog.iota(shape=(n,), dtype=np.dtype(np.int64), axis=0, place=x.spec.place)


def _like(v: Any, x: Any, axis: int) -> Any:
    """A vector along one axis of the shape of `x`."""
    return catalog.broadcast_in_dim(v, shape=x.spec.shape, dims=(axis,))


def _expanded(x: Any, *, kind: Kind, type: int, axes: tuple[int, ...], scale: Scale, orthogonal: bool) -> Any:
    """The expansion: Fourier transforms of the arrays extended by the symmetries of cosines or sines."""
    for axis in axes:
        n = x.spec.shape[axis]
        if orthogonal:
            x = _balanced(x, axis, kind, type, 1)
        y = _sines(x, axis, type) if kind == "sine" else _cosines(x, axis, type)
        if orthogonal:
            y = _balanced(y, axis, kind, type, -1)
        x = y if scale == "backward" else y * _power(logical(n, kind, type), -1.0 if scale == "forward" else -0.5, y)
    return x


def _balanced(x: Any, axis: int, kind: Kind, type: int, before: int) -> Any:
    """The weights of an orthogonal transform, before (1) or after (-1) the sums."""
    root = math.sqrt(2.0) ** before
    ends = (0,) if kind == "cosine" else (-1,)
    if type == 1 and kind == "cosine":
        return _weighted(x, (axis,), (0, -1), root)
    return _weighted(x, (axis,), ends, root) if type == (3 if before == 1 else 2) else x


def _power(n: DimLike, exponent: float, y: Any) -> Any:
    if isinstance(n, int):
        return float(n) ** exponent
    at = catalog.convert(catalog.dim_value(size=n, place=y.spec.place), dtype=np.dtype(np.float64))
    return catalog.convert(1.0 / (at if exponent == -1.0 else catalog.sqrt(at)), dtype=real_of(y.dtype))


def _cosines(x: Any, axis: int, type: int) -> Any:
    n = x.spec.shape[axis]
    if type == 1:
        inner = _span(_span(x, axis, 1, n), axis, 0, n - 2)
        return _parts(x, _spectrum(_joined(axis, x, _reverse(inner, axis)), axis), axis, n)
    if type == 2:  # symmetric about -1/2
        y = _span(_spectrum(_joined(axis, x, _reverse(x, axis)), axis), axis, 0, n)
        return _parts(x, _turned(y, axis, n, 1.0, 0.0), axis, n)
    if type == 3:
        ahead = _turned(_complex(x), axis, n, 1.0, 0.0)
        behind = _reverse(_span(_turned(_complex(x), axis, n, -1.0, 0.0), axis, 1, n), axis)
        zero = _span(ahead, axis, 0, 1) * 0.0
        return _parts(x, _spectrum(_joined(axis, ahead, zero, behind), axis), axis, n)
    # symmetric about -1/2, antisymmetric about n - 1/2
    whole = _complex(_joined(axis, x, -_reverse(x, axis)))
    y = _span(_spectrum(_turned(whole, axis, n, 1.0, 0.0), axis), axis, 0, n)
    return _parts(x, _turned(y, axis, n, 1.0, 0.5), axis, n)


def _sines(x: Any, axis: int, type: int) -> Any:
    n = x.spec.shape[axis]
    if type == 1:
        zero = _span(x, axis, 0, 1) * 0.0
        y = _spectrum(_joined(axis, zero, x, zero, -_reverse(x, axis)), axis)
        return _parts(x, _span(y, axis, 1, n + 1) * 1j, axis, n)
    if type == 2:
        return _reverse(_cosines(_alternating(x, axis), axis, 2), axis)
    return _alternating(_cosines(_reverse(x, axis), axis, type), axis)


def _complex(x: Any) -> Any:
    return x if x.spec.cplx else catalog.complex(x, catalog.mul(x, 0.0))


def _spectrum(x: Any, axis: int) -> Any:
    return c2c(_complex(x), axes=(axis,), sign=FORWARD)


def _parts(x: Any, y: Any, axis: int, n: DimLike) -> Any:
    """The first `n` coefficients, real for real operands."""
    y = _span(y, axis, 0, n)
    return y if x.spec.cplx else catalog.real(y)


def _turned(x: Any, axis: int, n: DimLike, sign: float, shift: float) -> Any:
    """Element k times ``exp(-sign pi i (k + shift) / (2 n))``, with angles accurate to about one rounding error."""
    float64 = np.dtype(np.float64)
    k = catalog.convert(_index(x, axis), dtype=float64) + shift
    points = catalog.convert(catalog.dim_value(size=2 * n, place=x.spec.place), dtype=float64)
    angle = k * (-sign * math.pi) / points
    dtype = real_of(x.dtype)
    re, im = (catalog.convert(f(angle), dtype=dtype) for f in (catalog.cos, catalog.sin))
    return x * _like(catalog.complex(re, im), x, axis)


def _alternating(x: Any, axis: int) -> Any:
    odd = catalog.eq(catalog.remainder(_index(x, axis), 2), 1)
    return x * _like(catalog.convert(catalog.select(odd, -1.0, 1.0), dtype=real_of(x.dtype)), x, axis)


def _reverse(x: Any, axis: int) -> Any:
    return catalog.reverse(x, axes=(axis,))


def _span(x: Any, axis: int, lo: DimLike, hi: DimLike) -> Any:
    start = tuple(lo if a == axis else 0 for a in range(x.ndim))
    limit = tuple(hi if a == axis else d for a, d in enumerate(x.spec.shape))
    return catalog.slice_(x, start=start, limit=limit, stride=(1,) * x.ndim)


def _joined(axis: int, *parts: Any) -> Any:
    return catalog.concatenate(*parts, axis=axis)


def _make(
    ins: Any, outs: Any, *, kind: Kind, type: int, axes: tuple[int, ...], scale: Scale, orthogonal: bool
) -> Callable[..., Any]:
    """Kernels by SciPy."""
    lib = get_backend("cpu").library("scipy.fft")
    told: dict[str, Any] = {"type": type, "norm": scale, "orthogonalize": orthogonal}
    if len(axes) == 1:
        run, told["axis"] = lib.dct if kind == "cosine" else lib.dst, axes[0]
    else:
        run, told["axes"] = lib.dctn if kind == "cosine" else lib.dstn, axes

    def real(x: Any) -> Any:
        return run(x, **told) if x.size else x.copy()

    def parts(x: Any) -> Any:  # SciPy ignores `orthogonalize` for complex arrays
        out = np.empty(x.shape, x.dtype)
        out.real, out.imag = real(x.real), real(x.imag)
        return out

    return parts if outs[0].cplx else real


def register(registry: Registry) -> None:
    """Register the CPU kernel; other backends, and XLA, use the expansion to Fourier transforms."""
    registry.kernel(trigonometric, "cpu", sized(lambda ins, outs, **_: ())(_make))
    registry.expansion(trigonometric, _expanded, keep=True)
    registry.rule(trigonometric, Linear(x=_transpose))
    registry.batching(trigonometric, shifting(trigonometric, "axes"))
