"""Operands of the public functions: stacks of real or complex matrices; integers become float64."""

import operator
from typing import Any

from tenferro_runtime.batching import inner_array
from tenferro_runtime.extension import ArgumentError, Op, ShapeError, Spec, TenferroError, TracedTensor
from tenferro_tensor import tensor
from tenferro_tensor.catalog import broadcast_in_dim, convert, reshape, slice_
from tenferro_tensor.promotion import stretched
from tenferro_tensor_core import DTypeError, inexact_of, promote, require_equal


def value(x: Any) -> Any:
    """Convert an array-like to a value that primitives accept."""
    return x if hasattr(x, "level") else tensor(x)


def inexact(x: Any) -> Any:
    """Convert to a value of floating point or complex dtype; integers and booleans become float64."""
    x = value(x)
    return x if x.spec.inexact else convert(x, dtype=inexact_of(x.dtype))


def matrices(what: str, x: Any, *, square: bool = False) -> Any:
    """Convert to a stack of matrices with leading batch axes."""
    x = inexact(x)
    if x.ndim < 2:
        raise ShapeError(
            f"{what} takes matrices in the last two axes, got shape {show(x.spec.shape)}; add axes with reshape",
            shape=x.spec.shape,
        )
    if square:
        require_square(what, x.spec)
    return x


def require_square(what: str, x: Spec) -> None:
    """Raise unless the last two extents are equal."""
    require_equal(x.shape[-2], x.shape[-1], f"{what} takes square matrices, got shape {show(x.shape)}")


def require_inexact(what: str, *specs: Spec) -> None:
    """Raise in inference unless all operands are matrices of one floating point or complex dtype."""
    for s in specs:
        if s.narrow:
            raise DTypeError(
                f"{what} is not computed in {s.dtype.name}, which LAPACK does not have; convert the matrices first, "
                "x.astype(float32)",
                dtype=s.dtype.name,
            )
        if s.ndim < 2 or not s.inexact or s.dtype != specs[0].dtype:
            raise ArgumentError(
                f"{what} takes matrices of one floating point or complex dtype, got {', '.join(map(repr, specs))}; "
                "convert or reshape them first"
            )


def common(*xs: Any) -> tuple[Any, ...]:
    """Convert values to their common dtype."""
    dtype = promote(*[x.dtype for x in xs])
    return tuple(x if x.dtype == dtype else convert(x, dtype=dtype) for x in xs)


def stacked(x: Any, batch: tuple[Any, ...]) -> Any:
    """Broadcast matrices over batch axes."""
    shape = (*batch, *x.spec.shape[-2:])
    if x.spec.shape == shape:
        return x
    lead = len(shape) - x.ndim
    kept = [i for i in range(x.ndim) if not stretched(x.spec.shape[i], shape[lead + i])]
    x = reshape(x, shape=tuple(x.spec.shape[i] for i in kept)) if len(kept) < x.ndim else x
    return broadcast_in_dim(x, shape=shape, dims=tuple(lead + i for i in kept))


def show(shape: tuple[Any, ...]) -> str:
    """Format a shape for messages."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def flag(what: str, name: str, given: Any, allowed: tuple[Any, ...]) -> Any:
    """Require that an option is one of the allowed values."""
    if given not in allowed:
        raise ArgumentError(f"{what}: {name}={given!r} is not one of {', '.join(map(repr, allowed))}", **{name: given})
    return given


def basis(x: Any) -> str:
    """The basis to request: a generic one for values whose derivative is recorded, as the rules need."""
    return "generic" if differentiated(x) else "plain"


def in_generic_basis(op: Op) -> Op:
    """The op that is recorded for a derivative, such as that of a program."""
    return op.primitive.op(**{**op.params, "basis": "generic"})


def differentiated(x: Any) -> bool:
    """Whether a call on `x` is recorded for a derivative: `x` is neither concrete nor part of a program.

    A program contains the op of a concrete call, hence has its bits; the rule of that op yields the derivative of the
    program.
    """
    x = inner_array(x)
    return bool(x.level) and not isinstance(x, TracedTensor)


def leading(v: Any, k: Any) -> Any:
    """The first `k` entries along the last axis."""
    n = v.ndim
    return slice_(v, start=(0,) * n, limit=(*v.spec.shape[:-1], k), stride=(1,) * n)


def integer(what: str, name: str, n: Any) -> int:
    """Require an integer argument."""
    try:
        return operator.index(n)
    except TypeError as cause:
        if isinstance(cause, TenferroError):  # a traced integer says itself why it cannot be one
            raise
        raise ArgumentError(f"{what} takes an integer as {name}, got {n!r}", function=what) from None
