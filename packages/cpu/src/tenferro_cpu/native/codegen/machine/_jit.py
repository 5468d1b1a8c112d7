"""`Engine`: compiles LLVM text and returns addresses of machine code.

Kernels are rendered with explicit vectors, so by default no optimiser pipeline runs: it takes longer than code
generation and gains nothing. Machine code stays loaded for the life of the process, because its addresses have been
handed out; equal text is compiled once.
"""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from tenferro_cpu.native._extension import absent, compiled
from tenferro_cpu.native._host import LEVELS, Host, detect, here
from tenferro_tensor import library
from tenferro_tensor.device_model import CompileError
from tenferro_tensor_core import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import cached_property, idle_at_fork, importing, new_lock

if TYPE_CHECKING:
    from tenferro_tensor.device_model import ObjectCache

RESOLVERS: dict[str, Callable[[Sequence[str]], Mapping[str, int]]] = {}
"""Functions that resolve external functions when an object is loaded, by name prefix; a missing one has no address."""

MIN_LLVM = 20
"""Oldest LLVM with opaque pointers, ``splat`` constants and vector ``llvm.ldexp``, which the kernels use."""

MAX_SWITCHED_LLVM = 22
"""Newest LLVM whose global switches are known; an unknown switch would end the process."""

REDUCED_MAX_LINES = 300
"""Longest function (in lines of text) of a module whose loops undergo strength reduction."""

VECTORISED_MAX_LINES = 4000
"""Longest function (in lines of text) whose scalar loops LLVM tries to vectorise.

Longer ones run the steps of large programs, whose work is in functions of their own with explicit vectors.
"""

MIN_LLVMLITE = (0, 45)
"""Oldest llvmlite that ships it."""

FINISHED = '"finished"'
"""Attribute of functions that a module's optimiser must not change."""

JIT_VARIABLE = "TENFERRO_CPU_JIT"

LEVEL_VARIABLE = "TENFERRO_CPU_LEVEL"
"""Environment variable with the highest vector level that machine code may use, one of `LEVELS`."""


@cache
def unavailable() -> str | None:
    """The reason why native kernels are unavailable, or None."""
    if os.environ.get(JIT_VARIABLE, "1") == "0":
        return f"{JIT_VARIABLE}=0 turns them off"
    if compiled is None:
        return f"this installation of tenferro-cpu has no C extension ({absent})"
    spec = importlib.util.find_spec("llvmlite")
    if spec is None:
        return "llvmlite is not installed: pip install llvmlite"
    if _version(spec.origin) < MIN_LLVMLITE:
        return "llvmlite is older than 0.45: pip install --upgrade llvmlite"
    if int(np.__version__.split(".")[0]) < 2:
        return f"they need NumPy 2, and this is {np.__version__}"
    if struct.calcsize("P") != 8 or sys.byteorder != "little":
        return "they need a 64-bit little-endian processor"
    return None


def _version(origin: str | None) -> tuple[int, ...]:
    """Version of an installed llvmlite, from its metadata folder: importing either takes 20 to 100 ms."""
    found = Path(origin or "").parents[1].glob("llvmlite-*.dist-info") if origin else ()
    numbers = [re.match(r"llvmlite-(\d+)\.(\d+)", path.name) for path in found]
    return max([(int(m[1]), int(m[2])) for m in numbers if m], default=MIN_LLVMLITE)


def available() -> bool:
    """Whether native kernels can be compiled; imports nothing.

    Returns:
        The flag.
    """
    return unavailable() is None


@cache
def compiles_programs() -> bool:
    """Whether programs are compiled to machine code; logs once if only llvmlite is missing."""
    why = unavailable()
    if why is not None and why.startswith("llvmlite"):
        import logging

        logging.getLogger("tenferro").warning(
            "compiled programs run step by step on NumPy kernels, which is several times slower than machine code: %s",
            why,
        )
    return why is None


_engines: WeakSet[Engine] = WeakSet()
_COMPILERS: list[_Compiler] = []
"""Compilers of all engines, including deleted engines: they own machine code whose addresses have been handed out."""


