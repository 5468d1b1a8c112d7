"""The context of a kernel of a matrix function: the provider, and names for errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class MatrixCall(NamedTuple):
    """One call of a kernel.

    Attributes:
        la: the provider.
        what: name of the public function.
        batch: extents of the leading axes, which the stack has flattened to one.
        dtype: dtype of the result.
    """

    la: Any
    what: str
    batch: tuple[int, ...]
    dtype: Any

    def place(self, k: int) -> tuple[int, ...]:
        """Index of a matrix in the batch."""
        return tuple(int(i) for i in np.unravel_index(k, self.batch)) if self.batch else ()

    def where(self, k: int) -> str:
        """Name of a matrix of the stack, for messages."""
        return f"matrix {self.place(k)} of the stack" if self.batch else "the matrix"
