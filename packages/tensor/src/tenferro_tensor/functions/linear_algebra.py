"""Products of vectors, matrices and higher arrays, and their diagonals.

Every product is one `dot_general`: axes that broadcast become free axes of the operand that has them, without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog, contractible
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import SCALARS, state
from tenferro_tensor.functions.manipulation import moveaxis, permute_dims, ravel
from tenferro_tensor.functions.reading import getitem
from tenferro_tensor.functions.reductions import sum as _sum
from tenferro_tensor.functions.updating import IndexUpdate
from tenferro_tensor.operands import alike, axes_of, axis_of, value, whole
from tenferro_tensor.promotion import broadcast_shapes, stretched
from tenferro_tensor.tables import EntryTable, Table
from tenferro_tensor.views import view
from tenferro_tensor_core import ArgumentError, DimLike, ShapeError, ask, dim_max, dim_min, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["diagonal", "kron", "matmul", "matrix_trace", "outer", "tensordot", "vecdot"]


def __dir__() -> list[str]:
    return __all__.copy()


PRODUCTS: Final = Table("matrix products")
"""Ops of matrix products that are one `dot_general` of the unchanged operands, by their specs."""


def matmul(x1: Any, x2: Any, /) -> Array:
    """Matrix product; leading axes are batch axes and broadcast.

    A vector is a row on the left and a column on the right, and that axis is dropped from the result.

    Args:
        x1: array of shape (..., m, k), or a vector of k elements.
        x2: array of shape (..., k, n), or a vector of k elements.

    Returns:
        Array of shape (..., m, n) in the promoted dtype.

    Raises:
        ShapeError: an operand has no axes, the contracted extents differ, or batch axes do not broadcast.

    See also:
        `dot`, `tensordot` and `vecdot`.

    >>> tr.matmul(tr.asarray([[1, 2], [3, 4]]), tr.asarray([1, 1]))
    Tensor([3, 7])
    """
    try:
        z = MATMUL(x1, x2)
        return _product(*alike(value(x1), value(x2))) if z is NotImplemented else z
    except ArgumentError:
        if not contractible.has_contractible(x1, x2):
            raise
    return contractible.matmul(*contractible.operands(x1, x2))


class _Matmul(EntryTable):
    """The operator ``@``. If it is one `dot_general` of the unchanged operands, it uses the entries of that op."""

    __slots__ = ()

    def generic(self, operands: tuple[Any, ...]) -> Any:
        x, y = operands
        if not hasattr(x, "spec") or not hasattr(y, "spec"):
            if SCALARS.isdisjoint((x.__class__, y.__class__)):
                return self.generic((value(x), value(y)))
            return NotImplemented
        op = PRODUCTS.get((x.spec, y.spec)) or _plain_product(x.spec, y.spec)
        if op is None:
            return _product(*alike(x, y))
        z = op(x, y)
        mask = sum([1 << i for i, a in enumerate(operands) if a.__class__ is state.recorded])
        entry = op.entries.get((mask, x.spec, y.spec))
        if entry is not None:
            self.remember(entry)
        return z


MATMUL: Final = _Matmul("matrix products by operator")


def _plain_product(x: Spec, y: Spec) -> Op | None:
    """The op of a product without conversion, reshape or transposition; remembered if the sizes are known."""
    _require_product(x, y)
    n = x.ndim - 2
    stacked = n > 0 and y.ndim == x.ndim
    if x.dtype != y.dtype or x.symbolic or y.symbolic:
        return None
    if not (y.ndim <= 2 or (stacked and x.shape[:-2] == y.shape[:-2])):
        return None
    over = ((x.ndim - 1,), (max(y.ndim - 2, 0),))
    lead = tuple(range(n)) if stacked and y.ndim > 2 else ()
    op = catalog.dot_general.op(contract=over, batch=(lead, lead))
    PRODUCTS.remember((x, y), op)
    return op


def _require_product(x: Spec, y: Spec) -> None:
    if not x.ndim or not y.ndim:
        raise ShapeError(
            f"matmul needs operands with at least one axis, got {x!r} and {y!r}; multiply by numbers with *",
            shapes=(x.shape, y.shape),
        )
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if not ask(x.shape[-1], "==", inner):
        raise ShapeError(
            f"matmul cannot multiply {x!r} by {y!r}: the last axis of the first has extent {x.shape[-1]}, "
            f"axis {max(y.ndim - 2, 0)} of the second has extent {inner}; transpose or reshape an operand",
            shapes=(x.shape, y.shape),
        )


def _product(x: Any, y: Any) -> Any:
    """The general matrix product of two operands of one dtype."""
    vector_x, vector_y = x.spec.ndim == 1, y.spec.ndim == 1
    stack_x, stack_y = x.spec.shape[:-2], y.spec.shape[:-2]
    stack = broadcast_shapes(stack_x, stack_y)
    n = len(stack)
    in_x = [_extends(stack_x, i, n, d) for i, d in enumerate(stack)]
    in_y = [_extends(stack_y, i, n, d) for i, d in enumerate(stack)]
    x = _without(x, [i - n + len(stack_x) for i in range(n) if not in_x[i]])
    y = _without(y, [i - n + len(stack_y) for i in range(n) if not in_y[i]])
    axes_x, axes_y = [i for i in range(n) if in_x[i]], [i for i in range(n) if in_y[i]]
    shared = [i for i in axes_x if in_y[i]]
    out = catalog.dot_general(
        x,
        y,
        contract=((x.spec.ndim - 1,), (len(axes_y),)),
        batch=(tuple([axes_x.index(i) for i in shared]), tuple([axes_y.index(i) for i in shared])),
    )
    labels: list[Any] = [*shared, *[i for i in axes_x if i not in shared], *["row"] * (not vector_x)]
    labels += [*[i for i in axes_y if i not in shared], *["column"] * (not vector_y)]
    wanted = [*range(n), *["row"] * (not vector_x), *["column"] * (not vector_y)]
    return permute_dims(out, [labels.index(w) for w in wanted])


def _extends(stack: tuple[DimLike, ...], i: int, n: int, goal: DimLike) -> bool:
    """Whether a stack has axis ``i`` of the common stack in full, not by broadcasting."""
    own = i - n + len(stack)
    return own >= 0 and not stretched(stack[own], goal)


def _without(x: Any, axes: list[int]) -> Any:
    drop = {a for a in axes if a >= 0}
    return catalog.reshape(x, shape=tuple([d for a, d in enumerate(x.spec.shape) if a not in drop])) if drop else x


_VECDOTS: Final = Table("inner products")
"""Ops of inner products that are one `dot_general` of the unchanged operands, by their specs and the axis."""


def _plain_vecdot(x: Spec, y: Spec, axis: int) -> Op | None:
    """The op for real operands of one shape, remembered if the sizes are known."""
    if x.dtype != y.dtype or x.cplx or x.symbolic or x.shape != y.shape or not -x.ndim <= axis < x.ndim:
        return None
    over = (axis % x.ndim,)
    rest = tuple([a for a in range(x.ndim) if a not in over])
    return _VECDOTS.remember((x, y, axis), catalog.dot_general.op(contract=(over, over), batch=(rest, rest)))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Inner products along an axis, ``sum(conj(x1) * x2)``.

    Args:
        x1, x2: arrays with at least one axis; the other axes broadcast.
        axis: axis to sum over, of the same extent in both.

    Returns:
        Array of the broadcast shape without the axis, in the promoted dtype.

    Raises:
        ShapeError: the extents along the axis differ, or other axes do not broadcast.
        AxisError: the axis is out of range.

    See also:
        `vdot`, over all elements.

    >>> tr.vecdot(tr.asarray([[1, 2], [3, 4]]), tr.asarray([1, 1]))
    Tensor([3, 7])
    """
    if axis.__class__ is int and hasattr(x1, "spec") and hasattr(x2, "spec"):
        op = _VECDOTS.get((x1.spec, x2.spec, axis)) or _plain_vecdot(x1.spec, x2.spec, axis)
        if op is not None:
            return op(x1, x2)
    x, y = alike(value(x1), value(x2))
    if not x.spec.ndim or not y.spec.ndim:
        raise ShapeError(f"vecdot needs operands with at least one axis, got {x.spec!r} and {y.spec!r}")
    n = max(x.spec.ndim, y.spec.ndim)
    back = axis_of("vecdot", axis, n) - n
    x, y = (moveaxis(v, axis_of("vecdot", back, v.spec.ndim), -1) for v in (x, y))
    if not ask(x.spec.shape[-1], "==", y.spec.shape[-1]):
        raise ShapeError(
            f"vecdot needs equal extents along axis {axis}, got {x.spec.shape[-1]} and {y.spec.shape[-1]}; that axis "
            "does not broadcast",
            shapes=(x.spec.shape, y.spec.shape),
        )
    x = catalog.conj(x) if x.spec.cplx else x
    row = catalog.reshape(x, shape=(*x.spec.shape[:-1], 1, x.spec.shape[-1]))
    column = catalog.reshape(y, shape=(*y.spec.shape, 1))
    out = matmul(row, column)
    return catalog.reshape(out, shape=out.spec.shape[:-2])