class _Compiler:
    """LLVM's compiler and linker for this process.

    Attributes:
        llvm: the module.
        host: the processor, as LLVM sees it.
        machine: emits objects.
        layout: data layout of modules.
        execution: links them.
        target: versions and processor, on which compiled code depends.

    Raises:
        BackendUnavailableError: this LLVM is too old.
    """

    def __init__(self, limit: str | None) -> None:
        llvmlite, llvm = library("llvmlite"), library("llvmlite.binding")
        if llvm.llvm_version_info[0] < MIN_LLVM:
            raise BackendUnavailableError(
                f"native kernels need LLVM {MIN_LLVM} or newer, and llvmlite brings "
                f"{llvm.llvm_version_info[0]}; pip install --upgrade llvmlite",
                llvm=llvm.llvm_version_info,
            )
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm, self.host = llvm, detect(llvm, limit)
        # The execution engine owns its target machine; objects are emitted by one of our own.
        self.machine, linking = self._machine(), self._machine()
        self.layout = str(self.machine.target_data)
        self.execution = llvm.create_mcjit_compiler(llvm.parse_assembly(""), linking)
        build = (sys.version, np.__version__, llvmlite.__version__, llvm.llvm_version_info)
        self.target = repr((build, self.host.triple, self.host.cpu, self.host.features))
        _COMPILERS.append(self)

    def generated(self, module: Any) -> bytes:
        """The object of an optimised module.

        Strength reduction of loops takes time that grows faster than a function, up to half of all compilation, so it
        is left out where a function is long. Its switch is global, hence the lock. As a pass on its own, for the short
        functions beside a long one, it ends the process: it breaks an invariant that the pass manager asserts.
        """
        llvm = self.llvm
        lines = [str(f).count("\n") for f in module.functions if not f.is_declaration]
        if llvm.llvm_version_info[0] > MAX_SWITCHED_LLVM or max(lines, default=0) <= REDUCED_MAX_LINES:
            return self.machine.emit_object(module)  # type: ignore[no-any-return]
        with _lock_of_llvm():
            llvm.set_option("tenferro", "-disable-lsr=true")
            try:
                return self.machine.emit_object(module)  # type: ignore[no-any-return]
            finally:
                llvm.set_option("tenferro", "-disable-lsr=false")

    def _machine(self) -> Any:
        target = self.llvm.Target.from_triple(self.host.triple)
        return target.create_target_machine(
            cpu=self.host.cpu, features=self.host.features, opt=3, jit=True, codemodel="jitdefault"
        )


