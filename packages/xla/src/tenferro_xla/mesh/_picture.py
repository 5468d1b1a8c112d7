"""A drawing of the parts of an array and their devices."""

from __future__ import annotations

from typing import Any, Final

from tenferro_tensor.markup import COLOURS, Markup, element, picture

LONG_SIDE_PIXELS: Final = 240
"""Length of the longer one of the two drawn axes."""

MIN_SIDE_PIXELS: Final = 30
"""Minimum length of the shorter one."""

MAX_PARTS: Final = 256
"""Maximum number of parts that are drawn."""


def sharding_picture(array: Any) -> Markup:
    """Draw the last two axes of an array, split into parts labelled with their devices."""
    shape = (1, 1, *array.shape)[-2:]
    owners: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        cuts = ((0, 1), (0, 1), *[s.indices(n)[:2] for s, n in zip(index, array.shape, strict=True)])[-2:]
        owners.setdefault(cuts, []).append(device.id)
    scale = LONG_SIDE_PIXELS / max(*shape, 1)
    height, width = (max(MIN_SIDE_PIXELS, n * scale) for n in shape)
    drawn = []
    for i, (((top, bottom), (left, right)), devices) in enumerate(list(owners.items())[:MAX_PARTS]):
        x, y = width * left / max(shape[1], 1), height * top / max(shape[0], 1)
        w, h = width * (right - left) / max(shape[1], 1), height * (bottom - top) / max(shape[0], 1)
        numbers = ", ".join(map(str, devices))
        hue = list(COLOURS.values())[i % 6]
        box = element("rect", x=x + 1, y=y + 1, width=w, height=h, fill=hue, fill_opacity=0.25, stroke=hue)
        where = f"[{top}:{bottom}, {left}:{right}] on {numbers}"
        label = element("text", numbers, x=x + w / 2, y=y + h / 2 + 5, text_anchor="middle")
        drawn.append(element("g", element("title", where), box, label))
    return picture(width + 2, height + 2, *drawn, label="devices of the parts of an array")
