"""The build hook of distributions with C code: compiles their extension module where that is possible.

The compiler is ``$CC``, else the system's, else the one of the PyPI package ziglang, which is asked for only then.
Without Python's headers, on free-threaded Python, or with ``TENFERRO_PURE=1``, the wheel is pure Python and works
without the extension.

`[tool.hatch.build.hooks.custom]` of a distribution says what there is to compile::

    extension = "tenferro_cpu.native._compiled"   # the module; all .c files below its package belong to it

Files that end in ``.simd.c`` are compiled once for each vector level, with ``LEVEL`` defined as its name; their
functions carry the level in their names, and the module chooses among them when it is loaded. Only the level of this
processor is compiled, for whoever uses an installation where it is built. ``TENFERRO_BUILD_LEVELS=all`` compiles every
level, as wheels for others need, and names of levels (``generic``, ``avx2``, ``avx512``) with commas between them
compile these. ``TENFERRO_BUILD_PROGRESS`` names a file that receives the lines on progress too: tools that install hide
what a build says.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # tests compile without a build backend
    BuildHookInterface = object

LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "v2": ("-march=x86-64-v2",),
        "v3": ("-march=x86-64-v3",),
        "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    },
    "aarch64": {"neon": ("-march=armv8-a",)},
    "arm64": {"neon": ("-march=armv8-a",)},
}
"""Vector levels of a processor family, lowest first, with the flags of each."""

LEVEL_NAMES = ("generic", "avx2", "avx512")
"""The levels of x86-64 as the environment and `tenferro_cpu.info` name them."""

FLAGS = (
    "-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-ffp-contract=off", "-pthread",
    "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Wno-psabi",
    "-Wno-unknown-warning-option", "-DNDEBUG",
)  # fmt: skip
"""Sums of products are fused only where the source says so: results must not depend on the compiler.

