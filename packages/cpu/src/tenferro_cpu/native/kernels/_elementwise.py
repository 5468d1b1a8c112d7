"""`Elementwise`: an element-wise op as a function of NumPy arrays, with broadcasting and any strides."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_cpu.native.codegen.machine._jit import Engine
from tenferro_cpu.native.codegen.machine._jit import engine as default_engine
from tenferro_cpu.native.kernels._code import mapped, mapped_cost
from tenferro_cpu.native.kernels._driver import Axis, DriveArguments, coalesced, drive
from tenferro_cpu.native.kernels._forms import Access, access_of
from tenferro_cpu.native.kernels._fused_entry import POOLED_MIN_BYTES, Rows, entry
from tenferro_cpu.native.kernels._strided import Variants, strided
from tenferro_cpu.native.memory._pool import serving
from tenferro_tensor import Op, Spec
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError
from tenferro_tensor_core.forks import cached_property

Array = np.ndarray[Any, Any]

STREAM_MIN_ROW = 1024
"""Shortest row, among many, that is written past the caches: each of them ends with a barrier."""

MAX_PLANS = 256
"""Maximum number of plans per function; a full cache is cleared."""


def remember(table: dict[Any, Any], key: Any, plan: Any) -> Any:
    """Add a plan to a bounded table."""
    if len(table) >= MAX_PLANS:
        table.clear()
    table[key] = plan
    return plan


def checked(dtypes: Sequence[np.dtype[Any]], arrays: Sequence[Any]) -> list[Array]:
    """The operands as arrays that rows can read: aligned, with strides in whole elements.

    Raises:
        ArgumentError: the number of operands differs.
        DTypeError: the dtype of an operand differs.
    """
    if len(arrays) != len(dtypes):
        raise ArgumentError(f"the kernel takes {len(dtypes)} array(s), got {len(arrays)}")
    found = []
    for number, (x, dtype) in enumerate(zip(arrays, dtypes, strict=True)):
        x = np.asarray(x)
        if x.dtype != dtype:
            raise DTypeError(
                f"operand {number} of the kernel is {x.dtype}, but it was made for {dtype}; convert it first",
                operand=number,
            )
        found.append(x if in_elements(x) else x.copy())
    return found


def in_elements(x: Array) -> bool:
    """Whether an array is aligned and its strides are whole elements; of complex numbers in records they may not be."""
    return x.flags.aligned and all(s % x.itemsize == 0 for s in x.strides)


def extents(arrays: Sequence[Array]) -> tuple[int, ...]:
    """The broadcast shape of the operands."""
    shapes: set[tuple[int, ...]] = {x.shape for x in arrays}
    if len(shapes) == 1:
        return shapes.pop()
    try:
        shape: tuple[int, ...] = np.broadcast_shapes(*shapes)
        return shape
    except ValueError as cause:
        raise ShapeError(
            f"the operands' shapes {', '.join(str(x.shape) for x in arrays)} do not broadcast; reshape one of them",
            shapes=tuple(x.shape for x in arrays),
        ) from cause


def strides_over(x: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of `x` broadcast to `shape`."""
    own = tuple(0 if d == 1 else s for d, s in zip(x.shape, x.strides))
    return (0,) * (len(shape) - x.ndim) + own


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Allocate a result; large results come from the pool."""
    count = dtype.itemsize
    for d in shape:
        count *= d
    have = serving() if count >= POOLED_MIN_BYTES else None
    return np.empty(shape, dtype) if have is None else have.empty(shape, dtype)


def result(dtype: np.dtype[Any], shape: tuple[int, ...], arrays: list[Array], out: Any) -> Array:
    """The array to write: the given one, checked, or a new one. Operands that writing would change are copied.

    An operand with exactly the layout of the result stays: all operands of an element are read before it is written.
    """
    if out is None:
        return empty(shape, dtype)
    y = out
    if not isinstance(y, np.ndarray) or y.dtype != dtype or y.shape != shape or not in_elements(y):
        raise ArgumentError(
            f"the result of the kernel is an aligned {dtype} array of shape {shape}, got "
            f"{f'{y.dtype} of shape {y.shape}' if isinstance(y, np.ndarray) else type(y).__name__} to write to"
        )
    if not y.flags.writeable or (y.size > 1 and 0 in (s for d, s in zip(y.shape, y.strides) if d > 1)):
        raise ArgumentError("the result of the kernel cannot be written to; pass a writable array")
    for k, x in enumerate(arrays):
        same = x.ctypes.data == y.ctypes.data and x.shape == y.shape and x.strides == y.strides
        if not same and np.may_share_memory(x, y):
            arrays[k] = x.copy()
    return y


class Elementwise:
    """An element-wise op on NumPy arrays.

    One variant is compiled, on first use, for each access pattern of the operands along the innermost axis. Threads
    may call it concurrently; the interpreter lock is released meanwhile.

    Args:
        op: the op.
        dtypes: dtypes of its operands.
        engine: the compiler; by default the engine of the process.

    Attributes:
        out: dtype of the result.

    >>> from tenferro_cpu.native import available
    >>> from tenferro_tensor.catalog.arithmetic import mul
    >>> f8 = np.dtype("float64")
    >>> x, y = np.arange(3.0), np.full((2, 1), 2.0)
    >>> Elementwise(mul.op(), (f8, f8))(x, y) if available() else x * y
    array([[0., 2., 4.],
           [0., 2., 4.]])
    """

    def __init__(self, op: Op, dtypes: tuple[np.dtype[Any], ...], engine: Engine | None = None) -> None:
        self.op, self.dtypes = op, dtypes
        out = op.infer(*[Spec((), d) for d in dtypes])
        assert isinstance(out, Spec)
        self.out: np.dtype[Any] = out.dtype
        self.engine = default_engine() if engine is None else engine
        self._variants: dict[Any, int] = {}
        self._plans: dict[Any, DriveArguments] = {}
        self._known = Variants()

    @cached_property
    def cost(self) -> float:
        """Nanoseconds per element in one thread."""
        return mapped_cost(self.engine, self.op, self.dtypes, self.out)

    def address(self, accesses: tuple[Access, ...], stream: bool = False) -> int:
        """Machine code ``void(void **data, int64_t n, int64_t *strides)`` for operands and a result of these accesses.

        Raises:
            UnsupportedError: the op has no native form here.
        """
        found = self._variants.get((accesses, stream))
        if found is None:
            found = mapped(self.engine, self.op, self.dtypes, self.out, accesses, stream=stream)
            self._variants[accesses, stream] = found
            if not stream:
                self._known.add(accesses, found)
        return found

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The result, new or written to `out`.

        Raises:
            ArgumentError: wrong number of operands, or `out` does not fit.
            DTypeError: an operand's dtype is not the kernel's.
            ShapeError: the shapes do not broadcast.
        """
        xs = checked(self.dtypes, arrays)
        shape = extents(xs)
        y = result(self.out, shape, xs, out)
        if y.size:
            self._run(shape, [*xs, y])
        return y

    def entry(self, fallback: Callable[..., Any] | None = None, **how: Any) -> Callable[..., Any]:
        """The kernel as a C entry of its operands, with the least call overhead for small contiguous arrays.

        Args:
            fallback: called for everything else; by default the kernel itself.
            how: see `tenferro_cpu.native.kernels._fused_entry.entry`.
        """
        address, rest = self.address((Access.UNIT,) * (len(self.dtypes) + 1)), self.strided(fallback or self)
        return entry(address, self.dtypes, self.out, Rows(), rest, cost=self.cost, **how)

    def strided(self, fallback: Callable[..., Any], **how: Any) -> Callable[..., Any]:
        """The variants compiled now or later, as a C entry of arrays with any strides.

        Args:
            fallback: called for everything else.
            how: see `tenferro_cpu.native.kernels._strided.strided`.
        """
        return strided(self.dtypes, self.out, self._known, fallback, cost=self.cost, **how)

    def _run(self, shape: tuple[int, ...], both: list[Array]) -> None:
        key = tuple([(x.shape, x.strides) for x in both])
        plan = self._plans.get(key)
        if plan is None:
            plan = remember(self._plans, key, self._plan(shape, both))
        kernel, inner, outer = plan.kernel, plan.inner, plan.outer
        pointers = [x.ctypes.data for x in both]
        head = _head(pointers, inner, outer) if self._streams(both) else None
        accesses = _accesses(inner, both)
        if head is None or Access.STRIDED in accesses:
            drive(kernel, pointers, inner, outer, cost=self.cost)
            return
        if head:
            drive(kernel, pointers, Axis(head, inner.strides), [])
            pointers = [p + head * s for p, s in zip(pointers, inner.strides)]
            inner = Axis(inner.extent - head, inner.strides)
        drive(self.address(accesses, stream=True), pointers, inner, outer, cost=self.cost)

    def _plan(self, shape: tuple[int, ...], both: list[Array]) -> DriveArguments:
        columns = zip(*(strides_over(x, shape) for x in both))
        axes = coalesced(Axis(d, s) for d, s in zip(shape, columns))
        if not axes:
            axes = [Axis(1, tuple(x.itemsize for x in both))]
        # The longest contiguous walk over the result is the row; ties go to the later axis.
        at = max(range(len(axes)), key=lambda k: (_merit(axes[k], both), k))
        inner = axes.pop(at)
        return DriveArguments(self.address(_accesses(inner, both)), inner, axes)

    def _streams(self, both: list[Array]) -> bool:
        return sum(x.nbytes for x in both) > self.engine.host.near_bytes


def _head(pointers: list[int], inner: Axis, outer: Sequence[Axis]) -> int | None:
    """Elements of the only row before the first cache line that can be written past the caches; or None.

    With several rows, each begins with a cache line and is long enough.
    """
    place, step = pointers[-1], inner.strides[-1]
    if outer:
        places = [place, *[axis.strides[-1] for axis in outer]]
        return 0 if inner.extent >= STREAM_MIN_ROW and not any(p % 64 for p in places) else None
    return -place % 64 // step if -place % 64 % step == 0 else None


def _accesses(inner: Axis, both: list[Array]) -> tuple[Access, ...]:
    return tuple(access_of(s, x.itemsize) for s, x in zip(inner.strides, both))


def _merit(axis: Axis, both: list[Array]) -> float:
    """Suitability of an axis as the row: its length, a quarter of it per operand that must be gathered."""
    strided = sum(access_of(s, x.itemsize) is Access.STRIDED for s, x in zip(axis.strides, both))
    return min(axis.extent, 64) / 4.0**strided
