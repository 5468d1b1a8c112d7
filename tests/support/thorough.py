"""How much tests try: a part in every run, and all of it with ``TENFERRO_THOROUGH=1``, which takes hours."""

import os
from typing import Final

THOROUGH: Final = bool(os.environ.get("TENFERRO_THOROUGH"))


def tries(part: int, every: int) -> int:
    """The number of tries: `part` of them, or `every` one in a thorough run."""
    return every if THOROUGH else part
