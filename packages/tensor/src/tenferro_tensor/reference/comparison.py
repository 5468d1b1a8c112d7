"""Kernels of comparison, classification and selection."""

import operator
from typing import Any

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import comparison as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, always, any_size, scalar_or


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @any_size
    def select(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        dtype = outs[0].dtype

        def run(pred: Any, x: Any, y: Any) -> Any:
            out = xp.where(pred, x, y)
            return out if out.dtype == dtype else out.astype(dtype)  # two Python scalars are weak

        return run

    return {
        ops.eq: scalar_or(xp.equal, operator.eq),
        ops.ne: scalar_or(xp.not_equal, operator.ne),
        ops.lt: scalar_or(xp.less, operator.lt),
        ops.le: scalar_or(xp.less_equal, operator.le),
        ops.gt: scalar_or(xp.greater, operator.gt),
        ops.ge: scalar_or(xp.greater_equal, operator.ge),
        ops.is_finite: always(xp.isfinite),
        ops.is_nan: always(xp.isnan),
        ops.is_inf: always(xp.isinf),
        ops.signbit: always(xp.signbit),
        ops.select: select,
    }
