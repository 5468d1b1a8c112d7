"""A loop that reports its progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tenferro_runtime.control_flow._cond import cond
from tenferro_runtime.progress import PARTS, Bar
from tenferro_runtime.tracing.effects import call_back
from tenferro_tensor import Size
from tenferro_tensor.functions import asarray
from tenferro_tensor.operands import value
from tenferro_tensor_core import DimLike, dim_max


def reporting(
    f: Callable[[Any, Any], Any], init: Any, n: DimLike, progress: bool | str, pair: Callable[[Any, Any], Any]
) -> tuple[Callable[[Any, Any], Any], Any]:
    """A body that counts its steps and advances a progress bar, and its initial carry.

    The bar is updated about `PARTS` times; all other steps compare one number.
    """
    bar = Bar(progress if isinstance(progress, str) else _label(f))
    total, every = _known(n), _known(dim_max(n // PARTS, 1))

    def move(done: Any) -> None:
        call_back(bar, (done, total), {})

    @wraps(f)
    def step(state: Any, x: Any) -> Any:
        done, carry = state
        carry, row = pair(f(carry, x), f)
        done = done + 1
        cond((done % every == 0) | (done == total), move, lambda done: None, done)
        return (done, carry), row

    return step, (asarray(0), init)


def _label(f: Any) -> str:
    name = str(getattr(f, "__name__", "<"))
    return "scan" if name.startswith("<") else name


def _known(d: DimLike) -> Any:
    return d if isinstance(d, int) else value(Size(d))
