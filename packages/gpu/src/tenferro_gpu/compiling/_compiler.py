"""`RuntimeCompiler`: kernels compiled once per architecture, cached in memory and on disk."""

from __future__ import annotations

import hashlib
from functools import cache

from tenferro_gpu.compiling._libraries import RuntimeLibrary, runtime_library
from tenferro_tensor.device_model import CompiledSpec, Compiler, ObjectCache, ProgramSpec, user_cache
from tenferro_tensor_core.forks import Lock, new_lock


class RuntimeCompiler(Compiler):
    """Compiles for one architecture, shared by its devices; thread-safe.

    Methods take:
        spec: a rendered kernel.
        source: source text.

    Methods return:
        The compiled kernel, or a key.

    Args:
        library: the compiler library.
        architecture: ``"90"`` for compute capability 9.0, or a gfx name.
        cache: compiled kernels on disk; None keeps them only in memory.
    """

    def __init__(self, library: RuntimeLibrary, architecture: str, cache: ObjectCache | None = None) -> None:
        self.library: RuntimeLibrary = library
        self.architecture: str = architecture
        self._cache = cache
        self._compiled: dict[str, bytes] = {}
        self._making: dict[str, Lock] = {}
        self._lock = new_lock()
        self._counts = {"compiled": 0, "from_disk": 0, "code_bytes": 0}

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """See `Compiler.compile`; the code is in the driver's format."""
        key = self.key(spec.source)
        code = self._compiled.get(key)
        if code is None:
            with self._lock:
                making: Lock = self._making.setdefault(key, new_lock())
            with making:  # one thread compiles a source, others continue with theirs
                code = self._compiled.get(key)
                if code is None:
                    code = self._code(key, spec.source)
                    with self._lock:
                        self._compiled[key] = code
                        self._making.pop(key, None)
                        self._counts["code_bytes"] += len(code)
        return CompiledSpec(spec, code, key)

    def key(self, source: str) -> str:
        """Key of compiled code: content, compiler, architecture and options."""
        version = ".".join(map(str, self.library.version))
        content = "\0".join((self.library.kind, version, *self.library.options(self.architecture), source))
        return hashlib.sha256(content.encode()).hexdigest()

    def _code(self, key: str, source: str) -> bytes:
        if self._cache is None:
            return self._made(source)
        stored = self._cache.get(key)
        if stored is None:
            with self._cache.writing(key):
                stored = self._cache.get(key)  # another process may have compiled it meanwhile
                if stored is None:
                    made = self._made(source)
                    self._cache.put(key, made)
                    return made
        with self._lock:
            self._counts["from_disk"] += 1
        return stored

    def _made(self, source: str) -> bytes:
        code = self.library.compile(source, self.architecture)
        with self._lock:
            self._counts["compiled"] += 1
        return code

    def stats(self) -> dict[str, int]:
        """Number of sources available, compiled and read from disk; bytes of their code."""
        with self._lock:
            return {"loaded": len(self._compiled), **self._counts}

    def clear(self) -> None:
        """Drop compiled kernels, also on disk; those that programs hold stay loaded."""
        with self._lock:
            self._compiled.clear()
        if self._cache is not None:
            self._cache.clear()


@cache
def compiler(kind: str, architecture: str, major: int | None = None) -> RuntimeCompiler:
    """The compiler of the process for all devices of a kind and architecture, with the user's cache folder.

    Args:
        kind: ``"cuda"`` or ``"rocm"``.
        architecture: architecture of the device.
        major: required major version of the library, or None.

    Returns:
        The compiler.

    Raises:
        BackendUnavailableError: there is no compiler; the text says what to install.
    """
    cache = user_cache(kind, architecture.split(":")[0])
    return RuntimeCompiler(runtime_library(kind, major), architecture, cache)