class Engine:
    """Compiles and loads LLVM text; thread-safe.

    Methods take:
        ir_text: LLVM module as text.
        name, names: functions to look up.
        symbols: addresses of external functions.
        level: optimiser level, 0 to 3.
        what: key of the text or note, valid for one version of the renderer.
        make: creates the note.

    Methods return:
        Addresses, keys, notes or flags, as their summary says.

    Args:
        cache: compiled objects on disk, or a function that opens them when they are first needed. None keeps them
            only in memory.
        limit: the highest vector level to compile for, one of `LEVELS`.

    Raises:
        ArgumentError: `limit` is not a level.
        BackendUnavailableError: this LLVM is too old.
    """

    def __init__(
        self, cache: ObjectCache | Callable[[], ObjectCache | None] | None = None, limit: str | None = None
    ) -> None:
        if limit is not None and limit not in LEVELS:
            names = ", ".join(LEVELS)
            raise ArgumentError(
                f"machine code of the vector level {limit!r} was requested; the levels are {names} "
                f"(the variable {LEVEL_VARIABLE} sets the highest one that is used)",
                level=limit,
            )
        self.host: Host = here(limit)
        self._limit, self._given_cache = limit, cache
        self._made_compiler: _Compiler | None = None
        self._lock = new_lock()
        self._loaded: dict[str, tuple[int, ...]] = {}
        self._notes: dict[str, str] = {}
        self._symbols: dict[str, int] = {}
        self._counts = {"compiled": 0, "from_disk": 0, "object_bytes": 0}
        _engines.add(self)

    @cached_property
    def _cache(self) -> ObjectCache | None:
        """The objects on disk; code compiled ahead of time needs none."""
        given = self._given_cache
        return given() if callable(given) else given

    @property
    def _compiler(self) -> _Compiler:
        """LLVM, loaded when machine code is first compiled or read from disk (0.1 s)."""
        if self._made_compiler is None:
            with self._lock:  # held whenever a thread is inside LLVM, see `idle`
                self._made_compiler = self._made_compiler or _Compiler(self._limit)
        return self._made_compiler

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Hold off compiling and loading: no thread is inside LLVM, or between two dependent calls."""
        with self._lock, _lock_of_llvm() if _COMPILERS else nullcontext():
            yield

    def function(self, ir_text: str, name: str, symbols: Mapping[str, int] | None = None, level: int = 0) -> int:
        """Address of the function `name` that `ir_text` defines; see `functions`."""
        return self.functions(ir_text, (name,), symbols, level)[0]

    def functions(
        self, ir_text: str, names: Sequence[str], symbols: Mapping[str, int] | None = None, level: int = 0
    ) -> tuple[int, ...]:
        """Addresses of the functions `names` that `ir_text` defines, valid for the life of the process.

        Args:
            ir_text: one LLVM module as text, without target lines. Functions that are not in `names` must be
                ``private`` or ``internal``.
            names: functions to export; they are renamed internally, so that modules may use equal names.
            symbols: addresses of the external functions that the text declares; a name has one address for the whole
                process. Never write an address into the text: it would be cached on disk.
            level: optimiser pipeline to run first, 1 to 3, each with the loop vectoriser; 0 runs none.

        Returns:
            The addresses, in the order of `names`.

        Raises:
            CompileError: LLVM rejects the text, or it declares a function that no symbol defines.
        """
        key = self.key(ir_text, names, level)
        found = self._loaded.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._loaded.get(key)
            if found is None:
                self._define(symbols or {})
                found = self._fetched(key, names) or self._made(key, ir_text, names, level)
            return found

    def rendered(self, what: str, name: str, render: Callable[[], str], level: int = 0) -> int:
        """Address of the function `name` of a text that is rendered only if its object is not cached.

        Rendering takes as long as compiling, and far longer than loading.

        Args:
            what: key of the text, valid for one version of the renderer.
            name: the function.
            render: creates the text, which may declare only symbols of `RESOLVERS`.
            level: see `functions`.

        Returns:
            The address.
        """
        title = f"{name}\0{what}"
        key = self._note(title)
        if key is not None:
            with self._lock:
                found = self._loaded.get(key) or self._fetched(key, (name,))
                if found is not None:
                    return found[0]
        text = render()
        address = self.function(text, name, level=level)
        self._write(title, self.key(text, (name,), level))
        return address

    def at_hand(self, what: str, name: str) -> bool:
        """Whether `rendered` would find a cached object, and return at once."""
        key = self._note(f"{name}\0{what}")
        return key is not None and (key in self._loaded or (self._cache is not None and self._cache.has(key)))

    def noted(self, what: str, make: Callable[[], str]) -> str:
        """A line of text about `what`, computed once per version of the renderer and processor."""
        found = self._note(what)
        if found is None:
            found = make()
            self._write(what, found)
        return found

    def _note(self, what: str) -> str | None:
        found = self._notes.get(what)
        if found is None and self._cache is not None and (stamp := renderer()) is not None:
            stored = self._cache.get(self.key(stamp, (what,)))
            if stored is not None and stored.isascii():
                found = self._notes[what] = stored.decode()
        return found

    def _write(self, what: str, line: str) -> None:
        self._notes[what] = line
        if self._cache is not None and (stamp := renderer()) is not None:
            self._cache.put(self.key(stamp, (what,)), line.encode())

    def _fetched(self, key: str, names: Sequence[str]) -> tuple[int, ...] | None:
        """Addresses from the object on disk; None if it is missing or cannot be linked."""
        stored = None if self._cache is None else self._cache.get(key)
        if stored is None:
            return None
        try:
            found = self._linked(key, stored, names)
        except CompileError:
            return None
        self._counts["from_disk"] += 1
        return found

    def _made(self, key: str, text: str, names: Sequence[str], level: int) -> tuple[int, ...]:
        """Addresses from an object compiled now, unless another process is compiling it."""
        if self._cache is None:
            return self._linked(key, self._compile(key, text, names, level), names)
        with self._cache.writing(key):
            found = self._fetched(key, names)
            if found is not None:
                return found
            stored = self._compile(key, text, names, level)
            self._cache.put(key, stored)
        return self._linked(key, stored, names)

    def key(self, ir_text: str, names: Sequence[str], level: int = 0) -> str:
        """Key of compiled code: hash of content, compiler, processor and flags."""
        content = "\0".join((self._compiler.target, str(level), *names, ir_text))
        import hashlib  # loads OpenSSL

        return hashlib.sha256(content.encode()).hexdigest()

    def _define(self, symbols: Mapping[str, int]) -> None:
        for name, address in symbols.items():
            if self._symbols.setdefault(name, address) != address:
                raise CompileError(
                    f"the symbol {name!r} is defined already, at another address; choose another name", symbol=name
                )
            self._compiler.llvm.add_symbol(name, address)

    def _compile(self, key: str, text: str, names: Sequence[str], level: int) -> bytes:
        """An object, preceded by a line that lists the external functions it needs."""
        unique = _unique(key, names)
        for name, new in zip(names, unique, strict=True):
            text = re.sub(rf'@(?:{re.escape(name)}(?![\w.$-])|"{re.escape(name)}")', f"@{new}", text)
        context = self._compiler.llvm.create_context()  # constants live as long as their context
        if level:
            text = text.replace(FINISHED, "optnone")
        try:
            module = self._compiler.llvm.parse_assembly(text, context)
            module.triple, module.data_layout = self._compiler.host.triple, self._compiler.layout
            module.verify()
        except RuntimeError as cause:
            raise CompileError(f"LLVM rejects the text of {', '.join(names)}: {cause}", names=tuple(names)) from cause
        defined = {f.name for f in module.functions if not f.is_declaration}
        for name, new in zip(names, unique, strict=True):
            if new not in defined:
                raise CompileError(f"the text defines no function {name!r}", names=tuple(names))
        if level:
            self._optimise(module, level, text)
            if "optnone" in text:  # the code generator would skip them as well
                module = self._compiler.llvm.parse_assembly(str(module).replace(" optnone", ""), context)
        needs = [v.name for v in module.functions if v.is_declaration and not v.name.startswith("llvm.")]
        needs += [v.name for v in module.global_variables if v.is_declaration]
        code: bytes = self._compiler.generated(module) if level else self._compiler.machine.emit_object(module)
        self._counts["compiled"] += 1
        return " ".join(needs).encode() + b"\n" + code

    def _optimise(self, module: Any, level: int, text: str) -> None:
        options = self._compiler.llvm.create_pipeline_tuning_options(speed_level=level)
        longest = max([f.count("\n") for f in text.split("\ndefine ")])
        options.loop_vectorization, options.slp_vectorization = longest <= VECTORISED_MAX_LINES, level > 1
        builder = self._compiler.llvm.create_pass_builder(self._compiler.machine, options)
        builder.getModulePassManager().run(module, builder)

    def _linked(self, key: str, stored: bytes, names: Sequence[str]) -> tuple[int, ...]:
        """Load an object and record the addresses of its functions.

        Raises:
            CompileError: it needs an undefined symbol, or it is damaged. LLVM itself would end the process.
        """
        line, _, code = stored.partition(b"\n")
        needs = line.decode(errors="replace").split()
        for prefix, resolve in RESOLVERS.items():
            self._define(resolve([n for n in needs if n.startswith(prefix) and n not in self._symbols]))
        missing = [n for n in needs if n not in self._symbols and not self._compiler.llvm.address_of_symbol(n)]
        if missing:
            raise CompileError(
                f"the text calls {', '.join(missing)}, which nothing defines; give the address among the symbols",
                missing=tuple(missing),
            )
        read = self._compiler.llvm.ObjectFileRef.from_data(code)
        if not read._ptr:  # llvmlite has no other report of an unreadable object
            raise CompileError(
                f"the object of {', '.join(names)} is damaged; delete the cache of machine code", names=tuple(names)
            )
        self._compiler.execution.add_object_file(read)
        self._compiler.execution.finalize_object()
        found = tuple(map(self._compiler.execution.get_function_address, _unique(key, names)))
        if not all(found):
            raise CompileError(
                f"the object of {', '.join(names)} belongs to other functions; delete the cache of machine code",
                names=tuple(names),
            )
        self._counts["object_bytes"] += len(code)
        self._loaded[key] = found
        return found

    def stats(self) -> dict[str, int]:
        """Number of modules loaded, compiled and read from disk; bytes of their objects."""
        return {"loaded": len(self._loaded), **self._counts}

    def clear(self) -> None:
        """Delete the user's compiled objects on disk; loaded code stays, because its addresses are in use."""
        if self._cache is not None:
            self._cache.clear()


