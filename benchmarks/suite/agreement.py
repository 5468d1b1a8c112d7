"""Whether the libraries compute the same in a row, so that times are comparable."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Row

UNLIKE = (
    "random_numbers/",
    "first_calls/",
    "linear_algebra/svd",
    "linear_algebra/eigh",
    "linear_algebra/qr",
    "reductions/unique",
)
"""Rows whose results may differ: random numbers, factors up to signs, the order of NumPy's unique values, and
first calls, whose results are not kept."""


def leaves(x: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays in a result."""
    if isinstance(x, dict):
        return [leaf for key in sorted(x) for leaf in leaves(x[key])]
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in leaves(part)]
    if x is None:
        return []
    if hasattr(x, "detach"):
        x = x.detach()
    return [x.numpy() if hasattr(x, "numpy") else np.asarray(x)]


def check(chosen: list[Row], libraries: dict[str, Any]) -> int:
    """Print the rows that differ; the number of them, at most 1."""
    differing = 0
    for row in chosen:
        if row.kind == "import" or row.key.startswith(UNLIKE):
            continue
        found = {n: leaves(row.make(libraries[n])()) for n in ("tenferro", *row.peers) if n in libraries}
        wanted = found.pop("tenferro")
        for name, given in found.items():
            try:
                for a, b in zip(wanted, given, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max(initial=0.0))
            except (AssertionError, ValueError, TypeError) as error:
                differing += 1
                print(f"{row.key} differs from {name}: {' '.join(str(error).split())[:160]}")
    print(f"{len(chosen)} rows, {differing} differences")
    return int(differing > 0)
