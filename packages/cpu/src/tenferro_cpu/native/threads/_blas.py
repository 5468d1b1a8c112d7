"""Which BLAS runs here: the libraries bundled with NumPy and SciPy, and the choice of one for matrix products.

OpenBLAS selects its kernels at load time from a list of known processors; on newer processors it falls back to AVX2
kernels, at half the speed of the AVX-512 ones. NumPy has loaded its copy before this code runs, but SciPy bundles
another one: unless the program has loaded that already, it is loaded with ``OPENBLAS_CORETYPE`` set to the AVX-512
kernels, a documented switch of OpenBLAS, and matrix products (and everything that SciPy computes) use it. This happens
only on processors with 512-bit vector units; AMD's before Zen 5 need two steps for such a vector and gain nothing. The
environment variable ``TENFERRO_CPU_BLAS`` overrides the choice: ``auto`` is the default; ``default`` leaves everything
as NumPy found it; ``avx512`` uses the AVX-512 kernels on every processor that runs them; one of `NAMES` selects that
library.
"""

import ctypes
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, RegistryError
from tenferro_tensor_core.forks import new_lock

BLAS_VARIABLE: Final = "TENFERRO_CPU_BLAS"
NAMES: Final = ("numpy", "scipy", "mkl", "blis")
"""Names that `use_blas` accepts: a library bundled with a wheel, or one installed separately."""

CHOICES: Final = ("auto", "default", "avx512", *NAMES)

CORE_VARIABLE: Final = "OPENBLAS_CORETYPE"
AVX512_CORE: Final = "SkylakeX"
"""OpenBLAS's name of its general AVX-512 kernels."""

FALLBACK_CORES: Final = ("Haswell", "Zen")
"""Cores that OpenBLAS falls back to on an unknown AVX-512 processor."""

AVX512_FLAGS: Final = frozenset(("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"))
"""Processor flags that the AVX-512 kernels require."""

ZEN_5: Final = 26
"""Family number of AMD's first processors with 512-bit units."""

LETTERS: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""BLAS's dtype letters by NumPy's."""


@dataclass(frozen=True, slots=True)
class Library:
    """A BLAS loaded in this process.

    Attributes:
        path: its file.
        name: ``"openblas"``, ``"mkl"`` or ``"blis"``.
        core: the kernels that it has selected, if it reports them.
        integers: bytes of its integers, 4 or 8.
        gemm: addresses of Fortran's ``xGEMM`` by NumPy's letter of the dtype.
        get_threads: the number of threads that its next call may use.
        set_threads: change that number, for the whole process.
        syrk: addresses of ``xSYRK``, products of matrices with their own transposes.
    """

    path: str
    name: str
    core: str
    integers: int
    gemm: dict[str, int] = field(compare=False)
    get_threads: Callable[[], int] = field(compare=False)
    set_threads: Callable[[int], None] = field(compare=False)
    syrk: dict[str, int] = field(compare=False, default_factory=dict)


def libraries() -> tuple[Library, ...]:
    """Every loaded BLAS, NumPy's first.

    >>> libraries()[0].name in ("openblas", "mkl", "blis") if libraries() else True
    True
    """
    found = [library for path in _loaded() if (library := _open(path)) is not None]
    return tuple(sorted(found, key=lambda library: not carried_by("numpy", library)))


def carried_by(package: str, library: Library) -> bool:
    """Whether a library is bundled with the wheel of `package`."""
    folder = Path(library.path).parent
    return folder.name == f"{package}.libs" or (folder.name == ".dylibs" and folder.parent.name == package)


def _loaded() -> list[str]:
    """Paths of loaded libraries that may be a BLAS."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return [path for path in map(str, _carried("numpy", "scipy")) if _is_loaded(path)]
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if line.count("/"))
    return [path for path in paths if re.search(r"/lib[^/]*(openblas|mkl_rt|blis)[^/]*$", path)]