Assertions of Python's headers would cost time in every call, and would write the paths of this machine into the wheel.
"""


class CompileC(BuildHookInterface):
    """Adds the extension module to a wheel, or leaves the wheel pure and says why."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs here: NumPy's headers, and a compiler where the system has none."""
        if self._pure_because():
            return []
        return ["numpy>=2", *([] if compiler_of_system() else ["ziglang>=0.13"])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, next to the sources for an editable install as for a wheel."""
        module = self.config["extension"]
        package = Path(self.root, "src", *module.split(".")[:-1])
        target = package / f"{module.rpartition('.')[2]}{sysconfig.get_config_var('EXT_SUFFIX')}"
        reason = self._pure_because()
        if not reason:
            try:
                named = version == "editable" or sys.platform == "darwin"
                compile_extension(package, target, link_more=() if named else ("-s",))  # -s: no symbols in a wheel
            except (OSError, subprocess.CalledProcessError) as error:
                output = getattr(error, "stderr", None) or ""
                if os.environ.get("TENFERRO_PURE") == "0":  # compiling is required
                    raise RuntimeError(f"{module} does not compile: {error}\n{output}") from error
                reason = f"{error}: {output[-2000:]}"
        if reason:
            self.app.display_warning(f"{module} is left out, NumPy's kernels stand in for it: {reason}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(f"/{target.relative_to(self.root).as_posix()}")

    def _pure_because(self) -> str:
        if self.target_name != "wheel":
            return "only wheels hold machine code"
        if os.environ.get("TENFERRO_PURE") == "1":
            return "TENFERRO_PURE=1"
        if sys.implementation.name != "cpython" or os.name != "posix":
            return f"there is no build for {sys.implementation.name} on {sys.platform}"
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return "the C code counts on the interpreter's lock, which free-threaded Python has not"
        header = Path(sysconfig.get_path("include"), "Python.h")
        return "" if header.exists() else f"Python's headers are not installed ({header})"


def compiler_of_system() -> list[str]:
    """The command of the C compiler, or an empty list."""
    chosen = shlex.split(os.environ.get("CC", ""))
    return chosen or next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), [])


def compile_extension(
    package: Path, target: Path, more: tuple[str, ...] = (), link_more: tuple[str, ...] = (), levels: str = ""
) -> None:
    """Compile all C files below a package into one extension module.

    Args:
        package: the folder of the sources.
        target: the file of the module.
        more: further flags, as of a sanitizer; vector levels above the first, which take longest, are left without.
        link_more: further arguments of the linker.
        levels: vector levels as in the environment variable, which it replaces.
    """
    import numpy as np

    compiler = compiler_of_system() or [sys.executable, "-m", "ziglang", "cc"]
    includes = [f"-I{path}" for path in (package, sysconfig.get_path("include"), np.get_include())]
    if sys.platform == "darwin":
        link: tuple[str, ...] = ("-bundle", "-undefined", "dynamic_lookup")
    else:
        link = ("-shared",)
    identity = [*compiler, version_of(compiler), sys.version, np.__version__]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(os.environ.get("TENFERRO_BUILD_CACHE") or folder)
        kept.mkdir(parents=True, exist_ok=True)
        jobs = jobs_of(package, levels_to_build(package, compiler, levels), zig="ziglang" in compiler, more=more)
        progress = Progress(next((part for part in package.parts if part.startswith("tenferro_")), "C"), len(jobs))

        def compiled(job: Job) -> str:
            key = [*identity, job.source.name, *job.texts, *FLAGS, *job.flags]
            found = kept / f"{job.source.stem}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.o"
            if not found.exists():
                made = Path(folder, found.name + ".new")
                command = [*compiler, *FLAGS, *job.flags, *includes, "-c", str(job.source), "-o", str(made)]
                subprocess.run(command, check=True, capture_output=True, text=True)
                shutil.move(made, found)
            progress.step()
            return str(found)

        with ThreadPoolExecutor(cores()) as pool:
            objects = list(pool.map(compiled, jobs))
        linked = Path(folder, target.name)
        # The order of objects must not depend on that of the jobs: equal sources make equal modules.
        command = [*compiler, *link, "-pthread", *sorted(objects, key=os.path.basename), *link_more]
        subprocess.run([*command, "-lm", "-o", str(linked)], check=True, capture_output=True, text=True)
        # A file that is replaced, not written to: processes that have the old one loaded keep it.
        fresh = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(linked, fresh)
        os.replace(fresh, target)


class Job(NamedTuple):
    """One call of the compiler: a source file, the texts that it consists of, and flags."""

    source: Path
    texts: list[str]
    flags: tuple[str, ...]


def jobs_of(package: Path, levels: list[str], zig: bool = False, more: tuple[str, ...] = ()) -> list[Job]:
    """What there is to compile below a package, in an order that keeps all processors busy to the end.

    Files with vector levels come first, and those with more text before others: templates take the most time.
    """
    known = LEVELS.get(platform.machine(), {"generic": ()})
    built = sum(1 << number for number, level in enumerate(known) if level in levels)
    first, jobs = next(iter(known)), []
    for source in sorted(package.rglob("*.c")):
        text = texts(source, package)
        if not source.name.endswith(".simd.c"):
            jobs.append(Job(source, text, (f"-DTENFERRO_BUILT={built}", *more)))
            continue
        for level in levels:
            spelled = zig_flags(known[level]) if zig else known[level]
            jobs.append(Job(source, text, (f"-DLEVEL={level}", *spelled, *(more if level == first else ()))))
    return sorted(jobs, key=lambda job: (not job.source.name.endswith(".simd.c"), -sum(map(len, job.texts))))


def levels_to_build(package: Path, compiler: list[str], asked: str = "") -> list[str]:
    """The vector levels that are asked for, here or in the environment, else that of this processor, else all."""
    known = list(LEVELS.get(platform.machine(), {"generic": ()}))
    asked = asked or os.environ.get("TENFERRO_BUILD_LEVELS") or "own"
    if len(known) == 1 or asked == "all":
        return known
    if asked != "own":
        named = dict(zip(LEVEL_NAMES, known))
        if unknown := set(asked.split(",")) - set(named):
            raise OSError(f"TENFERRO_BUILD_LEVELS={asked} names {', '.join(sorted(unknown))}; choose {[*named]} or all")
        return [level for name, level in named.items() if name in asked.split(",")]
    header = next(package.rglob("processor.h"), None)
    if header is None:
        return known
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "own.c"), str(Path(folder, "own"))
        source.write_text(f'#include "{header}"\nint main(void) {{ return (int)best_level(); }}\n')
        made = subprocess.run([*compiler, f"-I{header.parent}", str(source), "-o", program], capture_output=True)
        number = subprocess.run([program]).returncode if made.returncode == 0 else -1
    return [known[number]] if 0 <= number < len(known) else known


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Progress:
    """Says how far the compilation of a module is, on stderr and in the file that the environment names."""

    def __init__(self, module: str, total: int) -> None:
        self._module, self._total, self._done, self._shown = module, total, 0, 0.0
        self._lock, self._start = threading.Lock(), time.monotonic()

    def step(self) -> None:
        """Another file is compiled."""
        with self._lock:
            self._done += 1
            now = time.monotonic()
            if self._done < self._total and now - self._shown < 2:
                return
            self._shown = now
            line = f"compiling {self._module}: {self._done} of {self._total} files, {now - self._start:.0f} s\n"
            sys.stderr.write(line)
            if file := os.environ.get("TENFERRO_BUILD_PROGRESS"):
                with open(file, "a") as stream:
                    stream.write(line)


def texts(source: Path, package: Path) -> list[str]:
    """A source file and the files of the package that it includes, directly or not."""
    found = {source: source.read_text()}
    waiting = [source]
    while waiting:
        including = waiting.pop()
        for name in re.findall(r'^ *# *include "(.+)"', found[including], re.MULTILINE):
            header = next(path for path in (including.parent / name, package / name) if path.exists())
            if header not in found:
                found[header] = header.read_text()
                waiting.append(header)
    return list(found.values())


def zig_flags(flags: tuple[str, ...]) -> list[str]:
    """The flags as Zig spells them: ``-mcpu=x86_64_v4``."""
    return [f"-mcpu={f.removeprefix('-march=').replace('-', '_')}" if f.startswith("-march=") else f for f in flags]


def version_of(compiler: list[str]) -> str:
    """What the compiler says of itself."""
    return subprocess.run([*compiler, "--version"], check=True, capture_output=True, text=True).stdout
