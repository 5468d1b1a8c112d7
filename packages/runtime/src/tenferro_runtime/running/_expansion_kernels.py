"""Kernels of operations that are defined by an expansion: its program, compiled for the specs of the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program
from tenferro_runtime.running._execute import executable
from tenferro_runtime.runtime import Runtime
from tenferro_runtime.tracing.expanding import expansion_of
from tenferro_tensor import SCALARS, Op, Spec, catalog, get_backend
from tenferro_tensor.expansions import Expansion
from tenferro_tensor.kernels import kernel_of
from tenferro_tensor_core import UnsupportedError


def make_kernel(expansion: Expansion, ins: tuple[Spec, ...], params: dict[str, Any]) -> Callable[..., Any]:
    """The kernel of an expansion; operands of an element-wise op may be numbers or broadcast.

    Args:
        expansion: the expansion.
        ins: specs of the operands.
        params: metadata of the op.

    Returns:
        A function of raw arrays.
    """
    op: Op = expansion.primitive.op(**params)
    program = _optimised(op, ins)
    run = executable(program)
    if not isinstance(op.infer(*ins), tuple):
        many = run
        run = lambda *raws: many(*raws)[0]
    if not expansion.primitive.elementwise or len(ins) == 1:
        return run
    to_shape = _Broadcast(ins[0])
    return lambda *raws: run(*[to_shape(raw, spec) for raw, spec in zip(raws, ins, strict=True)])


def _optimised(op: Op, ins: tuple[Spec, ...]) -> Program:
    program = expansion_of(op, ins)
    if program is None:
        raise UnsupportedError(
            f"the expansion of {op!r} asks for sizes that have no number here; pass operands of known sizes",
            primitive=op.primitive.name,
        )
    return _fully_optimised(program)


@kept
def _fully_optimised(program: Program) -> Program:
    return Runtime().optimise(program)


class _Broadcast:
    """Expands the operands of an element-wise op to its shape, by kernels of its backend.

    Args:
        like: spec of an operand.
    """

    def __init__(self, like: Spec) -> None:
        self.shape: tuple[Any, ...] = like.shape
        self.place = like.place
        self.backend = get_backend(like.place.device.kind)
        self._kernels: dict[Spec, Callable[..., Any]] = {}
        """By spec of an operand: each axis is that of the shape, is 1, or is absent."""

    def __call__(self, raw: Any, spec: Spec) -> Any:
        if raw.__class__ in SCALARS:
            array = np.asarray(raw, spec.dtype)
            raw = array if self.place.on_host else self.backend.upload(array, self.place.device)
        if raw.shape == self.shape:
            return raw
        if self.place.on_host:
            return np.broadcast_to(raw, self.shape)
        return self._kernel(spec.with_(shape=tuple(raw.shape), place=self.place))(raw)

    def _kernel(self, given: Spec) -> Callable[..., Any]:
        found = self._kernels.get(given)
        if found is None:
            first = len(self.shape) - given.ndim
            kept = [i for i, n in enumerate(given.shape) if n == self.shape[first + i]]
            narrow = given.with_(shape=tuple([given.shape[i] for i in kept]))
            squeeze = self._made(catalog.reshape.op(shape=narrow.shape), given, narrow)
            spread = catalog.broadcast_in_dim.op(shape=self.shape, dims=tuple([first + i for i in kept]))
            stretch = self._made(spread, narrow, given.with_(shape=self.shape))
            found = self._kernels[given] = lambda raw: stretch(squeeze(raw))
        return found

    def _made(self, op: Op, given: Spec, out: Spec) -> Callable[..., Any]:
        return kernel_of(self.backend, op, (given,), (out,), self.place.device)


Expansion.make_kernel = staticmethod(make_kernel)
