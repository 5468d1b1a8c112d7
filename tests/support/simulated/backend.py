"""The backend ``sim``: the reference kernels on NumPy arrays, in the threads of simulated streams."""

from collections.abc import Callable
from typing import Any

import numpy as np

from simulated.memory import SimArray
from tenferro_tensor import REGISTRY, AcceleratorBackend, ComputeDevice, Op, Spec, host_kernel


class SimBackend(AcceleratorBackend):
    """Primitives by the kernels of main memory; families may register others for it."""

    name = "sim"

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        run = host_kernel(op, ins, outs)
        if run is None:
            return super().kernel(op, ins, outs, device)
        return self.issued(op, run, ins, outs, device)

    def issued(
        self, op: Op, run: Callable[..., Any], ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """A kernel on NumPy arrays as one that a stream carries out."""
        self.require(device)
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


class BareBackend(SimBackend):
    """Core primitives by the kernels of main memory; families have none but those registered for it."""

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        if op.primitive.extension is None:
            return super().kernel(op, ins, outs, device)
        run = super(SimBackend, self).kernel(op, ins, outs, device)
        found = REGISTRY.registration("kernel", op.primitive, self.name)
        own = found is not None and found.backend == self.name
        return self.issued(op, run, ins, outs, device) if own else run

    def open_kernel(self, *given: Any) -> None:
        """Kernels are made for numbers."""
        return
