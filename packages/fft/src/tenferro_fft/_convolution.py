"""Convolution over several axes as a product of spectra, in one piece or in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from tenferro_fft._lengths import next_fast_len
from tenferro_fft._transforms import fftn, floating, ifftn, integers, irfftn, rfftn
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import result_type
from tenferro_tensor_core import ArgumentError, AxisError, Dim, DimLike, ShapeError, ask, floordiv
from tenferro_tensor_core.tracebacks import boundary

Mode = Literal["full", "valid", "same"]


@boundary
def fftconvolve(x: Any, y: Any, /, *, mode: Mode = "full", axes: int | Sequence[int] | None = None) -> Array:
    """Convolution ``z[i] = sum_j x[j] y[i - j]`` over several axes, by Fourier transforms.

    Rounding errors are relative to the largest result, not to each result.

    Args:
        x: real or complex array.
        y: array with the same number of axes.
        mode: ``"full"`` for all results, ``extent + extent - 1`` along each axis; ``"same"`` for the central part, with
            the
            extents of `x`; ``"valid"`` for the part without implicit zeros, for which one operand must be at least as
            large as
            the other along every axis.
        axes: axes to convolve; by default all. Extents along the others are broadcast.

    Returns:
        Array of the floating dtype that the operands promote to.

    Raises:
        ShapeError: the operands do not fit each other.
        ArgumentError: `mode` is unknown.
        AxisError: an axis does not exist or appears twice.

    See also:
        oaconvolve: for operands of very different extents.

    >>> fftconvolve([1.0, 2.0, 3.0], [1.0, 1.0])
    Tensor([1., 3., 5., 3.])
    """
    x, y, found, swap = _operands("fftconvolve", x, y, mode, axes)
    full = _by_spectra(x, y, found) if found else x * y
    return _part(full, x, y, mode, found, swap)


@boundary
def oaconvolve(x: Any, y: Any, /, *, mode: Mode = "full", axes: int | Sequence[int] | None = None) -> Array:
    """Convolution as `fftconvolve`, by the overlap-add method: the longer operand is split into blocks.

    Faster for operands of very different extents (Stockham, 1966). Axes with symbolic extents are one block.

    Args:
        x: real or complex array.
        y: array with the same number of axes.
        mode: ``"full"`` for all results, ``extent + extent - 1`` along each axis; ``"same"`` for the central part, with
            the
            extents of `x`; ``"valid"`` for the part without implicit zeros, for which one operand must be at least as
            large as
            the other along every axis.
        axes: axes to convolve; by default all. Extents along the others are broadcast.

    Returns:
        Array of the floating dtype that the operands promote to.

    Raises:
        ShapeError: the operands do not fit each other.
        ArgumentError: `mode` is unknown.
        AxisError: an axis does not exist or appears twice.

    See also:
        fftconvolve: a single block.

    >>> oaconvolve([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0], mode="valid")
    Tensor([3., 5., 7., 9.])
    """
    x, y, found, swap = _operands("oaconvolve", x, y, mode, axes)
    steps = {a: _step(x.spec.shape[a], y.spec.shape[a]) for a in found}
    if all(step is None for step in steps.values()):
        full = _by_spectra(x, y, found) if found else x * y
    else:
        full = _by_blocks(x, y, found, steps)
    return _part(full, x, y, mode, found, swap)


def _operands(what: str, x: Any, y: Any, mode: Any, axes: Any) -> tuple[Any, Any, tuple[int, ...], bool]:
    """Operands of one dtype, non-negative axes, and whether `y` is the larger operand in the mode ``"valid"``."""
    if not isinstance(mode, str) or mode not in ("full", "valid", "same"):
        raise ArgumentError(f"{what} takes mode 'full', 'valid' or 'same', got {mode!r}", mode=mode)
    x, y = floating(x), floating(y)
    dtype = result_type(x, y)
    x, y = (v if v.dtype == dtype else catalog.convert(v, dtype=dtype) for v in (x, y))
    if x.ndim != y.ndim:
        raise ShapeError(
            f"{what} takes arrays with equally many axes, got shapes {x.spec.shape} and {y.spec.shape}",
            shapes=(x.spec.shape, y.spec.shape),
        )
    chosen = range(x.ndim) if axes is None else integers(what, "axes", [axes] if isinstance(axes, int) else axes)
    if any(not -x.ndim <= a < x.ndim for a in chosen) or len({a % x.ndim for a in chosen}) < len(chosen):
        raise AxisError(f"{what}: axes must be distinct and exist in shape {x.spec.shape}, got {tuple(chosen)}")
    found = tuple(sorted(a % x.ndim for a in chosen))
    for a, (m, n) in enumerate(zip(x.spec.shape, y.spec.shape, strict=True)):
        if a not in found and not (m == 1 or n == 1 or m == n or ask(m, "==", n)):
            raise ShapeError(
                f"{what} broadcasts extents along axes that it does not convolve, but axis {a} of shapes "
                f"{x.spec.shape} and {y.spec.shape} does not fit",
                axis=a,
            )
        if a in found and (ask(m, "==", 0) or ask(n, "==", 0)):
            raise ShapeError(
                f"{what} needs elements along axis {a}, got shapes {x.spec.shape} and {y.spec.shape}", axis=a
            )
    swap = False
    if mode == "valid":
        pairs = [(x.spec.shape[a], y.spec.shape[a]) for a in found]
        swap = not all(ask(m, ">=", n) for m, n in pairs)
        if swap and not all(ask(m, "<=", n) for m, n in pairs):
            raise ShapeError(
                f"{what} in the mode 'valid' needs one operand that is at least as large along every axis, got shapes "
                f"{x.spec.shape} and {y.spec.shape}",
                shapes=(x.spec.shape, y.spec.shape),
            )
    return x, y, found, swap


def _full(x: Any, y: Any, axes: tuple[int, ...]) -> list[DimLike]:
    return [x.spec.shape[a] + y.spec.shape[a] - 1 for a in axes]


def _by_spectra(x: Any, y: Any, axes: tuple[int, ...]) -> Any:
    full = _full(x, y, axes)
    points: list[Any] = [_fast(n, not x.spec.cplx) for n in full]
    forward, backward = (fftn, ifftn) if x.spec.cplx else (rfftn, irfftn)
    product = forward(x, s=points, axes=axes) * forward(y, s=points, axes=axes)
    return _span(backward(product, s=points, axes=axes), axes, [0] * len(axes), full)


def _fast(n: DimLike, real: bool) -> DimLike:
    return n if isinstance(n, Dim) else next_fast_len(n, real=real)


def _step(m: DimLike, n: DimLike) -> int | None:
    """New elements per block, or ``None`` if a single block is at least as fast."""
    if isinstance(m, Dim) or isinstance(n, Dim):
        return None
    long, short = max(m, n), min(m, n)
    if short == 1 or long < 2 * short:
        return None
    # Minimize the cost per element of blocks of length L: about log2(L) L / (L - short + 1).
    best = min(
        (next_fast_len(short << k) for k in range(1, 24)),
        key=lambda size: size * math.log2(size) * -(-long // (size - short + 1)),
    )
    whole = next_fast_len(long + short - 1)
    if whole * math.log2(whole) <= best * math.log2(best) * -(-long // (best - short + 1)):
        return None
    return best - short + 1


def _by_blocks(x: Any, y: Any, axes: tuple[int, ...], steps: dict[int, int | None]) -> Any:
    """Convolve with every blocked axis split into two: blocks, and elements of a block."""
    full = _full(x, y, axes)
    parts: list[list[DimLike]] = [[], []]
    sizes, inner = [], []  # lengths of the transforms, and their axes among those of the blocks
    for a in range(x.ndim):
        step = steps.get(a)
        m, n = x.spec.shape[a], y.spec.shape[a]
        if step is not None:
            blocks, short = -(-max(m, n) // step), min(m, n)
            parts[0] += (blocks, step) if m >= n else (1, m)
            parts[1] += (1, n) if m >= n else (blocks, step)
            sizes.append(step + short - 1)
        else:
            parts[0].append(m)
            parts[1].append(n)
            if a in axes:
                sizes.append(_fast(m + n - 1, not x.spec.cplx))
        if a in axes:
            inner.append(len(parts[0]) - 1)
    x, y = (_cut(v, shape, steps) for v, shape in zip((x, y), parts, strict=True))
    forward, backward = (fftn, ifftn) if x.spec.cplx else (rfftn, irfftn)
    product = forward(x, s=sizes, axes=inner) * forward(y, s=sizes, axes=inner)
    z = backward(product, s=sizes, axes=inner)
    for a, at, n in reversed(list(zip(axes, inner, full, strict=True))):
        step = steps[a]
        z = _span(z, (at,), [0], [n]) if step is None else _span(_overlapped(z, at, step), (at - 1,), [0], [n])
    return z


def _cut(x: Any, shape: list[DimLike], steps: dict[int, int | None]) -> Any:
    """Zero-pad axes to whole blocks, and split them."""
    grow, at = [], 0
    for a in range(x.ndim):
        if steps.get(a) is None:
            grow.append(0)
            at += 1
        else:
            grow.append(shape[at] * shape[at + 1] - x.spec.shape[a])
            at += 2
    none = (0,) * x.ndim
    return catalog.reshape(catalog.pad(x, 0.0, low=none, high=tuple(grow), interior=none), shape=tuple(shape))


def _overlapped(z: Any, at: int, step: int) -> Any:
    """Overlap-add: merge blocks (axis ``at - 1``) of elements (axis `at`) with starts `step` apart into one axis."""
    blocks, size = z.spec.shape[at - 1], z.spec.shape[at]
    pieces = -(-size // step)
    none = [0] * z.ndim
    high = [*none]
    high[at] = pieces * step - size
    z = catalog.pad(z, 0.0, low=tuple(none), high=tuple(high), interior=tuple(none))
    out = None
    for k in range(pieces):
        low, high = [*none], [*none]
        low[at - 1], high[at - 1] = k, pieces - 1 - k
        piece = _span(z, (at,), [k * step], [(k + 1) * step])
        moved = catalog.pad(piece, 0.0, low=tuple(low), high=tuple(high), interior=tuple(none))
        out = moved if out is None else out + moved
    shape = out.spec.shape  # type: ignore[union-attr]
    return catalog.reshape(out, shape=(*shape[: at - 1], (blocks + pieces - 1) * step, *shape[at + 1 :]))


def _part(full: Any, x: Any, y: Any, mode: str, axes: tuple[int, ...], swap: bool) -> Any:
    if mode == "full" or not axes:
        return full
    if swap:
        x, y = y, x
    starts, limits = [], []
    for a in axes:
        m, n = x.spec.shape[a], y.spec.shape[a]
        start = floordiv(n - 1, 2) if mode == "same" else n - 1
        starts.append(start)
        limits.append(start + m if mode == "same" else m)
    return _span(full, axes, starts, limits)


def _span(x: Any, axes: Sequence[int], lo: Sequence[DimLike], hi: Sequence[DimLike]) -> Any:
    start: list[DimLike] = [0] * x.ndim
    limit = list(x.spec.shape)
    for a, i, j in zip(axes, lo, hi, strict=True):
        start[a], limit[a] = i, j
    return catalog.slice_(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)
