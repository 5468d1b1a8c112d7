"""The owner of a registry entry: one of tenferro's own distributions, or a guest."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final, NamedTuple

HOUSE: Final = {
    name: name.replace("-", "_")
    for name in (
        "tenferro-tensor-core",
        "tenferro-tensor",
        "tenferro-cpu",
        "tenferro-gpu",
        "tenferro-runtime",
        "tenferro-ad",
        "tenferro-einsum",
        "tenferro-linalg",
        "tenferro-fft",
        "tenferro-xla",
    )
}
"""tenferro's own distributions, and the package that each installs."""

_PACKAGES: Final = frozenset(HOUSE.values())


class Owner(NamedTuple):
    """The code that registers something.

    Attributes:
        module: module of the code.
        line: its file and line.
        distribution: the distribution whose extension is being registered, as text; otherwise empty.
    """

    module: str
    line: str
    distribution: str = ""

    @property
    def ours(self) -> bool:
        """Whether the code is tenferro's."""
        return in_house(self.module)

    def __str__(self) -> str:
        return f"{self.distribution or self.module} ({self.line})"


def in_house(module: str) -> bool:
    """Whether a module belongs to one of tenferro's own distributions."""
    return module.partition(".")[0] in _PACKAGES


def calling(depth: int, distribution: str = "") -> Owner:
    """The owner of a registration by the caller's caller, `depth` calls further out."""
    frame: FrameType = sys._getframe(depth + 1)
    module = frame.f_globals.get("__name__") or "an unnamed module"
    return Owner(str(module), f"{frame.f_code.co_filename}:{frame.f_lineno}", distribution)
