"""Right-hand sides of structured equations: one vector for all matrices, or a stack of columns."""

from typing import Any

from tenferro_linalg._operands import show, stacked
from tenferro_runtime.extension import ShapeError
from tenferro_tensor import broadcast_shapes
from tenferro_tensor.catalog import reshape
from tenferro_tensor_core import DimLike, require_equal


def paired(what: str, data: Any, b: Any, rows: DimLike) -> tuple[Any, Any, bool]:
    """Data (..., r, n) of matrices and right-hand sides (..., n, k) with common batch axes; whether b was a vector."""
    if b.ndim == 0:
        raise ShapeError(f"{what}: the right-hand side is 0-d; pass a vector (n,) or matrices (..., n, k)", shape=())
    vector = b.ndim == 1
    b = reshape(b, shape=(*b.spec.shape, 1)) if vector else b
    require_equal(
        rows,
        b.spec.shape[-2],
        f"{what}: matrices with {rows} rows and right-hand sides of shape {show(b.spec.shape)} do not match",
    )
    batch = broadcast_shapes(data.spec.shape[:-2], b.spec.shape[:-2])
    return stacked(data, batch), stacked(b, batch), vector


def single(x: Any, vector: bool) -> Any:
    """Solutions in the form of the right-hand side."""
    return reshape(x, shape=x.spec.shape[:-1]) if vector else x