_TENSORDOTS: Final = Table("tensor products over axes")
"""Ops of `tensordot` by the specs of the operands and the number of axes."""


def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> Array:
    """Sum of products over pairs of axes.

    Args:
        x1: first operand.
        x2: second operand.
        axes: number of axes: the last ones of `x1` pair with the first ones of `x2`, in order; or two sequences of
            axes.

    Returns:
        Array with the other axes of `x1`, then those of `x2`, in the promoted dtype.

    Raises:
        ShapeError: the extents of a pair differ.
        ArgumentError: `axes` has another form.
        AxisError: an axis is out of range or repeated.

    >>> tr.tensordot(tr.ones((2, 3)), tr.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    if axes.__class__ is int and hasattr(x1, "spec") and hasattr(x2, "spec"):
        op = _TENSORDOTS.get((x1.spec, x2.spec, axes))
        if op is not None:
            return op(x1, x2)
    try:
        x, y = alike(value(x1), value(x2))
    except ArgumentError:
        if not contractible.has_contractible(x1, x2):
            raise
        x, y = contractible.operands(x1, x2)
        return contractible.tensordot("tensordot", x, y, *_pairs(axes, *[getattr(v, "spec", v) for v in (x, y)]))
    over_x, over_y = _pairs(axes, x.spec, y.spec)
    op = catalog.dot_general.op(contract=(over_x, over_y), batch=((), ()))
    if axes.__class__ is int and x is x1 and y is x2 and not (x.spec.symbolic or y.spec.symbolic):
        _TENSORDOTS.remember((x.spec, y.spec, axes), op)
    return op(x, y)


def _pairs(axes: Any, x: Any, y: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of both operands that `tensordot` sums over."""
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ArgumentError(f"tensordot takes axes as an integer or as two sequences of axes, got {axes!r}")
        over_x, over_y = (
            axes_of("tensordot", a if isinstance(a, (tuple, list)) else (a,), v.ndim)
            for a, v in zip(axes, (x, y), strict=True)
        )
        return over_x, over_y
    n = whole("tensordot", "axes", axes)
    if not 0 <= n <= min(x.ndim, y.ndim):
        raise ArgumentError(
            f"tensordot cannot pair {n} axes of {x!r} with {y!r}; they have {x.ndim} and {y.ndim}",
            axes=n,
        )
    return tuple(range(x.ndim - n, x.ndim)), tuple(range(n))


