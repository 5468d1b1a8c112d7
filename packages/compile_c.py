"""The build hook of distributions with C code: compiles their extension module where that is possible.

The compiler is ``$CC``, else the system's, else the one of the PyPI package ziglang, which is asked for only then.
Without Python's headers, on free-threaded Python, or with ``TENFERRO_PURE=1``, the wheel is pure Python and works
without the extension.

`[tool.hatch.build.hooks.custom]` of a distribution says what there is to compile::

    extension = "tenferro_cpu.native._compiled"   # the module; all .c files below its package belong to it

Files that end in ``.simd.c`` are compiled once for each vector level, with ``LEVEL`` defined as its name; their
functions carry the level in their names, and the module chooses among them when it is loaded.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # tests compile without a build backend
    BuildHookInterface = object

LEVELS = {
    "x86_64": {
        "v2": ("-march=x86-64-v2",),
        "v3": ("-march=x86-64-v3",),
        "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    },
    "aarch64": {"neon": ("-march=armv8-a",)},
    "arm64": {"neon": ("-march=armv8-a",)},
}
"""Vector levels of a processor family, with the flags of each."""

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
                compile_extension(package, target)
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


def compile_extension(package: Path, target: Path, more: tuple[str, ...] = (), link_more: tuple[str, ...] = ()) -> None:
    """Compile all C files below a package into one extension module.

    Args:
        package: the folder of the sources.
        target: the file of the module.
        more: further flags, as of a sanitizer; vector levels above the first, which take longest, are left without.
        link_more: further arguments of the linker.
    """
    import numpy as np

    compiler = compiler_of_system() or [sys.executable, "-m", "ziglang", "cc"]
    includes = [f"-I{path}" for path in (package, sysconfig.get_path("include"), np.get_include())]
    if sys.platform == "darwin":
        link = ("-bundle", "-undefined", "dynamic_lookup")
    else:
        link = ("-shared",)
    sources = sorted(package.rglob("*.c"))
    identity = [*compiler, version_of(compiler), sys.version, np.__version__]
    levels, zig = LEVELS.get(platform.machine(), {"generic": ()}), "ziglang" in compiler
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(os.environ.get("TENFERRO_BUILD_CACHE") or folder)
        kept.mkdir(parents=True, exist_ok=True)

        def compiled(job: tuple[Path, tuple[str, ...]]) -> str:
            source, extra = job
            key = [*identity, source.name, *texts(source, package), *FLAGS, *extra]
            found = kept / f"{source.stem}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.o"
            if not found.exists():
                made = Path(folder, found.name + ".new")
                command = [*compiler, *FLAGS, *extra, *includes, "-c", str(source), "-o", str(made)]
                subprocess.run(command, check=True, capture_output=True, text=True)
                shutil.move(made, found)
            return str(found)

        jobs: list[tuple[Path, tuple[str, ...]]] = []
        for source in sources:
            if source.name.endswith(".simd.c"):
                first = next(iter(levels))
                for level, flags in levels.items():
                    spelled = zig_flags(flags) if zig else flags
                    jobs.append((source, (f"-DLEVEL={level}", *spelled, *(more if level == first else ()))))
            else:
                jobs.append((source, more))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, jobs))
        linked = Path(folder, target.name)
        command = [*compiler, *link, "-pthread", *objects, *link_more, "-lm", "-o", str(linked)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        # A file that is replaced, not written to: processes that have the old one loaded keep it.
        fresh = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(linked, fresh)
        os.replace(fresh, target)


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
