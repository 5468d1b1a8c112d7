"""The kinds of tensors that functions of the standard take, and a call of a function on each."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import variable, vjp

Array = np.ndarray[Any, Any]


def concrete(f: Callable[..., Any], *arrays: Array) -> Any:
    """`f` of tensors."""
    return f(*[tr.asarray(a) for a in arrays])


def recorded(f: Callable[..., Any], *arrays: Array) -> Any:
    """`f` of tensors that record what is computed from them, where they have derivatives."""
    return f(*[variable(a) if a.dtype.kind in "fc" else tr.asarray(a) for a in arrays])


def differentiated(f: Callable[..., Any], *arrays: Array) -> Any:
    """`f` inside of a transform for reverse mode."""
    inexact = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]
    values = [tr.asarray(a) for a in arrays]

    def of_inexact(*some: Any) -> Any:
        given = list(values)
        for i, x in zip(inexact, some, strict=True):
            given[i] = x
        return f(*given)

    return vjp(of_inexact, *[values[i] for i in inexact])[0] if inexact else f(*values)


def traced(f: Callable[..., Any], *arrays: Array) -> Any:
    """The program of `f`, run."""
    values, structure = [tr.asarray(a) for a in arrays], []

    def seen(*xs: Any) -> Any:
        found = f(*xs)
        structure.append(tr.tree_flatten(found)[1])
        return found

    program = tr.trace(seen, *values)
    return tr.tree_unflatten(structure[-1], program.run(*values))


KINDS = {f.__name__: f for f in (concrete, recorded, differentiated, traced)}


def plain(found: Any) -> Any:
    """Results as NumPy arrays: one, or a flat list."""
    if hasattr(found, "_concrete"):
        return np.asarray(found._concrete())
    leaves = [np.asarray(x._concrete() if hasattr(x, "_concrete") else x) for x in tr.tree_leaves(found)]
    return leaves if isinstance(found, (tuple, list)) else leaves[0]