def outer(x1: Any, x2: Any, /) -> Array:
    """Outer product of two vectors.

    Args:
        x1: vector of m elements; other arrays are flattened.
        x2: vector of n elements.

    Returns:
        Array of shape (m, n) in the promoted dtype.

    >>> tr.outer(tr.asarray([1, 2]), tr.asarray([3, 4]))
    Tensor([[3, 4],
            [6, 8]])
    """
    x, y = ravel(x1), ravel(x2)
    return catalog.mul(catalog.reshape(x, shape=(*x.spec.shape, 1)), y)


def kron(x1: Any, x2: Any, /) -> Array:
    """Kronecker product: each element of `x1` is replaced by its product with `x2`.

    Args:
        x1, x2: arrays of any shape; missing axes count as leading axes of extent 1.

    Returns:
        Array whose extents are the products of the extents, in the promoted dtype.

    >>> tr.kron(tr.asarray([1, 10]), tr.asarray([1, 2]))
    Tensor([ 1,  2, 10, 20])
    """
    x, y = value(x1), value(x2)
    n = max(x.spec.ndim, y.spec.ndim)
    of_x = (1,) * (n - x.spec.ndim) + x.spec.shape
    of_y = (1,) * (n - y.spec.ndim) + y.spec.shape
    wide_x = catalog.reshape(x, shape=tuple([d for a in of_x for d in (a, 1)]))
    wide_y = catalog.reshape(y, shape=tuple([d for a in of_y for d in (1, a)]))
    return catalog.reshape(catalog.mul(wide_x, wide_y), shape=tuple([a * b for a, b in zip(of_x, of_y, strict=True)]))


