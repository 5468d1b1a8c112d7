"""Native kernels of random number primitives; otherwise their expansions run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_tensor import Primitive, Spec
from tenferro_tensor.random_streams import (
    random_bits,
    random_exponential,
    random_loggamma,
    random_normal,
    random_uniform,
)
from tenferro_tensor_core import float64

_KERNELS: Final = {
    random_bits: "bits",
    random_uniform: "uniform",
    random_normal: "normal",
    random_exponential: "exponential",
}


def entries() -> dict[Primitive, Callable[..., Any]]:
    """Makers of kernels by primitive; empty in a pure wheel."""
    if compiled is None:
        return {}
    makers = {primitive: _maker(name) for primitive, name in _KERNELS.items()}
    return makers | {random_loggamma: _log_gamma}


def _maker(name: str) -> Callable[..., Any]:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Any, dtype: np.dtype[Any]) -> Callable[..., Any]:
        return compiled.Draw(name=name, dtype=dtype, shape=None if outs[0].symbolic else tuple(shape))

    make.sizes = lambda ins, outs, *, shape, dtype: (shape,)  # type: ignore[attr-defined]
    return make


def _log_gamma(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., Any]:
    return compiled.Draw(name="loggamma", dtype=float64, shape=None)


_log_gamma.any_size = True  # type: ignore[attr-defined]
