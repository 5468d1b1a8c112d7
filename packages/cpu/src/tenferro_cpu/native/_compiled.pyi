"""Fixed machine code of the CPU backend; absent from a pure wheel."""

from typing import Final

LEVEL: Final[str]
"""The vector level in use: ``"v2"``, ``"v3"`` or ``"v4"`` of x86-64, ``"neon"`` or ``"generic"``."""
