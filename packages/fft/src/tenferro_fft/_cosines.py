"""Cosine and sine transforms of types 1 to 4, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_fft._transforms import Norm, floating, geometry, require_norm, resized, swapped
from tenferro_fft._trigonometric import TRANSPOSED, Kind, trigonometric
from tenferro_tensor import Array
from tenferro_tensor.identity import apart
from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.tracebacks import boundary


@boundary
def dct(
    x: Any,
    /,
    *,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Discrete cosine transform along one axis; for type 2, ``X[k] = 2 sum_j x[j] cos(pi k (2 j + 1) / (2 n))``.

    Type 1 is ``x[0] + (-1)^k x[n - 1] + 2 sum_j x[j] cos(pi k j / (n - 1))`` with j from 1 to n - 2, type 3
    ``x[0] + 2 sum_j x[j] cos(pi (2 k + 1) j / (2 n))`` with j from 1, type 4
    ``2 sum_j x[j] cos(pi (2 k + 1) (2 j + 1) / (4 n))``. The four types and their symmetries: Strang, SIAM Review 41,
    135 (1999).

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: as in `fft`, with the factor ``1 / m``; m is ``2 (n - 1)`` for type 1, else ``2 n``.
        orthogonalize: scale first and last elements by roots of 2, so that with ``norm="ortho"`` the matrix is
            orthogonal. By default only with that norm.

    Returns:
        Array of the dtype of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: the axis does not exist.

    See also:
        dst: sine transforms.

    >>> dct([1.0, 2.0, 3.0], type=1)
    Tensor([ 8., -2.,  0.])
    """
    return _transformed("dct", "cosine", x, type, None if n is None else (n,), (axis,), norm, orthogonalize)


@boundary
def idct(
    x: Any,
    /,
    *,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Inverse of `dct` of the same type.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: as in `fft`, with the factor ``1 / m``; m is ``2 (n - 1)`` for type 1, else ``2 n``.
        orthogonalize: scale first and last elements by roots of 2, so that with ``norm="ortho"`` the matrix is
            orthogonal. By default only with that norm.

    Returns:
        Array of the dtype of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: the axis does not exist.

    >>> idct(dct([1.0, 2.0, 4.0]))
    Tensor([1., 2., 4.])
    """
    return _transformed("idct", "cosine", x, type, None if n is None else (n,), (axis,), norm, orthogonalize, True)


@boundary
def dst(
    x: Any,
    /,
    *,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Discrete sine transform along one axis; for type 2, ``2 sum_j x[j] sin(pi (k + 1) (2 j + 1) / (2 n))``.

    Type 1 is ``2 sum_j x[j] sin(pi (k + 1) (j + 1) / (n + 1))``, type 3
    ``(-1)^k x[n - 1] + 2 sum_j x[j] sin(pi (2 k + 1) (j + 1) / (2 n))`` with j up to n - 2, type 4
    ``2 sum_j x[j] sin(pi (2 k + 1) (2 j + 1) / (4 n))``.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: as in `fft`, with the factor ``1 / m``; m is ``2 (n + 1)`` for type 1, else ``2 n``.
        orthogonalize: scale first and last elements by roots of 2, so that with ``norm="ortho"`` the matrix is
            orthogonal. By default only with that norm.

    Returns:
        Array of the dtype of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: the axis does not exist.

    See also:
        dct: cosine transforms.

    >>> dst([1.0, 0.0, 0.0], type=3)
    Tensor([1., 2., 1.])
    """
    return _transformed("dst", "sine", x, type, None if n is None else (n,), (axis,), norm, orthogonalize)


@boundary
def idst(
    x: Any,
    /,
    *,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Inverse of `dst` of the same type.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: as in `fft`, with the factor ``1 / m``; m is ``2 (n + 1)`` for type 1, else ``2 n``.
        orthogonalize: scale first and last elements by roots of 2, so that with ``norm="ortho"`` the matrix is
            orthogonal. By default only with that norm.

    Returns:
        Array of the dtype of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: the axis does not exist.

    >>> idst(dst([1.0, 2.0, 4.0], type=4), type=4)
    Tensor([1., 2., 4.])
    """
    return _transformed("idst", "sine", x, type, None if n is None else (n,), (axis,), norm, orthogonalize, True)


@boundary
def dctn(
    x: Any,
    /,
    *,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Discrete cosine transform over several axes.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        s: numbers of points along `axes`, as `n` in `dct`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `dct`, for each axis.
        orthogonalize: as in `dct`.

    Returns:
        Array of the dtype of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: an axis does not exist or appears twice.

    See also:
        dct: one axis, with the formulas.

    >>> dctn([[1.0, 0.0], [0.0, 0.0]], type=2).shape
    (2, 2)
    """
    return _transformed("dctn", "cosine", x, type, s, axes, norm, orthogonalize)


@boundary
def idctn(
    x: Any,
    /,
    *,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Inverse of `dctn` of the same type.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        s: numbers of points along `axes`, as `n` in `dct`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `dct`, for each axis.
        orthogonalize: as in `dct`.

    Returns:
        Array of the dtype of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: an axis does not exist or appears twice.

    >>> idctn(dctn([[1.0, 2.0]], type=4), type=4)
    Tensor([[1., 2.]])
    """
    return _transformed("idctn", "cosine", x, type, s, axes, norm, orthogonalize, True)


@boundary
def dstn(
    x: Any,
    /,
    *,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Discrete sine transform over several axes.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        s: numbers of points along `axes`, as `n` in `dct`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `dst`, for each axis.
        orthogonalize: as in `dst`.

    Returns:
        Array of the dtype of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: an axis does not exist or appears twice.

    See also:
        dst: one axis, with the formulas.

    >>> dstn([[1.0, 0.0], [0.0, 0.0]], type=2).shape
    (2, 2)
    """
    return _transformed("dstn", "sine", x, type, s, axes, norm, orthogonalize)


@boundary
def idstn(
    x: Any,
    /,
    *,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
    orthogonalize: bool | None = None,
) -> Array:
    """Inverse of `dstn` of the same type.

    Args:
        x: real or complex array; real and imaginary parts are transformed separately.
        type: 1 to 4.
        s: numbers of points along `axes`, as `n` in `dct`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `dst`, for each axis.
        orthogonalize: as in `dst`.

    Returns:
        Array of the dtype of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: `type` or `norm` is unknown, or there are too few points.
        AxisError: an axis does not exist or appears twice.

    >>> idstn(dstn([[1.0, 2.0]], type=4), type=4)
    Tensor([[1., 2.]])
    """
    return _transformed("idstn", "sine", x, type, s, axes, norm, orthogonalize, True)


def _transformed(
    what: str,
    kind: Kind,
    x: Any,
    type: int,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: Norm,
    orthogonalize: bool | None,
    inverse: bool = False,
) -> Any:
    if type.__class__ is not int or type not in TRANSPOSED:
        raise ArgumentError(f"{what} takes type 1, 2, 3 or 4, got {type!r}", type=repr(type))
    require_norm(norm)
    given, x = x, floating(x)
    found, points = geometry(what, x, s, axes)
    x = resized(x, found, points)
    if not found:
        return apart(given, x)
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    if inverse:
        type, norm = TRANSPOSED[type], swapped(norm)
    return trigonometric(x, kind=kind, type=type, axes=found, scale=norm, orthogonal=orthogonal)
