"""Extensions that were compiled with a sanitizer, in place of the installed ones; as a plugin (``-p instrumented``).

`build` makes them. In a process with the variable `FOLDER` the import system finds them there.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

FOLDER: Final = "TENFERRO_INSTRUMENTED"
ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "tests" / "native" / "c"
EXTENSIONS: Final = {
    "tenferro_cpu.native._compiled": ROOT / "packages/cpu/src/tenferro_cpu/native",
    "tenferro_tensor._accelerated": ROOT / "packages/tensor/src/tenferro_tensor",
}
SANITIZERS: Final = (
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1", "-O0",
)  # fmt: skip
WRAPPED: Final = ("malloc", "calloc", "free", "mmap", "munmap")
"""Functions that ``faults.c`` stands in for."""


@cache
def compiler() -> ModuleType:
    """The module that builds extensions."""
    spec = importlib.util.spec_from_file_location("compile_c", ROOT / "packages" / "compile_c.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def run(command: list[str], environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """The outcome of a command, whatever it is."""
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


def runtime_of(sanitizer: str) -> str:
    """The file of a sanitizer's library that is loaded before Python, or "" where the compiler has none."""
    command = compiler().compiler_of_system()
    names = (f"lib{sanitizer}.so", f"libclang_rt.{sanitizer}-{os.uname().machine}.so")
    found = [run([*command, f"-print-file-name={name}"]).stdout.strip() for name in names] if command else []
    return next((path for path in found if os.path.isabs(path) and os.path.exists(path)), "")


def build(folder: Path, flags: tuple[str, ...]) -> None:
    """Compile all extensions with more flags, vector code of the first level only, and link ``faults.c`` into each.

    The assertions of Python's headers are checked here.
    """
    have, faults = compiler(), str(folder / "faults.o")
    source = str(SOURCES / "faults.c")
    done = run([*have.compiler_of_system(), "-fPIC", *flags, "-c", source, "-o", faults])
    assert done.returncode == 0, done.stderr
    wraps = ",".join(f"--wrap={name}" for name in WRAPPED)
    for name, package in EXTENSIONS.items():
        have.compile_extension(
            package, folder / f"{name}.so", (*flags, "-UNDEBUG"), (*flags, faults, f"-Wl,{wraps}"), "generic"
        )


def sanitized(folder: Path) -> dict[str, str]:
    """Build all extensions in a folder with AddressSanitizer and UBSan.

    Returns:
        Variables of processes that import them; they import this module first. Empty where the compiler cannot.
    """
    runtime = runtime_of("asan") if sys.platform == "linux" else ""
    if not runtime:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    build(folder, SANITIZERS)
    return {
        FOLDER: str(folder),
        # The library that C++ code throws by comes with it, or ASan does not find its functions.
        "LD_PRELOAD": " ".join(filter(None, (runtime, runtime_of("stdc++")))),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(ROOT / "tests" / "support"),
    }


class Finder:
    """Finds the extensions in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """As the import system asks for."""
        if name not in EXTENSIONS:
            return None
        file = str(self._folder / f"{name}.so")
        loader = importlib.machinery.ExtensionFileLoader(name, file)
        return importlib.util.spec_from_file_location(name, file, loader=loader)


def faults(extension: str) -> ctypes.PyDLL:
    """The functions of ``faults.c`` inside of an extension that is loaded."""
    return ctypes.PyDLL(sys.modules[extension].__file__)


if FOLDER in os.environ:
    sys.meta_path.insert(0, Finder(Path(os.environ[FOLDER])))
