"""Joining by rows, columns, depth and nested blocks, and the corresponding splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span_view
from tenferro_tensor.functions.dtypes import astype
from tenferro_tensor.functions.joining import split
from tenferro_tensor.functions.orientation import with_axes
from tenferro_tensor.operands import alike, axis_of, whole
from tenferro_tensor_core import ArgumentError, ShapeError, dim_min, floordiv

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "array_split",
    "block",
    "column_stack",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "vsplit",
    "vstack",
]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_numpy_forms.vstack)
def vstack(arrays: Sequence[Any], /, *, dtype: Any = None) -> Array:
    """Join arrays along the first axis; vectors are rows.

    Args:
        arrays: sequence of arrays.
        dtype: dtype of the result; by default the promoted one.

    Returns:
        Array with at least two axes.

    Raises:
        ShapeError: other extents differ.
        ArgumentError: the sequence is empty.

    >>> tr.vstack([tr.asarray([1, 2]), tr.asarray([3, 4])])
    Tensor([[1, 2],
            [3, 4]])
    """
    return _joined([with_axes(x, 2) for x in _values("vstack", arrays)], 0, dtype)


@direct(_numpy_forms.hstack)
def hstack(arrays: Sequence[Any], /, *, dtype: Any = None) -> Array:
    """Join arrays along the second axis; vectors along their only one.

    Args:
        arrays: sequence of arrays.
        dtype: dtype of the result; by default the promoted one.

    Returns:
        Array with at least one axis.

    Raises:
        ShapeError: other extents differ.
        ArgumentError: the sequence is empty.

    >>> tr.hstack([tr.asarray([1, 2]), tr.asarray([3])])
    Tensor([1, 2, 3])
    """
    values = [with_axes(x, 1) for x in _values("hstack", arrays)]
    return _joined(values, 0 if values[0].spec.ndim == 1 else 1, dtype)


@direct(_numpy_forms.dstack)
def dstack(arrays: Sequence[Any], /, *, dtype: Any = None) -> Array:
    """Join arrays along the third axis; vectors and matrices are layers.

    Args:
        arrays: sequence of arrays.
        dtype: dtype of the result; by default the promoted one.

    Returns:
        Array with at least three axes.

    Raises:
        ShapeError: other extents differ.
        ArgumentError: the sequence is empty.

    >>> tr.dstack([tr.asarray([1, 2]), tr.asarray([3, 4])])
    Tensor([[[1, 3],
             [2, 4]]])
    """
    return _joined([with_axes(x, 3) for x in _values("dstack", arrays)], 2, dtype)


@direct(_numpy_forms.column_stack)
def column_stack(arrays: Sequence[Any], /) -> Array:
    """Join vectors as columns of a matrix; matrices are joined as they are.

    Args:
        arrays: sequence of vectors and matrices.

    Returns:
        A matrix in the promoted dtype.

    Raises:
        ShapeError: other extents differ.
        ArgumentError: the sequence is empty.

    >>> tr.column_stack([tr.asarray([1, 2]), tr.asarray([3, 4])])
    Tensor([[1, 3],
            [2, 4]])
    """
    values = _values("column_stack", arrays)
    columns = [v if v.spec.ndim > 1 else catalog.reshape(v, shape=(v.spec.size, 1)) for v in values]
    return _joined(columns, 1, None)


def _values(name: str, arrays: Any) -> list[Any]:
    if not isinstance(arrays, (tuple, list)) and not (hasattr(arrays, "ndim") and arrays.ndim):
        raise ArgumentError(f"{name} takes a list or tuple of arrays, got a {type(arrays).__name__}")
    found = [listed(a) for a in arrays]
    if not found:
        raise ArgumentError(f"{name} needs at least one array, got an empty sequence; pass the arrays to join")
    return found


def _joined(values: list[Any], axis: int, dtype: Any) -> Any:
    if dtype is not None:
        values = [astype(v, dtype, copy=False) for v in values]
    return catalog.concatenate(*alike(*values), axis=axis)


def block(arrays: Any, /) -> Array:
    """Assemble an array from nested lists of blocks; the innermost lists are joined along the last axis.

    Blocks with too few axes get leading axes of extent 1.

    Args:
        arrays: nested lists of arrays, of equal depth.

    Returns:
        Array in the promoted dtype.

    Raises:
        ArgumentError: a list is empty, or depths differ.
        ShapeError: extents of blocks do not match.

    >>> tr.block([[tr.eye(2), tr.zeros((2, 1))], [tr.ones((1, 3))]])
    Tensor([[1., 0., 0.],
            [0., 1., 0.],
            [1., 1., 1.]])
    """
    depth, ndim = _depth(arrays)
    return _assembled(arrays, max(depth, ndim), max(depth, ndim) - depth)


def _depth(part: Any) -> tuple[int, int]:
    """The nesting depth of the blocks, and the largest number of axes of a block."""
    if isinstance(part, tuple):
        raise ArgumentError("block takes nested lists of arrays, got a tuple; only lists nest")
    if not isinstance(part, list):
        return 0, listed(part).spec.ndim
    if not part:
        raise ArgumentError("block takes lists of at least one array, got an empty list; leave it out")
    found = [_depth(p) for p in part]
    depths = {d for d, _ in found}
    if len(depths) > 1:
        raise ArgumentError(
            f"block takes lists that are equally deep everywhere, but a list holds parts {sorted(depths)} lists deep; "
            "put single arrays into lists as well"
        )
    return depths.pop() + 1, max(n for _, n in found)


def _assembled(part: Any, ndim: int, axis: int) -> Any:
    if isinstance(part, list):
        return _joined([_assembled(p, ndim, axis + 1) for p in part], axis, None)
    x = listed(part)
    return catalog.reshape(x, shape=(1,) * (ndim - x.spec.ndim) + x.spec.shape)


@direct(_numpy_forms.array_split, ANY_SIZE, views=True)
def array_split(x: Any, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array along an axis into parts that may differ in size.

    Args:
        x: array with at least one axis.
        indices_or_sections: number of parts, the first of which are longer by one if necessary; or a list of the
            indices to split before.
        axis: axis to split.

    Returns:
        A list of arrays.

    Raises:
        ArgumentError: the number of parts is less than 1.
        AxisError: the axis is out of range.

    See also:
        `split`, into equal parts.

    >>> tr.array_split(tr.arange(5), 3)
    [Tensor([0, 1]), Tensor([2, 3]), Tensor([4])]
    """
    x = listed(x)
    axis = axis_of("array_split", axis, x.spec.ndim)
    if hasattr(indices_or_sections, "__len__") and not hasattr(indices_or_sections, "spec"):
        return split(x, indices_or_sections, axis=axis)
    parts = whole("array_split", "number of parts", indices_or_sections)
    if parts < 1:
        raise ArgumentError(f"array_split makes at least 1 part, got {parts}", parts=parts)
    n = x.spec.shape[axis]
    each, longer = floordiv(n, parts), n % parts
    cuts = [each * i + dim_min(longer, i) for i in range(parts)] + [n]
    return [span_view(x, axis, cuts[i], cuts[i + 1]) for i in range(parts)]


