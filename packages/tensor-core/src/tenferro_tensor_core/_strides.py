"""Arithmetic of shapes and strides: contiguous strides, merging axes and splitting them."""

from collections.abc import Iterator

from ._dims import Dim, DimLike


def contiguous_strides(shape: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    """Strides of a contiguous layout, fastest axis first; as in NumPy, empty axes count as size 1."""
    strides: list[DimLike] = []
    step: DimLike = 1
    for n in shape:
        strides.append(step)
        step = step * (n if isinstance(n, Dim) else max(n, 1))
    return tuple(strides)


def merged(shape: tuple[int, ...], strides: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield (size, stride) of the axes after merging neighbours that step as one."""
    pending: tuple[int, int] | None = None
    for n, s in zip(shape, strides):
        if n == 1:
            continue
        if pending is not None and pending[1] == n * s:
            pending = pending[0] * n, s
            continue
        if pending is not None:
            yield pending
        pending = n, s
    if pending is not None:
        yield pending


def split(axes: list[tuple[int, int]], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return strides that split merged axes into `shape`, or None if a size straddles two of them."""
    strides: list[int] = []
    n, s = 1, 1
    for size in reversed(shape):
        if n == 1 and size > 1:
            n, s = axes.pop()
        if n % size:
            return None
        strides.append(s)
        n, s = n // size, s * size
    return tuple(reversed(strides))