def _lock_of_llvm() -> AbstractContextManager[None]:
    """The lock that llvmlite holds in every call of LLVM, and exposes nowhere; a thread may take it again."""
    lock: AbstractContextManager[None] = getattr(library("llvmlite.binding").ffi.lib, "_lock", nullcontext())
    return lock


def _unique(key: str, names: Sequence[str]) -> tuple[str, ...]:
    """Names of functions inside their object, unique so that modules may use equal names."""
    return tuple(f"{name}.{key[:24]}" for name in names)


@cache
def renderer() -> str | None:
    """Version of the renderer: sizes and times of all files of native kernels; None if there are none."""
    native = Path(__file__).parents[2]
    try:
        seen = [(str(path.relative_to(native)), path.stat()) for path in sorted(native.rglob("*.py"))]
    except OSError:
        return None
    return repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in seen]) if seen else None


_engine: Engine | None = None
_making = new_lock()


def loaded() -> int:
    """Number of modules that the engine of the process has loaded; 0 if there is no engine yet."""
    return 0 if _engine is None else _engine.stats()["loaded"]


def engine() -> Engine:
    """The engine of the process, created on first use (about 0.1 s, mostly for the import of llvmlite).

    The environment variable `LEVEL_VARIABLE` limits its vector level.

    Returns:
        The engine.

    Raises:
        BackendUnavailableError: native kernels are unavailable; the text gives the reason.
        ArgumentError: the variable names no level.
    """
    global _engine
    if _engine is None:
        why = unavailable()
        if why is not None:
            raise BackendUnavailableError(
                f"native CPU kernels were requested, but {why}; the NumPy kernels serve without them", reason=why
            )
        with _making:
            if _engine is None:
                _engine = Engine(_user_cache, os.environ.get(LEVEL_VARIABLE) or None)
    return _engine


def _user_cache() -> ObjectCache | None:
    with importing():
        from tenferro_tensor.device_model import user_cache
    return user_cache("cpu")


def folder() -> str | None:
    """The folder that caches machine code on disk, or None."""
    cache = _user_cache() if available() else None
    return None if cache is None else str(cache.folder)


@contextmanager
def _idle() -> Iterator[None]:
    """Hold all engines idle, and creation of engines: no thread is importing llvmlite."""
    with ExitStack() as stack:
        stack.enter_context(_making)
        for each in list(_engines):
            stack.enter_context(each.idle())
        yield


idle_at_fork(_idle)


def host() -> Host:
    """The host that the engine compiles for.

    Returns:
        The host.
    """
    return engine().host
