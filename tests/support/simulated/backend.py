"""The backend ``sim``: the reference kernels on NumPy arrays, in the threads of simulated streams."""

from collections.abc import Callable
from typing import Any

import numpy as np

from simulated.memory import SimArray
from tenferro_tensor import AcceleratorBackend, ComputeDevice, Op, Spec, host_kernel


class SimBackend(AcceleratorBackend):
    """Primitives by the kernels of main memory; families may register others for it."""

    name = "sim"

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        run = host_kernel(op, ins, outs)
        if run is None:
            return super().kernel(op, ins, outs, device)
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