def _carried(*packages: str) -> Iterator[Path]:
    """BLAS files bundled with installed wheels; imports nothing."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        home = Path(spec.origin).parent
        for folder in (home.parent / f"{package}.libs", home / ".dylibs"):
            yield from sorted(folder.glob("*openblas*"))


def _is_loaded(path: str) -> bool:
    mode = getattr(os, "RTLD_NOLOAD", None)
    if mode is None:  # Windows identifies modules by name
        kernel32: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
        return bool(kernel32.GetModuleHandleW(Path(path).name))
    try:
        ctypes.CDLL(path, mode=mode)
    except OSError:
        return False
    return True


def _open(path: str) -> Library | None:
    """The functions of a loaded library; None if its names are unknown."""
    try:
        dynamic = ctypes.PyDLL(path)  # reading and setting a number is too short to release the GIL
    except OSError:
        return None
    if hasattr(dynamic, "MKL_Set_Num_Threads"):
        # The integer size of mkl_rt's plain names is chosen at run time; these names take 8 bytes.
        gemm, syrk = (_routines(dynamic, f"{{}}{name}_64_") for name in ("gemm", "syrk"))
        return Library(path, "mkl", "", 8, gemm, dynamic.MKL_Get_Max_Threads, dynamic.MKL_Set_Num_Threads, syrk)
    if hasattr(dynamic, "bli_thread_set_num_threads") and hasattr(dynamic, "bli_info_get_blas_int_type_size"):
        width, bits = dynamic.bli_info_get_blas_int_type_size, ctypes.c_int64
        count, change = dynamic.bli_thread_get_num_threads, dynamic.bli_thread_set_num_threads
        width.restype, count.restype, change.restype, change.argtypes = bits, bits, None, (bits,)
        gemm, syrk = (_routines(dynamic, f"{{}}{name}_") for name in ("gemm", "syrk"))
        return Library(path, "blis", "", int(width()) // 8, gemm, count, change, syrk)
    for prefix, suffix in itertools.product(("scipy_", ""), ("64_", "", "_64")):
        getter = getattr(dynamic, f"{prefix}openblas_get_num_threads{suffix}", None)
        setter = getattr(dynamic, f"{prefix}openblas_set_num_threads{suffix}", None)
        if getter is None or setter is None:
            continue
        setter.restype, setter.argtypes, getter.restype = None, (ctypes.c_int,), ctypes.c_int
        core = getattr(dynamic, f"{prefix}openblas_get_corename{suffix}", None)
        if core is not None:
            core.restype = ctypes.c_char_p
        return Library(
            path,
            "openblas",
            core().decode() if core is not None else "",
            8 if "64" in suffix else 4,
            _routines(dynamic, f"{prefix}{{}}gemm_{suffix}"),
            getter,
            setter,
            _routines(dynamic, f"{prefix}{{}}syrk_{suffix}"),
        )
    return None


def _routines(dynamic: Any, pattern: str) -> dict[str, int]:
    """Addresses of a subroutine by NumPy's letter, as far as the library exports them."""
    found = {kind: getattr(dynamic, pattern.format(letter), None) for kind, letter in LETTERS.items()}
    return {kind: ctypes.cast(f, ctypes.c_void_p).value or 0 for kind, f in found.items() if f is not None}


@dataclass(frozen=True, slots=True)
class Provider:
    """The BLAS for matrix products.

    Attributes:
        library: the library; None if none is known, and products are NumPy's.
        own: whether it is NumPy's.
        why: the reason for the choice.
    """

    library: Library | None
    own: bool
    why: str


_provider: Provider | None = None
_lock = new_lock()


def provider() -> Provider:
    """The BLAS for matrix products, chosen at the first call.

    >>> provider() is provider()
    True
    """
    global _provider
    if _provider is None:
        with _lock:
            if _provider is None:
                _provider = _choose()
    return _provider


def use_blas(name: str) -> None:
    """Choose the BLAS for the matrix products of this process, before the first one is computed.

    The environment variable ``TENFERRO_CPU_BLAS`` takes the same names. Products that NumPy and SciPy compute
    themselves are unaffected.

    Args:
        name: ``"numpy"`` or ``"scipy"``, for the library in that wheel; ``"mkl"`` or ``"blis"``, if installed.

    Raises:
        ArgumentError: `name` is none of these.
        BackendUnavailableError: there is no such library; the text lists the available ones.
        RegistryError: products already use another one.

    >>> use_blas("atlas")
    Traceback (most recent call last):
    tenferro_tensor_core._errors.ArgumentError: there is no BLAS of the name 'atlas'; choose numpy, scipy, mkl or blis
    """
    global _provider
    chosen = _by_name(name, f"use_blas({name!r})")
    with _lock:
        if _provider is not None and _provider.library != chosen.library:
            raise RegistryError(
                f"use_blas({name!r}): products of this process go to {_text(_provider)} already; call it before the "
                f"first product, or set {BLAS_VARIABLE}={name}",
                name=name,
            )
        _provider = chosen


def _by_name(name: str, by: str) -> Provider:
    if name not in NAMES:
        raise ArgumentError(f"there is no BLAS of the name {name!r}; choose {', '.join(NAMES[:-1])} or {NAMES[-1]}")
    found = _installed(name)
    if name == "numpy" or (compiled is not None and found is not None and found.gemm):
        return Provider(found, name == "numpy", f"{by} names it")
    have = ", ".join([other for other in NAMES if other == "numpy" or (compiled and _installed(other))])
    why = "is not installed" if compiled is not None else "cannot be called without the C extension"
    raise BackendUnavailableError(f"{by} names a BLAS that {why}; there is {have}", name=name)


