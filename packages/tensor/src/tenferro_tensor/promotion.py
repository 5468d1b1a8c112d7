"""Explicit promotion and broadcasting.

In programs and derivative rules, the operands of an element-wise primitive have one shape and one dtype. This module
computes these, and applies ``convert`` and ``broadcast_in_dim`` to the values that need them. Python scalars stay
scalars: they are weakly typed and take the dtype of the array operands.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import HOST
from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor._spec import Spec, common_place
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.catalog._axes import show
from tenferro_tensor_core import (
    DimLike,
    DType,
    DTypeError,
    ShapeError,
    ask,
    complex128,
    float64,
    inexact_of,
    int64,
    is_inexact,
    likely,
    promote,
    require_equal,
    weak,
)
from tenferro_tensor_core import bool_ as bool_dtype

T = TypeVar("T", bound=Any)

__all__ = [
    "Operand", "broadcast_shapes", "broadcasts_to", "brought", "common_dtype", "describe", "keep_imaginary",
    "materialised", "normalised", "stretched", "targets",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


_DEFAULT = {bool: bool_dtype, int: int64, float: float64, complex: complex128}
_RANK = (bool, int, float, complex)

Operand = Spec | type
"""An operand as inference sees it: its spec, or the class of a Python scalar."""


def broadcast_shapes(*shapes: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    """The common shape of operands: axes are aligned at the right, and extents are equal or 1.

    Args:
        shapes: shapes of the operands.

    Returns:
        The broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> broadcast_shapes((4, 1), (3,))
    (4, 3)
    """
    if not shapes:
        return ()
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    ndim = max(map(len, shapes))
    out: list[DimLike] = [1] * ndim
    for shape in shapes:
        for i, d in enumerate(shape, ndim - len(shape)):
            have = out[i]
            if d is have or d == have or d == 1:
                continue
            if have == 1:
                out[i] = d
            # Ask what the example sizes suggest, so that one guard is enough.
            elif likely(have, "==", d):
                require_equal(have, d, "broadcasting")
            elif likely(d, "==", 1):
                require_equal(d, 1, "broadcasting")
            elif likely(have, "==", 1):
                require_equal(have, 1, "broadcasting")
                out[i] = d
            else:
                ask(have, "==", d)  # raises its own error for data-dependent sizes
                raise ShapeError(
                    f"shapes {' and '.join(map(show, shapes))} do not broadcast: "
                    f"axis {i - ndim} has extents {have} and {d}; "
                    "extents must be equal or 1",
                    shapes=shapes,
                )
    return tuple(out)


def common_dtype(operands: list[Operand]) -> np.dtype[Any]:
    """The promoted dtype of array operands and weakly typed Python scalars.

    Args:
        operands: specs, or classes of Python scalars.

    Returns:
        The dtype.
    """
    arrays = [o.dtype for o in operands if isinstance(o, Spec)]
    scalars = [o for o in operands if not isinstance(o, Spec)]
    if not arrays:
        return _DEFAULT[max(scalars, key=_RANK.index)]
    dtype = promote(*arrays)
    for cls in scalars:
        dtype = weak(cls, dtype)
    return dtype


def targets(op: Op, operands: tuple[Operand, ...]) -> tuple[Spec, ...]:
    """Specs to which the operands of an element-wise op are converted and broadcast.

    Args:
        op: the op.
        operands: specs, or classes of Python scalars.

    Returns:
        One spec for each operand.
    """
    p, first = op.primitive, operands[0]
    if isinstance(first, Spec) and p.chooser is None and operands == (first,) * len(operands):
        if first.inexact or p.domain not in ("inexact", "floating"):
            return operands  # type: ignore[return-value]  # one spec, and nothing to promote
    dtype = common_dtype([o for i, o in enumerate(operands) if i != p.chooser])
    if p.domain in ("inexact", "floating") and not is_inexact(dtype):
        dtype = inexact_of(dtype)
    specs = [o for o in operands if isinstance(o, Spec)]
    shape = broadcast_shapes(*[s.shape for s in specs])
    place = common_place(p.name, specs) or HOST
    return tuple(
        [
            Spec(shape, dtype if i != p.chooser else o.dtype, o.place)
            if isinstance(o, Spec)
            else Spec(shape, dtype if i != p.chooser else bool_dtype, place)
            for i, o in enumerate(operands)
        ]
    )


def describe(args: tuple[Any, ...]) -> tuple[Operand, ...]:
    """Represent operands by their specs, or by the classes of Python scalars.

    Args:
        args: operands.

    Returns:
        A tuple.
    """
    return tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in args])


def normalised(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert and broadcast the operands of an element-wise op by explicit operations; Python scalars are kept.

    Args:
        op: the op.
        args: operands.

    Returns:
        The operands.
    """
    goal = targets(op, describe(args))
    return tuple([a if a.__class__ in SCALARS else brought(a, t) for a, t in zip(args, goal, strict=True)])


