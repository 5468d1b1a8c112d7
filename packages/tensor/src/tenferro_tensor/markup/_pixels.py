"""`pixels`: a matrix as a small image, one pixel for one or several elements."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any, Final

import numpy as np

from tenferro_tensor.markup._elements import Markup, element

SIDE: Final = 60
"""Maximum number of pixels along the longer axis."""

NEGATIVE, POSITIVE, UNDEFINED = (0, 114, 178), (230, 159, 0), (213, 94, 0)
"""Colours of elements by sign, and of NaN; the opacity is the absolute value."""


def pixels(matrix: np.ndarray[Any, Any], side: int = 120) -> Markup:
    """A matrix as an enlarged image: blue below zero, orange above, transparent at zero.

    Args:
        matrix: array of two axes; complex elements are shown by their absolute values.
        side: size of the longer axis on the screen, in pixels.

    Returns:
        An image with embedded data.
    """
    a = _sampled(matrix)
    a = np.abs(a) if a.dtype.kind == "c" else a.astype(np.float64)
    absolute = np.abs(a)
    finite = absolute[np.isfinite(absolute)]
    largest = finite.max() if finite.size and finite.max() else 1.0
    with np.errstate(invalid="ignore"):
        opacity = np.where(np.isfinite(absolute), np.minimum(absolute / largest, 1.0), 1.0)
    rgba = np.empty((*a.shape, 4), np.uint8)
    rgba[..., :3] = np.where((a < 0)[..., None], NEGATIVE, POSITIVE)
    rgba[np.isnan(a), :3] = UNDEFINED
    rgba[..., 3] = np.rint(255 * opacity)
    return _image(rgba, side)


def pattern(
    rows: np.ndarray[Any, Any], columns: np.ndarray[Any, Any], shape: tuple[int, int], side: int = 120
) -> Markup:
    """The entries of a sparse matrix as an image; pixels are darker the more entries they represent.

    Args:
        rows: row index of each entry.
        columns: column index of each entry.
        shape: extents of the matrix.
        side: size of the longer axis on the screen, in pixels.

    Returns:
        An image with embedded data.
    """
    step = max(1, -(-max(shape) // SIDE))
    height, width = (max(1, -(-n // step)) for n in shape)
    counts = np.bincount(rows // step * width + columns // step, minlength=height * width).reshape(height, width)
    rgba = np.empty((height, width, 4), np.uint8)
    rgba[..., :3] = NEGATIVE
    rgba[..., 3] = np.where(counts, 80 + np.rint(175 * counts / max(1, counts.max())), 0)
    return _image(rgba, side)


def _image(rgba: np.ndarray[Any, Any], side: int) -> Markup:
    rows, columns = rgba.shape[:2]
    scale = side / max(rows, columns)
    size = f"width:{columns * scale:.0f}px;height:{rows * scale:.0f}px"
    style = f"image-rendering:pixelated;border:1px solid #88888888;flex:none;{size}"
    source = f"data:image/png;base64,{b64encode(_png(rgba)).decode()}"
    return element("img", src=source, alt=f"{rows} by {columns} pixels", style=style)


def _sampled(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The element of largest absolute value of each block, among a sample, so that a diagonal stays visible."""
    step = -(-max(matrix.shape) // SIDE)
    if step == 1:
        return matrix
    a = matrix[:: max(1, step // 4), :: max(1, step // 4)]  # about four samples of a block along each axis
    step = -(-max(a.shape) // SIDE)
    padded = np.zeros([-(-n // step) * step for n in a.shape], a.dtype)
    padded[: a.shape[0], : a.shape[1]] = a
    blocks = padded.reshape(padded.shape[0] // step, step, -1, step).swapaxes(1, 2).reshape(-1, step * step)
    sizes = np.abs(blocks.astype(complex if a.dtype.kind == "c" else float))
    found: np.ndarray[Any, Any] = blocks[np.arange(len(blocks)), np.argmax(sizes, 1)]
    return found.reshape(padded.shape[0] // step, -1)


def _png(rgba: np.ndarray[Any, Any]) -> bytes:
    """The bytes of a PNG file (ISO/IEC 15948): 8 bits, RGBA, no filter."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns = rgba.shape[:2]
    lines = b"".join([b"\0" + line.tobytes() for line in rgba])
    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
