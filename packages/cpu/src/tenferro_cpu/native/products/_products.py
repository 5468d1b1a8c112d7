"""`dot_general` in machine code: small stacks in straight lines, larger matrices through the chosen BLAS.

What a payload cannot express (axes to be moved, integers, zero extents, strided operands) stays with the reference
kernel, which is also the fallback of every entry; large products are bounded by the thread policy either
way.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tenferro_cpu.native.contraction import contraction
from tenferro_cpu.native.copying.tuning import COPY_MIN_BYTES
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.products._open_product_text import each_text, open_text
from tenferro_cpu.native.products._product_text import AXES, F_CONTIGUOUS, PAYLOAD, entry_text, gemm_text, inlined
from tenferro_cpu.native.products._small_matmul import LARGEST, TYPES, SmallProduct, render
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.python._layout import C_CONTIGUOUS
from tenferro_cpu.native.threads._arbiter import NativeArbiter
from tenferro_cpu.native.threads._blas import provider
from tenferro_cpu.native.threads._threads import PER_THREAD, arbiter, bounded, wanted
from tenferro_tensor import Spec, catalog
from tenferro_tensor.device_model import ContractionIR
from tenferro_tensor_core import DimLike

Kernel = Callable[..., Any]
Ints = tuple[int, ...]
Pair = tuple[Ints, Ints]

ONE_THREAD: Final = 1 << 18
"""Multiplications and additions up to which OpenBLAS multiplies matrices in the calling thread by itself."""

KEPT: Final = 64
"""Sizes for which a kernel for all sizes keeps that of large products which it does not take itself."""

STACKED: Final = 1_000_000
"""Multiplications and additions of one real product from which on stacks, and products by transposed matrices, go to
the contraction engine: it asks memory for the next matrices meanwhile, threads share the stack, and columns are turned
in registers. Below, BLAS neither packs."""

ALONE: Final = 1 << 15
"""Multiplications and additions above which a kernel runs without the interpreter lock."""


@dataclass(frozen=True, slots=True)
class Product:
    """A `dot_general` whose operands lie in memory as stacks of matrices.

    Attributes:
        count: matrices of the stack.
        rows: rows of the result.
        inner: terms of each sum.
        columns: columns of the result.
        swap_left: whether the left operand has its rows last.
        swap_right: whether the right operand has its columns first.
    """

    count: int
    rows: int
    inner: int
    columns: int
    swap_left: bool
    swap_right: bool

    @property
    def work(self) -> int:
        """Multiplications and additions for one matrix."""
        return self.rows * self.inner * self.columns

    @property
    def small(self) -> bool:
        """Whether the straight-line kernel takes it."""
        return max(self.rows, self.inner, self.columns) <= LARGEST


def as_matrices(x: Spec, y: Spec, contract: Pair, batch: Pair) -> Product | None:
    """The operands as stacks of matrices as they lie in memory; None where axes would have to move.

    >>> as_matrices(Spec((2, 3, 4), "float64"), Spec((2, 5, 4), "float64"), ((2,), (2,)), ((0,), (0,)))
    Product(count=2, rows=3, inner=4, columns=5, swap_left=False, swap_right=True)
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
    # Left operands end in the contracted axes, right ones begin with them; the other way round is a transpose.
    return Product(count, left[0], inner, right[0], not left[1], right[1])


def _trailing(s: Spec, stack: int, contracted: Ints, left: bool) -> tuple[int, bool] | None:
    """The merged extent of the free axes, and whether the contracted ones come last; None if they are not together.

    A vector is a row on the left and a column on the right, where nothing needs to be swapped.
    """
    shape: Any = s.shape
    n = len(contracted)
    if (left or n < s.ndim - stack) and contracted == tuple(range(s.ndim - n, s.ndim)):
        return math.prod(shape[stack : s.ndim - n]), True
    if contracted == tuple(range(stack, stack + n)):
        return math.prod(shape[stack + n :]), False
    return None


@dataclass(frozen=True, slots=True)
class _Machine:
    entry: MethodDef
    open: MethodDef
    stack: int
    symbols: dict[str, int]


