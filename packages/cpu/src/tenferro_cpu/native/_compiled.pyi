"""Fixed machine code of the CPU backend; absent from a pure wheel."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

ADDRESSES: Final[dict[str, int]]
"""Functions and tables that generated machine code refers to, by symbol."""

LEVEL: Final[str]
"""The vector level in use: ``"avx512"``, ``"avx2"``, ``"neon"`` or ``"generic"``, as of `Host.level`."""

# threads/team_module.c
LIMIT: Final[ContextVar[int]]
"""The number of threads of the innermost scope of `threads`, 0 outside of any."""

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
def pool_bound(pool: object, limit: int, /) -> None: ...
def pool_clear(pool: object, /) -> None: ...
def pool_stats(pool: object, /) -> dict[str, int]: ...
def pool_scoped(pool: object, call: Callable[..., Any], gives_way: bool, /) -> Callable[..., Any]: ...

# copying/copy.c
VECTOR_BYTES: Final[int]
"""Bytes of a vector of the level in use."""

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

# kernels/reductions.c
REDUCTIONS: Final[dict[str, tuple[int, int]]]
"""Row kernels by kind and type, as in ``"sum f64"``: addresses of that over the trailing and over the leading axis."""
