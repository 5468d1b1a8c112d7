"""Native kernels of the primitives of random numbers; without them their expansions serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_tensor import Primitive, Spec, random_streams

_KERNELS: Final = {
    random_streams.random_bits: "bits",
    random_streams.random_uniform: "uniform",
    random_streams.random_normal: "normal",
    random_streams.random_exponential: "exponential",
}


def entries() -> dict[Primitive, Callable[..., Any]]:
    """Makers of kernels by primitive; empty in a pure wheel."""
    return {} if compiled is None else {primitive: _maker(name) for primitive, name in _KERNELS.items()}


def _maker(name: str) -> Callable[..., Any]:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Any, dtype: np.dtype[Any]) -> Callable[..., Any]:
        return compiled.Draw(name=name, dtype=dtype, shape=None if outs[0].symbolic else tuple(shape))

    make.sizes = lambda ins, outs, *, shape, dtype: (shape,)  # type: ignore[attr-defined]
    return make
