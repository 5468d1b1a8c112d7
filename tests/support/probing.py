"""Probes of other libraries: one call on NumPy's arrays and on tensors, compared leaf by leaf."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_tensor import Tensor


def failure(
    probe: Callable[[Any], Any], leaves: Callable[[Any], list[Any]], rtol: float, atol: float = 1e-9
) -> str | None:
    """What is wrong with a probe on tensors, in words, or ``None``: arrays must be tensors with NumPy's elements."""
    wanted = leaves(probe(np.asarray))
    try:
        found = leaves(probe(tr.asarray))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for got, want in zip(found, wanted, strict=True):
        if isinstance(want, np.ndarray) and not isinstance(got, Tensor):
            return f"{type(got).__name__} instead of a tensor"
        if not np.allclose(np.asarray(got), want, rtol=rtol, atol=atol, equal_nan=True):
            return f"{np.asarray(got)} instead of {want}"
    return None


def check(
    probes: dict[str, Callable[[Any], Any]],
    known: dict[str, str],
    leaves: Callable[[Any], list[Any]],
    rtol: float = 1e-7,
    atol: float = 1e-9,
) -> None:
    """Every probe agrees with NumPy, but for the known failures, whose text contains what is said of them.

    A known failure that works is wrong as well: the table tells the state of things.
    """
    failed = {name: text for name, probe in probes.items() if (text := failure(probe, leaves, rtol, atol)) is not None}
    new = {name: text for name, text in failed.items() if known.get(name, "\0") not in text}
    assert not new, new
    stale = known.keys() & probes.keys() - failed.keys()
    assert not stale, f"known failures that work: {stale}"
