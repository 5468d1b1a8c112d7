"""`dot_general` on operands laid out as stacks of matrices: small ones in C, larger ones through BLAS.

Cases that `Product` of ``product.c`` does not support (axes to be moved, integers, zero extents, strided operands) go
to its fallback, the reference kernel; the thread policy bounds large products either way.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.copying.tuning import COPY_MIN_BYTES
from tenferro_cpu.native.kernels.products.tuning import (
    BLAS_ONE_THREAD_WORK,
    ENGINE_MIN_WORK,
    MAX_LARGE_KERNELS,
    UNLOCKED_MIN_WORK,
)
from tenferro_cpu.native.threads._blas import provider
from tenferro_cpu.native.threads._threads import PER_THREAD, arbiter, bounded
from tenferro_tensor import Spec, catalog
from tenferro_tensor_core import DimLike
from tenferro_tensor_core.forks import importing

Kernel = Callable[..., Any]
Ints = tuple[int, ...]
Pair = tuple[Ints, Ints]

KINDS: Final = "fdFD"
"""NumPy's letters of the supported dtypes."""

UNBOUNDED: Final = (1 << 63) - 1

MAX_AXES: Final = 8
"""Maximum number of axes of an operand or of the result."""

SMALL_MAX_SIZE: Final = 8
"""Maximum rows, columns and terms of a matrix that is multiplied without BLAS."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """A `dot_general` whose operands are laid out as stacks of matrices.

    Attributes:
        count: number of matrices.
        rows: rows of the result.
        inner: terms of each sum.
        columns: columns of the result.
        swap_left: whether the left matrices are stored transposed.
        swap_right: whether the right matrices are stored transposed.
    """

    count: int
    rows: int
    inner: int
    columns: int
    swap_left: bool
    swap_right: bool

    @property
    def swap(self) -> tuple[bool, bool]:
        """Both flags."""
        return self.swap_left, self.swap_right

    @property
    def work(self) -> int:
        """Multiply-adds for one matrix."""
        return self.rows * self.inner * self.columns

    @property
    def small(self) -> bool:
        """Whether it is multiplied without BLAS."""
        return max(self.rows, self.inner, self.columns) <= SMALL_MAX_SIZE


def as_matrices(x: Spec, y: Spec, contract: Pair, batch: Pair) -> Matrices | None:
    """The operands as the stacks of matrices that they are laid out as; None if axes would have to move.

    >>> as_matrices(Spec((2, 3, 4), "float64"), Spec((2, 5, 4), "float64"), ((2,), (2,)), ((0,), (0,)))
    Matrices(count=2, rows=3, inner=4, columns=5, swap_left=False, swap_right=True)
    """
    stack = tuple(range(len(batch[0])))
    if batch[0] != stack or batch[1] != stack or not contract[0]:
        return None
    pairs = sorted(zip(*contract, strict=True))
    left, right = (_trailing(s, len(stack), tuple([pair[i] for pair in pairs]), not i) for i, s in enumerate((x, y)))
    if left is None or right is None:
        return None
    shape: Any = x.shape
    count, inner = math.prod(shape[: len(stack)]), math.prod([shape[i] for i, _ in pairs])
    # Left operands end in the contracted axes, right ones begin with them; the reverse order is a transpose.
    return Matrices(count, left[0], inner, right[0], not left[1], right[1])


def _trailing(s: Spec, stack: int, contracted: Ints, left: bool) -> tuple[int, bool] | None:
    """The merged extent of the free axes, and whether the contracted ones come last; None if they are not adjacent.

    A vector is a row on the left and a column on the right, where nothing is transposed.
    """
    shape: Any = s.shape
    n = len(contracted)
    if (left or n < s.ndim - stack) and contracted == tuple(range(s.ndim - n, s.ndim)):
        return math.prod(shape[stack : s.ndim - n]), True
    if contracted == tuple(range(stack, stack + n)):
        return math.prod(shape[stack + n :]), False
    return None


def available() -> bool:
    """Whether products are multiplied here; otherwise all are NumPy's."""
    return compiled is not None


def _most_work(x: Spec) -> int:
    """Maximum work of a product for which BLAS takes stacks and transposed matrices; the engine takes larger ones."""
    return BLAS_ONE_THREAD_WORK if x.dtype.kind == "c" else ENGINE_MIN_WORK


def _stack(ins: tuple[Spec, ...], contract: Pair, batch: Pair) -> Kernel | None:
    """The engine's kernel for products laid out as matrices."""
    x, y = ins
    left = list(range(x.ndim))
    right = [0] * y.ndim
    for pairs in (contract, batch):
        for mine, other in zip(*pairs, strict=True):
            right[other] = mine
    rest = [i for i in range(y.ndim) if i not in contract[1] + batch[1]]
    for number, i in enumerate(rest, x.ndim):
        right[i] = number
    result = (*batch[0], *[i for i in left if i not in contract[0] + batch[0]], *[right[i] for i in rest])
    extents: Any = (*x.shape, *[y.shape[i] for i in rest])
    with importing():
        from tenferro_cpu.native.contraction import contraction
        from tenferro_tensor.device_model import ContractionIR
    return contraction(ContractionIR(x.dtype, (tuple(left), tuple(right)), extents, result, ((0, 1),)))


