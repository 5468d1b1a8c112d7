"""`MemoryPool`: keeps freed large blocks for reuse, because fresh pages cost more than the work on them.

A NumPy allocation handler (NEP 49), written in C (`pool.h`). It is in force only while a kernel of this library runs,
so the memory of other code is unaffected. An array keeps its handler: its block returns to the pool when the last
reference to it is dropped, anywhere; views, buffers and DLPack exports hold such references.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_tensor import Spec
from tenferro_tensor.device_model import Allocator
from tenferro_tensor_core import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import new_lock

POOLED_MIN_BYTES: Final = 128 << 10
"""Size in bytes of the smallest block that a pool keeps; must equal the constant in `pool.h`."""

VARIABLE: Final = "TENFERRO_CPU_POOL"
_MEMORY_SHARE: Final = 8
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30}
_UNBOUNDED: Final = (1 << 63) - 1


class MemoryPool(Allocator):
    """Main memory in blocks aligned to 64 bytes; freed blocks of 128 KB and more are kept for reuse.

    Blocks are reused within a size class (eight per octave); when more than `limit` bytes are kept, the blocks unused
    for longest return to the system. On Linux, blocks of 2 MB and more request huge pages.

    Methods take:
        call: function of positional arguments.
        shape, dtype: shape and dtype of the array.
        nbytes: size in bytes.

    Methods return:
        The wrapped function, or the uninitialised array.

    Args:
        limit: maximum number of unused bytes to keep.

    Raises:
        BackendUnavailableError: this installation has no C extension.
    """

    def __init__(self, limit: int) -> None:
        if compiled is None:
            raise BackendUnavailableError(
                "a memory pool was requested, but this installation of tenferro-cpu has no C extension; "
                "build it where there is a C compiler, or leave the memory to NumPy"
            )
        self._pool = compiled.pool_new()
        self.limit = limit
        self._empty = self.scoped(np.empty)
        close = weakref.finalize(self, compiled.pool_bound, self._pool, 0)
        close.atexit = False  # the system frees everything then

    @property
    def limit(self) -> int:
        """Bytes that may be kept while nothing uses them."""
        return self.stats()["limit"]

    @limit.setter
    def limit(self, limit: int) -> None:
        if limit < 0:
            raise ArgumentError(f"a memory pool cannot keep {limit} bytes; pass 0 to keep none", limit=limit)
        compiled.pool_bound(self._pool, min(limit, _UNBOUNDED))

    def scoped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap `call` so that arrays allocated by NumPy in it come from this pool."""
        return compiled.pool_scoped(self._pool, call, False)

    def giving_way(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Like `scoped`, but only where NumPy's own allocator is in force; other allocators keep precedence."""
        return compiled.pool_scoped(self._pool, call, True)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Allocate an uninitialised array."""
        made: np.ndarray[Any, Any] = self._empty(shape, dtype)
        return made

    def allocate(self, nbytes: int) -> np.ndarray[Any, Any]:
        """Allocate a block as an array of bytes."""
        if nbytes < 0:
            raise ArgumentError(f"a block of {nbytes} bytes was requested; sizes begin at 0", nbytes=nbytes)
        return self.empty((nbytes,), np.uint8)

    def stats(self) -> dict[str, int]:
        """Bytes: ``limit``, ``cached`` (kept unused), ``live`` (in use), ``peak`` (of both together).

        Counts: ``hits`` and ``misses`` of large allocations, blocks ``returned`` to the system.
        """
        return compiled.pool_stats(self._pool)

    def clear(self) -> None:
        """Return the unused blocks to the system."""
        compiled.pool_clear(self._pool)

    def serving(self) -> AbstractContextManager[Any]:
        """A context in which all arrays that NumPy allocates come from this pool."""
        return _serving(self, self._pool)


class NumpyMemory(Allocator):
    """Main memory as NumPy allocates it; no block is kept for reuse.

    Methods take:
        shape, dtype: shape and dtype of the array.
        nbytes: size in bytes.

    Methods return:
        The uninitialised array.

    >>> from tenferro_cpu import CpuContext
    >>> from tenferro_tensor import compute_context
    >>> with compute_context(CpuContext(allocator=NumpyMemory())):  # no operation uses the pool
    ...     pass
    """

    def allocate(self, nbytes: int) -> np.ndarray[Any, Any]:
        """Allocate a block as an array of bytes."""
        return np.empty(nbytes, np.uint8)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Allocate an uninitialised array."""
        return np.empty(shape, dtype)

    def stats(self) -> dict[str, int]:
        """Empty; nothing is counted."""
        return {}

    def clear(self) -> None:
        """Does nothing; no block is kept."""

    def serving(self) -> AbstractContextManager[Any]:
        """A context in which NumPy's own allocator is in force."""
        return _serving(self, None if compiled is None else compiled.pool_plain())


_chosen: ContextVar[MemoryPool | NumpyMemory | None] = ContextVar("tenferro memory", default=None)


@contextmanager
def _serving(memory: MemoryPool | NumpyMemory, handler: Any) -> Iterator[Any]:
    before = None if compiled is None else compiled.pool_install(handler)
    token = _chosen.set(memory)
    try:
        yield memory
    finally:
        if compiled is not None:
            compiled.pool_install(before)
        _chosen.reset(token)


def own_memory() -> None:
    """In a pool's thread, which has its own memory, override the allocator chosen by the caller's context."""
    _chosen.set(None)


_found: list[MemoryPool | None] = []
_making = new_lock()


def pool() -> MemoryPool | None:
    """The pool of the process, or None if it is unavailable or ``TENFERRO_CPU_POOL=0`` disables it."""
    if not _found:
        with _making:
            if not _found:
                limit = _limit(os.environ.get(VARIABLE))
                _found.append(MemoryPool(limit) if limit and compiled is not None else None)
    return _found[0]


def memory_pool() -> MemoryPool | None:
    """The pool that large results on the CPU come from.

    There is none in a pure wheel, or with ``TENFERRO_CPU_POOL=0`` in the environment. A size, as in
    ``TENFERRO_CPU_POOL=512M``, limits the unused bytes that it keeps; the default is an eighth of the memory.

    Returns:
        The pool, or None.

    >>> pool = memory_pool()
    >>> if pool is not None:
    ...     pool.clear()
    ...     assert pool.stats()["cached"] == 0
    """
    return pool()


here = threading.local()
"""``here.memory``: the allocator of the calling thread, if it has its own."""


def serving() -> MemoryPool | NumpyMemory | None:
    """The allocator of the open context, otherwise of the thread, otherwise of the process; or None."""
    own: MemoryPool | NumpyMemory | None = _chosen.get() or getattr(here, "memory", None)
    return pool() if own is None else own


def memory() -> MemoryPool | NumpyMemory:
    """The allocator of the process: the pool, or NumPy's if there is none."""
    return pool() or NumpyMemory()


def pooled(run: Callable[..., Any], outs: tuple[Spec, ...]) -> Callable[..., Any]:
    """Wrap `run` so that large results come from the pool."""
    return pooled_replay(run) if sum(map(_bytes, outs)) >= POOLED_MIN_BYTES else run


def pooled_replay(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `run` so that everything that NumPy allocates in it comes from the pool."""
    have = pool()
    return run if have is None else have.giving_way(run)


def _bytes(spec: Spec) -> int:
    size = spec.dtype.itemsize
    for n in spec.shape:
        size *= n  # type: ignore[assignment]  # kernels are made for concrete shapes
    return size


def _limit(text: str | None) -> int:
    """Parse a number of bytes with suffix K, M or G; by default an eighth of the memory that this process may use.

    >>> _limit("512M") == 512 << 20
    True
    """
    if text is None:
        return _memory() // _MEMORY_SHARE
    number, unit = (text[:-1], text[-1].upper()) if text and text[-1].isalpha() else (text, "")
    if not number.isdecimal() or unit not in _UNITS:
        raise ArgumentError(
            f"{VARIABLE}={text!r} is not a size; use bytes, or a number with K, M or G as in 512M, or 0 for no pool",
            variable=VARIABLE,
        )
    return int(number) << _UNITS[unit]


def _memory() -> int:
    """Bytes of main memory, or the lower limit of the control group (Linux)."""
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        installed = 4 << 30  # not reported by the system
    group = Path("/sys/fs/cgroup/memory.max")
    allowed = group.read_text().strip() if group.is_file() else ""
    return min(installed, int(allowed)) if allowed.isdecimal() else installed
