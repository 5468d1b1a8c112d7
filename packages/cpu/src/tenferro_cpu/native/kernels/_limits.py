"""Bounds that Python's planning shares with the C code (walk.h); a test compares them."""

from typing import Final

MAX_OPERANDS: Final = 24
"""Maximum number of operands and results of a call."""

MAX_AXES: Final = 8
"""Maximum number of axes of an iteration space that is planned in C."""

COMBINED_ROWS: Final = 512
"""Rows that are combined one after the other; more yield partial results, which are combined in turn."""

TEAM_MIN_NS: Final = 50_000.0
"""Smallest work (nanoseconds in one thread) for which the team is called."""

UNBOUNDED: Final = 2**62
"""More elements than any array has: a bound without effect."""
