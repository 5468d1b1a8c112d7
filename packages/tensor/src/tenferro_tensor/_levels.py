"""The law of levels: the operand of the highest level interprets an operation.

Every run of a transform (reverse mode, forward mode, a trace) takes a level from one counter of the process. A value
created inside a transform therefore always outranks the values that the transform closes over, across threads and for
any nesting of transforms; nesting depth would not be unique. Concrete tensors have level 0.
"""

from __future__ import annotations

from itertools import count
from typing import Final

next_level: Final = count(1).__next__
"""Return a new level, greater than every earlier one of this process."""