@cache
def machine() -> _Machine | None:
    """The compiled entry, None where it cannot be had."""
    have, chief = interpreter(), arbiter()
    if have is None or not isinstance(chief, NativeArbiter):
        return None
    symbols = have.symbols | chief.symbols
    text = inlined(entry_text(have.tuple_items) + open_text(have.tuple_items, ONE_THREAD, PER_THREAD, ALONE))
    entry, every, stack = engine().functions(text, ("product", "open_product", "stack"), symbols)
    return _Machine(definition("product", entry, FASTCALL), definition("open_product", every, FASTCALL), stack, symbols)


def _short_of_engine(x: Spec) -> int:
    """Multiplications and additions of one product up to which BLAS takes stacks and transposed matrices as well."""
    return ONE_THREAD if x.dtype.kind == "c" else STACKED


def _stack(ins: tuple[Spec, ...], contract: Pair, batch: Pair) -> Kernel | None:
    """The engine's kernel for products that lie as matrices."""
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
    return contraction(ContractionIR(x.dtype, (tuple(left), tuple(right)), extents, result, ((0, 1),)))


@cache
def small(product: SmallProduct) -> int:
    """Address of the straight-line kernel."""
    return engine().function(render(product), "product")


@cache
def each(kind: str) -> int:
    """Address of the kernel for small matrices of any size."""
    return engine().function(each_text(kind), "each")


@cache
def gemm(kind: str) -> int:
    """Address of the kernel that calls the chosen BLAS for a dtype; 0 where it has none."""
    library = provider().library
    if library is None or kind not in library.gemm:
        return 0
    symbol = f"tenferro_gemm_{kind}"
    text = gemm_text(symbol, library.integers, TYPES[kind], 2 if kind in "FD" else 1)
    return engine().function(text, "gemm", {symbol: library.gemm[kind]})


def dot_general(
    reference: Kernel, ins: tuple[Spec, ...], outs: tuple[Spec, ...], contract: Pair, batch: Pair
) -> Kernel:
    """The fastest kernel for the operands, with the kernel `reference` for everything that it does not take."""
    x, y = ins
    if x.dtype.char not in TYPES or x.dtype != y.dtype:
        return reference
    product = as_matrices(x, y, contract, batch)
    if product is None:
        shape_x, shape_y = (s.shape for s in ins)
        free = math.prod(_rest(shape_y, contract[1] + batch[1]))
        work = math.prod(_rest(shape_x, batch[0])) * free
        return bounded(reference, work) if work > ONE_THREAD else reference
    many = product.work > ONE_THREAD
    turned = product.swap_right and min(product.rows, product.columns) > 1
    if product.work > _short_of_engine(x) and (product.count > 1 or turned):
        stack = _stack(ins, contract, batch)
        if stack is not None:
            return stack
    fallback = bounded(reference, product.work) if many else reference
    have = machine() if product.work and product.count else None
    if have is None or max(x.ndim, y.ndim, outs[0].ndim) > AXES:
        return fallback
    kernel, inner = have.stack, 0
    if product.small:
        inner = small(_small_of(product, x.dtype.char))
    else:
        kernel = gemm(x.dtype.char)
        if not kernel or min(product.rows, product.columns) == 1:
            return fallback
    item = x.dtype.itemsize
    numbers = {
        **_pattern(ins, outs, product),
        "kernel": kernel,
        "orders": C_CONTIGUOUS if product.small else _large_orders(ins),
        "alone": int(product.work * product.count > ALONE),
        "most": wanted(product.work) if many else 0,
        "rows": product.rows,
        "inner": product.inner,
        "columns": product.columns,
        "count": product.count,
        "left_step": product.rows * product.inner * item,
        "right_step": product.inner * product.columns * item,
        "small": inner,
        "square": int(not product.small and product.count == 1),
    }
    words: list[Any] = [numbers[name] for name in PAYLOAD]
    for shape in (x.shape, y.shape, outs[0].shape):
        words += [*shape, *[0] * (AXES - len(shape))]
    return builtin(have.entry, (_packed(words), fallback, x.dtype))  # type: ignore[no-any-return]