def _gemm(kind: str) -> tuple[int, int]:
    """Address of the chosen BLAS's function for a dtype, 0 if there is none, and bytes of its integers."""
    library = provider().library
    return (0, 8) if library is None else (library.gemm.get(kind, 0), library.integers)


def _entry(
    ins: tuple[Spec, ...],
    contract: Pair,
    batch: Pair,
    swap: tuple[bool, bool],
    most_work: int,
    fallback: Kernel,
    shapes: tuple[Any, ...] = (),
) -> Kernel:
    """The C callable for operands of these shapes (extents of both), or of any shapes."""
    assert compiled is not None
    x, y = ins
    arbiter()  # knows the libraries whose threads the calls set
    gemm, integers = _gemm(x.dtype.char)
    return compiled.Product(
        fallback,
        x.dtype,
        axes=(x.ndim, y.ndim),
        stack=len(batch[0]),
        contracted=len(contract[0]),
        swap=swap,
        shapes=struct.pack(f"={len(shapes)}q", *shapes),
        gemm=gemm,
        integer_bytes=integers,
        most_work=most_work,
        one_thread=BLAS_ONE_THREAD_WORK,
        per_thread=PER_THREAD,
        unlocked=UNLOCKED_MIN_WORK,
    )


def dot_general(
    reference: Kernel, ins: tuple[Spec, ...], outs: tuple[Spec, ...], contract: Pair, batch: Pair
) -> Kernel:
    """The fastest kernel for the operands; the kernel `reference` takes everything that it does not support."""
    x, y = ins
    if x.dtype.char not in KINDS or x.dtype != y.dtype:
        return reference
    matrices = as_matrices(x, y, contract, batch)
    if matrices is None:
        shape_x, shape_y = (s.shape for s in ins)
        free = math.prod(_rest(shape_y, contract[1] + batch[1]))
        work = math.prod(_rest(shape_x, batch[0])) * free
        return bounded(reference, work) if work > BLAS_ONE_THREAD_WORK else reference
    transposed = matrices.swap_right and min(matrices.rows, matrices.columns) > 1
    if matrices.work > _most_work(x) and (matrices.count > 1 or transposed):
        stack = _stack(ins, contract, batch)
        if stack is not None:
            return stack
    fallback = bounded(reference, matrices.work) if matrices.work > BLAS_ONE_THREAD_WORK else reference
    empty, axes = not (matrices.work and matrices.count), max(x.ndim, y.ndim, outs[0].ndim)
    if not available() or empty or axes > MAX_AXES:
        return fallback
    if not matrices.small and (min(matrices.rows, matrices.columns) == 1 or not _gemm(x.dtype.char)[0]):
        return fallback
    return _entry(ins, contract, batch, matrices.swap, UNBOUNDED, fallback, (*x.shape, *y.shape))


def has_open(x: Spec, y: Spec, contract: Pair, batch: Pair) -> bool:
    """Whether `open_dot_general` has a kernel for such operands, including large ones."""
    axes = max(x.ndim, y.ndim, x.ndim + y.ndim - 2 * len(contract[0]) - len(batch[0]))
    taken = available() and x.dtype.char in KINDS and x.dtype == y.dtype and axes <= MAX_AXES
    return taken and as_matrices(x, y, contract, batch) is not None


def open_dot_general(
    reference: Kernel,
    make: Callable[..., Kernel],
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    contract: Pair,
    batch: Pair,
) -> Kernel:
    """The kernel for operands of any size, bit-equal to `dot_general`, for specs that `has_open` accepts.

    Args:
        reference: the reference kernel for all sizes, for operands that the entry does not support.
        make: the maker of kernels for fixed sizes, used for large products.
        ins: specs of the operands.
        outs: the spec of the result.
        contract: pairs of axes to sum.
        batch: pairs of batch axes.
    """
    x, y = ins
    matrices = as_matrices(x, y, contract, batch)
    assert matrices is not None
    made: dict[Any, Kernel] = {}

    def fallback(a: Any, b: Any, *sizes: Any) -> Any:
        few = a.size * math.prod(_rest(b.shape, contract[1] + batch[1])) <= BLAS_ONE_THREAD_WORK
        if few and a.nbytes + b.nbytes < 2 * COPY_MIN_BYTES:
            return reference(a, b, *sizes)
        key = a.shape, b.shape
        kernel = made.get(key)
        if kernel is None:
            if len(made) >= MAX_LARGE_KERNELS:
                made.clear()
            specs = x.with_(shape=a.shape), y.with_(shape=b.shape)
            out = catalog.dot_general.infer(*specs, contract=contract, batch=batch)
            kernel = made[key] = make(specs, (out,), contract=contract, batch=batch)
        return kernel(a, b)

    return _entry(ins, contract, batch, matrices.swap, _most_work(x), fallback)


def large(ins: tuple[Spec, ...], outs: tuple[Spec, ...], contract: Pair, batch: Pair) -> tuple[DimLike, DimLike] | None:
    """Multiply-adds of a product, and the number above which it gets its own kernel; or None.

    None means that the kernel for all sizes is as good.
    """
    x, y = ins
    if has_open(x, y, contract, batch):
        return None
    return x.size * math.prod(_rest(y.shape, contract[1] + batch[1])), BLAS_ONE_THREAD_WORK


def _rest(shape: Any, used: Ints) -> list[int]:
    return [n for i, n in enumerate(shape) if i not in used]
