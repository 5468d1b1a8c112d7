"""NVRTC and hipRTC, the libraries that compile kernels at run time; they need neither driver nor device.

They share one interface, except for the prefix of function names and the name of the code.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tenferro_tensor.device_model import CompileError
from tenferro_tensor_core import BackendUnavailableError


class _Dialect(NamedTuple):
    prefix: str
    code: str
    options: tuple[str, ...]
    files: tuple[str, ...]
    install: str


# Products are not contracted with sums, so that a fused kernel is bit-equal to its steps.
_DIALECTS: Final = {
    "cuda": _Dialect(
        "nvrtc", "CUBIN",
        ("--gpu-architecture=sm_{}", "--std=c++17", "--fmad=false", "-w"),
        ("libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"),
        "pip install nvidia-cuda-nvrtc (for CUDA 12 nvidia-cuda-nvrtc-cu12), or install the CUDA toolkit",
    ),
    "rocm": _Dialect(
        "hiprtc", "Code",
        ("--offload-arch={}", "-std=c++17", "-ffp-contract=off", "-w"),
        ("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so"),
        "install ROCm",
    ),
}  # fmt: skip


class RuntimeLibrary:
    """A loaded compiler library.

    Methods take:
        source: source text.
        architecture: as `Capabilities.architecture` names it.

    Methods return:
        The options, or the compiled code.

    Attributes:
        kind: kind of device that it compiles for.
        version: its version, major and minor.
    """

    def __init__(self, kind: str, library: ctypes.CDLL) -> None:
        self.kind: str = kind
        self._library = library
        self._dialect = _DIALECTS[kind]
        self._error = self._function("GetErrorString")
        self._error.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call(self._function("Version"), ctypes.byref(major), ctypes.byref(minor))
        self.version: tuple[int, int] = major.value, minor.value

    def options(self, architecture: str) -> tuple[str, ...]:
        """Compiler options of the library."""
        return tuple([option.format(architecture) for option in self._dialect.options])

    def compile(self, source: str, architecture: str) -> bytes:
        """Compile a source.

        Raises:
            CompileError: the compiler rejects it; the text quotes the compiler.
        """
        return self._compiled(source, architecture, self.options(architecture))[0]

    def _compiled(self, source: str, architecture: str, options: tuple[str, ...]) -> tuple[bytes, str]:
        """Compile a source; returns the code and the messages of the compiler."""
        program = ctypes.c_void_p()
        self._call(self._function("CreateProgram"), ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        try:
            array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
            status = self._function("CompileProgram")(program, len(options), array)
            log = self._bytes("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
            if status:
                raise CompileError(
                    f"{self._dialect.prefix} refuses a kernel for {architecture}: {self._what(status)}\n{log}",
                    architecture=architecture,
                )
            return self._bytes(self._dialect.code, program), log
        finally:
            self._function("DestroyProgram")(ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(self._function(f"Get{what}Size"), program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(self._function(f"Get{what}"), program, text)
        return text.raw

    def _function(self, name: str) -> ctypes._NamedFuncPointer:
        return self._library[self._dialect.prefix + name]

    def _call(self, function: ctypes._NamedFuncPointer, *args: object) -> None:
        status = function(*args)
        if status:
            raise CompileError(f"{function.__name__} failed: {self._what(status)}")

    def _what(self, status: int) -> str:
        return self._error(status).decode(errors="replace")  # type: ignore[no-any-return]


@cache
def runtime_library(kind: str, major: int | None = None) -> RuntimeLibrary:
    """The library for a kind of device: from an installed wheel, or found by the system.

    Args:
        kind: ``"cuda"`` or ``"rocm"``.
        major: required major version, so that the driver accepts its code; by default any.

    Returns:
        The library.

    Raises:
        BackendUnavailableError: there is none; the text says what to install.
    """
    dialect, tried = _DIALECTS[kind], []
    for path in _candidates(dialect.files):
        try:
            found = RuntimeLibrary(kind, ctypes.CDLL(path))
        except OSError:
            continue
        if major is None or found.version[0] == major:
            return found
        tried.append(f"{path} of version {'.'.join(map(str, found.version))}")
    wanted = dialect.prefix if major is None else f"{dialect.prefix} of version {major}"
    raise BackendUnavailableError(
        f"fused kernels for {kind} were requested, but {wanted} is not found (only {', '.join(tried) or 'nothing'}); "
        f"{dialect.install}",
        backend=kind,
    )


def _candidates(files: tuple[str, ...]) -> Iterator[str]:
    for folder in [Path(p) / "nvidia" for p in sys.path]:
        for name in files:
            yield from map(str, sorted(folder.glob(f"*/lib/{name}")) + sorted(folder.glob(f"*/bin/**/{name}")))
    for variable in ("CUDA_PATH", "CUDA_HOME", "ROCM_PATH"):
        if variable in os.environ:
            for name in files:
                for inner in ("lib64", "lib", "bin"):
                    path = Path(os.environ[variable]) / inner / name
                    if path.exists():
                        yield str(path)
    yield from files