def materialised(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert the Python scalars among the operands of an op that is not element-wise to 0-d tensors.

    Args:
        args: operands.

    Returns:
        The operands.
    """
    for a in args:
        if a.__class__ in SCALARS:
            break
    else:
        return args
    known = [o for o in describe(args) if isinstance(o, Spec)]
    place = known[0].place if known else HOST
    return tuple(
        Primitive.adopt(
            a, dtype=weak(a.__class__, known[0].dtype) if known else common_dtype([a.__class__]), device=place.device
        )
        if a.__class__ in SCALARS
        else a
        for a in args
    )


def brought(x: T, goal: Spec) -> T:
    """Convert a value to the dtype of `goal` and broadcast it to its shape, in program form.

    Axes of extent 1 that grow are dropped by a reshape first, so that ``broadcast_in_dim`` never stretches an axis and
    its transpose is a plain reduction.

    Args:
        x: value.
        goal: the spec.

    Returns:
        The value.
    """
    if x.spec.dtype != goal.dtype:
        x = catalog.convert(x, dtype=goal.dtype)
    shape = x.spec.shape
    if shape == goal.shape:
        return x
    lead = len(goal.shape) - len(shape)
    kept = [i for i, d in enumerate(shape) if not stretched(d, goal.shape[lead + i])]
    if len(kept) < len(shape):
        x = catalog.reshape(x, shape=tuple(shape[i] for i in kept))
    return catalog.broadcast_in_dim(x, shape=goal.shape, dims=tuple(lead + i for i in kept))  # type: ignore[no-any-return]


def stretched(d: DimLike, goal: DimLike) -> bool:
    """Whether an axis is broadcast from extent 1, rather than having the target extent.

    Args:
        d: extent of the axis.
        goal: target extent.

    Returns:
        The answer.
    """
    if d is goal or d == goal:
        return False
    return d == 1 or (not likely(d, "==", goal) and ask(d, "==", 1))


def broadcasts_to(shape: tuple[DimLike, ...], goal: tuple[DimLike, ...]) -> bool:
    """Whether a shape broadcasts to another.

    Args:
        shape: the shape.
        goal: target shape.

    Returns:
        The answer.
    """
    lead = len(goal) - len(shape)
    return lead >= 0 and all(stretched(d, e) or ask(d, "==", e) for d, e in zip(shape, goal[lead:], strict=True))


def keep_imaginary(what: str, source: DType, target: DType) -> None:
    """Refuse the conversion from complex to real numbers.

    Args:
        what: the operation, for the error.
        source: dtype to convert from.
        target: dtype to convert to.

    Raises:
        DTypeError: the conversion drops the imaginary part.
    """
    if source.kind == "c" and target.kind not in "cb":
        raise DTypeError(
            f"{what} from {source.name} to {target.name} would drop the imaginary part; "
            "take real(x) or imag(x), or ask for the loss with cast(x, dtype)",
            source=source.name,
            target=target.name,
        )
