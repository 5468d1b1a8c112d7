"""When a rule is worth rendering: on its second use, and later where shapes keep changing."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

FIRST: Final = 2
"""Number of uses from which on a rule is rendered."""
MANY: Final = 64
"""From this number of rendered specs on, the shapes that a primitive meets are taken to be ever new..."""
LONG: Final = 16
"""...and a rule is rendered from this number of uses on."""
CODES: Final = 8
"""Number of values of Python scalars for which one rule is rendered anew."""


class Patience:
    """Counts what has been rendered for each primitive."""

    def __init__(self) -> None:
        self.rendered: Counter[Any] = Counter()

    def is_over(self, primitive: Any, uses: int) -> bool:
        """Whether a rule used so often is to be rendered now; if so, it is counted."""
        if uses < (FIRST if self.rendered[primitive] < MANY else LONG):
            return False
        self.rendered[primitive] += 1
        return True
