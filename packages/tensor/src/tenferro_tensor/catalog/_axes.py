"""Axis metadata checks shared by the structural primitives.

Primitives take axes in canonical form, counted from 0; the public functions resolve negative axes. Equal operations are
therefore equal ops.
"""

from collections.abc import Sequence
from typing import Any

from tenferro_tensor._spec import Spec
from tenferro_tensor_core import ArgumentError, AxisError, Dim, DimLike, DTypeError, ShapeError, ask, kind_of


def same(a: DimLike, b: DimLike) -> bool:
    """Whether two extents are equal; the active decisions answer for symbolic ones."""
    return a is b or ask(a, "==", b)


def show(shape: Sequence[DimLike]) -> str:
    """The readable form of a shape, with symbolic extents by name."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def require_axis(name: str, axis: Any, x: Spec, what: str = "axis") -> None:
    """Check that an operand has this axis, in canonical form."""
    if not _is_int(axis):
        raise ArgumentError(f"{name} takes one integer as {what}, got {axis!r}", primitive=name)
    if not 0 <= axis < x.ndim:
        raise AxisError(
            f"{name}: {what} {axis} is out of range for {x!r}; {_range(axis, x.ndim)}", axis=axis, ndim=x.ndim
        )


def require_axes(name: str, axes: Any, ndim: int, of: Spec | tuple[DimLike, ...] | str, what: str = "axes") -> None:
    """Check for distinct axes in canonical form.

    Args:
        name: the primitive.
        axes: the axes.
        ndim: number of axes of the array.
        of: the array in errors: an operand, the shape of the result, or words.
        what: the axes in errors.
    """
    if axes.__class__ is not tuple or not all(map(_is_int, axes)):
        raise ArgumentError(f"{name} takes a tuple of integers as {what}, got {axes!r}", primitive=name)
    for axis in axes:
        if not 0 <= axis < ndim:
            raise AxisError(
                f"{name}: {what} {axes} holds {axis}, out of range for "
                f"{f'the result shape {show(of)}' if isinstance(of, tuple) else of}; {_range(axis, ndim)}",
                axis=axis,
                ndim=ndim,
            )
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: {what} {axes} names an axis twice; give each axis once", axes=axes)


def require_length(name: str, values: Any, x: Spec, what: str) -> None:
    """Check for a tuple of sizes with one entry for each axis of an operand."""
    require_sizes(name, values, what)
    if len(values) != x.ndim:
        raise ShapeError(
            f"{name} needs {x.ndim} entries in {what}, one for each axis of {x!r}, got {len(values)}: {show(values)}",
            primitive=name,
        )


def require_sizes(name: str, values: Any, what: str) -> None:
    """Check for a tuple of integers and symbolic sizes."""
    if values.__class__ is not tuple or not all(_is_int(v) or isinstance(v, Dim) for v in values):
        raise ArgumentError(
            f"{name} takes a tuple of integers or symbolic sizes as {what}, got {values!r}", primitive=name
        )


def require_flag(name: str, value: Any, what: str) -> None:
    """Check for True or False themselves, not merely truthy values: equal ops have equal metadata."""
    if value.__class__ is not bool:
        raise ArgumentError(f"{name} takes True or False as {what}, got {value!r}", primitive=name)


def require_same_dtype(name: str, *specs: Spec) -> None:
    """Check that all operands have one dtype."""
    if any(s.dtype != specs[0].dtype for s in specs):
        raise DTypeError(
            f"{name} needs operands of one dtype, got {', '.join(map(repr, specs))}; convert them first",
            dtypes=tuple(str(s.dtype) for s in specs),
        )


def require_kind(name: str, x: Spec, kinds: str, takes: str) -> None:
    """Check that the dtype is of one of the given NumPy kinds."""
    if kind_of(x.dtype) not in kinds:
        raise DTypeError(
            f"{name} is not defined for {x.dtype.name}; it takes {takes}", dtype=str(x.dtype), primitive=name
        )


def _is_int(value: Any) -> bool:
    return value.__class__ is int


def _range(axis: int, ndim: int) -> str:
    if not ndim:
        return "it has no axes"
    if -ndim <= axis < 0:
        return f"primitives count axes from 0: pass {axis + ndim}"
    return f"axes go from 0 to {ndim - 1}"
