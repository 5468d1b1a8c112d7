"""Rendered GPU kernels run by the processor: their text is compiled as C++, and work items are run one after the other.

What a kernel computes is tested so without a GPU. Work items that meet at a barrier are fibers of one thread.
"""

import atexit
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tenferro_tensor.device_model import CompiledSpec, Compiler, ProgramSpec

COMPILER = shutil.which("g++")

_SHIM = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
using namespace std;
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(N)
struct Index { unsigned x; };
static Index threadIdx, blockIdx, blockDim, gridDim;
template <class To, class From> static To bits_of(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static float __int_as_float(int x) { return bits_of<float>(x); }
static int __float_as_int(float x) { return bits_of<int>(x); }
static double __longlong_as_double(long long x) { return bits_of<double>(x); }
static long long __double_as_longlong(double x) { return bits_of<long long>(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static ucontext_t scheduler, *current;
static void __syncthreads() { swapcontext(current, &scheduler); }
typedef void (*Run)(void**);
static Run running;
static void** arguments;
static bool finished;
extern "C" { bool backwards = false; }
static void fiber() { running(arguments); finished = true; }
static void run_grid(Run run, bool barriers, unsigned grid, unsigned block, void** args) {
    const size_t stack = 1 << 16;
    gridDim.x = grid; blockDim.x = block; running = run; arguments = args;
    if (!barriers) {
        for (unsigned k = 0; k < grid * block; ++k) {
            const unsigned item = backwards ? grid * block - 1 - k : k;
            blockIdx.x = item / block; threadIdx.x = item % block;
            run(args);
        }
        return;
    }
    ucontext_t* fibers = new ucontext_t[block];
    char* stacks = (char*)malloc(stack * block);
    bool* done = new bool[block];
    for (unsigned k = 0; k < grid; ++k) {
        const unsigned b = backwards ? grid - 1 - k : k;
        for (unsigned t = 0; t < block; ++t) {
            getcontext(&fibers[t]);
            fibers[t].uc_stack.ss_sp = stacks + stack * t;
            fibers[t].uc_stack.ss_size = stack;
            fibers[t].uc_link = &scheduler;
            makecontext(&fibers[t], fiber, 0);
            done[t] = false;
        }
        for (unsigned left = block; left;)
            for (unsigned j = 0; j < block; ++j) {
                const unsigned t = backwards ? block - 1 - j : j;
                if (done[t]) continue;
                blockIdx.x = b; threadIdx.x = t; finished = false; current = &fibers[t];
                swapcontext(&scheduler, current);
                if (finished) { done[t] = true; --left; }
            }
    }
    delete[] done; free(stacks); delete[] fibers;
}
"""

_SIGNATURE = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\(\s*([^)]*)\)\n\{(.*?)\n\}\n', re.S)


def _driver(name: str, signature: str, body: str) -> str:
    passed = []
    for k, argument in enumerate(re.sub(r"\s+", " ", signature).split(", ")):
        kind = argument.rsplit(" ", 1)[0].replace("__restrict__", "").strip()
        passed.append(f"({kind})args[{k}]" if "*" in kind else f"({kind})(intptr_t)args[{k}]")
    barriers = "true" if "__syncthreads" in body else "false"
    return (
        f"static void call_{name}(void** args) {{ {name}({', '.join(passed)}); }}\n"
        f'extern "C" void run_{name}(unsigned grid, unsigned block, void** args) '
        f"{{ run_grid(call_{name}, {barriers}, grid, block, args); }}\n"
    )


@cache
def _folder() -> Path:
    made = tempfile.mkdtemp(prefix="host-kernels-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


_OPTIONS = ("-std=c++17", "-O0", "-w", "-ffp-contract=off", "-fPIC")


def _compiled(text: str, path: Path, *options: str) -> Path:
    assert COMPILER is not None
    done = subprocess.run([COMPILER, *_OPTIONS, *options, "-o", str(path)], input=text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr[:4000]
    return path


@cache
def _shim() -> Path:
    """The shim as a header that is compiled already, which most of the time would go into."""
    header = _folder() / "shim.h"
    header.write_text(_SHIM)
    _compiled("", header.with_suffix(".h.gch"), "-x", "c++-header", str(header))
    return header


@cache
def library_of(source: str) -> Path:
    """A shared library with a function ``run_<kernel>`` for each kernel of a source."""
    text = source + "\n".join([_driver(*found) for found in _SIGNATURE.findall(source)])
    path = _folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.so"
    return _compiled(text, path, "-include", str(_shim()), "-shared", "-x", "c++", "-")


class HostFunction:
    """A kernel of a library, called as CuPy calls a function of a module: buffers and integers in order.

    Args:
        path: the library.
        entry: name of the kernel.
        backwards: run groups, and work items between barriers, from the last one to the first one.
    """

    def __init__(self, path: Path, entry: str, backwards: bool = False) -> None:
        library = ctypes.CDLL(str(path))
        self._run = getattr(library, f"run_{entry}")
        self._run.restype = None
        self._order, self._backwards = ctypes.c_bool.in_dll(library, "backwards"), backwards
        self.launches: list[tuple[int, int]] = []

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        words = [a if isinstance(a, int) else a.__array_interface__["data"][0] for a in args]
        array = (ctypes.c_void_p * len(words))(*[w & (2**64 - 1) for w in words])
        self.launches.append((grid[0], block[0]))
        self._order.value = self._backwards
        self._run(grid[0], block[0], array)


class HostCompiler(Compiler):
    """Compiles for the processor; the code is the path of the library."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        self.sources.append(spec.source)
        path = library_of(spec.source)
        return CompiledSpec(spec, str(path), path.stem)
