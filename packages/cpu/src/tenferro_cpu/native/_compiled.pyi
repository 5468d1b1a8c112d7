"""Fixed machine code of the CPU backend; absent from a pure wheel."""

from array import array
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, final

import numpy as np
from typing_extensions import Buffer

ADDRESSES: Final[dict[str, int]]
"""Functions and tables that generated machine code refers to, by symbol."""

SMALL: Final[dict[str, Callable[..., Any]]]
"""Routines for small matrices, by name."""

LEVEL: Final[str]
"""The vector level in use: ``"avx512"``, ``"avx2"``, ``"neon"`` or ``"generic"``, like `Host.level`."""

# threads/team_module.c
LIMIT: Final[ContextVar[int]]
"""Limit of the innermost scope of `threads`, 0 outside any."""

def team_get(name: str, /) -> int: ...
def team_set(name: str, value: int, /) -> None: ...
def team_run(piece: int, context: int, count: int, most: int, /) -> None: ...
def team_prepare() -> None: ...
def team_wake_all() -> None: ...

# threads/arbiter.c
def blas_enter(most: int, allowed: int, /) -> None: ...
def blas_leave() -> None: ...
def blas_add(getter: int, setter: int, /) -> bool: ...
def blas_scopes(change: int, /) -> None: ...
def blas_after_fork() -> None: ...

# memory/pool_module.c
POOLED_MIN_BYTES: Final[int]

def pool_new() -> object: ...
def pool_plain() -> object: ...
def pool_install(handler: object, /) -> object: ...
def pool_bound(pool: object, limit: int, /) -> None: ...
def pool_clear(pool: object, /) -> None: ...
def pool_stats(pool: object, /) -> dict[str, int]: ...
def pool_scoped(pool: object, call: Callable[..., Any], gives_way: bool, /) -> Callable[..., Any]: ...

# copying/copy.c
VECTOR_BYTES: Final[int]
"""Bytes of a vector at the level in use."""

class Copy:
    """A planned copy between two layouts; `copying._copy_plan.Step` has its fields."""

    def __init__(
        self,
        *,
        kind: str,
        item: int,
        vector_bytes: int,
        parts: tuple[tuple[int, int, int, int], ...],
        tables: tuple[bytes, ...],
        repeat: tuple[int, int, int],
        counts: tuple[int, int, int],
        steps: tuple[int, int],
        tiles: tuple[int, int],
        near_tiles: tuple[int, int],
        cut: tuple[int, int, int, int, int],
        nbytes: int,
        run: int,
        streams: bool,
        unlocked: int,
    ) -> None: ...
    def __call__(self, target: Any, source: Any, /) -> Any: ...

# kernels/rows.c
ROWS: Final[dict[str, tuple[int, int, int]]]
"""Row kernels by primitive and type, as in ``"add f64"``: addresses for two arrays, an array and a number, and a
number and an array; 0 if there is none."""
REDUCTIONS: Final[dict[str, tuple[int, int]]]
"""Row kernels by kind and type, as in ``"sum f64"``: addresses for the trailing and for the leading axis."""

# kernels/walk.c
MAX_OPERANDS: Final[int]
MAX_AXES: Final[int]
COMBINED_ROWS: Final[int]

def drive(kernel: int, words: array[int], cost: float, whole: bool, /) -> None: ...
def signal_parts(elements: int = 0, /) -> tuple[int, int]:
    """Set the elements between two checks for signals, unless 0; returns that number, and the number of checks."""

# eager/entry.c
class _Entry:
    """Common part of entries: callables that run a kernel, and pass other calls to a fallback.

    Attributes:
        fallback: called with the same arguments for everything else.
        large: called for spaces of more than `most` elements.
        dtypes: dtypes of the operands, then of the results.
        owner: an object whose memory the entry reads, or None.
        most: maximum elements of a space.
    """

    fallback: Final[Callable[..., Any]]
    large: Final[Callable[..., Any]]
    dtypes: Final[tuple[np.dtype[Any], ...]]
    owner: Final[Any]
    most: Final[int]
    def __call__(self, *operands: Any) -> Any: ...

