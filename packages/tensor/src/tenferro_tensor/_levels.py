"""The law of levels: the operand of the highest level interprets an operation.

Every transform run (a reverse sweep, a forward push, a trace) draws one level from one counter of the
process. A value made inside a transform therefore always outranks the values that the transform closes over,
also across threads and however the transforms are nested: depth would not be unique, the counter is.
Concrete tensors have level 0.
"""

from __future__ import annotations

from itertools import count

next_level = count(1).__next__
"""Draw a fresh level, greater than every level drawn before in this process."""