def has_open(x: Spec, y: Spec, contract: Pair, batch: Pair) -> bool:
    """Whether `open_dot_general` has a kernel for such operands, large ones included."""
    axes = max(x.ndim, y.ndim, x.ndim + y.ndim - 2 * len(contract[0]) - len(batch[0]))
    matrices = x.dtype.char in TYPES and x.dtype == y.dtype and axes <= AXES
    return matrices and as_matrices(x, y, contract, batch) is not None and machine() is not None


def open_dot_general(
    reference: Kernel,
    make: Callable[..., Kernel],
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    contract: Pair,
    batch: Pair,
) -> Kernel:
    """The kernel for operands of any size that gives the bits of `dot_general`, for specs that `has_open` accepts.

    Args:
        reference: the reference kernel for all sizes, for what the entry does not take.
        make: the maker of kernels for numbers, for large products among these.
        ins: specs of the operands.
        outs: the spec of the result.
        contract: pairs of axes that are summed.
        batch: pairs of axes that stay.
    """
    x, y = ins
    have, product = machine(), as_matrices(x, y, contract, batch)
    assert have is not None and product is not None
    fixed = dict.fromkeys(PAYLOAD, 0) | _pattern(ins, outs, product) | {"orders": C_CONTIGUOUS | F_CONTIGUOUS}
    pattern = {
        "stack": len(batch[0]),
        "contracted": len(contract[0]),
        "item": x.dtype.itemsize,
        "large_orders": _large_orders(ins),
        "each": each(x.dtype.char),
        "gemm": gemm(x.dtype.char),
        "engine": _short_of_engine(x),
    }
    words = [*fixed.values(), *[0] * (3 * AXES), *pattern.values()]
    made: dict[Any, Kernel] = {}

    def fallback(a: Any, b: Any, *sizes: Any) -> Any:
        few = a.size * math.prod(_rest(b.shape, contract[1] + batch[1])) <= ONE_THREAD
        if few and a.nbytes + b.nbytes < 2 * COPY_MIN_BYTES:
            return reference(a, b, *sizes)
        key = a.shape, b.shape
        kernel = made.get(key)
        if kernel is None:
            if len(made) >= KEPT:
                made.clear()
            specs = x.with_(shape=a.shape), y.with_(shape=b.shape)
            out = catalog.dot_general.infer(*specs, contract=contract, batch=batch)
            kernel = made[key] = make(specs, (out,), contract=contract, batch=batch)
        return kernel(a, b)

    return builtin(have.open, (_packed(words), fallback, x.dtype))  # type: ignore[no-any-return]


def _pattern(ins: tuple[Spec, ...], outs: tuple[Spec, ...], product: Product) -> dict[str, int]:
    """The numbers of the payload that no size has a part in."""
    x, y = ins
    return {
        "descr": id(x.dtype),
        "left_axes": x.ndim,
        "right_axes": y.ndim,
        "out_axes": outs[0].ndim,
        "swap_left": int(product.swap_left),
        "swap_right": int(product.swap_right),
    }


def _large_orders(ins: tuple[Spec, ...]) -> int:
    """Orders of memory that BLAS reads in place."""
    return C_CONTIGUOUS | (F_CONTIGUOUS if all(s.ndim == 2 for s in ins) else 0)


def _packed(words: list[Any]) -> bytes:
    return struct.pack(f"={len(words)}q", *words)


def large(ins: tuple[Spec, ...], outs: tuple[Spec, ...], contract: Pair, batch: Pair) -> tuple[DimLike, DimLike] | None:
    """Multiplications and additions of a product, and the number above which it is worth a kernel of its own; None
    where that for all sizes is as good."""
    x, y = ins
    if has_open(x, y, contract, batch):
        return None
    return x.size * math.prod(_rest(y.shape, contract[1] + batch[1])), ONE_THREAD


def _small_of(product: Product, kind: str) -> SmallProduct:
    host = engine().host
    return SmallProduct(
        kind,
        product.rows,
        product.inner,
        product.columns,
        product.swap_left,
        product.swap_right,
        host.registers,
        host.vector_bytes,
    )


def _rest(shape: Any, used: Ints) -> list[int]:
    return [n for i, n in enumerate(shape) if i not in used]