@final
class PlannedReduction(_Entry):
    """kernels/planned.c"""

    def __new__(
        cls,
        kernel: int,
        words: bytes,
        dtypes: tuple[np.dtype[Any], ...],
        inputs: int,
        shape: tuple[int, ...],
        fallback: Callable[..., Any],
    ) -> PlannedReduction: ...

@final
class FusedEntry(_Entry):
    """kernels/fused.c"""

    def __new__(
        cls,
        *,
        kernel: int,
        dtypes: tuple[np.dtype[Any], ...],
        inputs: int,
        fallback: Callable[..., Any],
        large: Callable[..., Any],
        trailing: int,
        reduced: bool,
        combined: bool,
        most: int,
        shortest: int,
        longest: int,
        widest: int,
        paired: int,
        few: int,
        shared: int,
        scan: int,
        rest: int,
    ) -> FusedEntry: ...

@final
class StridedEntry(_Entry):
    """kernels/strided.c"""

    def __new__(
        cls,
        *,
        variants: np.ndarray[Any, Any],
        dtypes: tuple[np.dtype[Any], ...],
        fallback: Callable[..., Any],
        large: Callable[..., Any],
        most: int,
        cost: float,
        watch: bool,
        scan: int,
    ) -> StridedEntry: ...

@final
class ElementwiseEntry(_Entry):
    """eager/elementwise.c

    Args:
        kernel: machine code for arrays, ``void(void **data, int64_t n, ...)``; 0 if there is a `loop`.
        dtypes: dtypes of the operands and of the result.
        fallback: called with the same arguments for everything else.
        large: called for arrays of more than `most` elements.
        array_number: machine code whose second operand is one element.
        number_array: machine code whose first operand is one element.
        streaming: the three kernels with stores past the caches, for results aligned to 64 bytes; or zeros.
        watch: whether the fallback recomputes if the kernel divided by zero, overflowed or produced a NaN, so that
            NumPy itself warns.
        scan: bytes of a number of the result: the same if the kernel wrote an infinity or a NaN, for kernels that
            produce them without raising a floating-point flag.
        most: maximum elements of an array.
        shared: minimum elements for which the thread team is called.
        loop: a ufunc whose inner loop is the kernel.

    Raises:
        TypeError: the ufunc has no loop for these dtypes.
    """

    def __new__(
        cls,
        kernel: int,
        dtypes: tuple[np.dtype[Any], ...],
        fallback: Callable[..., Any],
        large: Callable[..., Any],
        *,
        array_number: int = 0,
        number_array: int = 0,
        streaming: tuple[int, int, int] = (0, 0, 0),
        watch: bool = False,
        scan: int = 0,
        most: int = ...,
        shared: int = ...,
        loop: np.ufunc | None = None,
    ) -> ElementwiseEntry: ...
    def __call__(self, *operands: Any) -> Any: ...

# kernels/ordering/along.c
@final
class Along:
    """A callable of one array: a kernel along an axis.

    Args:
        kernel: ``"sort"``, ``"argsort"``, ``"argmax"``, ``"cumsum"`` or ``"cumprod"``.
        dtype: dtype of the array.
        axis: the axis, counted from 0.
        reversed: descending order, the smallest instead of the largest elements, and sums from the end. Sorting
            supports it only along the last axis.
        longest: maximum length of a line.
        fallback: called with the same argument for everything else.

    Raises:
        ValueError: the kernel does not support the dtype.
    """

    fallback: Final[Callable[..., Any]]
    def __new__(
        cls,
        *,
        kernel: str,
        dtype: np.dtype[Any],
        axis: int,
        reversed: bool,
        longest: int,
        fallback: Callable[..., Any],
    ) -> Along: ...
    def __call__(self, *operands: Any) -> Any: ...

# kernels/ordering/search.c
@final
class Search:
    """A callable of an ascending vector and of values: their insertion points.

    Args:
        dtype: dtype of both.
        after: whether to insert after equal elements instead of before them.
        fallback: called with the same arguments for everything else.

    Raises:
        ValueError: the dtype is not supported.
    """

    fallback: Final[Callable[..., Any]]
    def __new__(cls, *, dtype: np.dtype[Any], after: bool, fallback: Callable[..., Any]) -> Search: ...
    def __call__(self, *operands: Any) -> Any: ...

