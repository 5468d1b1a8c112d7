"""What a kernel of a matrix function is asked for: the provider, and names for errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class MatrixCall(NamedTuple):
    """One call of a kernel.

    Attributes:
        la: the provider.
        what: the function, as users call it.
        batch: extents of the leading axes, which the stack has as one.
        dtype: of the result.
    """

    la: Any
    what: str
    batch: tuple[int, ...]
    dtype: Any

    def place(self, k: int) -> tuple[int, ...]:
        """Where a matrix of the stack is."""
        return tuple(int(i) for i in np.unravel_index(k, self.batch)) if self.batch else ()

    def where(self, k: int) -> str:
        """A matrix of the stack, in words."""
        return f"matrix {self.place(k)} of the stack" if self.batch else "the matrix"
