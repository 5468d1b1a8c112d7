"""Pairwise contraction, the one primitive behind matrix products, inner and outer products and einsum."""

from typing import Any

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import require_axes, require_same_dtype, same
from tenferro_tensor_core import ArgumentError, ShapeError

__all__ = ["dot_general"]


def __dir__() -> list[str]:
    return __all__.copy()


Pair = tuple[tuple[int, ...], tuple[int, ...]]


@primitive(widens=True)
def dot_general(x: Spec, y: Spec, *, contract: Pair, batch: Pair) -> Spec:
    """Sum of products over paired axes, for each index of the batch axes.

    The result has the batch axes first (in the given order), then the free axes of `x`, then those of `y`. Nothing is
    conjugated; integers wrap around, booleans are combined by and, then or.

    Args:
        x: left operand.
        y: right operand, of the same dtype.
        contract: ``(axes of x, axes of y)``, pairs of axes to sum over.
        batch: ``(axes of x, axes of y)``, pairs of axes that both operands share.

    Returns:
        Spec of the result, in the dtype of the operands.

    Raises:
        ShapeError: the extents of a pair differ.
        AxisError: an axis is out of range or repeated.
        DTypeError: the dtypes differ.
    """
    require_same_dtype("dot_general", x, y)
    for what, pair in (("contract", contract), ("batch", batch)):
        _require_pair(what, pair)
    for side, s in enumerate((x, y)):
        require_axes(
            "dot_general", contract[side] + batch[side], s.ndim, s, f"contract and batch axes of operand {side}"
        )
    for verb, (of_x, of_y) in (("contract", contract), ("batch", batch)):
        for i, j in zip(of_x, of_y, strict=True):
            if not same(x.shape[i], y.shape[j]):
                raise ShapeError(
                    f"dot_general cannot {verb} axis {i} of {x!r} with axis {j} of {y!r}: "
                    f"{x.shape[i]} != {y.shape[j]}; reshape or transpose an operand",
                    shapes=(x.shape, y.shape),
                )
    free_x, free_y = (
        tuple([d for i, d in enumerate(s.shape) if i not in contract[k] and i not in batch[k]])
        for k, s in enumerate((x, y))
    )
    return x.with_(shape=(*[x.shape[i] for i in batch[0]], *free_x, *free_y))


def _require_pair(what: str, pair: Any) -> None:
    if pair.__class__ is not tuple or len(pair) != 2 or any(p.__class__ is not tuple for p in pair):
        raise ArgumentError(f"dot_general takes {what}=(axes of x, axes of y), two tuples, got {pair!r}")
    if len(pair[0]) != len(pair[1]):
        raise ArgumentError(
            f"dot_general: {what}={pair!r} pairs {len(pair[0])} axes of x with {len(pair[1])} of y; "
            "name as many of one as of the other"
        )