# kernels/products/product.c
class Product:
    """Multiplies two arrays laid out as stacks of matrices; other operands go to the fallback."""

    fallback: Callable[..., Any]

    def __init__(
        self,
        fallback: Callable[..., Any],
        dtype: Any,
        *,
        axes: tuple[int, int],
        stack: int,
        contracted: int,
        swap: tuple[bool, bool],
        shapes: bytes,
        gemm: int,
        integer_bytes: int,
        most_work: int,
        one_thread: int,
        per_thread: int,
        unlocked: int,
    ) -> None: ...
    def __call__(self, left: Any, right: Any, /, *sizes: Any) -> Any: ...

# contraction/plan.c
CONTRACTION_WORDS: Final[int]
"""64-bit words of the record of a step."""

@final
class ContractionPlan:
    small: Final[bool]
    def __new__(
        cls,
        dtype: np.dtype[Any],
        level: str | None,
        records: Buffer,
        keeps: object,
        arrays: int,
        arena: int,
        scratch: int,
        shared: bool,
        releases: bool,
        operands: int,
        layout: Buffer,
    ) -> ContractionPlan: ...
    def __call__(self, /, *arrays: np.ndarray[Any, Any]) -> Any: ...

def contraction_entry(kernel: Callable[..., Any], cell: list[Any], /) -> Callable[..., Any]: ...
def contraction_sizes(dtype: str, level: str | None = ..., /) -> dict[str, Any] | None: ...
def contraction_fill_tables(program: Buffer, count: int, room: Buffer, /) -> None: ...

# codegen/whole/whole.c
@final
class WholeFunction:
    """A whole program as machine code: a callable of the tuple of its sizes, then of its operands.

    Args:
        address: the function of `codegen/whole/whole.h`.
        dtypes: dtypes of inputs, then of outputs.
        ranks: their numbers of axes.
        inputs: number of inputs.
        sizes: number of symbolic sizes.
        constants: contiguous arrays.
        calls: for each statement that runs in Python, a callable of the sizes, of operands and of results to
            write, the dtypes of these arrays, their numbers of axes, and the number of operands.
        prepare: returns for sizes a callable that serves them instead, or, as 64-bit words: bytes of temporaries, of
            all memory, of the largest block, whether a nest is large enough for the thread team; the extents of all
            inputs and outputs.
        memory: the pool of large blocks, or None.
        contiguous: returns a large array in contiguous form.
        bare: return the only output itself instead of a tuple.
        over: for each output, as 32-bit numbers, 0 or the input whose memory it reuses, counted from 1.
    """

    bindings: Final[dict[tuple[int, ...], bytes]]
    def __new__(
        cls,
        *,
        address: int,
        dtypes: tuple[np.dtype[Any], ...],
        ranks: bytes,
        inputs: int,
        sizes: int,
        constants: tuple[np.ndarray[Any, Any], ...],
        calls: tuple[tuple[Callable[..., object], tuple[np.dtype[Any], ...], bytes, int], ...],
        prepare: Callable[..., bytes | Callable[..., Any]],
        memory: object,
        contiguous: Callable[..., object],
        bare: bool,
        over: bytes,
    ) -> WholeFunction: ...
    def __call__(self, sizes: tuple[int, ...], /, *operands: Any) -> Any: ...

# random/draw.c
@final
class Draw:
    """A callable of keys and of start positions, one per key: random numbers, with the axes of the keys first.

    Args:
        name: ``"bits"``, ``"uniform"``, ``"normal"``, ``"exponential"`` or ``"loggamma"``.
        dtype: dtype of the numbers.
        shape: shape of the numbers of each key; ``None`` makes it the last argument of calls. For ``"loggamma"`` the
            last argument holds the shape parameters, one for each number.

    Raises:
        ValueError: there is no such kernel.
    """

    def __new__(cls, *, name: str, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> Draw: ...
    def __call__(self, keys: Any, starts: Any, last: Any = ..., /) -> np.ndarray[Any, Any]: ...
