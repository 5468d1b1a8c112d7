"""`MemoryPool`: large blocks are kept when they are freed, because fresh pages cost more than what is done with them.

A NumPy allocation handler (NEP 49) in machine code. It is in force only while a kernel of this library runs, so the
memory of other code is left alone. An array keeps its handler: its block comes back to the pool when the last reference
to it goes, from wherever that is, and never earlier; views, buffers and DLPack exports hold such references.
"""

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory import _pool_ir as ir
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._capi import numpy_table
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_tensor import Spec
from tenferro_tensor.device_model import Allocator
from tenferro_tensor_core import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import new_lock

POOLED: Final = ir.POOLED
"""Bytes from which on a block is worth keeping."""

VARIABLE: Final = "TENFERRO_CPU_POOL"
_SET_HANDLER: Final = 304
_DEFAULT_HANDLER: Final = 306
_MEMORY_SHARE: Final = 8
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30}


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("pool", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


@dataclass(frozen=True, slots=True)
class _Machine:
    """The compiled functions: addresses of those of a handler, `trim`, and the entry of scoped calls."""

    addresses: dict[str, int]
    trim: Any
    scoped: MethodDef


_kept: list[tuple[Any, ...]] = []  # arrays may outlive a pool: its state and its handler stay for ever
_trim_type: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)

_OF_PYTHON: Final = {
    "system_malloc": "PyMem_RawMalloc", "system_calloc": "PyMem_RawCalloc", "system_free": "PyMem_RawFree",
}  # fmt: skip
"""Where there is no C library at hand."""

# Sets the handler, calls, and puts back the one before, also when the call raises. Where the third item is another
# handler, only that one gives way: a thread with memory of its own keeps it.
_SCOPED: Final = """
declare ptr @tenferro_set_handler(ptr)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare void @tenferro_decref(ptr)
declare void @tenferro_fetch(ptr, ptr, ptr)
declare void @tenferro_restore(ptr, ptr, ptr)
define ptr @scoped(ptr %self, ptr %args, i64 %n) nounwind {
entry:
  %kind = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %handler_at = getelementptr i8, ptr %self, i64 $ITEM0
  %handler = load ptr, ptr %handler_at
  %call_at = getelementptr i8, ptr %self, i64 $ITEM1
  %call = load ptr, ptr %call_at
  %weak_at = getelementptr i8, ptr %self, i64 $ITEM2
  %weak = load ptr, ptr %weak_at
  %before = call ptr @tenferro_set_handler(ptr %handler)
  %unset = icmp eq ptr %before, null
  br i1 %unset, label %none, label %set
none:
  ret ptr null
set:
  %gave_way = icmp eq ptr %before, %weak
  %always = icmp eq ptr %weak, %handler
  %stays = or i1 %gave_way, %always
  br i1 %stays, label %run, label %yield
yield:
  %ours = call ptr @tenferro_set_handler(ptr %before)
  call void @tenferro_decref(ptr %ours)
  br label %run
run:
  %result = call ptr @tenferro_vectorcall(ptr %call, ptr %args, i64 %n, ptr null)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %save, label %back
save:
  call void @tenferro_fetch(ptr %kind, ptr %value, ptr %trace)
  br label %back
back:
  %mine = call ptr @tenferro_set_handler(ptr %before)
  call void @tenferro_decref(ptr %before)
  call void @tenferro_decref(ptr %mine)
  br i1 %failed, label %raise, label %done
raise:
  %k = load ptr, ptr %kind
  %v = load ptr, ptr %value
  %t = load ptr, ptr %trace
  call void @tenferro_restore(ptr %k, ptr %v, ptr %t)
  br label %done
done:
  ret ptr %result
}
"""