def _put_diagonal(base: Any, part: Any, offset: int = 0, *, axis1: int = -2, axis2: int = -1) -> Any:
    moved = moveaxis(base, (axis1, axis2), (-2, -1))
    return moveaxis(IndexUpdate(moved, _diagonal_key(moved, offset)).set(part), (-2, -1), (axis1, axis2))


def _diagonal_key(x: Any, offset: int) -> tuple[Any, ...]:
    """The key of a diagonal of the last two axes."""
    rows, cols = x.spec.shape[-2:]
    down, right = max(-offset, 0), max(offset, 0)
    length = dim_max(dim_min(rows - down, cols - right), 0)
    where = catalog.iota(shape=(length,), dtype=int64, axis=0, place=x.spec.place)
    return Ellipsis, where + down, where + right


def _diagonal_form(x: Any, /, offset: Any = 0, *, axis1: Any = -2, axis2: Any = -1) -> Any:
    given = (offset, axis1, axis2)
    return x.diagonal(*given) if all(i.__class__ is int for i in given) and -x.ndim <= min(axis1, axis2) else None


@view(_diagonal_form, _put_diagonal, lambda raw, offset=0, axis1=-2, axis2=-1: raw.diagonal(offset, axis1, axis2))
def diagonal(x: Any, /, offset: int = 0, *, axis1: int = -2, axis2: int = -1) -> Array:
    """Diagonals of matrices.

    Args:
        x: array with at least two axes.
        offset: index of the diagonal; 0 is the main one, positive indices are above it.
        axis1: axis of the rows.
        axis2: axis of the columns.

    Returns:
        Array without both axes, with the diagonal as new last axis.

    Raises:
        ShapeError: `x` has fewer than two axes.
        AxisError: an axis is out of range or repeated.

    See also:
        `diag`, which also builds matrices.

    >>> tr.diagonal(tr.asarray([[1, 2], [3, 4]]))
    Tensor([1, 4])
    """
    x = value(x)
    if x.spec.ndim < 2:
        raise ShapeError(f"diagonal needs at least two axes, got {x.spec!r}; reshape to a matrix", shape=x.spec.shape)
    offset = whole("diagonal", "offset", offset)
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    return getitem(x, _diagonal_key(x, offset))


def matrix_trace(x: Any, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1, dtype: Any = None) -> Array:
    """Sums of the diagonals of matrices.

    ``linalg.trace`` and the method ``trace`` are this function; in the main namespace, ``trace`` traces programs.

    Args:
        x: array with at least two axes.
        offset: index of the diagonal; 0 is the main one, positive indices are above it.
        axis1: axis of the rows.
        axis2: axis of the columns.
        dtype: dtype of the sums; by default that of `sum`.

    Returns:
        Array without both axes.

    Raises:
        ShapeError: `x` has fewer than two axes.
        AxisError: an axis is out of range or repeated.

    >>> tr.matrix_trace(tr.asarray([[1, 2], [3, 4]]))
    Tensor(5)
    """
    entries = diagonal(x, offset=offset, axis1=axis1, axis2=axis2)
    # The order in which NumPy adds follows strides: the entries lie as `gather` puts them in programs.
    return _sum(moveaxis(entries, -1, 0).copy(), 0, dtype=dtype)
