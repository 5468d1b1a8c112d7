"""What type checkers know of the functions that control flow and trees take. Imported under TYPE_CHECKING only."""

from typing import Any, TypeVar

import numpy as np

from tenferro_tensor import Array

T = TypeVar("T")
R = TypeVar("R")
Row = TypeVar("Row")

Leaf = Array | complex | np.ndarray[Any, Any] | np.number[Any]
"""An array or a number, which becomes an `Array`; anything else is a container."""