def _installed(name: str) -> Library | None:
    """The library of a name, loaded if necessary."""
    for library in libraries():
        if carried_by(name, library) if name in ("numpy", "scipy") else library.name == name:
            return library
    return next(filter(None, map(_open, _files(name))), None)


def _files(name: str) -> Iterator[str]:
    """Possible paths of the library of a name."""
    if name in ("numpy", "scipy"):
        yield from map(str, _carried(name))
        return
    stem = {"mkl": "mkl_rt", "blis": "blis"}[name]
    for folder in ("lib", "Library/bin"):
        yield from map(str, sorted(Path(sys.prefix, folder).glob(f"*{stem}*.[ds][oly]*")))
    from ctypes.util import find_library  # it imports subprocess, which is rarely needed

    known = find_library(stem)
    if known is not None:
        yield known


def _text(provider: Provider) -> str:
    return "NumPy" if provider.library is None else provider.library.path


def _choose() -> Provider:
    found = libraries()
    own = next((library for library in found if carried_by("numpy", library)), None)
    switch = os.environ.get(BLAS_VARIABLE, "auto")
    if switch not in CHOICES:
        raise ArgumentError(
            f"{BLAS_VARIABLE}={switch!r} names no BLAS; the choices are {', '.join(CHOICES)}", variable=BLAS_VARIABLE
        )
    if switch in ("default", "numpy"):
        return Provider(own, True, f"{BLAS_VARIABLE}={switch} leaves the choice to NumPy")
    if compiled is None:
        return Provider(own, True, "without the C extension products are NumPy's")
    if switch in NAMES:
        return _by_name(switch, f"{BLAS_VARIABLE}={switch}")
    if own is None or own.name != "openblas":
        return Provider(own, True, "NumPy does not carry an OpenBLAS")
    if own.core not in FALLBACK_CORES:
        return Provider(own, True, f"NumPy's OpenBLAS has chosen {own.core} kernels")
    if os.environ.get(CORE_VARIABLE):
        return Provider(own, True, f"{CORE_VARIABLE} is set")
    if not runs_wide() or not (switch == "avx512" or gains_from_wide()):
        return Provider(own, True, f"{own.core} kernels fit this processor")
    return _widened(own, [library for library in found if library is not own])


def _widened(own: Library, others: list[Library]) -> Provider:
    """SciPy's copy with AVX-512 kernels, if it uses them or can still be made to."""
    for library in others:
        if library.core == AVX512_CORE and library.gemm:
            return Provider(library, False, f"it has {AVX512_CORE} kernels; NumPy's has {own.core}")
    if any(carried_by("scipy", library) for library in others):
        return Provider(
            own,
            True,
            f"SciPy was loaded before, with other kernels; set {CORE_VARIABLE}={AVX512_CORE} in the environment",
        )
    for path in _carried("scipy"):
        loaded = _loaded_with(str(path), AVX512_CORE)
        if loaded is not None and loaded.core == AVX512_CORE and loaded.gemm:
            return Provider(loaded, False, f"NumPy's OpenBLAS has chosen {own.core} on an AVX-512 processor")
    return Provider(own, True, "SciPy carries no OpenBLAS that could be loaded with AVX-512 kernels")


def _loaded_with(path: str, core: str) -> Library | None:
    """Load a library while the environment names its kernels; the library reads the name once, at load time."""
    os.environ[CORE_VARIABLE] = core
    try:
        return _open(path)
    finally:
        del os.environ[CORE_VARIABLE]


def processor() -> dict[str, str]:
    """Linux's description of the first processor; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    return dict(re.findall(r"^(\S[^:\t]*?)\s*: ?(.*)$", text.partition("\n\n")[0], re.MULTILINE))


def runs_wide() -> bool:
    """Whether the processor runs the AVX-512 kernels.

    >>> runs_wide() or not gains_from_wide()
    True
    """
    return set(processor().get("flags", "").split()) >= AVX512_FLAGS


def gains_from_wide() -> bool:
    """Whether they are faster there than the AVX2 kernels; they are not on AMD's processors before Zen 5."""
    seen = processor()
    halved = seen.get("vendor_id") == "AuthenticAMD" and int(seen.get("cpu family", "0")) < ZEN_5
    return runs_wide() and not halved


def report() -> dict[str, Any]:
    """BLAS section of `tenferro_cpu.info`: every loaded BLAS with its kernels and threads, and the chosen one.

    >>> sorted(report())
    ['libraries', 'provider', 'why']
    """
    chosen = provider()
    return {
        "provider": _named(chosen.library) if chosen.library is not None else f"NumPy {np.__version__}",
        "why": chosen.why,
        "libraries": {library.path: _named(library) for library in libraries()},
    }


def _named(library: Library) -> str:
    core = f" {library.core}" if library.core else ""
    return f"{library.name}{core}, {library.get_threads()} threads, {8 * library.integers}-bit integers"
