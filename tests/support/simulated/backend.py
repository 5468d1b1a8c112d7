"""The backend ``sim``: the reference kernels on NumPy arrays, in the threads of simulated streams."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from simulated.memory import SimArray
from tenferro_tensor import HOST, REGISTRY, AcceleratorBackend, ComputeDevice, Op, Primitive, Spec, catalog, library
from tenferro_tensor.reference import kernels


@cache
def _reference() -> dict[Primitive, Any]:
    return kernels(np, lambda: library("scipy.special"))


class SimBackend(AcceleratorBackend):
    """Core primitives by the reference kernels, those of families by what they register for the CPU."""

    name = "sim"

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        make = self._maker(op.primitive)
        if make is None:
            return super().kernel(op, ins, outs, device)
        self.require(device)
        run = make(tuple(map(_at_home, ins)), tuple(map(_at_home, outs)), **op.params)
        shapes, what = [(out.shape, out.dtype) for out in outs], op.primitive.name
        many = not op.primitive.elementwise and isinstance(op.infer(*ins), tuple)

        def issue(*raws: Any) -> Any:
            target: Any = self.runtime.device(device.index)
            for raw in raws:
                if isinstance(raw, (SimArray, np.ndarray)):
                    target.require_here(raw, what)
            stream: Any = self.stream_for(target, raws)
            results = stream.compute(what, run, raws, shapes)
            return results if many else results[0]

        return issue

    def _maker(self, primitive: Primitive) -> Any:
        if primitive is catalog.transfer or REGISTRY.find("kernel", primitive, self.name) is not None:
            return None
        return _reference().get(primitive) or REGISTRY.find("kernel", primitive, "cpu")


def _at_home(spec: Any) -> Any:
    return spec.with_(place=HOST) if isinstance(spec, Spec) else spec
