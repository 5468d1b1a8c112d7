"""`Fused`: an element-wise kernel as a function of NumPy arrays, with broadcasting and any strides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenferro_cpu.native.kernels._driver import Axis, DriveArguments, coalesced, drive
from tenferro_cpu.native.kernels._forms import access_of
from tenferro_cpu.native.kernels._fused_entry import POOLED_MIN_BYTES, Rows, entry
from tenferro_cpu.native.kernels._identity import noted_cost
from tenferro_cpu.native.kernels._strided import Variants, strided
from tenferro_cpu.native.machine._jit import Engine
from tenferro_cpu.native.machine._jit import engine as default_engine
from tenferro_cpu.native.memory._pool import serving
from tenferro_tensor.device_model import Access, KernelIR
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError
from tenferro_tensor_core.forks import cached_property, importing

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


def checked(kernel: KernelIR, arrays: Sequence[Any]) -> list[Array]:
    """The operands as aligned arrays of the kernel's dtypes.

    Raises:
        ArgumentError: the number of operands differs.
        DTypeError: the dtype of an operand differs.
    """
    if len(arrays) != len(kernel.inputs):
        raise ArgumentError(f"the kernel takes {len(kernel.inputs)} array(s), got {len(arrays)}")
    found = []
    for number, (x, operand) in enumerate(zip(arrays, kernel.inputs)):
        x = np.asarray(x)
        if x.dtype != operand.dtype:
            raise DTypeError(
                f"operand {number} of the kernel is {x.dtype}, but it was made for {operand.dtype}; convert it first",
                operand=number,
            )
        found.append(x if x.flags.aligned else x.copy())
    return found


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


def results(kernel: KernelIR, shape: tuple[int, ...], arrays: list[Array], out: Any) -> list[Array]:
    """The arrays to write: the given ones, checked, or new ones. Operands that writing would change are copied.

    An operand with exactly the layout of a result stays: all operands of an element are read before it is written.
    """
    if out is None:
        return [empty(shape, operand.dtype) for operand in kernel.written]
    given = out if isinstance(out, tuple) else (out,)
    if len(given) != len(kernel.written):
        raise ArgumentError(f"the kernel writes {len(kernel.written)} array(s), got {len(given)} to write to")
    outs = [empty(shape, operand.dtype) if y is None else y for y, operand in zip(given, kernel.written)]
    for number, (y, operand) in enumerate(zip(outs, kernel.written)):
        if not isinstance(y, np.ndarray) or y.dtype != operand.dtype or y.shape != shape or not y.flags.aligned:
            raise ArgumentError(
                f"result {number} of the kernel is an aligned {operand.dtype} array of shape {shape}, got "
                f"{f'{y.dtype} of shape {y.shape}' if isinstance(y, np.ndarray) else type(y).__name__} to write to"
            )
        if not y.flags.writeable or (y.size > 1 and 0 in (s for d, s in zip(y.shape, y.strides) if d > 1)):
            raise ArgumentError(f"result {number} of the kernel cannot be written to; pass a writable array")
        if any(np.may_share_memory(y, other) for other in outs[:number]):
            raise ArgumentError(f"result {number} of the kernel overlaps an earlier one; pass separate arrays")
        for k, x in enumerate(arrays):
            same = x.ctypes.data == y.ctypes.data and x.shape == y.shape and x.strides == y.strides
            if not same and np.may_share_memory(x, y):
                arrays[k] = x.copy()
    return outs


class Fused:
    """A fused element-wise kernel on NumPy arrays.

    One variant is compiled, on first use, for each access pattern of the operands along the innermost axis. Threads
    may call it concurrently; the interpreter lock is released meanwhile.

    Args:
        kernel: what to compute; its accesses are replaced by those of the arrays.
        engine: the compiler; by default the engine of the process.

    >>> from tenferro_cpu.native import available
    >>> from tenferro_tensor.catalog.arithmetic import add, mul
    >>> from tenferro_tensor.device_model import Apply, Operand
    >>> f8 = Operand(np.dtype("float64"))
    >>> kernel = KernelIR((f8, f8, f8), (Apply(mul.op(), (0, 1)), Apply(add.op(), (3, 2))), (4,))
    >>> x, y, z = np.arange(3.0), np.full((2, 1), 2.0), np.array(1.0)
    >>> Fused(kernel)(x, y, z) if available() else x * y + z
    array([[1., 3., 5.],
           [1., 3., 5.]])
    """

    def __init__(self, kernel: KernelIR, engine: Engine | None = None) -> None:
        if kernel.reduction is not None:
            raise ArgumentError("the kernel reduces; make it a Reduced")
        self.kernel = kernel
        self.engine = default_engine() if engine is None else engine
        self._variants: dict[Any, int] = {}
        self._plans: dict[Any, DriveArguments] = {}
        self._known = Variants()

    @cached_property
    def cost(self) -> float:
        """Nanoseconds per element in one thread."""
        return noted_cost(self.kernel, self.engine)

    def address(self, reads: tuple[Access, ...], writes: tuple[Access, ...], stream: bool = False) -> int:
        """Machine code ``void(void **data, int64_t n, int64_t *strides)`` for operands with these accesses."""
        key = (reads, writes, stream)
        found = self._variants.get(key)
        if found is None:
            found = self.compiled(key)
        return found

    def compiled(self, variant: tuple[tuple[Access, ...], tuple[Access, ...], bool]) -> int:
        """The machine code of a variant, compiled if necessary."""
        reads, writes, stream = variant
        with importing():
            from tenferro_cpu.native.kernels._device import llvm
        made: int = llvm(self.engine, stream).compiled(self._variant(variant), "row").code  # type: ignore[assignment]
        self._variants[variant] = made
        if not stream:
            self._known.add((*reads, *writes), made)
        return made

    def _variant(self, variant: tuple[tuple[Access, ...], tuple[Access, ...], bool]) -> KernelIR:
        reads, writes, _ = variant
        inputs = tuple(replace(o, access=a) for o, a in zip(self.kernel.inputs, reads))
        return replace(self.kernel, inputs=inputs, writes=writes)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The results, new or written to `out`: one array, or a tuple if the kernel has several outputs.

        Raises:
            ArgumentError: wrong number of operands, or `out` does not fit.
            DTypeError: an operand's dtype is not the kernel's.
            ShapeError: the shapes do not broadcast.
        """
        xs = checked(self.kernel, arrays)
        shape = extents(xs)
        ys = results(self.kernel, shape, xs, out)
        if ys[0].size:
            self._run(shape, xs, ys)
        return ys[0] if len(ys) == 1 else tuple(ys)

    def entry(self, fallback: Callable[..., Any] | None = None, **how: Any) -> Callable[..., Any]:
        """The kernel as a C entry of its operands, with the least call overhead for small contiguous arrays.

        Args:
            fallback: called for everything else; by default the kernel itself.
            how: see `tenferro_cpu.native.kernels._fused_entry.entry`.
        """
        units = (Access.UNIT,) * len(self.kernel.inputs), (Access.UNIT,) * len(self.kernel.outputs)
        inputs, written = (tuple([o.dtype for o in operands]) for operands in (self.kernel.inputs, self.kernel.written))
        rest = self.strided(fallback or self)
        return entry(self.address(*units), inputs, written, Rows(), rest, cost=self.cost, **how)

    def strided(self, fallback: Callable[..., Any], **how: Any) -> Callable[..., Any]:
        """The variants compiled now or later, as a C entry of arrays with any strides.

        Args:
            fallback: called for everything else.
            how: see `tenferro_cpu.native.kernels._strided.strided`.
        """
        return strided(self.kernel, self._known, fallback, cost=self.cost, **how)

    def _run(self, shape: tuple[int, ...], xs: list[Array], ys: list[Array]) -> None:
        both = [*xs, *ys]
        key = tuple([(x.shape, x.strides) for x in both])
        plan = self._plans.get(key)
        if plan is None:
            plan = remember(self._plans, key, self._plan(shape, both))
        kernel, inner, outer = plan.kernel, plan.inner, plan.outer
        pointers = [x.ctypes.data for x in both]
        head = _head(pointers, inner, outer, len(xs)) if self._streams(both) else None
        accesses = _accesses(inner, both)
        if head is None or Access.STRIDED in accesses:
            drive(kernel, pointers, inner, outer, cost=self.cost)
            return
        if head:
            drive(kernel, pointers, Axis(head, inner.strides), [])
            pointers = [p + head * s for p, s in zip(pointers, inner.strides)]
            inner = Axis(inner.extent - head, inner.strides)
        past = self.address(accesses[: len(xs)], accesses[len(xs) :], stream=True)
        drive(past, pointers, inner, outer, cost=self.cost)

    def _plan(self, shape: tuple[int, ...], both: list[Array]) -> DriveArguments:
        columns = zip(*(strides_over(x, shape) for x in both))
        axes = coalesced(Axis(d, s) for d, s in zip(shape, columns))
        if not axes:
            axes = [Axis(1, tuple(x.itemsize for x in both))]
        # The longest contiguous walk over the results is the row; ties go to the later axis.
        at = max(range(len(axes)), key=lambda k: (_merit(axes[k], both), k))
        inner = axes.pop(at)
        accesses = _accesses(inner, both)
        count = len(self.kernel.inputs)
        return DriveArguments(self.address(accesses[:count], accesses[count:]), inner, axes)

    def _streams(self, both: list[Array]) -> bool:
        return sum(x.nbytes for x in both) > self.engine.host.near_bytes


def _head(pointers: list[int], inner: Axis, outer: Sequence[Axis], count: int) -> int | None:
    """Elements of the only row before the first cache line that can be written past the caches; or None.

    With several rows, each begins with a cache line and is long enough.
    """
    results, steps = pointers[count:], inner.strides[count:]
    if outer:
        places = [*results, *(s for axis in outer for s in axis.strides[count:])]
        return 0 if inner.extent >= STREAM_MIN_ROW and not any(p % 64 for p in places) else None
    heads = {-p % 64 // s if -p % 64 % s == 0 else -1 for p, s in zip(results, steps)}
    head = heads.pop()
    return None if heads or head < 0 else head


def _accesses(inner: Axis, both: list[Array]) -> tuple[Access, ...]:
    return tuple(access_of(s, x.itemsize) for s, x in zip(inner.strides, both))


def _merit(axis: Axis, both: list[Array]) -> float:
    """Suitability of an axis as the row: its length, a quarter of it per operand that must be gathered."""
    strided = sum(access_of(s, x.itemsize) is Access.STRIDED for s, x in zip(axis.strides, both))
    return min(axis.extent, 64) / 4.0**strided