@cache
def _machine() -> _Machine | None:
    have = interpreter()
    if have is None:
        return None
    host = engine().host
    linux, libc = sys.platform == "linux", ctypes.CDLL(None) if os.name == "posix" else None
    # NumPy tells tracemalloc of what it is handed; Python's own functions would tell it a second time.
    own_names = {n: n.removeprefix("system_") if libc is not None else _OF_PYTHON[n] for n in ir.SYSTEM}
    external = {n: _address(getattr(libc or ctypes.pythonapi, name)) for n, name in own_names.items()}
    wanted = [] if libc is None else ir.EXTERNAL if linux else ["sched_yield"]
    external |= {n: _address(getattr(libc, n)) for n in wanted}
    attributes = host.attributes.split()[0]
    source = ir.text(linux, "sched_yield" in external, attributes)
    source = _renamed(source, external)
    addresses = engine().functions(source, ir.NAMES, {f"tenferro_{n}": a for n, a in external.items()}, level=1)
    setter = ctypes.c_void_p.from_address(numpy_table() + 8 * _SET_HANDLER).value or 0
    own = {
        "tenferro_set_handler": setter,
        "tenferro_fetch": _address(ctypes.pythonapi.PyErr_Fetch),
        "tenferro_restore": _address(ctypes.pythonapi.PyErr_Restore),
    }
    text = _SCOPED
    for k in range(3):
        text = text.replace(f"$ITEM{k}", str(have.tuple_items + 8 * k))
    entry = engine().function(text, "scoped", have.symbols | own)
    named = dict(zip(ir.NAMES, addresses, strict=True))
    return _Machine(named, _trim_type(named["trim"]), definition("scoped", entry, FASTCALL))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _renamed(source: str, external: dict[str, int]) -> str:
    for name in external:
        source = source.replace(f"@{name}(", f"@tenferro_{name}(")
    return source


