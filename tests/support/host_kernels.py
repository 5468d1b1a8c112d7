"""Rendered GPU kernels run by the processor: their text is compiled as C++, and work items are fibers.

What a kernel computes is tested so without a GPU, in several orders of the work items; and every launch is checked for
races between them (`emulated_gpu/scheduler.cpp`).
"""

import atexit
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from tenferro_tensor.device_model import CompiledSpec, Compiler, ProgramSpec

COMPILER = shutil.which("g++")

Order = Literal["forwards", "backwards", "random"]
"""Order of groups, and of work items between barriers; in random order they alternate at any access to memory."""

ORDERS: Final[tuple[Order, ...]] = ("forwards", "backwards", "random")

_EMULATOR: Final = Path(__file__).parent / "emulated_gpu"
_SIGNATURE = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\(\s*([^)]*)\)\n\{', re.S)
_SHARED = re.compile(r"__shared__ (.+) (\w+)\[(\d+)\];")


_LAUNCHING = threading.Lock()
"""The scheduler of a library has one launch at a time."""


class RaceError(AssertionError):
    """Work items of a launch access memory without an order."""


def _driver(name: str, signature: str) -> str:
    passed = []
    for k, argument in enumerate(re.sub(r"\s+", " ", signature).split(", ")):
        kind = argument.rsplit(" ", 1)[0].replace("__restrict__", "").strip()
        passed.append(f"({kind})args[{k}]" if "*" in kind else f"({kind})(intptr_t)args[{k}]")
    return f'extern "C" void call_{name}(void** args) {{ {name}({", ".join(passed)}); }}\n'


@cache
def _folder() -> Path:
    made = tempfile.mkdtemp(prefix="host-kernels-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


OPTIONS = ("-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fPIC")
_CHECKED = (*OPTIONS, "-fsanitize=thread")


def compiled(text: str, path: Path, *options: str) -> Path:
    assert COMPILER is not None
    done = subprocess.run([COMPILER, *options, "-o", str(path)], input=text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr[:4000]
    return path


@cache
def header(*options: str) -> Path:
    """The header for these options, compiled already, which most of the time would go into."""
    folder = _folder() / "-".join(options)
    folder.mkdir()
    path = folder / "kernel.h"
    shutil.copy(_EMULATOR / "kernel.h", path)
    compiled("", path.with_suffix(".h.gch"), *options, "-x", "c++-header", str(path))
    return path


@cache
def _scheduler() -> Path:
    return compiled("", _folder() / "scheduler.o", *OPTIONS, "-c", str(_EMULATOR / "scheduler.cpp"))


@cache
def library_of(source: str) -> Path:
    """A shared library with a function ``call_<kernel>`` for each kernel of a source, and the scheduler."""
    own = _SHARED.sub(r'\1* const \2 = (\1*)emulated_shared("\2", \3 * sizeof(\1));', source)
    text = own + "\n".join([_driver(*found) for found in _SIGNATURE.findall(source)])
    path = _folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.so"
    code = compiled(text, path.with_suffix(".o"), *_CHECKED, "-include", str(header(*_CHECKED)), "-c", "-x", "c++", "-")
    return compiled("", path, "-shared", "-Wl,-Bsymbolic", str(code), str(_scheduler()))


class HostFunction:
    """A kernel of a library, called as CuPy calls a function of a module: buffers and integers in order.

    Args:
        path: the library.
        entry: name of the kernel.
        order: of the work items.

    Raises:
        RaceError: a launch had a race.
    """

    def __init__(self, path: Path, entry: str, order: Order = "forwards") -> None:
        library = ctypes.CDLL(str(path))
        self.entry, self._order = entry, ORDERS.index(order)
        self._kernel = ctypes.cast(getattr(library, f"call_{entry}"), ctypes.c_void_p)
        self._launch = library.emulated_launch
        self._launch.restype = ctypes.c_char_p
        self.launches: list[tuple[int, int]] = []

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        words = [a if isinstance(a, int) else a.__array_interface__["data"][0] for a in args]
        array = (ctypes.c_void_p * len(words))(*[w & (2**64 - 1) for w in words])
        self.launches.append((grid[0], block[0]))
        seed = 1 + len(self.launches)
        with _LAUNCHING:
            found = self._launch(self._kernel, array, len(words), grid[0], block[0], self._order, seed)
        if found is not None:
            raise RaceError(f"{self.entry}: {found.decode()}")


class HostCompiler(Compiler):
    """Compiles for the processor; the code is the path of the library."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        self.sources.append(spec.source)
        path = library_of(spec.source)
        return CompiledSpec(spec, str(path), path.stem)

    def stats(self) -> dict[str, int]:
        """See `RuntimeCompiler.stats`."""
        return {"loaded": len({*self.sources})}
