"""`pure_callback`: a Python function on host arrays as an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, overload

import numpy as np

from tenferro_runtime.batching import all_with_lanes, lane_by_lane
from tenferro_runtime.ir._effects import CALLBACKS
from tenferro_runtime.trees._tree import TreeDef, flatten, flatten_like, unflatten
from tenferro_tensor import HOST, REGISTRY, SCALARS, Array, Primitive, Spec
from tenferro_tensor.operands import value
from tenferro_tensor_core import ArgumentError, DimLike, DType, as_size, dtype

Shape = tuple[DimLike, ...]
METHODS: Final = ("sequential", "broadcast_all")


class HostFunction:
    """A function on trees of NumPy arrays as a function on their leaves.

    Attributes:
        f: the function.
        arguments: structure of its arguments.
        result: structure of its result.
        method: how it handles a batch.
    """

    __slots__ = ("arguments", "f", "method", "result")

    def __init__(self, f: Callable[..., Any], arguments: TreeDef, result: TreeDef, method: str) -> None:
        self.f, self.arguments, self.result, self.method = f, arguments, result, method

    def __call__(self, outs: Sequence[Spec], *raws: Any) -> tuple[Any, ...]:
        """Call the function; returns the leaves of the result, copied."""
        given = [_read_only(raw) for raw in raws]
        args, kwargs = unflatten(self.arguments, given)
        leaves = flatten_like(self.result, self.f(*args, **kwargs), f"the result of {self!r}")
        found = [np.asarray(x) for x in leaves]
        for x, spec, path in zip(found, outs, self.result.paths(), strict=True):
            fits = x.shape == spec.shape and np.can_cast(x.dtype, spec.dtype, "same_kind")
            if not fits:
                raise ArgumentError(
                    f"{self!r} returned {x.dtype.name}{list(x.shape)}{path and f' at {path}'} to pure_callback, but "
                    f"{spec!r} was declared; correct the result, or the shapes given to pure_callback",
                    returned=str(x.dtype),
                )
        return tuple([np.array(x, dtype=s.dtype, order="C") for x, s in zip(found, outs, strict=True)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostFunction) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.arguments, self.result, self.method

    def __repr__(self) -> str:
        return str(getattr(self.f, "__qualname__", type(self.f).__name__))


def _read_only(raw: Any) -> Any:
    x = np.asarray(raw).view()
    x.flags.writeable = False
    return x


def _pure_callback(
    *xs: Spec, function: HostFunction, shapes: tuple[Shape, ...], dtypes: tuple[DType, ...]
) -> Spec | tuple[Spec, ...]:
    """Apply a pure Python function on NumPy arrays to the operands; it has no derivative."""
    place = xs[0].place if xs else HOST
    outs = tuple([Spec(shape, d, place) for shape, d in zip(shapes, dtypes, strict=True)])
    return outs[0] if len(outs) == 1 else outs


_pure_callback.__name__ = "pure_callback"
pure_primitive = Primitive(_pure_callback)


def _kernel(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, function: HostFunction, shapes: Any, dtypes: Any
) -> Callable[..., Any]:
    def run(*raws: Any) -> Any:
        found = function(outs, *raws)
        return found[0] if len(found) == 1 else found

    return run


def _batched(
    size: DimLike,
    values: tuple[Any, ...],
    batched: tuple[bool, ...],
    /,
    *,
    function: HostFunction,
    shapes: tuple[Shape, ...],
    dtypes: tuple[DType, ...],
) -> Any:
    if function.method == "sequential":
        op = pure_primitive.op(function=function, shapes=shapes, dtypes=dtypes)
        return lane_by_lane(op, size, values, batched)
    wider = tuple([(size, *shape) for shape in shapes])
    return pure_primitive(*all_with_lanes(size, values, batched), function=function, shapes=wider, dtypes=dtypes)


CALLBACKS.add(pure_primitive)
REGISTRY.kernel(pure_primitive, "cpu", _kernel)
REGISTRY.batching(pure_primitive, _batched)


@overload
def pure_callback(
    f: Callable[..., Any],
    result: Array | Spec | np.ndarray[Any, Any],
    *args: Any,
    vmap_method: str = ...,
    **kwargs: Any,
) -> Array: ...
@overload
def pure_callback(f: Callable[..., Any], result: Any, *args: Any, vmap_method: str = ..., **kwargs: Any) -> Any: ...
def pure_callback(
    f: Callable[..., Any], result: Any, *args: Any, vmap_method: str = "sequential", **kwargs: Any
) -> Any:
    """Call a Python function on NumPy arrays as an operation of a program.

    The function must be pure: it may be called any number of times, or not at all if its result is not needed. It has
    no derivative; wrap the call with `tenferro_ad.custom_rule` to define one.

    Args:
        f: a function of NumPy arrays in the containers of the arguments, which it must not modify, that returns arrays
            in the containers of `result`.
        result: shapes and dtypes of the result: in any containers, `Spec`s or other objects with ``shape`` and
            ``dtype``, such as arrays.
        args: arrays and numbers in any containers.
        vmap_method: how `vmap` calls the function: for each lane in turn (``"sequential"``), or once with an additional
            leading axis on all arguments and results (``"broadcast_all"``).
        kwargs: keyword arguments.

    Returns:
        Arrays in the containers, shapes and dtypes of `result`.

    Raises:
        ArgumentError: `f` is not a function, `result` has leaves without shape and dtype, or `f` returned another
            result.
        MissingRuleError: the result was differentiated.

    >>> import numpy as np
    >>> import tenferro_runtime as tr
    >>> @tr.compile
    ... def ranks(x):
    ...     return tr.pure_callback(lambda a: np.argsort(np.argsort(a)), tr.zeros_like(x, dtype=tr.int64), x) + 1
    >>> ranks(tr.asarray([0.5, -1.0, 2.0]))
    Tensor([2, 1, 3])
    """
    if not callable(f):
        raise ArgumentError(f"pure_callback takes a function, got {f!r:.80}")
    if vmap_method not in METHODS:
        raise ArgumentError(f"{vmap_method=} is not known to pure_callback; use one of {', '.join(METHODS)}")
    given, made = flatten(result)
    specs = tuple([_spec(s, path) for s, path in zip(given, made.paths(), strict=True)])
    if not specs:
        raise ArgumentError("pure_callback needs shapes of results, got none; call a function with debug_callback")
    leaves, tree = flatten((args, kwargs))
    function = HostFunction(f, tree, made, vmap_method)
    shapes, dtypes = tuple([s.shape for s in specs]), tuple([s.dtype for s in specs])
    found = pure_primitive(*map(value, leaves), function=function, shapes=shapes, dtypes=dtypes)
    return unflatten(made, found if isinstance(found, tuple) else (found,))


def _spec(s: Any, path: str) -> Spec:
    if isinstance(s, Spec):
        return s
    if s.__class__ in SCALARS:
        s = value(s)
    spec = getattr(s, "spec", None)
    if isinstance(spec, Spec):
        return Spec(spec.shape, spec.dtype)
    try:
        return Spec(tuple([as_size(d) for d in s.shape]), dtype(np.dtype(s.dtype)))
    except (AttributeError, TypeError) as cause:
        raise ArgumentError(
            f"pure_callback was told {s!r:.60} as the result{path}, which has no shape and dtype; give a Spec, or an "
            "array like the result"
        ) from cause
