"""Kernels of cumulative operations."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np

from tenferro_tensor._registry import KernelMaker
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import scan as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, any_size


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    def sums(method: str) -> KernelMaker:
        def forward(spec: Spec, axis: int) -> Kernel:
            return methodcaller(method, axis, spec.dtype)

        return _both_ways(forward)

    def running(combine: Any) -> KernelMaker:
        def forward(spec: Spec, axis: int) -> Kernel:
            # CuPy's ufuncs accumulate sums and products only.
            if isinstance(combine, np.ufunc):
                return lambda x: combine.accumulate(x, axis)
            return lambda x: accumulated_by_doubling(xp, combine, x, axis)

        return _both_ways(forward)

    return {
        ops.cumsum: sums("cumsum"),
        ops.cumprod: sums("cumprod"),
        ops.cummax: running(xp.maximum),
        ops.cummin: running(xp.minimum),
        ops.cumlogsumexp: running(xp.logaddexp),
    }


def _both_ways(forward: Callable[[Spec, int], Kernel]) -> KernelMaker:
    """The scan from the front, or from the back as the scan of the reversed array, reversed."""

    @any_size
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int, reverse: bool) -> Kernel:
        scan = forward(outs[0], axis)
        if not reverse:
            return scan
        flip = (*[slice(None)] * axis, slice(None, None, -1))
        return lambda x: scan(x[flip])[flip]

    return make


def accumulated_by_doubling(xp: Any, combine: Any, x: Any, axis: int) -> Any:
    """Scan an associative operation in a logarithmic number of whole-array steps.

    After the step of width ``w`` each element combines the ``2 * w`` elements up to it. (Hillis and Steele, 1986.)
    """
    front = (slice(None),) * axis
    n, width = x.shape[axis], 1
    while width < n:
        done = x[(*front, slice(0, width))]
        x = xp.concatenate([done, combine(x[(*front, slice(width, None))], x[(*front, slice(0, n - width))])], axis)
        width *= 2
    return x
