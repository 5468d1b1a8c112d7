"""Kernels for another processor, run in an emulator: a program of all of them, memory that calls share, and its end.

LLVM compiles the texts, a cross compiler links them with a driver in C, and `qemu-aarch64` runs it. Memory is laid out
here, at the addresses that it will have there: so pointers can be written into it.
"""

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_cpu.native
from assembly import HOSTS, module, target_machine

HOST = HOSTS["neon"]
LINKER, EMULATOR = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
BASE = 0x40_0000_0000
"""Address of the memory."""

LINE = 64

_DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "levels.h"
#include "threads/team.h"
enum tenferro_level tenferro_level = TENFERRO_BASE;
char tenferro_ndarray;
void *tenferro_save_thread(void) { return 0; }
void tenferro_restore_thread(void *state) {}
void tenferro_incref(void *object) {}
void tenferro_decref(void *object) {}
void *tenferro_new_from_descr(void) { abort(); }
void *tenferro_vectorcall(void) { abort(); }
int64_t tenferro_long_as_long(void *value, int *overflow) { abort(); }
int64_t tenferro_team_allowed(void) { return tenferro_team.allowed; }
typedef void (*Call)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
int main(int count, char **names) {
    int64_t head[4];
    FILE *file = fopen(names[1], "r+b");
    if (fread(head, 8, 4, file) != 4) return 1;
    void *base = (void *)head[0];
    if (mmap(base, head[1], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != base) return 2;
    if (fread(base, 1, head[1], file) != (size_t)head[1]) return 3;
    tenferro_team.cores = tenferro_team.allowed = head[3];
    for (int64_t k = 0; k < head[2]; ++k) {
        int64_t call[7];
        if (fread(call, 8, 7, file) != 7) return 4;
        ((Call)call[0])(call[1], call[2], call[3], call[4], call[5], call[6]);
    }
    rewind(file);
    if (fseek(file, 32, SEEK_SET) || fwrite(base, 1, head[1], file) != (size_t)head[1]) return 5;
    fclose(file);
    _Exit(0);
}
"""


class Memory:
    """Memory of a run: arrays are put into it before, and read from it after."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, bytes]] = []
        self._end = BASE
        self._moved: list[tuple[int, int, int]] = []
        self.after = b""

    def room(self, nbytes: int, content: bytes = b"") -> int:
        """The address of a place."""
        at, self._end = self._end, self._end + -(-max(nbytes, 1) // LINE) * LINE + LINE
        self._parts.append((at, content))
        return at

    def put(self, x: Any, content: bytes | None = None) -> int:
        """The address of the first element of an array that lies as `x` does, with its content or another one."""
        low, high = np.lib.array_utils.byte_bounds(x)
        if content is None:
            content = ctypes.string_at(low, high - low) if x.size else b""
        at = self.room(high - low, content)
        self._moved.append((low, high, at))
        return at + x.ctypes.data - low

    def words(self, words: Iterable[int]) -> int:
        """The address of 64-bit words."""
        raw = np.array([*words], np.int64).tobytes()
        return self.room(len(raw), raw)

    def there(self, word: int) -> int:
        """A word, as the address of what has been put here if it is one of these, lately if memory was used again."""
        return next((at + word - low for low, high, at in reversed(self._moved) if low <= word < high), word)

    def image(self) -> bytes:
        """All of it, before."""
        raw = bytearray(self._end - BASE)
        for at, content in self._parts:
            raw[at - BASE : at - BASE + len(content)] = content
        return bytes(raw)

    def read(self, at: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array in order, after."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.after, dtype, count, at - BASE).reshape(shape)


class Program:
    """Kernels and the thread team as a program for `HOST`.

    Args:
        texts: LLVM modules.
        sources: C files below the package `tenferro_cpu.native`.
        glue: C text.
    """

    def __init__(self, texts: Iterable[str], sources: Iterable[Path] = (), glue: str = "") -> None:
        folder = tempfile.mkdtemp(prefix="emulated-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self._path = Path(folder) / "program"
        self._link(list(texts), [*map(str, sources)], glue)
        self._addresses = self._named()

    def _link(self, texts: list[str], more: list[str], glue: str) -> None:
        assert LINKER is not None
        machine, objects = target_machine(HOST), []
        for number, text in enumerate(texts):
            path = self._path.with_name(f"{number}.o")
            path.write_bytes(machine.emit_object(module(text, HOST)))
            objects.append(str(path))
        driver = self._path.with_name("driver.c")
        driver.write_text(_DRIVER + glue)
        native = Path(tenferro_cpu.native.__file__).parent
        names = {"parallel_for": "team_run", "allowed": "team_allowed"}
        symbols = [f"-Wl,--defsym=tenferro_{name}=tenferro_{own}" for name, own in names.items()]
        command = [
            LINKER,
            "-w",
            "-O1",
            "-static",
            "-no-pie",
            "-pthread",
            "-DLEVEL=neon",
            f"-I{native}",
            *symbols,
            "-o",
            str(self._path),
        ]
        sources = [str(driver), str(native / "threads" / "team.c"), *more, *objects, "-lm"]
        done = subprocess.run([*command, *sources], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]

    def _named(self) -> dict[str, int]:
        assert LINKER is not None
        done = subprocess.run(
            [LINKER.removesuffix("gcc") + "nm", str(self._path)], capture_output=True, text=True, check=True
        )
        rows = [line.split() for line in done.stdout.splitlines()]
        return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}

    def address(self, name: str) -> int:
        """Where a function is."""
        return self._addresses[name]

    def run(self, memory: Memory, calls: Iterable[tuple[str, tuple[int, ...]]], threads: int = 1) -> None:
        """Make calls one after the other, with up to six words; `memory` has what they leave."""
        assert EMULATOR is not None
        rows = [[self._addresses[name], *words, *[0] * (6 - len(words))] for name, words in calls]
        image = memory.image()
        file = self._path.with_name("memory")
        head = np.array([BASE, len(image), len(rows), threads], np.int64)
        file.write_bytes(head.tobytes() + image + np.array(rows, np.int64).tobytes())
        done = subprocess.run([EMULATOR, str(self._path), str(file)], capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stderr[:2000])
        memory.after = file.read_bytes()[32 : 32 + len(image)]
