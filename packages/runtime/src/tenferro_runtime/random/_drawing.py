"""Keys, shapes and dtypes of the functions of this package, and draws from the primitives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_runtime.compiling._compile import compile
from tenferro_runtime.tracing.effects import ambient
from tenferro_tensor import HOST, Op, Primitive, broadcast_shapes, catalog, tensor
from tenferro_tensor.calls import state
from tenferro_tensor.functions import broadcast_to, zeros
from tenferro_tensor.operands import shape_of, value
from tenferro_tensor_core import (
    DimLike,
    DTypeError,
    ShapeError,
    float32,
    float64,
    is_narrow,
    uint64,
)
from tenferro_tensor_core import dtype as known_dtype
from tenferro_tensor_core.tracebacks import hide_frames

if TYPE_CHECKING:
    from tenferro_tensor import Array

_OPS: Final[dict[Any, Op]] = {}
"""Ops of recent shapes and dtypes: to look them up takes as long as a few numbers."""
_MOST: Final = 256
_ZERO: Final = tensor(np.array(0, uint64))


def checked(what: str, key: Any) -> Any:
    """Check a key, or an array of keys.

    Raises:
        DTypeError: it is something else.
    """
    if isinstance(key, (tuple, list)):
        raise DTypeError(
            f"{what} takes a key before all else, got {key!r:.60}; write tr.random.{what}(tr.random.key(seed), ...)"
        )
    found = key if hasattr(key, "spec") else value(key)
    if found.spec.dtype != uint64:
        raise DTypeError(
            f"{what} takes a key, which is of dtype uint64, got {found.spec!r}; make one with tr.random.key(seed)",
            dtype=str(found.spec.dtype),
        )
    return found


def drawn(primitive: Primitive, what: str, key: Any, shape: Any, dtype: Any, start: Any = None) -> Array:
    """Draw numbers of a primitive: an array (*key.shape, *shape).

    Args:
        primitive: one of `tenferro_tensor.random_streams` with a shape.
        what: the public function, for errors.
        key: keys.
        shape: shape drawn for each key.
        dtype: a dtype object.
        start: position of the first number, 0 by default.
    """
    try:
        try:
            op = _OPS[primitive, shape, dtype]
        except (KeyError, TypeError):
            op = _op(primitive, shape, dtype)
        key = checked(what, key)
        return op(key, beginning(key) if start is None else start)
    except Exception as error:
        hide_frames(error)
        raise


def _op(primitive: Primitive, shape: Any, dtype: Any) -> Op:
    op = primitive.op(shape=shape_of(shape), dtype=dtype)
    if not op.symbolic and isinstance(shape, (int, tuple)):
        if len(_OPS) >= _MOST:
            _OPS.clear()
        _OPS[primitive, shape, dtype] = op
    return op


def beginning(key: Any) -> Any:
    """The first position of the stream of each key."""
    if key.spec.shape or key.spec.place is not HOST:
        return zeros(key.spec.shape, dtype=uint64, device=key.spec.place.device)
    return _ZERO


def position(key: Any, number: int) -> Any:
    """A position in the stream of one key."""
    if key.spec.place is not HOST:
        return tensor(np.array(number, uint64), device=key.spec.place.device)
    return state.tensor.wrap(np.uint64(number), _ZERO.spec)


def floating(what: str, dtype: Any) -> np.dtype[Any]:
    """Check a real floating-point dtype, float64 by default.

    Raises:
        DTypeError: it is something else.
    """
    if dtype is None:
        return float64
    found = known_dtype(dtype)
    if found == float64 or found == float32 or is_narrow(found):
        return found
    raise DTypeError(f"{what} draws real floating-point numbers, not {found}", dtype=str(found))


def computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers are drawn; narrow floats are rounded from float32."""
    return float32 if is_narrow(dtype) else dtype


def given_as(x: Any, dtype: np.dtype[Any]) -> Any:
    """Convert numbers to the requested dtype."""
    return x if x.spec.dtype == dtype else catalog.convert(x, dtype=dtype)


def fused(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays that runs as one program even in eager calls."""
    compiled = compile(f)

    @wraps(f)
    def run(*operands: Any) -> Any:
        eager = ambient() is None and not any(x.level for x in operands)
        return (compiled if eager else f)(*operands)

    return run


def accelerator(key: Any) -> Any:
    """The accelerator that a key is on, or None in main memory."""
    return key.spec.place.device if hasattr(key, "spec") and not key.spec.place.on_host else None


def beside(key: Any, x: Any) -> Any:
    """A value, moved to the accelerator of a key if it is a number of the program."""
    device = accelerator(key) if isinstance(x, (int, float)) else None
    return value(x) if device is None else tensor(x, device=device)


def parameters(
    what: str, shape: Any, dtype: np.dtype[Any], *given: Any, key: Any = None
) -> tuple[tuple[DimLike, ...], list[Any]]:
    """The shape of the result, and the parameters of a distribution in this shape and dtype.

    Args:
        what: the public function, for errors.
        shape: the requested shape; by default the broadcast shape of the parameters.
        dtype: dtype of the parameters.
        given: the parameters.
        key: the key of the draw, if any.

    Raises:
        ShapeError: the parameters do not broadcast to the shape.
    """
    found = [beside(key, p) for p in given]
    found = [p if p.spec.dtype == dtype else catalog.convert(p, dtype=dtype) for p in found]
    own = broadcast_shapes(*[p.spec.shape for p in found])
    wanted = own if shape is None else shape_of(shape)
    if broadcast_shapes(own, wanted) != wanted:
        raise ShapeError(f"{what}: parameters of shape {own} do not broadcast to shape {wanted}", shape=wanted)
    return wanted, [p if p.spec.shape == wanted else broadcast_to(p, wanted) for p in found]