def vsplit(x: Any, /, indices_or_sections: Any) -> list[Array]:
    """Split an array along the first axis; see `split`.

    Args:
        x: array with at least two axes.
        indices_or_sections: number of equal parts, or a list of the indices to split before.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: `x` has too few axes, or the extent is not divisible by the number of parts.

    >>> [part.shape for part in tr.vsplit(tr.zeros((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return split(_with_axis("vsplit", x, 2), indices_or_sections, axis=0)


def hsplit(x: Any, /, indices_or_sections: Any) -> list[Array]:
    """Split an array along the second axis, a vector along its only one; see `split`.

    Args:
        x: array with at least one axis.
        indices_or_sections: number of equal parts, or a list of the indices to split before.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: `x` has too few axes, or the extent is not divisible by the number of parts.

    >>> tr.hsplit(tr.arange(4), 2)
    [Tensor([0, 1]), Tensor([2, 3])]
    """
    x = _with_axis("hsplit", x, 1)
    return split(x, indices_or_sections, axis=0 if x.spec.ndim == 1 else 1)


def dsplit(x: Any, /, indices_or_sections: Any) -> list[Array]:
    """Split an array along the third axis; see `split`.

    Args:
        x: array with at least three axes.
        indices_or_sections: number of equal parts, or a list of the indices to split before.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: `x` has too few axes, or the extent is not divisible by the number of parts.

    >>> [part.shape for part in tr.dsplit(tr.zeros((1, 2, 4)), [1])]
    [(1, 2, 1), (1, 2, 3)]
    """
    return split(_with_axis("dsplit", x, 3), indices_or_sections, axis=2)


def _with_axis(name: str, x: Any, least: int) -> Any:
    x = listed(x)
    if x.spec.ndim < least:
        raise ShapeError(f"{name} cuts arrays with at least {least} axes, got {x.spec!r}", shape=x.spec.shape)
    return x
