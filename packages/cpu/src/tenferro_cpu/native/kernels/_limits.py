"""Bounds that Python's planning shares with the C code (walk.h), which has them as well; a test compares them."""

from typing import Final

MOST_OPERANDS: Final = 24
"""Operands and results that a call takes."""

MOST_AXES: Final = 8
"""Axes of the largest iteration space that is planned in C."""

COMBINED_ROWS: Final = 512
"""Rows that are combined one after the other; more make partial results, which are combined in turn."""

TEAM_MIN_NS: Final = 50_000.0
"""Nanoseconds of work in one thread for which the team is called."""

NEVER: Final = 2**62
"""More elements than there are: a bound that does not bind."""