class MemoryPool(Allocator):
    """Main memory in blocks aligned to 64 bytes; freed blocks of 128 KB and more are kept for reuse.

    Blocks are reused within a size class (eight per octave); the longest unused ones go back to the system when more
    than `limit` bytes are kept. On Linux, blocks of 2 MB and more ask for huge pages.

    Args:
        limit: bytes that may be kept while nothing uses them.

    Raises:
        BackendUnavailableError: machine code, or access to NumPy's interface, cannot be had.
    """

    def __init__(self, limit: int) -> None:
        have = _machine()
        if have is None:
            raise BackendUnavailableError(
                "a memory pool was asked for, but native kernels or NumPy's C interface cannot be had here; "
                "tenferro_cpu.info()['native'] says why, and NumPy's own memory serves without a pool"
            )
        self._machine = have
        self._state = (ctypes.c_uint64 * ir.STATE_WORDS)()
        handler = _Handler(b"tenferro", 1, ctypes.addressof(self._state), *[have.addresses[n] for n in ir.NAMES[:4]])
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        name = b"mem_handler"
        self._capsule = make(("PyCapsule_New", ctypes.pythonapi))(ctypes.addressof(handler), name, None)
        _kept.append((self._state, handler, name, self._capsule))
        self.limit = limit
        self._empty = self.scoped(np.empty)
        close = weakref.finalize(self, _close, self._state, have.trim)
        close.atexit = False  # the system takes everything then

    @property
    def limit(self) -> int:
        """Bytes that may be kept while nothing uses them."""
        return self._word("limit")

    @limit.setter
    def limit(self, limit: int) -> None:
        if limit < 0:
            raise ArgumentError(f"a memory pool cannot keep {limit} bytes; give 0 to keep none", limit=limit)
        self._state[ir.STATE.index("limit")] = limit
        self._machine.trim(ctypes.addressof(self._state), limit)

    def scoped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call` with the arrays that NumPy allocates in it taken from this pool; positional arguments only."""
        made: Callable[..., Any] = builtin(self._machine.scoped, (self._capsule, call, self._capsule))
        return made

    def giving_way(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`scoped` where NumPy's own allocator is in force; in a thread that has another one, that serves."""
        at = ctypes.c_void_p.from_address(numpy_table() + 8 * _DEFAULT_HANDLER).value or 0
        usual = ctypes.py_object.from_address(at).value
        made: Callable[..., Any] = builtin(self._machine.scoped, (self._capsule, call, usual))
        return made

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """An array of this pool, contents undefined."""
        made: np.ndarray[Any, Any] = self._empty(shape, dtype)
        return made

    def allocate(self, nbytes: int) -> np.ndarray[Any, Any]:
        """A block as an array of bytes."""
        if nbytes < 0:
            raise ArgumentError(f"a block of {nbytes} bytes was asked for; sizes begin at 0", nbytes=nbytes)
        return self.empty((nbytes,), np.uint8)

    def stats(self) -> dict[str, int]:
        """Bytes: ``limit``, ``cached`` (kept unused), ``live`` (in use), ``peak`` (of both together). Counts: ``hits``
        and ``misses`` of large allocations, blocks ``returned`` to the system."""
        names = ("limit", "cached", "live", "peak", "hits", "misses", "returned")
        return {name: self._word(name) for name in names}

    def clear(self) -> None:
        """Give the unused blocks back to the system."""
        self._machine.trim(ctypes.addressof(self._state), 0)

    def _word(self, name: str) -> int:
        value: int = self._state[ir.STATE.index(name)]
        return value


def _unlock() -> None:
    for state, *_ in _kept:
        state[ir.STATE.index("lock")] = 0  # its holder is not in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def _close(state: Any, trim: Any) -> None:
    """Keep nothing any more: blocks in use go to the system when they are freed."""
    state[ir.STATE.index("limit")] = 0
    trim(ctypes.addressof(state), 0)


_found: list[MemoryPool | None] = []
_making = new_lock()


def pool() -> MemoryPool | None:
    """The pool of the process, or None where it cannot be had or ``TENFERRO_CPU_POOL=0`` turns it off."""
    if not _found:
        with _making:
            if not _found:
                limit = _limit(os.environ.get(VARIABLE))
                _found.append(MemoryPool(limit) if limit and _machine() is not None else None)
    return _found[0]


def memory_pool() -> MemoryPool | None:
    """The pool that large results on the CPU come from, or None where there is none.

    There is none without native kernels, and with ``TENFERRO_CPU_POOL=0`` in the environment; a size there, as in
    ``TENFERRO_CPU_POOL=512M``, is the limit of what is kept unused. By default that is an eighth of the memory.

    >>> pool = memory_pool()
    >>> if pool is not None:
    ...     pool.clear()
    ...     assert pool.stats()["cached"] == 0
    """
    return pool()


here = threading.local()
"""``here.memory``: the allocator of the calling thread, where it has one of its own."""


def serving() -> MemoryPool | None:
    """The allocator of the calling thread, else that of the process; None where there is none."""
    own: MemoryPool | None = getattr(here, "memory", None)
    return pool() if own is None else own


def pooled(run: Callable[..., Any], outs: tuple[Spec, ...]) -> Callable[..., Any]:
    """`run`, with large results taken from the pool."""
    return pooled_replay(run) if sum(map(_bytes, outs)) >= POOLED else run


def pooled_replay(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, with everything that NumPy allocates in it taken from the pool."""
    have = pool()
    return run if have is None else have.giving_way(run)


def _bytes(spec: Spec) -> int:
    size = spec.dtype.itemsize
    for n in spec.shape:
        size *= n  # type: ignore[assignment]  # kernels are made for concrete shapes
    return size


def _limit(text: str | None) -> int:
    """Bytes from a number with K, M or G; by default an eighth of the memory that this process may use.

    >>> _limit("512M") == 512 << 20
    True
    """
    if text is None:
        return _memory() // _MEMORY_SHARE
    number, unit = (text[:-1], text[-1].upper()) if text and text[-1].isalpha() else (text, "")
    if not number.isdecimal() or unit not in _UNITS:
        raise ArgumentError(
            f"{VARIABLE}={text!r} is no size; write bytes, or a number with K, M or G as in 512M, or 0 for no pool",
            variable=VARIABLE,
        )
    return int(number) << _UNITS[unit]


def _memory() -> int:
    """Bytes of main memory, or of the limit of the control group (Linux) where that is lower."""
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        installed = 4 << 30  # the system does not tell
    group = Path("/sys/fs/cgroup/memory.max")
    allowed = group.read_text().strip() if group.is_file() else ""
    return min(installed, int(allowed)) if allowed.isdecimal() else installed
